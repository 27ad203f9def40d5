// SPDX-License-Identifier: BSD-3-Clause
// One matrix eliminated in all its chunks at a time, in two ways, and how far its unknowns feel each other, which decides between them.
//
//   pivot[i] = diag[i] - lower[i] g[i-1],   g[i] = upper[i] / pivot[i]
//
// From row to row, for those who walk down whole columns: a thread for every 16 rows. Before the first of them g is any number of [-1, 1], since rows are dominant; the map from one g to the next is
//   monotone, so that what comes of -1 and 1, some rows before, encloses g: where the two have met, to rounding, it is known. Most meet within 24 rows.
// Chunk by chunk, for those who join them (dominant_rows.cuh): another warp's thread for each. g begins with 0, and a chunk's first unknown is found while it goes down, since what every row adds to it is a number of the matrix:
//   x[first] = sum of weight[i] y[i] - fill x[last of the chunk before] + weight[last] x[last],   weight[i+1] = -g[i] weight[i]
// Words per row: 3 read at least twice, 9 written; once for all systems.
// Numerics: |lower| + |upper| ≤ |diag| (1 + 4 u) in every row, else nothing is done here. From row to row g is off by 2 u at most at the begin of a chunk, which is a change of diag by 2 u.
#pragma once

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/block/columns_join.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/dominant_rows.cuh"
#include "backends/cuda/tridiagonal/shared/march_job.hpp"

namespace trifold::cuda {

inline constexpr int factor_threads = 64, factor_rows = 16, factor_pieces = march_rows / factor_rows, factor_rows_of_block = factor_threads * factor_rows;
inline constexpr int factor_block = 256;  ///< threads that read; a warp of them eliminates chunks, two pieces of rows

/// Row sums that rounding has made larger than they are.
template <class T>
inline constexpr T march_dominance = sizeof(T) == 8 ? T(1 + 0x1p-51) : T(1 + 0x1p-22f);

/// A band where it can be read without asking whether it is an array: what is asked for one by one takes a block's time.
template <class T>
struct MarchBand {
    const T* at;
    std::int64_t stride;
    __device__ __forceinline__ explicit MarchBand(const SharedBand<T>& band) : at(band.data ? band.data : &band.value), stride(band.data ? band.row_stride : 0) {}
    __device__ __forceinline__ T operator[](int row) const { return at[row * stride]; }
};

template <class T>
struct MarchRow {
    T lower, diag, upper;
    /// With what an elimination has made of it.
    __device__ __forceinline__ bool fits(T inverse, T g) const {
        return fabs(lower) + fabs(upper) <= fabs(diag) * march_dominance<T> && fabs(inverse) <= join_limit<T> && fabs(g) <= row_weight<T>;
    }
    __device__ __forceinline__ DominantRow<T> dominant() const { return {lower, upper, fmax(fabs(diag) - (fabs(lower) + fabs(upper)), T(0)), diag < T(0)}; }
    __device__ __forceinline__ T next(T g) const {
        T to;
        divide_by(fused(-lower, g, diag), upper, to);
        return to;
    }
};

/// The block's rows and those before them that it may look at; a word of padding after every 16, as many as lie from thread to thread.
template <class T>
struct MarchRows {
    static constexpr int before = march_farthest * march_rows, count = factor_rows_of_block + before;
    MarchRow<T> at[count / factor_rows * (factor_rows + 1)];
    static __device__ __forceinline__ int of(int i) { return i + i / factor_rows; }

