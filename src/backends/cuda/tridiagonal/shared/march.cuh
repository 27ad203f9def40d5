// SPDX-License-Identifier: BSD-3-Clause
// Long columns that have one matrix, whose unknowns do not feel each other from some chunks on: every warp walks down its columns, a lane each.
//
//   y[i] = inverse[i] d[i] - lower[i] y[i-1]      down, chunk by chunk, in place in shared memory
//   x[i] = y[i] - upper[i] x[i+1]                 up, from `ahead` chunks below with nothing known; of these, only the highest chunk is stored
//
// Shapes and strides: columns_job.hpp; d and x must not overlap. Overwritten: x, marks.
// Who does what: a warp takes 32 columns (single precision: 64) of a segment of the rows. While it computes a chunk of 64 rows, the next one is on its way; a ring of ahead + 2
//   chunks is its own, and nobody waits for another warp. A segment's first chunks are preceded by `ahead` others, of which it stores nothing.
// Words per row: 1 read, 1 written, and the ends of segments once more. Shared memory: 3 + ahead, and factors, which all lanes read at a time.
// Flops per row: 2 fused down and ahead + 1 up. Roof: memory; what a chunk takes is the latency of 64 (2 + ahead) fused operations, one after the other.
// Numerics: march_factor.cuh. Rows are dominant, so elimination in order needs no pivots and |y| ≤ 2 max|x|; what is not known beyond a segment or a chunk is less than
//   u / 16 of the unknowns there. A right-hand side that is not finite, or too large, marks its system.
// Source: L. H. Thomas 1949; truncation as in truncated SPIKE (E. Polizzi, A. H. Sameh, A parallel hybrid banded system solver, 2006).
#pragma once

#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/columns_kernel.cuh"
#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/block/segments.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/march_job.hpp"
#include "backends/cuda/tridiagonal/thread/largest.cuh"

namespace trifold::cuda {

/// A chunk in shared memory: four slices of rhs, then the factors.
template <class T, int V, bool Shifted>
struct MarchSlot {
    static constexpr int R = march_rows, slice_rows = column_chunk, slices = R / slice_rows;
    using S = SliceLayout<T, slice_rows, 32, V, Shifted>;
    static constexpr int factors_at = slices * S::operand, all = (factors_at + 3 * R + 127 / static_cast<int>(sizeof(T))) / (128 / static_cast<int>(sizeof(T))) * (128 / static_cast<int>(sizeof(T)));
    static constexpr int bytes = march_slots * (all * static_cast<int>(sizeof(T)) + 8);
    static_assert(bytes <= most_shared_bytes);
};

/// A lane's V columns of one chunk.
template <class T, int V, bool Shifted>
struct MarchChunk {
    using Slot = MarchSlot<T, V, Shifted>;
    using S = typename Slot::S;
    T* at[S::offsets];
    const T* factors;

    __device__ __forceinline__ T* row(int i) const {  // i: of a slice of 16, known when compiled; rows of other slices are behind
        return at[i % S::offsets] + i / S::offsets * S::pitch;
    }
    __device__ __forceinline__ void read(T* from, T (&value)[V]) const {
        if constexpr (V == 1 || Shifted) {
#pragma unroll
            for (int v = 0; v < V; ++v) value[v] = from[v * 32];
        } else {
            const auto two = *reinterpret_cast<const typename ColumnVector<T>::type*>(from);
            value[0] = two.x, value[1] = two.y;
        }
    }
    __device__ __forceinline__ void write(T* to, const T (&value)[V]) const {
        if constexpr (V == 1 || Shifted) {
#pragma unroll
            for (int v = 0; v < V; ++v) to[v * 32] = value[v];
        } else {
            *reinterpret_cast<typename ColumnVector<T>::type*>(to) = {value[0], value[1]};
        }
    }

    /// Sixteen factors, by vectors.
    __device__ __forceinline__ static void read_factors(const T* from, T (&to)[Slot::slice_rows]) {
        constexpr int E = 16 / static_cast<int>(sizeof(T));
        struct alignas(16) Vector {
            T of[E];
        };
#pragma unroll
        for (int i = 0; i < Slot::slice_rows; i += E) {
            const Vector some = *reinterpret_cast<const Vector*>(from + i);
#pragma unroll
            for (int e = 0; e < E; ++e) to[i + e] = some.of[e];
        }
    }
    /// All is read before anything is written: loads would wait for stores.
    __device__ __forceinline__ void read_slice(int s, T (&to)[Slot::slice_rows][V]) const {
#pragma unroll
        for (int i = 0; i < Slot::slice_rows; ++i) read(row(i) + s * S::operand, to[i]);
    }

