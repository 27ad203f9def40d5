// SPDX-License-Identifier: BSD-3-Clause
// What `reduce` and `finish` share outside the vector units: typed pointers into one system, groups of chunks, scratch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// lower, diag, upper, rhs as arrays in which every chunk lies `stride` elements after the one before it. A scalar is an
/// array of 2 chunk_rows equal numbers that all chunks share (stride 0).
template <class T>
struct ChunkArrays {
    const T* data[4];
    std::int64_t stride[4];
    T* x;
};

/// Up to one vector's worth of chunks of equal length. Lanes from `count` on repeat the last one.
template <class T>
struct ChunkGroup {
    const T* data[4];        ///< at the first row of the first chunk
    std::int64_t stride[4];
    std::int64_t first;      ///< number of the first chunk
    std::int64_t rows;       ///< of each chunk
    int count;
    bool top;                ///< holds row 0, whose lower is not read
    bool bottom;             ///< holds row n-1, whose upper is not read; then count == 1
};

/// Scratch: constants once per call, then per thread what two vectors of chunks need, one line per chunk of padding around.
template <class T>
struct ChunkWork {
    T* pivots;     ///< 3 numbers per lane and row
    T* solutions;  ///< x of each lane, `solution_stride` apart, from solutions[lanes] on
    T* defects;

    static constexpr std::size_t widest = 64 / sizeof(T);  ///< lanes of the widest vector
    static std::size_t whole(std::size_t numbers) { return (numbers + widest - 1) / widest * widest; }
    static std::size_t constants(std::int64_t chunk_rows) { return 4 * whole(2 * chunk_rows); }

    /// Numbers per thread. A last chunk of up to 2 m - 1 rows fills one vector by itself: as much as two chunks.
    static std::size_t numbers(std::int64_t chunk_rows) {
        const std::size_t m = chunk_rows;
        return 2 * widest * (3 * m + 2 * whole(m + 4 * widest));
    }
    static std::size_t bytes(std::int64_t chunk_rows, int threads) {
        return (constants(chunk_rows) + threads * numbers(chunk_rows)) * sizeof(T);
    }
    static ChunkWork of(void* scratch, std::int64_t chunk_rows, int thread) {
        T* const base = static_cast<T*>(scratch) + constants(chunk_rows) + thread * numbers(chunk_rows);
        const std::size_t m = chunk_rows, pivots = 2 * widest * 3 * m, solutions = 2 * widest * whole(m + 4 * widest);
        return {base, base + pivots, base + pivots + solutions};
    }
};

/// Distance of two lanes' solutions for vectors of `lanes`: x[-1] and x[m] have room too.
inline std::int64_t solution_stride(std::int64_t rows, int lanes) { return (rows + lanes - 1) / lanes * lanes + 2 * lanes; }

/// Fills `constants` where an operand is a scalar. where an operand is a scalar.
template <class T>
ChunkArrays<T> chunk_arrays(const tridiagonal::System& system, const tridiagonal::Partition& partition, void* constants) {
    using tridiagonal::Operand;
    ChunkArrays<T> arrays;
    const Operand* operands[4] = {&system.lower, &system.diag, &system.upper, &system.rhs};
    for (int k = 0; k < 4; ++k) {
        if (operands[k]->kind == Operand::Kind::view) {
            arrays.data[k] = static_cast<const T*>(operands[k]->data);
            arrays.stride[k] = partition.chunk_rows;
        } else {
            const std::int64_t length = 2 * partition.chunk_rows;
            T* const numbers = static_cast<T*>(constants) + k * ChunkWork<T>::whole(length);
            std::fill_n(numbers, length, static_cast<T>(operands[k]->value));
            arrays.data[k] = numbers;
            arrays.stride[k] = 0;
        }
    }
    arrays.x = static_cast<T*>(system.x.data);
    return arrays;
}

/// x[first-1], x[first], x[last], x[last+1] of a chunk as they are stored; 0 outside the system.
template <class T>
struct ChunkEnds {
    T before, first, last, after;
};

template <class T>
ChunkEnds<T> chunk_ends(const double* boundary, std::int64_t chunk, std::int64_t chunks) {
    return {chunk > 0 ? static_cast<T>(boundary[2 * chunk - 1]) : T(0), static_cast<T>(boundary[2 * chunk]),
            static_cast<T>(boundary[2 * chunk + 1]), chunk + 1 < chunks ? static_cast<T>(boundary[2 * chunk + 2]) : T(0)};
}

/// rhs - A x of `count` chunks of equal length for the x that is stored, rows side by side: what refinement solves for.
template <class T>
void defect(const ChunkArrays<T>& arrays, const tridiagonal::Partition& partition, std::int64_t first, std::int64_t count, T* out) {
    const std::int64_t chunks = partition.chunks();
    for (std::int64_t chunk = first; chunk < first + count; ++chunk) {
        const T* row[4];
        for (int k = 0; k < 4; ++k) row[k] = arrays.data[k] + chunk * arrays.stride[k];
        const T* const x = arrays.x + partition.first(chunk);
        // The x beside a chunk may be in another thread's hands: its value comes from the boundary.
        const ChunkEnds<T> ends = chunk_ends<T>(partition.stored, chunk, chunks);
        const std::int64_t m = partition.last(chunk) - partition.first(chunk) + 1;
        const auto rest = [&](std::int64_t i, T above, T below) { return row[3][i] - above - row[1][i] * x[i] - below; };
        const T first = chunk > 0 ? row[0][0] * ends.before : T(0), last = chunk + 1 < chunks ? row[2][m - 1] * ends.after : T(0);
        out[0] = rest(0, first, row[2][0] * x[1]);
#pragma omp simd
        for (std::int64_t i = 1; i < m - 1; ++i) out[i] = rest(i, row[0][i] * x[i - 1], row[2][i] * x[i + 1]);
        out[m - 1] = rest(m - 1, row[0][m - 1] * x[m - 2], last);
        out += m;
    }
}

/// `count` chunks from `first` on, which are of equal length. Where the partition asks for a correction, rhs - A x takes the
/// place of rhs and is put into `defects`.
template <class T>
ChunkGroup<T> group_of(const ChunkArrays<T>& arrays, const tridiagonal::Partition& partition, std::int64_t first, int count,
                       T* defects) {
    ChunkGroup<T> group;
    for (int k = 0; k < 4; ++k) {
        group.data[k] = arrays.data[k] + first * arrays.stride[k];
        group.stride[k] = arrays.stride[k];
    }
    group.first = first;
    group.rows = partition.last(first) - partition.first(first) + 1;
    group.count = count;
    group.top = first == 0;
    group.bottom = first + count == partition.chunks();
    if (partition.stored && count > 0) {
        defect(arrays, partition, first, count, defects);
        group.data[3] = defects;
        group.stride[3] = group.rows;
    }
    return group;
}

}  // namespace trifold::cpu
