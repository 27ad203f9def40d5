// SPDX-License-Identifier: BSD-3-Clause
// Long columns that have one matrix, whose unknowns do not feel each other from some chunks on: every warp walks down its columns, a lane each.
//
//   y[i] = inverse[i] d[i] - lower[i] y[i-1]      down, chunk by chunk, in place in shared memory
//   x[i] = y[i] - upper[i] x[i+1]                 up, from `ahead` chunks below with nothing known; of these, only the highest chunk is stored
//
// Shapes and strides: columns_job.hpp; d and x must not overlap. Overwritten: x, marks.
// Who does what: two warps take 32 columns (single precision: 64) of a segment of the rows, one walks down, the other one goes up behind it and asks for the next chunk of 64 rows
//   where it has left one. A ring of ahead + 2 chunks is theirs; but that the pairs of a block, which have neighbouring columns, keep in step, they wait for nobody else. A segment's first chunks are preceded by `ahead` others, of which nothing is stored.
// Words per row: 1 read, 1 written, and the ends of segments once more. Shared memory: 3 + ahead, and factors, which all lanes read at a time.
// Flops per row: 2 fused down and ahead + 1 up. Roof: memory; what a chunk takes is the latency of 64 fused operations down, and of 64 (1 + ahead) up, one after the other.
// Numerics: march_factor.cuh. Rows are dominant, so elimination in order needs no pivots and |y| ≤ 2 max|x|; what is not known beyond a segment or a chunk is less than
//   u / 16 of the unknowns there. A right-hand side that is not finite, or too large, marks its system.
// Source: L. H. Thomas 1949; truncation as in truncated SPIKE (E. Polizzi, A. H. Sameh, A parallel hybrid banded system solver, 2006).
#pragma once

#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/columns_join.cuh"
#include "backends/cuda/tridiagonal/block/copy_out.cuh"
#include "backends/cuda/tridiagonal/block/segments.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/march_job.hpp"
#include "backends/cuda/tridiagonal/shared/march_path.hpp"
#include "backends/cuda/tridiagonal/thread/largest.cuh"

namespace trifold::cuda {

/// Shared memory: chunks of rhs, their factors, barriers. Access: how rows are read and stored (march_columns.cuh, march_rows.cuh).
template <class Access>
struct MarchMemory {
    using T = typename Access::T;
    static constexpr int factors = 3 * march_rows, slot = Access::elements, barriers_at = march_slots * (slot + factors) * static_cast<int>(sizeof(T)), stored_at = barriers_at + march_slots * 16, bytes = stored_at + march_warps * 4;
    static_assert(bytes <= most_shared_bytes && factors * sizeof(T) % 16 == 0 && slot * sizeof(T) % 128 == 0);
};

/// Pairs of warps that have neighbouring columns keep in step: of the sectors and lines that their pieces of a row share one finds in the second-level cache what the other one has asked for or stored.
/// Nobody learns anything else from these numbers.
struct MarchPace {
    unsigned* stored;  ///< in shared memory: chunks that every pair of the block is through with
    int pair, lane;

