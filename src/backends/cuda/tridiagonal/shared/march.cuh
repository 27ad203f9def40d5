// SPDX-License-Identifier: BSD-3-Clause
// Long columns that have one matrix: every warp walks down its columns, a lane each, chunk by chunk of 64 rows.
//
//   y[i] = inverse[i] d[i] - lower[i] y[i-1]      down, in place in shared memory
//   x[i] = y[i] - upper[i] x[i+1]                 up
//
// Whole: where unknowns do not feel each other from `ahead` chunks on, x begins so far below with nothing known, and only the highest chunk is stored.
// Else in two passes over the right-hand side, chunks being eliminated by themselves. Reduce: down, of which the last row and the first unknown are told. These are joined (march_join.cuh).
//   Finish: down from the last unknown of the chunk before, and up from the chunk's own.
//
// Shapes and strides: columns_job.hpp; in two passes x may be d. Overwritten: x, marks.
// Who does what: two warps take 32 columns (single precision: 64) of a segment of the rows, one walks down, the other one goes up behind it and asks for the next chunk
//   where it has left one. A ring of ahead + 2 chunks (else 3) is theirs; but that the pairs of a block, which have neighbouring columns, keep in step, they wait for nobody else. A segment's first chunks are preceded by `ahead` others, of which nothing is stored.
//   Both warps of a pair reduce, chunks in turns, in a ring of four.
// Words per row: 1 read, 1 written, and the ends of segments once more; in two passes 2 read, 1 written, and a seventh for what chunks tell. Shared memory: 3 + ahead, and factors, which all lanes read at a time.
// Flops per row: 2 fused down and ahead + 1 up; 5 in two passes. Roof: memory; what a chunk takes is the latency of 64 fused operations down, and of 64 (1 + ahead) up, one after the other.
// Numerics: march_factor.cuh. Rows are dominant, so elimination in order needs no pivots and |y| ≤ 2 max|x|; what is not known beyond a segment or a chunk is less than
//   u / 16 of the unknowns there. A right-hand side that is not finite, or too large, marks its system; in two passes that is known before anything is stored.
// Source: L. H. Thomas 1949; truncation as in truncated SPIKE (E. Polizzi, A. H. Sameh, A parallel hybrid banded system solver, 2006); F. A. Wang 1981 (chunks).
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

/// A chunk in place. All of a slice is read before anything is written: loads would wait for stores. kept: columns whose d stays.
template <bool Watched, class Access, class T, int V = Access::V>
__device__ __forceinline__ void walk_down(const Access& access, T* chunk, const T* factors, T (&y)[V], Largest<T> (&largest)[V], unsigned kept = 0) {
    constexpr int N = Access::slice_rows;
#pragma unroll 1
    for (int s = 0; s < Access::slices; ++s) {
        T inverse[N], lower[N], d[N][V];
        read_factors(factors + s * N, inverse), read_factors(factors + march_rows + s * N, lower);
        access.read(chunk, s, d);
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                y[v] = fused(-lower[i], y[v], inverse[i] * d[i][v]);
                if (Watched) largest[v].add(y[v]);
                if (Watched || !(kept >> v & 1)) d[i][v] = y[v];
            }
        access.write(chunk, s, d);
    }
}

/// The chunk whose first row is `first`, upwards; its x is stored, or only the uppermost one kept.
template <bool Stored, class Access, class T, int V = Access::V>
__device__ __forceinline__ void walk_up(const Access& access, T* chunk, const T* factors, int first, T (&x)[V], unsigned kept = 0) {
    constexpr int N = Access::slice_rows;
#pragma unroll 1
    for (int s = Access::slices - 1; s >= 0; --s) {
        T upper[N], y[N][V];
        read_factors(factors + 2 * march_rows + s * N, upper);
        access.read(chunk, s, y);
#pragma unroll
        for (int i = N - 1; i >= 0; --i)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                x[v] = fused(-upper[i], x[v], y[i][v]);
                if (!(kept >> v & 1)) y[i][v] = x[v];
            }
        if (Stored) access.store(chunk, s, first + s * N, y);
    }
}

