// SPDX-License-Identifier: BSD-3-Clause
#include "api/tabulate.hpp"

#include <algorithm>

namespace trifold::tridiagonal {
namespace {

Operand* generated(System& system, int k) {
    Operand* const operands[] = {&system.lower, &system.diag, &system.upper};
    return operands[k]->kind == Operand::Kind::generator ? operands[k] : nullptr;
}

std::size_t one_table(const System& system) noexcept {
    const auto elements = static_cast<std::size_t>(system.rows) * static_cast<std::size_t>(system.systems());
    return (elements * size_of(system.dtype) + 63) / 64 * 64;
}

template <class T>
void fill(const Operand& operand, T* tile, std::int64_t row, std::int64_t rows, std::int64_t first_system, std::int64_t systems) {
    const Generator& g = *operand.generator;
    if constexpr (sizeof(T) == 4) g.fill_f32(tile, row + operand.generator_shift, rows, first_system, systems, g.parameters);
    else g.fill_f64(tile, row + operand.generator_shift, rows, first_system, systems, g.parameters);
}

bool side_by_side(const System& system) { return system.rhs.row_stride != 1 && system.systems() > 1; }

// The operand as a view of its table.
void point_at(const System& system, Operand& operand, void* table) {
    const bool beside = side_by_side(system);
    const std::int64_t number_stride = beside ? 1 : system.rows;
    operand.kind = Operand::Kind::view;
    operand.data = table;
    operand.row_stride = beside ? system.systems() : 1;
    for (int d = 0; d < 4; ++d) operand.level_stride[d] = d < system.levels ? system.number_stride[d] * number_stride : 0;
}

constexpr std::int64_t tile_elements = 1 << 14;

template <class T>
void tabulate_one(System& system, Operand& operand, T* table, int threads) {
    const std::int64_t n = system.rows, systems = system.systems();
    // A transposed operand's first or last row would be outside the matrix; it is never read.
    const std::int64_t from = operand.generator_shift < 0 ? 1 : 0, to = operand.generator_shift > 0 ? n - 1 : n;
    if (side_by_side(system)) {
        const std::int64_t block = std::max<std::int64_t>(1, tile_elements / systems), blocks = (to - from + block - 1) / block;
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::int64_t k = 0; k < blocks; ++k) {
            const std::int64_t row = from + k * block;
            fill(operand, table + row * systems, row, std::min(block, to - row), 0, systems);
        }
    } else {
        const std::int64_t blocks = (to - from + tile_elements - 1) / tile_elements;
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::int64_t k = 0; k < blocks * systems; ++k) {
            const std::int64_t number = k / blocks, row = from + k % blocks * tile_elements;
            fill(operand, table + number * n + row, row, std::min(tile_elements, to - row), number, 1);
        }
    }
    point_at(system, operand, table);
}

}  // namespace

bool has_generators(const System& system) noexcept {
    return system.lower.kind == Operand::Kind::generator || system.diag.kind == Operand::Kind::generator ||
           system.upper.kind == Operand::Kind::generator;
}

System with_tables(System system) noexcept {
    for (int k = 0; k < 3; ++k)
        if (Operand* const operand = generated(system, k)) point_at(system, *operand, nullptr);
    return system;
}

std::size_t tabulate_bytes(const System& system) noexcept {
    System copy = system;
    std::size_t bytes = 0;
    for (int k = 0; k < 3; ++k)
        if (generated(copy, k)) bytes += one_table(system);
    return bytes;
}

void tabulate(System& system, void* memory, int threads) {
    auto* at = static_cast<std::byte*>(memory);
    const std::size_t table = one_table(system);
    for (int k = 0; k < 3; ++k) {
        Operand* const operand = generated(system, k);
        if (!operand) continue;
        if (system.dtype == DType::f32) tabulate_one(system, *operand, reinterpret_cast<float*>(at), threads);
        else tabulate_one(system, *operand, reinterpret_cast<double*>(at), threads);
        at += table;
    }
}

AnyView tabulated(const Generator& generator, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype, void* memory, int threads) {
    AnyView view;
    view.data = memory, view.dtype = dtype;
    view.axis = {rows, 1};
    view.batch_dims = static_cast<int>(batch.size());
    std::int64_t systems = 1;
    for (std::size_t d = batch.size(); d-- > 0;) view.batch[d] = {batch[d], rows * systems}, systems *= batch[d];
    Operand operand;
    operand.generator = &generator;
    const std::int64_t blocks = (rows + tile_elements - 1) / tile_elements;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t k = 0; k < blocks * systems; ++k) {
        const std::int64_t number = k / blocks, row = k % blocks * tile_elements, at = number * rows + row, count = std::min(tile_elements, rows - row);
        if (dtype == DType::f32) fill(operand, static_cast<float*>(memory) + at, row, count, number, 1);
        else fill(operand, static_cast<double*>(memory) + at, row, count, number, 1);
    }
    return view;
}

}  // namespace trifold::tridiagonal