    /// Until all others are as far; whoever is least far waits for nobody.
    __device__ __forceinline__ void await(unsigned chunks) const {
        while (!__all_sync(~0u, lane >= march_warps || atomicOr(stored + lane, 0u) >= chunks)) __nanosleep(64);
    }
    __device__ __forceinline__ void tell(unsigned chunks) const {
        if (lane == 0) atomicExch(stored + pair, chunks);
    }
    __device__ __forceinline__ void leave() const { tell(~0u); }
};

/// Sixteen factors, by vectors.
template <int Rows, class T>
__device__ __forceinline__ void read_factors(const T* from, T (&to)[Rows]) {
    constexpr int E = 16 / static_cast<int>(sizeof(T));
    struct alignas(16) Vector {
        T of[E];
    };
#pragma unroll
    for (int i = 0; i < Rows; i += E) {
        const Vector some = *reinterpret_cast<const Vector*>(from + i);
#pragma unroll
        for (int e = 0; e < E; ++e) to[i + e] = some.of[e];
    }
}

/// A chunk in place. All of a slice is read before anything is written: loads would wait for stores.
template <class Access, class T, int V = Access::V>
__device__ __forceinline__ void walk_down(const Access& access, T* chunk, const T* factors, T (&y)[V], Largest<T> (&largest)[V]) {
    constexpr int N = Access::slice_rows;
#pragma unroll 1
    for (int s = 0; s < Access::slices; ++s) {
        T inverse[N], lower[N], d[N][V];
        read_factors(factors + s * N, inverse), read_factors(factors + march_rows + s * N, lower);
        access.read(chunk, s, d);
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int v = 0; v < V; ++v) y[v] = d[i][v] = fused(-lower[i], y[v], inverse[i] * d[i][v]), largest[v].add(y[v]);
        access.write(chunk, s, d);
    }
}

/// The chunk whose first row is `first`, upwards; its x is stored, or only the uppermost one kept.
template <bool Stored, class Access, class T, int V = Access::V>
__device__ __forceinline__ void walk_up(const Access& access, T* chunk, const T* factors, int first, T (&x)[V]) {
    constexpr int N = Access::slice_rows;
#pragma unroll 1
    for (int s = Access::slices - 1; s >= 0; --s) {
        T upper[N], y[N][V];
        read_factors(factors + 2 * march_rows + s * N, upper);
        access.read(chunk, s, y);
#pragma unroll
        for (int i = N - 1; i >= 0; --i)
#pragma unroll
            for (int v = 0; v < V; ++v) x[v] = y[i][v] = fused(-upper[i], x[v], y[i][v]);
        if (Stored) access.store(chunk, s, first + s * N, y);
    }
}

template <class Access, class T>
__global__ void __launch_bounds__(64 * march_warps, 1) march_kernel(const __grid_constant__ ColumnJob<T> job, const __grid_constant__ March<T> march) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int R = march_rows, V = Access::V;
    using Memory = MarchMemory<Access>;
    extern __shared__ __align__(1024) unsigned char march_memory[];
    T* const chunks = reinterpret_cast<T*>(march_memory);
    T* const all_factors = chunks + march_slots * Memory::slot;
    auto* const barriers = reinterpret_cast<unsigned long long*>(march_memory + Memory::barriers_at);
    const int lane = static_cast<int>(threadIdx.x) & 31, pair = static_cast<int>(threadIdx.x) / 32 % march_warps;
    const bool goes_up = threadIdx.x >= 32 * march_warps;
    const auto arrival = [&](int slot) { return Arrival{shared_address(barriers + slot)}; };                // of rhs
    const auto eliminated = [&](int slot) { return Arrival{shared_address(barriers + march_slots + slot)}; };  // down
    for (int s = static_cast<int>(threadIdx.x); s < march_slots; s += static_cast<int>(blockDim.x)) arrival(s).prepare(Access::requests + 1), eliminated(s).prepare(32);
    const MarchPace pace{reinterpret_cast<unsigned*>(march_memory + Memory::stored_at), pair, lane};
    if (threadIdx.x < march_warps) pace.stored[threadIdx.x] = 0;
    __syncthreads();
    await_the_kernel_before();
    const int ahead = *const_cast<const volatile int*>(march.ahead);
    const unsigned units = march.cut.units(), pairs = min(min(march_slots / static_cast<unsigned>(ahead + 2), static_cast<unsigned>(march_warps)), (units + gridDim.x - 1) / gridDim.x);
    if (ahead == 0 || static_cast<unsigned>(pair) >= pairs) {
        if (goes_up) pace.leave();
        return;
    }
    MarchPath path{ahead, ahead + 2, pair * (ahead + 2)};
    const auto chunk_of = [&](int k) { return chunks + path.slot(k) * Memory::slot; };
    const auto factors_of = [&](int k) { return all_factors + path.slot(k) * Memory::factors; };

