// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting in a block's shared memory, of several systems at a time; those that are marked, or all. What no block holds lies in the block's scratch, one system at a time.
//
// Arrays: as pivoted_line.cuh has them, any layout. Overwritten: x of what is solved.
// Who does what: a block looks at a window of systems, collects the marked ones and brings as many as fit, its threads along whichever direction has the smaller
//   stride. All its lanes share them, 16 or more a system, a chunk each (pivoted_lanes.cuh); where that would be less, two lanes solve a system from both ends (pivoted_pair.cuh). What they leave, or
//   what is singular, is for one thread's solve_line, which also finds the row.
// Words per row: 4 read, 1 written; in scratch some 18 more between the caches and the multiprocessor.
// Limit: instructions, 600 a row at 512 rows in double precision (ncu): two eliminations of 120, a quarter of all for joining lanes, a quarter for copies before these went by pieces; half of the
//   issue slots were used, for loading, solving and storing of a block follow each other and two blocks share a multiprocessor. Measured: docs/notes/gpu_pivots.md.
// Numerics: pivoted_chunk.cuh, pivoted_pair.cuh.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/pivoted_lanes.cuh"
#include "backends/cuda/tridiagonal/pivoted_pair.cuh"
#include "backends/cuda/tridiagonal/pivoted_left.cuh"

namespace trifold::cuda {

template <class T>
inline constexpr int chip_threads = sizeof(T) == 8 ? 256 : 512;  // as many lanes as registers allow with two blocks: chunks are short then

inline constexpr int least_chunk = 8, least_lanes = 16;  // joining costs as much as 8 rows of a lane, and a lane of 8 takes as long as one of a pair

struct ChipCut {
    int capacity = 0;         ///< systems in shared memory
    int window = 0;           ///< systems looked at, at most chip_threads
    int pitch = 0;            ///< elements from system to system, odd: lanes read from different banks
    bool on_chip = true;      ///< else a system is in scratch, one at a time
    bool along_rows = false;  ///< neighbouring threads copy neighbouring rows, else neighbouring systems
    unsigned long long most_marked = ~0ull;  ///< more are another kernel's
    int across_at = 0, lines_at = 0, verdicts_at = 0, list_at = 0, shared_bytes = 0;
};

/// OnChip: systems are in shared memory, else one is in the scratch of its block, which the caches hold.
template <class T, bool OnChip>
struct ChipBlock {
    const PivotedJob<T>& job;
    const ChipCut& cut;
    unsigned char* memory;

    __device__ T* system(int s) const {
        if constexpr (OnChip) return reinterpret_cast<T*>(memory) + s * cut.pitch;
        else return job.scratch + (job.slots + blockIdx.x) * 4 * job.rows;
    }
    __device__ Line<T>& line(int s, int operand) const { return reinterpret_cast<Line<T>*>(memory + cut.lines_at)[s * 5 + operand]; }
    __device__ int& verdict(int s) const { return reinterpret_cast<int*>(memory + cut.verdicts_at)[s]; }
    __device__ int* list() const { return reinterpret_cast<int*>(memory + cut.list_at); }  ///< and behind it, per warp, how many

    /// visit(system, row) for all of `part` systems, in the order in which they lie side by side.
    template <class Visit>
    __device__ __forceinline__ void each(int part, Visit visit) const {
        const int n = static_cast<int>(job.rows), inner = cut.along_rows ? n : part, outer = cut.along_rows ? part : n, thread = static_cast<int>(threadIdx.x);
        const int further = chip_threads<T> / inner, beside = chip_threads<T> - further * inner;
        for (int o = thread / inner, r = thread - o * inner; o < outer;) {
            visit(cut.along_rows ? o : r, cut.along_rows ? r : o);
            o += further, r += beside;
            if (r >= inner) r -= inner, ++o;
        }
    }

