// SPDX-License-Identifier: BSD-3-Clause
#include "backends/reference/tridiagonal/verbs.hpp"

#include "backends/reference/tridiagonal/chunk_data.hpp"

namespace trifold::tridiagonal::reference {
namespace {

// Turns the right-hand side into rhs - A x of what is stored, for refinement.
template <class T>
void subtract_stored(Chunk<T>& chunk, const System& system, const Partition& partition, std::int64_t k) {
    read_x(chunk, system, partition, k, partition.stored);
    for (std::int64_t i = 0; i < chunk.size(); ++i) chunk.rows.x[i] = static_cast<T>(chunk.rows.x[i] - image(chunk, i));
}

template <class T>
void reduce_chunks(const System& system, const Partition& partition, Scratch scratch, InterfaceRow* rows, std::int64_t* zero_pivot) {
    for (std::int64_t k = 0; k < partition.chunks(); ++k) {
        Scratch local = scratch;
        Chunk<T> chunk = gather_chunk<T>(system, partition, k, local);
        if (partition.stored) subtract_stored(chunk, system, partition, k);
        const Reduced<T> reduced = eliminate_interior(chunk.rows, chunk.pivots);
        rows[2 * k] = reduced.rows[0];
        rows[2 * k + 1] = reduced.rows[1];
        zero_pivot[k] = reduced.zero_pivot < 0 ? -1 : chunk.first + reduced.zero_pivot;
    }
}

// The unknowns of chunk k from its own and its neighbours' boundary. Returns whether the interior could be eliminated.
template <class T>
bool solve_chunk(Chunk<T>& chunk, const System& system, const Partition& partition, std::int64_t k, const double* boundary) {
    set_neighbours(chunk, system, partition, k, boundary);
    chunk.x.front() = static_cast<T>(boundary[2 * k]);
    chunk.x.back() = static_cast<T>(boundary[2 * k + 1]);
    if (eliminate_interior(chunk.rows, chunk.pivots).zero_pivot >= 0) return false;
    recompute_interior<T>(chunk.pivots, chunk.above, chunk.below, chunk.x);
    return true;
}

// Refinement: the chunk's correction is solved for and added to what is stored; the chunk is given its right-hand side again.
template <class T>
bool correct_chunk(Chunk<T>& chunk, const System& system, const Partition& partition, std::int64_t k, const double* boundary, Scratch scratch) {
    const std::span<T> rhs = scratch.take<T>(chunk.size()), x = scratch.take<T>(chunk.size());
    std::ranges::copy(chunk.rows.x, rhs.begin());
    subtract_stored(chunk, system, partition, k);
    std::ranges::copy(chunk.x, x.begin());
    const T above = chunk.above, below = chunk.below;
    const bool regular = solve_chunk(chunk, system, partition, k, boundary);
    for (std::int64_t i = 0; i < chunk.size(); ++i) chunk.x[i] += x[i];
    chunk.above += above;
    chunk.below += below;
    std::ranges::copy(rhs, chunk.rows.x.begin());
    return regular;
}

template <class T>
void finish_chunks(const System& system, const Partition& partition, Scratch scratch, const double* boundary, double accept,
                   ChunkResidual* residuals) {
    for (std::int64_t k = 0; k < partition.chunks(); ++k) {
        Scratch local = scratch;
        Chunk<T> chunk = gather_chunk<T>(system, partition, k, local);
        const bool regular = partition.stored ? correct_chunk(chunk, system, partition, k, boundary, local)
                                              : solve_chunk(chunk, system, partition, k, boundary);
        residuals[k] = {Outcome::unknown, false};
        if (regular) check(chunk, accept, residuals[k]);
        if (!residuals[k].stored) continue;
        for (std::int64_t i = 0; i < chunk.size(); ++i) {
            T& place = *place_of<T>(system, chunk.first + i);
            place = system.accumulate ? place + chunk.x[i] : chunk.x[i];
        }
    }
}

template <class T>
void restore_chunks(const System& system, const Partition& partition, Scratch scratch, const double* boundary, ChunkResidual* residuals) {
    for (std::int64_t k = 0; k < partition.chunks(); ++k) {
        Scratch local = scratch;
        Chunk<T> chunk = gather_chunk<T>(system, partition, k, local);
        if (!boundary) {
            gather(system.x, system.number, chunk.first, chunk.x);
            residuals[k].scale = largest_entry(chunk.rows) * largest_of(chunk.x);
            continue;
        }
        if (!residuals[k].stored) continue;
        read_x(chunk, system, partition, k, boundary);
        for (std::int64_t i = 0; i < chunk.size(); ++i) *place_of<T>(system, chunk.first + i) = static_cast<T>(image(chunk, i));
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

void restore(const System& system, const Partition& partition, const Launch& launch, const double* boundary, ChunkResidual* residuals) {
    const Scratch scratch(launch.scratch, launch.scratch_bytes);
    const auto chunks = system.dtype == DType::f32 ? restore_chunks<float> : restore_chunks<double>;
    chunks(system, partition, scratch, boundary, residuals);
}

std::size_t verb_bytes(const System& system) {
    const std::int64_t n = system.rows;
    const bool f32 = system.dtype == DType::f32;
    return f32 ? 7 * Scratch::bytes_of<float>(n) + Scratch::bytes_of<ChunkRow<float>>(n)
               : 7 * Scratch::bytes_of<double>(n) + Scratch::bytes_of<ChunkRow<double>>(n);
}

}  // namespace trifold::tridiagonal::reference