/// What a chunk's last row is to the last unknowns, and its first one to them (march_factor.cuh).
template <class Access, class T, int V = Access::V>
__device__ __forceinline__ void reduce_chunk(const Access& access, T* chunk, const T* factors, T (&last)[V], T (&first)[V], Largest<T> (&largest)[V]) {
    constexpr int N = Access::slice_rows;
#pragma unroll
    for (int v = 0; v < V; ++v) last[v] = first[v] = 0;
#pragma unroll 1
    for (int s = 0; s < Access::slices; ++s) {
        T inverse[N], lower[N], weight[N], d[N][V];
        read_factors(factors + s * N, inverse), read_factors(factors + march_rows + s * N, lower), read_factors(factors + 2 * march_rows + s * N, weight);
        access.read(chunk, s, d);
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                last[v] = fused(-lower[i], last[v], inverse[i] * d[i][v]);
                first[v] = fused(weight[i], last[v], first[v]);
                largest[v].add(last[v]);
            }
    }
}

/// A block's shared memory and who a thread is in it.
template <class Access>
struct MarchBlock {
    using T = typename Access::T;
    using Memory = MarchMemory<Access>;
    static constexpr int V = Access::V;
    unsigned char* memory;
    int lane = static_cast<int>(threadIdx.x) & 31, pair = static_cast<int>(threadIdx.x) / 32 % march_warps;
    bool goes_up = threadIdx.x >= 32 * march_warps;
    MarchPace pace{reinterpret_cast<unsigned*>(memory + Memory::stored_at), pair, lane};

    __device__ __forceinline__ unsigned barrier(int k) const { return shared_address(memory + Memory::barriers_at) + 8u * static_cast<unsigned>(k); }
    __device__ __forceinline__ Arrival arrival(int slot) const { return {barrier(slot)}; }                    ///< of rhs
    __device__ __forceinline__ Arrival eliminated(int slot) const { return {barrier(march_slots + slot)}; }  ///< down
    __device__ __forceinline__ T* chunk(int slot) const { return reinterpret_cast<T*>(memory) + slot * Memory::slot; }
    __device__ __forceinline__ T* factors(int slot) const { return reinterpret_cast<T*>(memory) + march_slots * Memory::slot + slot * Memory::factors; }

    /// By all threads, before anything else.
    __device__ __forceinline__ void prepare() const {
        for (int s = static_cast<int>(threadIdx.x); s < march_slots; s += static_cast<int>(blockDim.x)) arrival(s).prepare(Access::requests + 1), eliminated(s).prepare(32);
        if (threadIdx.x < march_warps) pace.stored[threadIdx.x] = 0;
        __syncthreads();
    }
    /// By one thread: chunk k, and its factors of all of them.
    __device__ __forceinline__ void ask(const Access& access, const T* of_all, int slot, int k) const {
        constexpr unsigned factor_bytes = Memory::factors * sizeof(T);
        const Arrival news = arrival(slot);
        access.ask(k, chunk(slot), news);
        news.expect(factor_bytes);
        news.copy(shared_address(factors(slot)), of_all + static_cast<std::int64_t>(k) * Memory::factors, factor_bytes);
    }
    __device__ __forceinline__ void mark(const ColumnJob<T>& job, const ColumnPlace& place, const Largest<T> (&largest)[V]) const {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const std::int64_t system = system_of(job, place, Access::column_of(lane, v));
            if (system >= 0 && !(largest[v].value() <= join_limit<T>)) job.marks[system] = 1, atomicAdd(job.handed_over, 1ull);
        }
    }
    /// Of how many pairs a block has work, where each has a ring of so many chunks.
    static __device__ __forceinline__ unsigned pairs(const MarchCut& cut, int ring) {
        return min(min(march_slots / static_cast<unsigned>(ring), static_cast<unsigned>(march_warps)), (cut.units() + gridDim.x - 1) / gridDim.x);
    }
};

__device__ __forceinline__ ColumnPlace place_of_tile(const auto& job, unsigned tile) {
    const unsigned run = tile / job.tiles_per_run;
    return place_in_run(job, run, static_cast<std::int64_t>(job.order(tile - run * job.tiles_per_run)) * job.cut.columns);
}

/// A pair's units, one after the other.
template <class Access, class T, class Each>
__device__ __forceinline__ void each_unit(const MarchBlock<Access>& block, const ColumnJob<T>& job, const March<T>& march, const MarchCut& cut, unsigned pairs, MarchPath path, Each each) {
#pragma unroll 1
    for (unsigned number = blockIdx.x * pairs + static_cast<unsigned>(block.pair); number < cut.units(); number += gridDim.x * pairs) {
        const MarchCut::Unit unit = cut.unit(number);
        const ColumnPlace place = place_of_tile(job, unit.tile);
        path.begin(unit.first, unit.chunks, march.chunks);
        each(unit.tile, place, Access(job, place, block.lane), path);
        path.end();
    }
}