    /// The offsets of marked systems in the window, in order; how many there are.
    __device__ int collect(std::int64_t first) const {
        const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
        const std::int64_t k = first + thread;
        const bool wanted = thread < cut.window && k < job.levels.systems && job.wanted(k);
        const unsigned votes = __ballot_sync(~0u, wanted);
        int* const counts = list() + chip_threads<T>;
        if (lane == 0) counts[warp] = __popc(votes);
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < chip_threads<T> / 32; ++w) before += w < warp ? counts[w] : 0, all += counts[w];
        if (wanted) list()[before + __popc(votes & ((1u << lane) - 1))] = thread;
        __syncthreads();
        return all;
    }

    __device__ void place(std::int64_t first, const int* chosen, int part) const {
        for (int s = static_cast<int>(threadIdx.x); s < part; s += chip_threads<T>) {
            std::int64_t index[4];
            job.levels.indices(first + chosen[s], index);
            const Source<T>* const sources[5] = {&job.lower, &job.diag, &job.upper, &job.rhs, &job.x};
            for (int k = 0; k < 5; ++k) line(s, k) = line_of(*sources[k], index);
            verdict(s) = static_cast<int>(job.rows) + 1;
        }
        __syncthreads();
    }

    /// visit(system, array, first row, behind the last one) for the pieces of `arrays` arrays of each system, a warp each.
    template <int arrays, class Visit>
    __device__ __forceinline__ void pieces(int part, Visit visit) const {
        constexpr int rows = 512;
        const int n = static_cast<int>(job.rows), per_array = (n + rows - 1) / rows;
        for (int u = static_cast<int>(threadIdx.x) >> 5; u < part * arrays * per_array; u += chip_threads<T> / 32) {
            const int of = u / per_array, first = (u - of * per_array) * rows;
            visit(of / arrays, of % arrays, first, min(first + rows, n));
        }
    }
    /// Whether a system's rows suffice for that.
    __device__ bool by_pieces() const { return cut.along_rows && job.rows >= 128; }

    __device__ static __forceinline__ void copy(T* to, const T* from) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
        if constexpr (OnChip) return copy_async(shared_address(to), from);
#endif
        *to = *from;
    }

    __device__ void load_pieces(int part) const {
        const int lane = static_cast<int>(threadIdx.x) & 31;
        pieces<4>(part, [&](int s, int k, int first, int last) {
            const Line<T> from = line(s, k);
            T* const to = system(s) + k * job.rows;
            if (!from.data)
                for (int i = first + lane; i < last; i += 32) to[i] = from.value;
            __syncwarp();
            const bool no_first = k == 0 && first == 0, no_last = k == 2 && last == job.rows;
            if (from.data) {
                const int begin = first + lane + (no_first && lane == 0 ? 32 : 0), end = last - no_last;
                const T* at = from.data + begin * from.row_stride;
                const std::int64_t step = 32 * from.row_stride;
#pragma unroll 4
                for (int i = begin; i < end; i += 32, at += step) copy(to + i, at);
            }
            if (no_first && lane == 0) to[0] = T(0);
            if (no_last && lane == 0) to[last - 1] = T(0);
        });
    }

    __device__ void load(int part) const {
        const int n = static_cast<int>(job.rows);
        if (by_pieces())
            load_pieces(part);
        else
            each(part, [&](int s, int i) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const Line<T>& from = line(s, k);
                    T* const to = system(s) + i + k * job.rows;
                    const bool outside = (k == 0 && i == 0) || (k == 2 && i + 1 == n);
                    if (from.data && !outside) copy(to, from.data + i * from.row_stride);
                    else *to = outside ? T(0) : from.value;
                }
            });
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
        await_copies();