    __device__ __forceinline__ void down(T (&y)[V], Largest<T> (&largest)[V]) const {
#pragma unroll 1
        for (int s = 0; s < Slot::slices; ++s) {
            T inverse[Slot::slice_rows], lower[Slot::slice_rows], d[Slot::slice_rows][V];
            read_factors(factors + s * Slot::slice_rows, inverse), read_factors(factors + Slot::R + s * Slot::slice_rows, lower);
            read_slice(s, d);
#pragma unroll
            for (int i = 0; i < Slot::slice_rows; ++i) {
#pragma unroll
                for (int v = 0; v < V; ++v) y[v] = fused(-lower[i], y[v], inverse[i] * d[i][v]), largest[v].add(y[v]);
                write(row(i) + s * S::operand, y);
            }
        }
    }
    /// give(i, x) for the chunk's rows, the last one first.
    template <class Give>
    __device__ __forceinline__ void up(T (&x)[V], Give give) const {
#pragma unroll 1
        for (int s = Slot::slices - 1; s >= 0; --s) {
            T upper[Slot::slice_rows], y[Slot::slice_rows][V];
            read_factors(factors + 2 * Slot::R + s * Slot::slice_rows, upper);
            read_slice(s, y);
#pragma unroll
            for (int i = Slot::slice_rows - 1; i >= 0; --i) {
#pragma unroll
                for (int v = 0; v < V; ++v) x[v] = fused(-upper[i], x[v], y[i][v]);
                give(s * Slot::slice_rows + i, x);
            }
        }
    }
};

template <class T, int V, bool Shifted>
__global__ void __launch_bounds__(32 * march_warps, 1) march_kernel(const __grid_constant__ ColumnJob<T> job, const __grid_constant__ March<T> march) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int R = march_rows;
    using Slot = MarchSlot<T, V, Shifted>;
    using S = typename Slot::S;
    extern __shared__ __align__(128) unsigned char march_memory[];
    T* const slots = reinterpret_cast<T*>(march_memory);
    auto* const barriers = reinterpret_cast<unsigned long long*>(march_memory + march_slots * Slot::all * sizeof(T));
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
    const auto arrival = [&](int slot) { return Arrival{shared_address(barriers + slot)}; };
    for (int s = static_cast<int>(threadIdx.x); s < march_slots; s += static_cast<int>(blockDim.x)) arrival(s).prepare(Slot::slices + 1);
    __syncthreads();
    await_the_kernel_before();
    const int ahead = *const_cast<const volatile int*>(march.ahead), ring = ahead + 2, first_slot = warp * ring;
    if (ahead == 0 || first_slot + ring > march_slots) return;