    /// By all threads.
    __device__ __forceinline__ void read(const MarchFactors<T>& job, int begin) {
        const MarchBand<T> lower(job.lower), diag(job.diag), upper(job.upper);
#pragma unroll 4
        for (int i = static_cast<int>(threadIdx.x); i < count; i += factor_block) {
            const int row = begin + i, there = min(max(row, 0), job.rows - 1);
            const T a = lower[there], b = diag[there], c = upper[there];
            at[of(i)] = {row > 0 ? a : T(0), b, row + 1 < job.rows ? c : T(0)};
        }
    }
};

/// g of the row before `row`, a piece's first one; false where it could not be enclosed. near(i): row i.
template <class T, class Near>
__device__ bool enclose(int row, T roundoff, Near near, T& g) {
    g = 0;
    if (row == 0) return true;
    constexpr int few = 24;  // most often they do
    for (int chunks = 0;; chunks = max(2 * chunks, 1)) {
        const int from = max(row - (chunks ? min(chunks, march_farthest) * march_rows : few), 0);
        T low = from > 0 ? T(-1) : T(0), high = -low;
        const auto pass = [&](const MarchRow<T>& r) { low = r.next(low), high = r.next(high); };
#pragma unroll 4
        for (int i = from; i < row; ++i) pass(near(i));
        g = low;
        if (fabs(high - low) <= 2 * roundoff) return true;
        if (chunks >= march_farthest || from == 0) return false;
        if (chunks > 0 && fabs(high - low) > T(0.5)) return false;  // so far apart still: they would not meet
    }
}

/// Chunks from `chunk` on, in one direction, over which a product of theirs falls to what need not be known; more than march_farthest: it does not.
template <class T>
__device__ int forgotten_after(const MarchFactors<T>& job, const T* products, int chunk, int step) {
    T of[march_farthest];
#pragma unroll
    for (int n = 0; n < march_farthest; ++n) {
        const int k = chunk + n * step;
        of[n] = k < 0 || k >= job.chunks ? T(0) : __ldcg(products + k);
    }
    T left = 1;
    int after = march_farthest + 1;
#pragma unroll
    for (int n = 0; n < march_farthest; ++n) {
        left *= of[n];
        if (left <= job.forgotten) after = min(after, n + 1);
    }
    return after;
}

/// Some factors side by side, stored at once: what a warp's lanes store lies far apart.
template <class T>
struct alignas(16) SomeFactors {
    static constexpr int count = 16 / static_cast<int>(sizeof(T));
    T of[count];
    __device__ __forceinline__ void store(T* to) const { *reinterpret_cast<SomeFactors*>(to) = *this; }
};

/// A chunk by itself. near(i): row i.
template <class T, class Near>
__device__ void eliminate_apart(const MarchFactors<T>& job, int chunk, Near near) {
    constexpr int R = march_rows;
    const int first = chunk * R, last = min(R, job.rows - first) - 1;
    T* const reduce = job.reduce + static_cast<std::int64_t>(chunk) * 3 * R;
    T* const finish = job.finish + static_cast<std::int64_t>(chunk) * 3 * R;
    constexpr int E = SomeFactors<T>::count;
    DominantRows<T> rows;
    bool fits = true;
    MarchRow<T> next[E];
    const auto fetch = [&](int i) {
#pragma unroll
        for (int e = 0; e < E; ++e) next[e] = near(first + min(i + e, last));
    };
    fetch(0);
#pragma unroll 1
    for (int i = 0; i < R; i += E) {
        SomeFactors<T> inverse, lower, upper, weight, inverse_back, lower_back;
        MarchRow<T> now[E];
#pragma unroll
        for (int e = 0; e < E; ++e) now[e] = next[e];
        fetch(i + E);
#pragma unroll
        for (int e = 0; e < E; ++e) {
            weight.of[e] = rows.weight;
            if (i + e < last) {
                rows.eliminate(now[e].dominant(), inverse.of[e], lower.of[e]);
                fits = fits && now[e].fits(inverse.of[e], rows.g);
                inverse_back.of[e] = inverse.of[e], lower_back.of[e] = lower.of[e], upper.of[e] = rows.g;
            } else {
                const bool ends = i + e == last;
                inverse.of[e] = ends, lower.of[e] = ends ? now[e].lower : T(-1), weight.of[e] = 0;
                inverse_back.of[e] = lower_back.of[e] = 0, upper.of[e] = -1;
            }
        }
        inverse.store(reduce + i), lower.store(reduce + R + i), weight.store(reduce + 2 * R + i);
        inverse_back.store(finish + i), lower_back.store(finish + R + i), upper.store(finish + 2 * R + i);
    }
    const MarchRow<T> row = near(first + last);
    job.links[chunk] = rows.end(row.dominant(), fits && row.fits(T(0), T(0)));
}

template <class T>
__global__ void __launch_bounds__(factor_block) march_factor_kernel(const __grid_constant__ MarchFactors<T> job) {
    constexpr int R = march_rows, P = factor_rows;
    constexpr T roundoff = sizeof(T) == 8 ? T(0x1p-53) : T(0x1p-24);
    __shared__ MarchRows<T> rows;
    __shared__ bool last;
    __shared__ int most;
    after_the_kernel_before();
    const int begin = static_cast<int>(blockIdx.x) * factor_rows_of_block - MarchRows<T>::before;
    rows.read(job, begin);
    for (std::int64_t k = blockIdx.x * blockDim.x + threadIdx.x; k < job.systems; k += gridDim.x * blockDim.x) job.marks[k] = 0;
    __syncthreads();
    const bool by_piece = threadIdx.x < factor_threads;
    const int thread = static_cast<int>(blockIdx.x * factor_threads + threadIdx.x);
    const auto near = [&](int i) { return rows.at[rows.of(i - begin)]; };
    if (!by_piece && job.join) {
        constexpr int of_block = factor_threads / factor_pieces;
        const int own = static_cast<int>(threadIdx.x) - factor_threads, chunk = static_cast<int>(blockIdx.x) * of_block + own;
        if (own < of_block && chunk < job.chunks) eliminate_apart(job, chunk, near);
    }
    const int chunk = thread / factor_pieces;
    T down = 1, up = 1;
    if (by_piece && job.forget && chunk < job.chunks) {
        const int first = thread * P;
        T g = 0;
        bool fine = first >= job.rows || enclose(first, roundoff, near, g);
        T* const to = job.factors + static_cast<std::int64_t>(chunk) * 3 * R + thread % factor_pieces * P;
        constexpr int E = SomeFactors<T>::count;
#pragma unroll 2
        for (int i = 0; i < P; i += E) {
            SomeFactors<T> inverse{}, lower{}, upper{};
#pragma unroll
            for (int e = 0; e < E; ++e)
                if (first + i + e < job.rows) {
                    const MarchRow<T> row = near(first + i + e);
                    inverse.of[e] = divide_by(fused(-row.lower, g, row.diag), row.upper, upper.of[e]);
                    lower.of[e] = row.lower * inverse.of[e];
                    fine = fine && row.fits(inverse.of[e], upper.of[e]);
                    down *= fabs(lower.of[e]), up *= fabs(upper.of[e]), g = upper.of[e];
                }
            inverse.store(to + i), lower.store(to + R + i), upper.store(to + 2 * R + i);
        }
        if (!fine) down = T(INFINITY);  // never forgotten
    }
#pragma unroll
    for (int apart = 1; apart < factor_pieces; apart *= 2) down *= __shfl_xor_sync(~0u, down, apart), up *= __shfl_xor_sync(~0u, up, apart);
    if (by_piece && job.forget && chunk < job.chunks && thread % factor_pieces == 0) job.down[chunk] = down, job.up[chunk] = up;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(job.done, 1u) == gridDim.x - 1, most = 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    int ahead = 1;
    bool fit = job.join;
    for (int k = static_cast<int>(threadIdx.x); k < job.chunks; k += static_cast<int>(blockDim.x)) {
        if (job.join) fit = fit && *const_cast<const volatile bool*>(&job.links[k].fits);
        if (!job.forget) continue;
        if (!(__ldcg(job.down + k) <= join_limit<T>)) ahead = march_farthest + 1;
        if (k > 0) ahead = max(ahead, max(forgotten_after(job, job.down, k - 1, -1), forgotten_after(job, job.up, k, 1)));
    }
    atomicMax(&most, ahead);
    fit = __syncthreads_and(fit);
    if (threadIdx.x != 0) return;
    const bool forgets = job.forget && most <= march_farthest, joined = fit && !forgets, left = !forgets && !joined;
    *job.ahead = forgets ? most : 0, *job.joined = joined, *job.wanted = left;
    if (left && job.all_left) *job.all_left = windows_turn;
}

}  // namespace trifold::cuda