#endif
        __syncthreads();
    }

    /// How many lanes share a system; 2 where more would not be faster.
    __device__ int lanes_for(int part) const {
        int lanes = 2;
        while (2 * lanes * part <= chip_threads<T> && 2 * lanes * least_chunk <= job.rows) lanes *= 2;
        return lanes >= least_lanes ? lanes : 2;
    }

    __device__ void solve(int part) const {
        const int thread = static_cast<int>(threadIdx.x), n = static_cast<int>(job.rows), lanes = lanes_for(part);
        if (!OnChip || lanes > 2) {
            solve_by_lanes<OnChip>(system(0), cut.pitch, n, part, lanes, &verdict(0), reinterpret_cast<Equations<T>*>(memory + cut.across_at));
            __syncthreads();
            for (int s = thread; s < part; s += chip_threads<T>) verdict(s) = verdict(s) > n ? PairVerdict::solved : verdict(s) == n ? PairVerdict::left : verdict(s);
        } else {
            for (int at = thread; (at & ~31) < 2 * part; at += chip_threads<T>) {
                const bool active = at < 2 * part;
                const int s = active ? at >> 1 : 0, found = solve_pair(system(s), n, active, (at & 1) == 0);
                if (active && (at & 1) == 0) verdict(s) = found;
            }
        }
        __syncthreads();
    }

    __device__ void store(int part) const {
        const std::int64_t rhs = 3 * job.rows;
        if (by_pieces())
            pieces<1>(part, [&](int s, int, int first, int last) {
                const Line<T> to = line(s, 4);
                if (verdict(s) == PairVerdict::solved)
                    for (int i = first + (static_cast<int>(threadIdx.x) & 31); i < last; i += 32) to.at(i) = system(s)[rhs + i];
            });
        else
            each(part, [&](int s, int i) {
                if (verdict(s) == PairVerdict::solved) line(s, 4).at(i) = system(s)[rhs + i];
            });
    }

    /// slot, slots: this thread's scratch, and how many threads of the block have some.
    __device__ void report(std::int64_t first, const int* chosen, int part, std::int64_t slot, int slots) const {
        unsigned rescued = 0;
        for (int s = static_cast<int>(threadIdx.x); s < part; s += slots) {
            const std::int64_t k = first + chosen[s];
            std::int64_t index[4];
            PivotedVerdict<T> found{Reason::exact, -1};
            if (verdict(s) != PairVerdict::solved) {
                job.levels.indices(k, index);
                found = {Reason::not_finite, verdict(s)};
                if (verdict(s) == PairVerdict::left) found = solve_left(job, index, slot);
            }
            if (found.reason == Reason::exact) ++rescued;
            else report_failure(job.outcome, job.status, job.levels.number_of(index), found.row, found.reason);
        }
        if (job.marks.of_systems && rescued) report_rescued(job.outcome, rescued);
    }
};

template <class T, bool OnChip>
__global__ void __launch_bounds__(chip_threads<T>, 2) pivoted_chip_kernel(const __grid_constant__ PivotedJob<T> job, const __grid_constant__ ChipCut cut) {
    extern __shared__ __align__(16) unsigned char chip_memory[];
    after_the_kernel_before();
    if (job.marked && (*job.marked == 0 || *job.marked > cut.most_marked)) return;
    const ChipBlock<T, OnChip> block{job, cut, chip_memory};
    const int slots = static_cast<int>(min(job.slots / gridDim.x, static_cast<std::int64_t>(chip_threads<T>)));
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * cut.window; first < job.levels.systems; first += static_cast<std::int64_t>(gridDim.x) * cut.window) {
        const int marked = block.collect(first);
        for (int from = 0; from < marked; from += cut.capacity) {
            const int part = min(cut.capacity, marked - from), *const chosen = block.list() + from;
            block.place(first, chosen, part);
            block.load(part);
            block.solve(part);
            block.store(part);
            if (static_cast<int>(threadIdx.x) < slots)
                block.report(first, chosen, part, static_cast<std::int64_t>(blockIdx.x) * slots + threadIdx.x, slots);
            __syncthreads();
        }
    }
}

}  // namespace trifold::cuda
