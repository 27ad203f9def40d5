// SPDX-License-Identifier: BSD-3-Clause
#include "backends/reference/tridiagonal/verbs.hpp"

#include <algorithm>

#include "backends/reference/tridiagonal/chunk.hpp"
#include "backends/reference/tridiagonal/gather.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {
namespace {

template <class T>
struct Chunk {
    Bands<T> rows;
    std::span<ChunkRow<T>> pivots;
};

// Rows first … last with their outer couplings; what does not exist is 0.
template <class T>
Chunk<T> gather_chunk(const System& system, std::int64_t first, std::int64_t last, Scratch& scratch) {
    const std::int64_t m = last - first + 1;
    const auto array = [&] { return scratch.take<T>(m); };
    const Chunk<T> chunk{{array(), array(), array(), array()}, scratch.take<ChunkRow<T>>(m)};
    const Bands<T>& s = chunk.rows;
    const bool top = first == 0, bottom = last == system.rows - 1;
    gather(system.lower, system.number, first + top, s.lower.subspan(top));
    gather(system.diag, system.number, first, s.diag);
    gather(system.upper, system.number, first, s.upper.first(m - bottom));
    gather(system.rhs, system.number, first, s.x);
    if (system.periodic && top) gather(system.top_right, system.number, 0, s.lower.first(1));
    if (system.periodic && bottom) gather(system.bottom_left, system.number, 0, s.upper.last(1));
    return chunk;
}

template <class T>
void reduce_chunks(const System& system, const Partition& partition, Scratch scratch, InterfaceRow* rows, std::int64_t* zero_pivot) {
    for (std::int64_t k = 0; k < partition.chunks(); ++k) {
        Scratch local = scratch;
        const Chunk<T> chunk = gather_chunk<T>(system, partition.first(k), partition.last(k), local);
        const Reduced<T> reduced = eliminate_interior(chunk.rows, chunk.pivots);
        rows[2 * k] = reduced.rows[0];
        rows[2 * k + 1] = reduced.rows[1];
        zero_pivot[k] = reduced.zero_pivot < 0 ? -1 : partition.first(k) + reduced.zero_pivot;
    }
}

// |rhs - A x| over the chunk's rows, relative to the largest |A|, |x| and |rhs| in it.
template <class T>
double chunk_residual(const Bands<T>& s, T above, T below, std::span<const T> x) {
    const std::int64_t m = s.rows();
    double worst = 0, matrix = 0, solution = std::max(std::abs(double{above}), std::abs(double{below})), rhs = 0;
    for (std::int64_t i = 0; i < m; ++i) {
        const double a = s.lower[i], b = s.diag[i], c = s.upper[i];
        const double r = s.x[i] - (a * (i > 0 ? x[i - 1] : above) + b * x[i] + c * (i + 1 < m ? x[i + 1] : below));
        if (!(std::abs(r) <= worst)) worst = std::abs(r);  // NaN stays
        matrix = std::max({matrix, std::abs(a), std::abs(b), std::abs(c)});
        solution = std::max(solution, std::abs(double{x[i]}));
        rhs = std::max(rhs, std::abs(double{s.x[i]}));
    }
    return worst == 0 ? 0 : worst / (matrix * solution + rhs);
}

template <class T>
void finish_chunks(const System& system, const Partition& partition, Scratch scratch, const double* boundary, double accept,
                   ChunkResidual* residuals) {
    const std::int64_t chunks = partition.chunks();
    for (std::int64_t k = 0; k < chunks; ++k) {
        Scratch local = scratch;
        const std::int64_t first = partition.first(k);
        const Chunk<T> chunk = gather_chunk<T>(system, first, partition.last(k), local);
        const std::int64_t m = chunk.rows.rows();
        const bool has_above = k > 0 || system.periodic, has_below = k + 1 < chunks || system.periodic;
        const T above = has_above ? static_cast<T>(boundary[2 * ((k + chunks - 1) % chunks) + 1]) : T{0};
        const T below = has_below ? static_cast<T>(boundary[2 * ((k + 1) % chunks)]) : T{0};
        const std::span<T> x = local.take<T>(m);
        x[0] = static_cast<T>(boundary[2 * k]);
        x[m - 1] = static_cast<T>(boundary[2 * k + 1]);
        const bool regular = eliminate_interior(chunk.rows, chunk.pivots).zero_pivot < 0;
        if (regular) recompute_interior<T>(chunk.pivots, above, below, x);
        const double residual = regular ? chunk_residual<T>(chunk.rows, above, below, x) : HUGE_VAL;
        residuals[k] = {residual, residual <= accept};
        if (!residuals[k].stored) continue;
        T* const to = static_cast<T*>(system.x.data) + first * system.x.row_stride;
        for (std::int64_t i = 0; i < m; ++i) {
            T& place = to[i * system.x.row_stride];
            place = system.accumulate ? place + x[i] : x[i];
        }
    }
}

}  // namespace

void reduce(const System& system, const Partition& partition, const Launch& launch, InterfaceRow* rows, std::int64_t* zero_pivot) {
    const Scratch scratch(launch.scratch, launch.scratch_bytes);
    const auto chunks = system.dtype == DType::f32 ? reduce_chunks<float> : reduce_chunks<double>;
    chunks(system, partition, scratch, rows, zero_pivot);
}

void finish(const System& system, const Partition& partition, const Launch& launch, const double* boundary, double accept,
            ChunkResidual* residuals) {
    const Scratch scratch(launch.scratch, launch.scratch_bytes);
    const auto chunks = system.dtype == DType::f32 ? finish_chunks<float> : finish_chunks<double>;
    chunks(system, partition, scratch, boundary, accept, residuals);
}

std::size_t verb_bytes(const System& system) {
    const std::int64_t n = system.rows;
    const bool f32 = system.dtype == DType::f32;
    return f32 ? 5 * Scratch::bytes_of<float>(n) + Scratch::bytes_of<ChunkRow<float>>(n)
               : 5 * Scratch::bytes_of<double>(n) + Scratch::bytes_of<ChunkRow<double>>(n);
}

}  // namespace trifold::tridiagonal::reference
