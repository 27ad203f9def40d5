// SPDX-License-Identifier: BSD-3-Clause
// One matrix eliminated in all its chunks at a time, and how far its unknowns feel each other.
//
//   pivot[i] = diag[i] - lower[i] g[i-1],   g[i] = upper[i] / pivot[i]
//
// Who does what: a thread for every 16 rows. Before the first of them g is any number of [-1, 1], since rows are dominant; the map from one g to the next is monotone, so that
//   what comes of -1 and 1, some rows before, encloses g: where the two have met, to rounding, it is known. Most meet within 64 rows, which the block has in shared memory.
// Words per row: 3 read at least twice, 3 written; once for all systems.
// Numerics: |lower| + |upper| ≤ |diag| in every row, else nothing is done here. g is off by 2 u at most at the begin of a chunk, which is a change of diag by 2 u.
#pragma once

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/march_job.hpp"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda {

inline constexpr int factor_threads = 64, factor_rows = 16, factor_pieces = march_rows / factor_rows;

template <class T>
struct MarchRow {
    T lower, diag, upper;
    MarchRow() = default;
    __device__ __forceinline__ MarchRow(const MarchFactors<T>& job, int i) : lower(i > 0 ? job.lower[i] : T(0)), diag(job.diag[i]), upper(i + 1 < job.rows ? job.upper[i] : T(0)) {}
    __device__ __forceinline__ T next(T g) const {
        T to;
        divide_by(fused(-lower, g, diag), upper, to);
        return to;
    }
};

/// The block's rows and those 64 before them; a word of padding after every 16, as many as lie from thread to thread.
template <class T>
struct MarchRows {
    static constexpr int count = (factor_threads + factor_pieces) * factor_rows;
    MarchRow<T> at[count / factor_rows * (factor_rows + 1)];
    static __device__ __forceinline__ int of(int i) { return i + i / factor_rows; }
};

/// g of the row before `row`, a piece's first one; false where it could not be enclosed. near(i): row i ≥ row - 64.
template <class T, class Near>
__device__ bool enclose(const MarchFactors<T>& job, int row, T roundoff, Near near, T& g) {
    g = 0;
    if (row == 0) return true;
    for (int chunks = 1;; chunks *= 2) {
        const int from = max(row - min(chunks, march_farthest) * march_rows, 0);
        T low = from > 0 ? T(-1) : T(0), high = -low;
        const auto pass = [&](const MarchRow<T>& r) { low = r.next(low), high = r.next(high); };
        for (int i = from; i < row - march_rows; ++i) pass(MarchRow<T>(job, i));
#pragma unroll 4
        for (int i = max(from, row - march_rows); i < row; ++i) pass(near(i));
        g = low;
        if (fabs(high - low) <= 2 * roundoff) return true;
        if (chunks >= march_farthest || from == 0) return false;
    }
}

/// Chunks from `chunk` on, in one direction, over which a product of theirs falls to what need not be known; more than march_farthest: it does not.
template <class T>
__device__ int forgotten_after(const MarchFactors<T>& job, const T* products, int chunk, int step) {
    T left = 1;
    for (int n = 1; n <= march_farthest; ++n, chunk += step) {
        if (chunk < 0 || chunk >= job.chunks) return n;
        left *= __ldcg(products + chunk);
        if (left <= job.forgotten) return n;
    }
    return march_farthest + 1;
}

template <class T>
__global__ void __launch_bounds__(factor_threads) march_factor_kernel(const __grid_constant__ MarchFactors<T> job) {
    constexpr int R = march_rows, P = factor_rows;
    constexpr T roundoff = sizeof(T) == 8 ? T(0x1p-53) : T(0x1p-24);
    __shared__ MarchRows<T> rows;
    __shared__ bool last;
    __shared__ int most;
    after_the_kernel_before();
    const int threads = static_cast<int>(gridDim.x * blockDim.x), thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int begin = static_cast<int>(blockIdx.x) * factor_threads * P - R;  // of what the block has in shared memory
    for (int i = static_cast<int>(threadIdx.x); i < MarchRows<T>::count; i += factor_threads)
        if (begin + i >= 0 && begin + i < job.rows) rows.at[rows.of(i)] = MarchRow<T>(job, begin + i);
    for (std::int64_t k = thread; k < job.systems; k += threads) job.marks[k] = 0;
    __syncthreads();
    const auto near = [&](int i) { return rows.at[rows.of(i - begin)]; };
    const int chunk = thread / factor_pieces;
    T down = 1, up = 1;
    if (chunk < job.chunks) {
        const int first = thread * P;
        T g = 0;
        bool fine = first >= job.rows || enclose(job, first, roundoff, near, g);
        T* const to = job.factors + static_cast<std::int64_t>(chunk) * 3 * R + thread % factor_pieces * P;
#pragma unroll 4
        for (int i = 0; i < P; ++i) {
            T inverse = 0, lower = 0, upper = 0;
            if (first + i < job.rows) {
                const MarchRow<T> row = near(first + i);
                inverse = divide_by(fused(-row.lower, g, row.diag), row.upper, upper);
                lower = row.lower * inverse;
                fine = fine && fabs(row.lower) + fabs(row.upper) <= fabs(row.diag) && fabs(inverse) <= (sizeof(T) == 8 ? T(1e290) : T(1e30)) && fabs(upper) <= T(1);
                down *= fabs(lower), up *= fabs(upper), g = upper;
            }
            to[i] = inverse, to[R + i] = lower, to[2 * R + i] = upper;
        }
        if (!fine) down = T(INFINITY);  // never forgotten
    }
#pragma unroll
    for (int apart = 1; apart < factor_pieces; apart *= 2) down *= __shfl_xor_sync(~0u, down, apart), up *= __shfl_xor_sync(~0u, up, apart);
    if (chunk < job.chunks && thread % factor_pieces == 0) job.down[chunk] = down, job.up[chunk] = up;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(job.done, 1u) == gridDim.x - 1, most = 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    int ahead = 1;
    for (int k = static_cast<int>(threadIdx.x); k < job.chunks; k += static_cast<int>(blockDim.x)) {
        if (!(__ldcg(job.down + k) <= (sizeof(T) == 8 ? T(1e290) : T(1e30)))) ahead = march_farthest + 1;
        if (k > 0) ahead = max(ahead, max(forgotten_after(job, job.down, k - 1, -1), forgotten_after(job, job.up, k, 1)));
    }
    atomicMax(&most, ahead);
    __syncthreads();
    if (threadIdx.x != 0) return;
    const bool fine = most <= march_farthest;
    *job.ahead = fine ? most : 0, *job.wanted = !fine;
    if (!fine && job.all_left) *job.all_left = windows_turn;
}

}  // namespace trifold::cuda