/// Where a chunk's numbers lie for those who join it: of lane and v.
template <class Access, class T>
__device__ __forceinline__ std::int64_t march_told(const ColumnJob<T>& job, unsigned tile, int k, int lane, int v) {
    return ((static_cast<std::int64_t>(k) * job.tiles + tile) * Access::V + v) * 32 + lane;
}

template <class Access, class T>
__device__ __forceinline__ void march_whole(const MarchBlock<Access>& block, const ColumnJob<T>& job, const March<T>& march, int ahead) {
    constexpr int R = march_rows, V = Access::V;
    const unsigned pairs = block.pairs(march.cut, ahead + 2);
    if (static_cast<unsigned>(block.pair) >= pairs) {
        if (block.goes_up) block.pace.leave();
        return;
    }
    each_unit(block, job, march, march.cut, pairs, MarchPath{ahead, ahead + 2, block.pair * (ahead + 2)}, [&](unsigned, const ColumnPlace& place, const Access& access, const MarchPath& path) {
        const auto chunk_of = [&](int k) { return block.chunk(path.slot(k)); };
        const auto factors_of = [&](int k) { return block.factors(path.slot(k)); };
        if (!block.goes_up) {
            T y[V];
            Largest<T> largest[V];
#pragma unroll
            for (int v = 0; v < V; ++v) y[v] = 0;
#pragma unroll 1
            for (int k = path.from; k < path.to; ++k) {
                block.arrival(path.slot(k)).wait_together(path.phase(k));
                walk_down<true>(access, chunk_of(k), factors_of(k), y, largest);
                leave_to_copies();
                block.eliminated(path.slot(k)).arrive();
            }
            block.mark(job, place, largest);
            return;
        }
        const auto ask = [&](int k) {
            if (block.lane == 0 && k < path.to) block.ask(access, march.factors, path.slot(k), k);
        };
        for (int k = path.from; k < path.from + path.ring; ++k) ask(k);
#pragma unroll 1
        for (int k = path.from; k < path.to; ++k) {
            block.eliminated(path.slot(k)).wait_together(path.phase(k));
            if (Access::in_step) block.pace.await(path.number(k));
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
                        if (block.lane == 0) access.send(j, chunk_of(j));
                    }
                }
            }
            if (Access::stored_by_copies && block.lane == 0 && (end || k - ahead >= path.from)) await_sent_reads();
            __syncwarp();
            if (path.frees(k)) ask(k + 2);
            if (Access::in_step) block.pace.tell(path.number(k) + 1);
        }
    });
    if (block.goes_up) block.pace.leave();
    if (Access::stored_by_copies && block.goes_up && block.lane == 0) await_sent();
}

/// Both warps of a pair.
__device__ __forceinline__ void meet_in_pair(int pair) { asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory"); }

/// By its own registers: inlined, it costs who walks down whole columns some.
template <class Access, class T>
__device__ __noinline__ void march_reduce(unsigned char* memory, const ColumnJob<T>& job, const March<T>& march) {
    constexpr int V = Access::V, ring = march_reduce_ring, step = 2;
    const MarchBlock<Access> block{memory};
    const unsigned pairs = block.pairs(march.reduce_cut, ring);
    if (static_cast<unsigned>(block.pair) >= pairs) return;
    each_unit(block, job, march, march.reduce_cut, pairs, MarchPath{0, ring, block.pair * ring}, [&](unsigned tile, const ColumnPlace& place, const Access& access, const MarchPath& path) {
        const auto ask = [&](int k) {
            if (block.lane == 0 && k < path.to) block.ask(access, march.reduce, path.slot(k), k);
        };
        // A warp's own chunks, whose places nobody else takes before the pair has met.
        const int own = path.from + block.goes_up;
        for (int k = own; k < path.from + ring; k += step) ask(k);
        Largest<T> largest[V];
#pragma unroll 1
        for (int k = own; k < path.to; k += step) {
            T last[V], first[V];
            block.arrival(path.slot(k)).wait_together(path.phase(k));
            reduce_chunk(access, block.chunk(path.slot(k)), block.factors(path.slot(k)), last, first, largest);
            __syncwarp();
            ask(k + ring);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const std::int64_t at = march_told<Access>(job, tile, k, block.lane, v);
                march.last[at] = last[v], march.first[at] = first[v];
            }
        }
        block.mark(job, place, largest);
        meet_in_pair(block.pair);
    });
}

