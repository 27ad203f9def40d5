// SPDX-License-Identifier: BSD-3-Clause
// Long columns that have one matrix, whose unknowns do not feel each other from some chunks on: every warp walks down its columns, a lane each.
//
//   y[i] = inverse[i] d[i] - lower[i] y[i-1]      down, chunk by chunk, in place in shared memory
//   x[i] = y[i] - upper[i] x[i+1]                 up, from `ahead` chunks below with nothing known; of these, only the highest chunk is stored
//
// Shapes and strides: columns_job.hpp; d and x must not overlap. Overwritten: x, marks.
// Who does what: two warps take 32 columns (single precision: 64) of a segment of the rows, one walks down, the other one goes up behind it and asks for the next chunk of 64 rows
//   where it has left one. A ring of ahead + 2 chunks is theirs, and they wait for nobody else. A segment's first chunks are preceded by `ahead` others, of which nothing is stored.
// Words per row: 1 read, 1 written, and the ends of segments once more. Shared memory: 3 + ahead, and factors, which all lanes read at a time.
// Flops per row: 2 fused down and ahead + 1 up. Roof: memory; what a chunk takes is the latency of 64 fused operations down, and of 64 (1 + ahead) up, one after the other.
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
    static constexpr int bytes = march_slots * (all * static_cast<int>(sizeof(T)) + 16);
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

/// What a warp walks down, unit after unit: `ahead` chunks more at either end of a segment than are stored. Slots of its ring are taken in turns.
struct MarchPath {
    int ahead, ring, first_slot;
    int k0 = 0, k1 = 0, from = 0, to = 0;  ///< chunks that are stored, and that are read
    unsigned turn = 0;                     ///< chunks of units before

    __device__ __forceinline__ unsigned number(int k) const { return turn + static_cast<unsigned>(k - from); }
    __device__ __forceinline__ int slot(int k) const { return first_slot + static_cast<int>(number(k) % static_cast<unsigned>(ring)); }
    __device__ __forceinline__ unsigned phase(int k) const { return number(k) / static_cast<unsigned>(ring) & 1u; }
};

template <class T, int V, bool Shifted>
__global__ void __launch_bounds__(64 * march_warps, 1) march_kernel(const __grid_constant__ ColumnJob<T> job, const __grid_constant__ March<T> march) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int R = march_rows, apart = Shifted ? 32 : 1;  // columns of a lane
    using Slot = MarchSlot<T, V, Shifted>;
    using S = typename Slot::S;
    extern __shared__ __align__(128) unsigned char march_memory[];
    T* const slots = reinterpret_cast<T*>(march_memory);
    auto* const barriers = reinterpret_cast<unsigned long long*>(march_memory + march_slots * Slot::all * sizeof(T));
    const int lane = static_cast<int>(threadIdx.x) & 31, pair = static_cast<int>(threadIdx.x) / 32 % march_warps;
    const bool goes_up = threadIdx.x >= 32 * march_warps;
    const auto arrival = [&](int slot) { return Arrival{shared_address(barriers + slot)}; };                // of rhs
    const auto eliminated = [&](int slot) { return Arrival{shared_address(barriers + march_slots + slot)}; };  // down
    for (int s = static_cast<int>(threadIdx.x); s < march_slots; s += static_cast<int>(blockDim.x)) arrival(s).prepare(Slot::slices + 1), eliminated(s).prepare(1);
    __syncthreads();
    await_the_kernel_before();
    const int ahead = *const_cast<const volatile int*>(march.ahead), pairs = march_slots / (ahead + 2);
    if (ahead == 0 || pair >= pairs) return;
    MarchPath path{ahead, ahead + 2, pair * (ahead + 2)};

    const unsigned step = gridDim.x * static_cast<unsigned>(min(pairs, march_warps));
