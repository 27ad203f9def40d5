// SPDX-License-Identifier: BSD-3-Clause
// The last unknowns of chunks, which are a tridiagonal system with one matrix of their own: row k is
//
//   lower[k] x[k-1] + (diag[k] - upper[k] fill[k+1]) x[k] + upper[k] weight[k+1] x[k+1] = last[k] - upper[k] first[k+1]      (DominantLink)
//
// Arrays: march_job.hpp. Overwritten: last, by x.
// Who does what: a block has 32 columns, a lane each, and a warp an eighth or a sixteenth of the chunks, which it eliminates by themselves, all lanes the same factors. What is left of a warp, its
//   last row and its first unknown, is one more such system: the first warp's.
// Words per chunk and column: 2 read, 1 written, 1 written and read. Limit: latency, a division for each of a warp's chunks.
// Numerics: as rows are dominant, so are these: no pivots. One of 0, or numbers too large, leave all to others; x that is too large marks its column.
// Source: F. A. Wang 1981.
#pragma once

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/block/columns_join.cuh"
#include "backends/cuda/tridiagonal/block/segments.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/dominant_rows.cuh"
#include "backends/cuda/tridiagonal/shared/march.cuh"

namespace trifold::cuda {

inline constexpr int march_joiners = 16;  ///< warps of a block, at most

/// Rows and one column's right-hand sides.
template <class T>
struct JoinedRows {
    DominantRows<T> matrix;
    T y = 0, first = 0;  ///< first: what its first unknown is but for its neighbours
    bool fits = true;

    __device__ __forceinline__ void eliminate(const DominantRow<T>& row, T rhs) {
        const T weight = matrix.weight;
        T inverse, l;
        matrix.eliminate(row, inverse, l);
        fits = fits && fabs(inverse) <= join_limit<T>;
        y = fused(-l, y, inverse * rhs), first = fused(weight, y, first);
    }
};

template <class T>
struct JoinMemory {
    DominantLink<T> links[march_joiners];                 ///< of a warp's rows
    T last[march_joiners][32], first[march_joiners][32];  ///< [warp][column]; last: then what is known of its last row, then x of that
    T g[march_joiners];                                   ///< of links' own elimination
    T factors[1];                                         ///< [chunk][g, spike]
    static constexpr std::size_t bytes(int chunks) { return sizeof(JoinMemory) + 2 * static_cast<std::size_t>(chunks) * sizeof(T); }
};

/// Access: the reducing kernel's, which says what columns a lane has.
template <class Access, class T>
__global__ void __launch_bounds__(32 * march_joiners, 2) march_join_kernel(const __grid_constant__ ColumnJob<T> job, const __grid_constant__ March<T> march) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int V = Access::V, group = sizeof(T) == 8 ? 2 : 4;  // rows asked for together
    extern __shared__ __align__(16) unsigned char join_memory[];
    auto& memory = *reinterpret_cast<JoinMemory<T>*>(join_memory);
    after_the_kernel_before();
    if (!*const_cast<const volatile unsigned*>(march.joined)) return;
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) / 32, chunks = march.chunks;
    const int joiners = static_cast<int>(blockDim.x) / 32, each = (chunks + joiners - 1) / joiners, begin = warp * each, end = min(begin + each, chunks), warps = (chunks + each - 1) / each;
    const std::int64_t row = static_cast<std::int64_t>(job.tiles) * V * 32;
#pragma unroll 1
    for (unsigned unit = blockIdx.x; unit < job.tiles * V; unit += gridDim.x) {
        const unsigned tile = unit / V;
        const int v = static_cast<int>(unit % V);
        T* const last = march.last + march_told<Access>(job, tile, 0, lane, v);
        const T* const first = march.first + march_told<Access>(job, tile, 0, lane, v);

        struct Row {
            DominantRow<T> matrix;
            T rhs;
        };
        const auto row_of = [&](int k) {
            const DominantLink<T>& own = march.links[k];
            if (k + 1 == chunks) return Row{{own.lower, T(0), own.excess, own.below}, last[k * row]};
            return Row{own.with(march.links[k + 1]), fused(-own.upper, first[(k + 1) * row], last[k * row])};
        };
        JoinedRows<T> rows;
        if (begin < end) {
            Row next[group];
            const auto ask = [&](int k) {
#pragma unroll
                for (int i = 0; i < group; ++i) next[i] = row_of(min(k + i, end - 1));
            };
            ask(begin);
#pragma unroll 1
            for (int k = begin; k < end - 1; k += group) {
                Row now[group];
#pragma unroll
                for (int i = 0; i < group; ++i) now[i] = next[i];
                ask(k + group);
#pragma unroll
                for (int i = 0; i < group; ++i) {
                    if (k + i >= end - 1) break;
                    rows.eliminate(now[i].matrix, now[i].rhs);
                    last[(k + i) * row] = rows.y;
                    if (lane == 0) memory.factors[2 * (k + i)] = rows.matrix.g, memory.factors[2 * (k + i) + 1] = rows.matrix.spike;
                }
            }
            const Row of = row_of(end - 1);
            memory.last[warp][lane] = fused(-of.matrix.lower, rows.y, of.rhs), memory.first[warp][lane] = rows.first;
            if (lane == 0) memory.links[warp] = rows.matrix.end(of.matrix, rows.fits);
        }
        __syncthreads();
        if (warp == 0) {
            JoinedRows<T> ends;
            bool fits = true;
#pragma unroll 1
            for (int w = 0; w < warps; ++w) {
                const DominantLink<T>& own = memory.links[w];
                fits = fits && own.fits;
                if (w + 1 < warps) ends.eliminate(own.with(memory.links[w + 1]), fused(-own.upper, memory.first[w + 1][lane], memory.last[w][lane]));
                else ends.eliminate({own.lower, T(0), own.excess, own.below}, memory.last[w][lane]);
                memory.g[w] = ends.matrix.g, memory.last[w][lane] = ends.y;
            }
            T x = 0;
            bool fine = true;
#pragma unroll 1
            for (int w = warps - 1; w >= 0; --w) {
                x = fused(-memory.g[w], x, memory.last[w][lane]);
                memory.last[w][lane] = x;
                fine = fine && fabs(x) <= join_limit<T>;
            }
            if (lane == 0 && !(fits && ends.fits)) {
                *march.wanted = 1;
                if (march.all_left) *march.all_left = windows_turn;
            }
            const std::int64_t system = system_of(job, place_of_tile(job, tile), Access::column_of(lane, v));
            if (system >= 0 && !fine && !job.marks[system]) job.marks[system] = 1, atomicAdd(job.handed_over, 1ull);
        }
        __syncthreads();
        if (begin < end) {
            const T before = warp > 0 ? memory.last[warp - 1][lane] : T(0);
            T x = memory.last[warp][lane];
            last[(end - 1) * row] = x;
#pragma unroll 4
            for (int k = end - 2; k >= begin; --k) {
                x = fused(-memory.factors[2 * k], x, fused(-memory.factors[2 * k + 1], before, last[k * row]));
                last[k * row] = x;
            }
        }
        __syncthreads();  // what is shared may be written again
    }
#endif
}

}  // namespace trifold::cuda