template <class Access, class T>
__device__ __forceinline__ void march_finish(const MarchBlock<Access>& block, const ColumnJob<T>& job, const March<T>& march) {
    constexpr int R = march_rows, V = Access::V, ring = 3;
    const unsigned pairs = block.pairs(march.cut, ring);
    if (static_cast<unsigned>(block.pair) >= pairs) {
        if (block.goes_up) block.pace.leave();
        return;
    }
    each_unit(block, job, march, march.cut, pairs, MarchPath{0, ring, block.pair * ring}, [&](unsigned tile, const ColumnPlace& place, Access access, const MarchPath& path) {
        // Asked for a chunk before it is wanted.
        T known[V];
        const auto fetch = [&](int k) {
#pragma unroll
            for (int v = 0; v < V; ++v) known[v] = k >= 0 && k < march.chunks ? march.last[march_told<Access>(job, tile, k, block.lane, v)] : T(0);
        };
        unsigned kept = 0;
        if (march.in_place) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const std::int64_t system = system_of(job, place, Access::column_of(block.lane, v));
                kept |= static_cast<unsigned>(system >= 0 && job.marks[system]) << v;
            }
            access.leave(kept);
        }
        T now[V];
        if (!block.goes_up) {
            Largest<T> unused[V];
            fetch(path.from - 1);
#pragma unroll 1
            for (int k = path.from; k < path.to; ++k) {
#pragma unroll
                for (int v = 0; v < V; ++v) now[v] = known[v];
                fetch(k);
                block.arrival(path.slot(k)).wait_together(path.phase(k));
                walk_down<false>(access, block.chunk(path.slot(k)), block.factors(path.slot(k)), now, unused, kept);
                leave_to_copies();
                block.eliminated(path.slot(k)).arrive();
            }
            return;
        }
        const auto ask = [&](int k) {
            if (block.lane == 0 && k < path.to) block.ask(access, march.finish, path.slot(k), k);
        };
        for (int k = path.from; k < path.from + ring; ++k) ask(k);
        fetch(path.from);
#pragma unroll 1
        for (int k = path.from; k < path.to; ++k) {
#pragma unroll
            for (int v = 0; v < V; ++v) now[v] = known[v];
            fetch(k + 1);
            T* const chunk = block.chunk(path.slot(k));
            block.eliminated(path.slot(k)).wait_together(path.phase(k));
            if (Access::in_step) block.pace.await(path.number(k));
            walk_up<true>(access, chunk, block.factors(path.slot(k)), k * R, now, kept);
            if constexpr (Access::stored_by_copies) {
                leave_to_copies();
                __syncwarp();
                if (block.lane == 0) access.send(k, chunk), await_sent_reads();
            }
            __syncwarp();
            ask(k + ring);
            if (Access::in_step) block.pace.tell(path.number(k) + 1);
        }
    });
    if (block.goes_up) block.pace.leave();
    if (Access::stored_by_copies && block.goes_up && block.lane == 0) await_sent();
}

template <class Access, class T, MarchPass pass>
__global__ void __launch_bounds__(64 * march_warps, 1) march_kernel(const __grid_constant__ ColumnJob<T> job, const __grid_constant__ March<T> march) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(1024) unsigned char march_memory[];
    const MarchBlock<Access> block{march_memory};
    block.prepare();
    await_the_kernel_before();
    const bool joined = *const_cast<const volatile unsigned*>(march.joined);
    if constexpr (pass == MarchPass::finish) {
        if (!joined) return;
        if (!*const_cast<const volatile unsigned*>(march.wanted)) march_finish(block, job, march);
        else if (blockIdx.x == 0 && threadIdx.x == 0) *job.handed_over = 0;  // who solves all looks after those that are marked too
    } else if (joined) {
        march_reduce<Access>(march_memory, job, march);
    } else if (const int ahead = *const_cast<const volatile int*>(march.ahead); ahead > 0) {
        march_whole(block, job, march, ahead);
    }
#endif
}

}  // namespace trifold::cuda
