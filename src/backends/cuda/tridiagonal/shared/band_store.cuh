// SPDX-License-Identifier: BSD-3-Clause
// x on its way out of a block that has a band of rows of a set of columns: some rows at a time go into shared memory as they lie in lines of 128 bytes and leave from there 16 bytes a
// lane, whole sectors of 32 bytes but where a line of systems begins or ends. (Not by the copy engine: what it is asked to store waits behind the next set, which it is asked for before.)
#pragma once

#include "backends/cuda/tridiagonal/shared/band_block.cuh"
#include "backends/cuda/tridiagonal/shared/column_sets.cuh"

namespace trifold::cuda {

/// What is stored of a row of a set: from the first sector that begins in the set to the first one that begins in the next set.
template <class T>
struct StoredPiece {
    T *begin, *end;
    __device__ __forceinline__ StoredPiece(T* row, const ColumnSet& set)
        : begin(set.before ? up(row) : row), end(set.own == set.columns ? row + set.columns : up(row + set.own)) {}

private:
    static __device__ __forceinline__ T* up(T* at) { return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(at) + 31 & ~std::uintptr_t{31}); }
};

/// A sector's worth of a thread's rows leaves at once, so that every thread stores two vectors of 16 bytes.
template <class T, int R>
class BandStore {
    static constexpr int line = 128 / static_cast<int>(sizeof(T)), V = 16 / static_cast<int>(sizeof(T));

public:
    static constexpr int chunk = band_chunk<T>;

    __device__ __forceinline__ BandStore(const SharedJob<T>& job, T* stage, int first_row) : job_(job), stage_(stage), first_row_(first_row) {}

    /// By all threads of the block, all columns of the set.
    __device__ __forceinline__ void all(const ColumnSet& set, const T (&y)[R]) const {
        const int thread = static_cast<int>(threadIdx.x), column = thread & (job_.across - 1), segment = thread / job_.across, pitch = job_.across + line;
        T* const origin = place(job_, job_.x, set.system) + first_row_ * job_.x.row_stride;
        const unsigned by = static_cast<unsigned>(job_.x.row_stride);
        T* to = stage_ + segment * chunk * pitch + column;
        unsigned shift = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(origin) / sizeof(T)) + static_cast<unsigned>(segment * R) * by;
        // The row of which this thread stores two vectors, one with half of the row's vectors between them.
        const int lanes = job_.across / chunk, staged = thread / lanes, lane = thread - staged * lanes;
        int row = staged / chunk * R + staged % chunk;
        T* at = origin + row * job_.x.row_stride;
        const T* const from = stage_ + staged * pitch;
        const bool inside = set.before && set.own != set.columns;
        int other = job_.segments * chunk * pitch;
#pragma unroll
        for (int first = 0; first < R; first += chunk) {
#pragma unroll
            for (int k = 0; k < chunk; ++k) to[k * pitch + (shift + static_cast<unsigned>(k) * by & line - 1)] = y[first + k];
            asm volatile("bar.sync %0, %1;" ::"r"(1 + segment), "r"(job_.across) : "memory");  // a segment's threads store its rows
            if (set.columns && first_row_ + row < job_.rows) {
                const T* const here = first / chunk & 1 ? from + other : from;
                if (inside) store_inside(set.own, at, here, lane * V, lanes * V);
                else store(set, at, here, lane, lanes);
            }
            shift += chunk * by, row += chunk;
            advance(at, chunk * job_.x.row_stride);
            to += first / chunk & 1 ? -other : other;
        }
    }

    /// A thread's own rows of one column, element by element.
    __device__ __forceinline__ void one(const ColumnSet& set, const T (&y)[R]) const {
        const int column = static_cast<int>(threadIdx.x) & (job_.across - 1), segment = static_cast<int>(threadIdx.x) / job_.across;
        T* row = place(job_, job_.x, set.system) + static_cast<std::int64_t>(first_row_ + segment * R) * job_.x.row_stride;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const StoredPiece<T> piece(row, set);
            if (first_row_ + segment * R + i < job_.rows && row + column >= piece.begin && row + column < piece.end) __stcs(row + column, y[i]);
            advance(row, job_.x.row_stride);
        }
    }

private:
    /// Of a set with others on both sides: whole sectors, two vectors a lane.
    __device__ __forceinline__ void store_inside(int own, T* at, const T* staged, int first, int apart) const {
        using Vector = typename SharedVector<T>::type;
        const int begins = static_cast<int>(reinterpret_cast<std::uintptr_t>(at) / sizeof(T)), end = own + (-(begins + own) & chunk - 1);
        first += -begins & chunk - 1;
        Vector* const to = reinterpret_cast<Vector*>(at + first);
        const Vector* const from = reinterpret_cast<const Vector*>(staged + (begins & line - 1) + first);
        if (first < end) __stcs(to, from[0]);
        if (first + apart < end) __stcs(to + apart / V, from[apart / V]);
    }

    __device__ __forceinline__ void store(const ColumnSet& set, T* at, const T* staged, int lane, int lanes) const {
        const T* const from = staged + (static_cast<int>(reinterpret_cast<std::uintptr_t>(at) / sizeof(T)) & line - 1);
        const StoredPiece<T> piece(at, set);
        T* vector = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(piece.begin) & ~std::uintptr_t{15}) + lane * V;
#pragma unroll 1
        for (; vector < piece.end; vector += lanes * V) {
            const T* const source = from + (vector - at);
            if (vector >= piece.begin && vector + V <= piece.end) {
                using Vector = typename SharedVector<T>::type;
                __stcs(reinterpret_cast<Vector*>(vector), *reinterpret_cast<const Vector*>(source));
            } else {
#pragma unroll 1
                for (int v = 0; v < V; ++v)
                    if (vector + v >= piece.begin && vector + v < piece.end) __stcs(vector + v, source[v]);
            }
        }
    }

    const SharedJob<T>& job_;
    T* const stage_;
    const int first_row_;
};

}  // namespace trifold::cuda