#pragma unroll 1
    for (unsigned unit = blockIdx.x + static_cast<unsigned>(pair) * gridDim.x; unit < march.units; unit += step) {
        const unsigned rest = unit / job.tiles_per_run, run = rest / march.segments;
        const ColumnPlace place = place_in_run(job, run, static_cast<std::int64_t>(job.order(unit - rest * job.tiles_per_run)) * job.cut.columns);
        path.k0 = static_cast<int>(rest - run * march.segments) * march.segment_chunks, path.k1 = min(path.k0 + march.segment_chunks, march.chunks);
        path.from = max(path.k0 - ahead, 0), path.to = min(path.k1 + ahead, march.chunks);
        const int own = Shifted ? lane : lane * V;
        const unsigned offset = Shifted ? static_cast<unsigned>(offset_in_vector(column_corner(job.operand[3], place, place.column, 0))) : 0u;
        const auto chunk_of = [&](int k) {
            T* const there = slots + path.slot(k) * Slot::all;
            MarchChunk<T, V, Shifted> chunk;
#pragma unroll
            for (unsigned o = 0; o < S::offsets; ++o) chunk.at[o] = there + own + o * S::region + (offset + o * static_cast<unsigned>(job.operand[3].row_stride)) % S::offsets;
            chunk.factors = there + Slot::factors_at;
            return chunk;
        };

        if (!goes_up) {
            T y[V];
            Largest<T> largest[V];
#pragma unroll
            for (int v = 0; v < V; ++v) y[v] = 0;
#pragma unroll 1
            for (int k = path.from; k < path.to; ++k) {
                arrival(path.slot(k)).wait_together(path.phase(k));
                chunk_of(k).down(y, largest);
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0) eliminated(path.slot(k)).arrive();
            }
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const std::int64_t system = system_of(job, place, own + v * apart);
                if (system >= 0 && !(largest[v].value() <= join_limit<T>)) job.marks[system] = 1, atomicAdd(job.handed_over, 1ull);
            }
        } else {
            const auto ask = [&](int k) {
                if (lane != 0 || k >= path.to) return;
                T* const there = slots + path.slot(k) * Slot::all;
                const Arrival news = arrival(path.slot(k));
#pragma unroll 1
                for (int s = 0; s < Slot::slices; ++s)
                    load_slice<T, Slot::slice_rows, 32, V, Shifted>(job, place, place.column, k * R + s * Slot::slice_rows, there + s * S::operand - 3 * S::operand, news);
                constexpr unsigned factor_bytes = 3 * R * sizeof(T);
                news.expect(factor_bytes);
                news.copy(shared_address(there + Slot::factors_at), march.factors + static_cast<std::int64_t>(k) * 3 * R, factor_bytes);
            };
            const TileOperand<T>& to_x = job.operand[4];
            const std::int64_t column = place.column + own;
            const bool full = column + (V - 1) * apart < job.columns && (V == 1 || Shifted || job.x_by_twos);
            const auto store = [&](int k, T(&x)[V]) {
                const int rows = job.rows - k * R;
                T* const corner = column_corner(to_x, place, column, k * R);
                if (full && rows >= R) {
                    T* there = corner + R * to_x.row_stride;
                    chunk_of(k).up(x, [&](int, const T(&value)[V]) {
                        there -= to_x.row_stride;
                        if constexpr (V == 2 && !Shifted) {
                            __stcs(reinterpret_cast<typename ColumnVector<T>::type*>(there), typename ColumnVector<T>::type{value[0], value[1]});
                        } else {
#pragma unroll
                            for (int v = 0; v < V; ++v) __stcs(there + v * apart, value[v]);
                        }
                    });
                } else {
                    chunk_of(k).up(x, [&](int i, const T(&value)[V]) {
#pragma unroll
                        for (int v = 0; v < V; ++v)
                            if (i < rows && column + v * apart < job.columns) __stcs(corner + i * to_x.row_stride + v * apart, value[v]);
                    });
                }
            };
            for (int k = path.from; k < path.from + path.ring; ++k) ask(k);
#pragma unroll 1
            for (int k = path.from; k < path.to; ++k) {
                eliminated(path.slot(k)).wait_together(path.phase(k));
                const bool end = k + 1 == path.to;
                const int highest = max(k - ahead, path.k0), lowest = min(end && path.to == march.chunks ? k : k - ahead, path.k1 - 1);  // to be stored
                if (highest <= lowest) {
                    T x[V];
#pragma unroll
                    for (int v = 0; v < V; ++v) x[v] = 0;
#pragma unroll 1
                    for (int j = k; j > lowest; --j) chunk_of(j).up(x, [](int, const T(&)[V]) {});
#pragma unroll 1
                    for (int j = lowest; j >= highest; --j) store(j, x);
                }
                __syncwarp();
                if (k - ahead >= path.from) ask(k + 2);  // where k - ahead was
            }
        }
        path.turn += static_cast<unsigned>(path.to - path.from);
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
    launch_after(kernel, dim3(std::min(blocks, march.units)), 64 * march_warps, Slot::bytes, stream, job, march);
}

}  // namespace trifold::cuda
