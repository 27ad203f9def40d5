// SPDX-License-Identifier: BSD-3-Clause
// What the fine verbs have in memory of one chunk, and what they ask of it: A x, and its residual.
#pragma once

#include <algorithm>
#include <cmath>

#include "backends/reference/tridiagonal/chunk.hpp"
#include "backends/reference/tridiagonal/gather.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

template <class T>
T* place_of(const System& system, std::int64_t row) {
    return static_cast<T*>(system.x.data) + row * system.x.row_stride;
}

/// Rows first … last with their outer couplings (what does not exist is 0), the unknowns, and room for the pivot rows.
template <class T>
struct Chunk {
    std::int64_t first = 0;
    Bands<T> rows;
    std::span<T> x;
    T above = 0, below = 0;  // the unknowns beside the chunk
    std::span<ChunkRow<T>> pivots;

    std::int64_t size() const { return rows.rows(); }
    T neighbour(std::int64_t i) const { return i < 0 ? above : i < size() ? x[i] : below; }
};

template <class T>
Chunk<T> gather_chunk(const System& system, const Partition& partition, std::int64_t k, Scratch& scratch) {
    const std::int64_t first = partition.first(k), m = partition.last(k) - first + 1;
    const auto array = [&] { return scratch.take<T>(m); };
    Chunk<T> chunk{first, {array(), array(), array(), array()}, array(), 0, 0, scratch.take<ChunkRow<T>>(m)};
    const Bands<T>& s = chunk.rows;
    const bool top = first == 0, bottom = first + m == system.rows;
    gather(system.lower, system.number, first + top, s.lower.subspan(top));
    gather(system.diag, system.number, first, s.diag);
    gather(system.upper, system.number, first, s.upper.first(m - bottom));
    gather(system.rhs, system.number, first, s.x);
    if (system.periodic && top) gather(system.top_right, system.number, 0, s.lower.first(1));
    if (system.periodic && bottom) gather(system.bottom_left, system.number, 0, s.upper.last(1));
    return chunk;
}

/// The unknowns beside chunk k, from the first and last unknowns of all chunks.
template <class T>
void set_neighbours(Chunk<T>& chunk, const System& system, const Partition& partition, std::int64_t k, const double* boundary) {
    const std::int64_t chunks = partition.chunks();
    chunk.above = k > 0 || system.periodic ? static_cast<T>(boundary[2 * ((k + chunks - 1) % chunks) + 1]) : T{0};
    chunk.below = k + 1 < chunks || system.periodic ? static_cast<T>(boundary[2 * ((k + 1) % chunks)]) : T{0};
}

/// The x in memory, and beside the chunk the boundary that it was made from: a neighbour may have been changed since.
template <class T>
void read_x(Chunk<T>& chunk, const System& system, const Partition& partition, std::int64_t k, const double* boundary) {
    gather(system.x, system.number, chunk.first, chunk.x);
    set_neighbours(chunk, system, partition, k, boundary);
}

template <class T>
double image(const Chunk<T>& chunk, std::int64_t i) {
    const Bands<T>& s = chunk.rows;
    return double{s.lower[i]} * chunk.neighbour(i - 1) + double{s.diag[i]} * chunk.x[i] + double{s.upper[i]} * chunk.neighbour(i + 1);
}

template <class T>
double largest_entry(const Bands<T>& s) {
    double largest = 0;
    for (std::int64_t i = 0; i < s.rows(); ++i)
        largest = std::max({largest, std::abs(double{s.lower[i]}), std::abs(double{s.diag[i]}), std::abs(double{s.upper[i]})});
    return largest;
}

template <class T>
double largest_of(std::span<T> values) {
    double largest = 0;
    for (const T value : values) largest = std::max(largest, std::abs(double{value}));
    return largest;
}

/// residual, scale and stored as ops.hpp has them; chunk.rows.x is the right-hand side.
template <class T>
void check(const Chunk<T>& chunk, double accept, ChunkResidual& result) {
    double worst = 0;
    for (std::int64_t i = 0; i < chunk.size(); ++i) {
        const double r = std::abs(chunk.rows.x[i] - image(chunk, i));
        if (!(r <= worst)) worst = r;
        if (!std::isfinite(worst)) break;  // NaN would be forgotten
    }
    const double x = std::max({largest_of(chunk.x), std::abs(double{chunk.above}), std::abs(double{chunk.below})});
    result.right = largest_of(chunk.rows.x);
    result.scale = largest_entry(chunk.rows) * x + result.right;
    result.residual = !std::isfinite(worst) ? Outcome::unknown : worst == 0 ? 0 : worst / result.scale;
    result.stored = result.residual <= accept;
}

}  // namespace trifold::tridiagonal::reference
