// SPDX-License-Identifier: BSD-3-Clause
// One matrix eliminated in all its chunks at a time, and how far its unknowns feel each other.
//
//   pivot[i] = diag[i] - lower[i] g[i-1],   g[i] = upper[i] / pivot[i]
//
// Who does what: a thread per chunk. Before the chunk's first row g is any number of [-1, 1], since rows are dominant; the map from one g to the next is monotone, so that
//   what comes of -1 and 1, some chunks before, encloses g: where the two have met, to rounding, it is known. Most meet in one chunk.
// Words per row: 3 read at least twice, 3 written; once for all systems.
// Numerics: |lower| + |upper| ≤ |diag| in every row, else nothing is done here. g is off by 2 u at most at the begin of a chunk, which is a change of diag by 2 u.
#pragma once

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/march_job.hpp"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda {

template <class T>
struct MarchRow {
    T lower, diag, upper;
    __device__ __forceinline__ MarchRow(const MarchFactors<T>& job, int i) : lower(i > 0 ? job.lower[i] : T(0)), diag(job.diag[i]), upper(i + 1 < job.rows ? job.upper[i] : T(0)) {}
    __device__ __forceinline__ T next(T g) const {
        T to;
        divide_by(fused(-lower, g, diag), upper, to);
        return to;
    }
};

/// g of the row before `row`, a chunk's first one; false where it could not be enclosed.
template <class T>
__device__ bool enclose(const MarchFactors<T>& job, int row, T roundoff, T& g) {
    g = 0;
    if (row == 0) return true;
    for (int chunks = 1;; chunks *= 2) {
        const int from = max(row - min(chunks, march_farthest) * march_rows, 0);
        T low = from > 0 ? T(-1) : T(0), high = -low;
#pragma unroll 4
        for (int i = from; i < row; ++i) {
            const MarchRow<T> r(job, i);
            low = r.next(low), high = r.next(high);
        }
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
__global__ void __launch_bounds__(64) march_factor_kernel(const __grid_constant__ MarchFactors<T> job) {
    constexpr int R = march_rows;
    constexpr T roundoff = sizeof(T) == 8 ? T(0x1p-53) : T(0x1p-24);
    __shared__ bool last;
    __shared__ int most;
    after_the_kernel_before();
    const int threads = static_cast<int>(gridDim.x * blockDim.x), thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    for (std::int64_t k = thread; k < job.systems; k += threads) job.marks[k] = 0;
    if (thread < job.chunks) {
        const int first = thread * R;
        T g, down = 1, up = 1;
        bool fine = enclose(job, first, roundoff, g);
        T* const to = job.factors + static_cast<std::int64_t>(thread) * 3 * R;
        for (int i = 0; i < R; ++i) {
            T inverse = 0, lower = 0, upper = 0;
            if (first + i < job.rows) {
                const MarchRow<T> row(job, first + i);
                inverse = divide_by(fused(-row.lower, g, row.diag), row.upper, upper);
                lower = row.lower * inverse;
                fine = fine && fabs(row.lower) + fabs(row.upper) <= fabs(row.diag) && fabs(inverse) <= (sizeof(T) == 8 ? T(1e290) : T(1e30)) && fabs(upper) <= T(1);
                down *= fabs(lower), up *= fabs(upper), g = upper;
            }
            to[i] = inverse, to[R + i] = lower, to[2 * R + i] = upper;
        }
        job.down[thread] = fine ? down : T(2), job.up[thread] = up;  // 2: never forgotten
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(job.done, 1u) == gridDim.x - 1, most = 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    int ahead = 1;
    for (int k = static_cast<int>(threadIdx.x); k < job.chunks; k += static_cast<int>(blockDim.x)) {
        if (!(__ldcg(job.down + k) <= T(1))) ahead = march_farthest + 1;
        if (k > 0) ahead = max(ahead, max(forgotten_after(job, job.down, k - 1, -1), forgotten_after(job, job.up, k, 1)));
    }
    atomicMax(&most, ahead);
    __syncthreads();
    if (threadIdx.x != 0) return;
    const bool fine = most <= march_farthest;
    *job.ahead = fine ? most : 0, *job.wanted = !fine, *job.tickets = 0;
    if (!fine) *job.all_left = windows_turn;
}

}  // namespace trifold::cuda
