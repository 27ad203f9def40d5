// SPDX-License-Identifier: BSD-3-Clause
#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal {

static void advance(Operand& operand, std::int64_t elements, std::int64_t rows, DType dtype) {
    // Where a matrix is factored there is no right-hand side.
    if (operand.kind == Operand::Kind::view && operand.data)
        operand.data = static_cast<char*>(operand.data) + elements * static_cast<std::int64_t>(size_of(dtype));
    else if (operand.kind == Operand::Kind::generator)
        operand.generator_shift += rows;
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