    const auto draw = [&] { return __shfl_sync(~0u, lane == 0 ? atomicAdd(job.tickets, 1u) : 0u, 0); };
    unsigned turn = 0;  // chunks used so far, at the begin of a unit
#pragma unroll 1
    for (unsigned unit = draw(); unit < march.units; unit = draw()) {
        const unsigned rest = unit / job.tiles_per_run, run = rest / march.segments;
        const ColumnPlace place = place_in_run(job, run, static_cast<std::int64_t>(job.order(unit - rest * job.tiles_per_run)) * job.cut.columns);
        const int k0 = static_cast<int>(rest - run * march.segments) * march.segment_chunks, k1 = min(k0 + march.segment_chunks, march.chunks);
        const int from = max(k0 - ahead, 0), to = min(k1 + ahead, march.chunks);
        const auto slot_of = [&](int k) { return first_slot + static_cast<int>((turn + static_cast<unsigned>(k - from)) % static_cast<unsigned>(ring)); };
        const auto ask = [&](int k) {
            if (lane != 0 || k >= to) return;
            const int slot = slot_of(k);
            T* const there = slots + slot * Slot::all;
            const Arrival news = arrival(slot);
#pragma unroll 1
            for (int s = 0; s < Slot::slices; ++s)
                load_slice<T, Slot::slice_rows, 32, V, Shifted>(job, place, place.column, k * R + s * Slot::slice_rows, there + s * S::operand - 3 * S::operand, news);
            constexpr unsigned factor_bytes = 3 * R * sizeof(T);
            news.expect(factor_bytes);
            news.copy(shared_address(there + Slot::factors_at), march.factors + static_cast<std::int64_t>(k) * 3 * R, factor_bytes);
        };
        const unsigned offset = Shifted ? static_cast<unsigned>(offset_in_vector(column_corner(job.operand[3], place, place.column, 0))) : 0u;
        const auto chunk_of = [&](int k) {
            T* const there = slots + slot_of(k) * Slot::all;
            MarchChunk<T, V, Shifted> chunk;
#pragma unroll
            for (unsigned o = 0; o < S::offsets; ++o)
                chunk.at[o] = there + (Shifted ? lane : lane * V) + o * S::region + (offset + o * static_cast<unsigned>(job.operand[3].row_stride)) % S::offsets;
            chunk.factors = there + Slot::factors_at;
            return chunk;
        };
        const TileOperand<T>& to_x = job.operand[4];
        const std::int64_t column = place.column + (Shifted ? lane : lane * V);
        const bool both = V == 1 || (!Shifted && job.x_by_twos && column + 1 < job.columns);
        const auto store = [&](int k, T(&x)[V]) {
            T* const corner = column_corner(to_x, place, column, k * R);
            const int rows = job.rows - k * R;
            chunk_of(k).up(x, [&](int i, const T(&value)[V]) {
                if (i >= rows) return;
                T* const there = corner + i * to_x.row_stride;
                if constexpr (V == 2 && !Shifted)
                    if (both) return __stcs(reinterpret_cast<typename ColumnVector<T>::type*>(there), typename ColumnVector<T>::type{value[0], value[1]});
#pragma unroll
                for (int v = 0; v < V; ++v)
                    if (column + v * (Shifted ? 32 : 1) < job.columns) __stcs(there + v * (Shifted ? 32 : 1), value[v]);
            });
        };

        for (int k = from; k < from + ring; ++k) ask(k);
        T y[V];
        Largest<T> largest[V];
#pragma unroll
        for (int v = 0; v < V; ++v) y[v] = 0;
#pragma unroll 1
        for (int k = from; k < to; ++k) {
            arrival(slot_of(k)).wait(static_cast<int>((turn + static_cast<unsigned>(k - from)) / static_cast<unsigned>(ring)) & 1);
            chunk_of(k).down(y, largest);
            const bool end = k + 1 == to;
            const int highest = max(k - ahead, k0), lowest = min(end && to == march.chunks ? k : k - ahead, k1 - 1);  // to be stored
            if (highest <= lowest) {
                T x[V];
#pragma unroll
                for (int v = 0; v < V; ++v) x[v] = 0;
#pragma unroll 1
                for (int j = k; j > lowest; --j) chunk_of(j).up(x, [](int, const T(&)[V]) {});
#pragma unroll 1
                for (int j = lowest; j >= highest; --j) store(j, x);
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (k - ahead >= from) ask(k + 2);  // where k - ahead was
        }
        turn += static_cast<unsigned>(to - from);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const std::int64_t system = system_of(job, place, (Shifted ? lane : lane * V) + v * (Shifted ? 32 : 1));
            if (system >= 0 && !(largest[v].value() <= join_limit<T>)) job.marks[system] = 1, atomicAdd(job.handed_over, 1ull);
        }
    }
#endif
}

template <class T, int V, bool Shifted>
void enqueue_march(ColumnJob<T>& job, const March<T>& march, cudaStream_t stream) {
    using Slot = MarchSlot<T, V, Shifted>;
    auto* const kernel = march_kernel<T, V, Shifted>;
    static PerDevice prepared;
    prepared.once([&] { allow_shared_memory(kernel, Slot::bytes); });
    const auto blocks = static_cast<unsigned>(multiprocessors_of_current());
    launch_after(kernel, dim3(std::min(blocks, march.units)), 32 * march_warps, Slot::bytes, stream, job, march);
}

}  // namespace trifold::cuda