#pragma unroll 1
    for (unsigned number = blockIdx.x * pairs + static_cast<unsigned>(pair); number < units; number += gridDim.x * pairs) {
        const MarchCut::Unit unit = march.cut.unit(number);
        const unsigned run = unit.tile / job.tiles_per_run;
        const ColumnPlace place = place_in_run(job, run, static_cast<std::int64_t>(job.order(unit.tile - run * job.tiles_per_run)) * job.cut.columns);
        path.begin(unit.first, unit.chunks, march.chunks);
        const Access access(job, place, lane);
        if (!goes_up) {
            T y[V];
            Largest<T> largest[V];
#pragma unroll
            for (int v = 0; v < V; ++v) y[v] = 0;
#pragma unroll 1
            for (int k = path.from; k < path.to; ++k) {
                arrival(path.slot(k)).wait_together(path.phase(k));
                walk_down(access, chunk_of(k), factors_of(k), y, largest);
                leave_to_copies();
                eliminated(path.slot(k)).arrive();
            }
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const std::int64_t system = system_of(job, place, Access::column_of(lane, v));
                if (system >= 0 && !(largest[v].value() <= join_limit<T>)) job.marks[system] = 1, atomicAdd(job.handed_over, 1ull);
            }
        } else {
            const auto ask = [&](int k) {
                if (lane != 0 || k >= path.to) return;
                constexpr unsigned factor_bytes = Memory::factors * sizeof(T);
                const Arrival news = arrival(path.slot(k));
                access.ask(k, chunk_of(k), news);
                news.expect(factor_bytes);
                news.copy(shared_address(factors_of(k)), march.factors + static_cast<std::int64_t>(k) * Memory::factors, factor_bytes);
            };
            for (int k = path.from; k < path.from + path.ring; ++k) ask(k);
#pragma unroll 1
            for (int k = path.from; k < path.to; ++k) {
                eliminated(path.slot(k)).wait_together(path.phase(k));
                if (Access::in_step) pace.await(path.number(k));
                const bool end = k + 1 == path.to;
                const int highest = path.highest(k), lowest = path.lowest(end && path.to == march.chunks ? k : k - ahead);
                if (highest <= lowest) {
                    T x[V];
#pragma unroll
                    for (int v = 0; v < V; ++v) x[v] = 0;
#pragma unroll 1
                    for (int j = k; j > lowest; --j) walk_up<false>(access, chunk_of(j), factors_of(j), j * R, x);
#pragma unroll 1
                    for (int j = lowest; j >= highest; --j) {
                        walk_up<true>(access, chunk_of(j), factors_of(j), j * R, x);
                        if constexpr (Access::stored_by_copies) {
                            leave_to_copies();
                            __syncwarp();
                            if (lane == 0) access.send(j, chunk_of(j));
                        }
                    }
                }
                if (Access::stored_by_copies && lane == 0 && (end || k - ahead >= path.from)) await_sent_reads();
                __syncwarp();
                if (path.frees(k)) ask(k + 2);
                if (Access::in_step) pace.tell(path.number(k) + 1);
            }
        }
        path.end();
    }
    if (goes_up) pace.leave();
    if (Access::stored_by_copies && goes_up && lane == 0) await_sent();
#endif
}

template <class Access, class T>
void enqueue_march(ColumnJob<T>& job, const March<T>& march, cudaStream_t stream) {
    auto* const kernel = march_kernel<Access, T>;
    static PerDevice prepared;
    prepared.once([&] { allow_shared_memory(kernel, MarchMemory<Access>::bytes); });
    const auto blocks = static_cast<unsigned>(multiprocessors_of_current());
    launch_after(kernel, dim3(std::min(blocks, march.cut.units())), 64 * march_warps, MarchMemory<Access>::bytes, stream, job, march);
}

}  // namespace trifold::cuda
