// SPDX-License-Identifier: BSD-3-Clause
#include "problems/tridiagonal/system.hpp"

#include <algorithm>
#include <cstdlib>

namespace trifold::tridiagonal {

static void advance(Operand& operand, std::int64_t elements, std::int64_t rows, DType dtype) {
    // Where a matrix is factored there is no right-hand side.
    if (operand.kind == Operand::Kind::view && operand.data)
        operand.data = static_cast<char*>(operand.data) + elements * static_cast<std::int64_t>(size_of(dtype));
    else if (operand.kind == Operand::Kind::generator)
        operand.generator_shift += rows;
}

void order_levels(System& system) noexcept {
    Operand* const operands[] = {&system.rhs, &system.x, &system.lower, &system.diag, &system.upper, &system.top_right, &system.bottom_left};
    constexpr int most = 4;
    int order[most], kept = 0;
    bool empty = false;
    for (int d = 0; d < system.levels; ++d) {
        if (system.extent[d] != 1) order[kept++] = d;
        empty = empty || system.extent[d] == 0;
    }
    const auto apart = [&](int d) { return std::llabs(system.rhs.level_stride[d]); };
    // Few: those of equal strides stay as they are.
    for (int k = 1; k < kept && !empty; ++k)
        for (int at = k; at > 0 && apart(order[at - 1]) < apart(order[at]); --at) std::swap(order[at - 1], order[at]);
    std::int64_t stride[7][most] = {}, numbers[most] = {}, extents[most] = {1, 1, 1, 1};
    int levels = 0;
    for (int k = 0; k < kept; ++k) {
        const int d = order[k];
        bool joins = levels > 0 && numbers[levels - 1] == system.number_stride[d] * system.extent[d];
        for (int o = 0; o < 7; ++o) joins = joins && stride[o][levels - 1] == operands[o]->level_stride[d] * system.extent[d];
        if (!joins) extents[levels++] = 1;
        extents[levels - 1] *= system.extent[d];
        numbers[levels - 1] = system.number_stride[d];
        for (int o = 0; o < 7; ++o) stride[o][levels - 1] = operands[o]->level_stride[d];
    }
    system.levels = levels;
    for (int k = 0; k < most; ++k) {
        system.extent[k] = extents[k];
        system.number_stride[k] = numbers[k];
        for (int o = 0; o < 7; ++o) operands[o]->level_stride[k] = stride[o][k];
    }
}

bool is_row_of(const System& system, const Operand& corner, const Operand& band, std::int64_t row) noexcept {
    if (corner.kind != band.kind) return false;
    if (band.kind == Operand::Kind::scalar) return corner.value == band.value;
    if (band.kind == Operand::Kind::generator) return corner.generator == band.generator && corner.generator_shift == band.generator_shift + row;
    Operand expected = band;
    advance(expected, row * band.row_stride, 0, system.dtype);
    bool same = corner.data == expected.data;
    for (int d = 0; d < system.levels; ++d) same = same && (system.extent[d] == 1 || corner.level_stride[d] == band.level_stride[d]);
    return same;
}

bool have_one_matrix(const System& system) noexcept {
    for (const Operand* const band : {&system.lower, &system.diag, &system.upper}) {
        if (band->kind == Operand::Kind::scalar) continue;
        if (band->kind != Operand::Kind::view) return false;
        for (int d = 0; d < system.levels; ++d)
            if (system.extent[d] > 1 && band->level_stride[d] != 0) return false;
    }
    return true;
}

System fold_outer(const System& batch, int keep, std::int64_t index) noexcept {
    System part = batch;
    const int folded = batch.levels - keep;
    Operand* operands[] = {&part.lower, &part.diag, &part.upper, &part.rhs, &part.x, &part.top_right, &part.bottom_left};
    for (int level = folded - 1; level >= 0; --level) {
        const std::int64_t j = index % batch.extent[level];
        index /= batch.extent[level];
        part.number += j * batch.number_stride[level];
        for (Operand* operand : operands) advance(*operand, j * operand->level_stride[level], 0, batch.dtype);
    }
    for (int level = 0; level < 4; ++level) {
        const bool kept = level < keep;
        part.extent[level] = kept ? batch.extent[level + folded] : 1;
        part.number_stride[level] = kept ? batch.number_stride[level + folded] : 0;
        for (Operand* operand : operands) operand->level_stride[level] = kept ? operand->level_stride[level + folded] : 0;
    }
    part.levels = keep;
    return part;
}

System system_at(const System& batch, std::int64_t k) noexcept {
    if (!batch.offsets) return fold_outer(batch, 0, k);
    System part = batch;
    const std::int64_t first = batch.offsets[k];
    for (Operand* operand : {&part.lower, &part.diag, &part.upper, &part.rhs, &part.x})
        advance(*operand, first * operand->row_stride, first, batch.dtype);
    // The corners were set for the whole arrays' first and last row; a piece has its own.
    part.rows = batch.offsets[k + 1] - first;
    advance(part.top_right, first * part.top_right.row_stride, first, batch.dtype);
    advance(part.bottom_left, (first + part.rows - 1) * part.bottom_left.row_stride, first + part.rows - 1, batch.dtype);
    part.number = k;
    part.offsets = nullptr;
    part.ragged_systems = 0;
    return part;
}

}  // namespace trifold::tridiagonal
