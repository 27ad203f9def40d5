// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting in shared memory, of several systems at a time; those that are marked, or all. What no block holds is shared by a cluster's (pivoted_cluster.cuh), or lies in the block's scratch, one system at
// a time.
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
#include "backends/cuda/tridiagonal/pivoted_cluster.cuh"
#include "backends/cuda/tridiagonal/pivoted_lanes.cuh"
#include "backends/cuda/tridiagonal/pivoted_pair.cuh"
#include "backends/cuda/tridiagonal/pivoted_left.cuh"

namespace trifold::cuda {

template <class T>
inline constexpr int chip_threads = sizeof(T) == 8 ? 256 : 512;  // as many lanes as registers allow with two blocks: chunks are short then

inline constexpr int least_chunk = 8, least_lanes = 16;  // joining costs as much as 8 rows of a lane, and a lane of 8 takes as long as one of a pair
inline constexpr int most_chunk = 33;  // odd, as chunks are, and of 34 rows choices are remembered

/// Where systems lie while they are solved.
enum class Place { block, cluster, scratch };

struct ChipCut {
    Place place = Place::block;
    int blocks = 1;           ///< of a cluster, which share every system
    int rows = 0;             ///< of a system, that a block has: all, but in a cluster
    int capacity = 0;         ///< systems in shared memory
    int window = 0;           ///< systems looked at, at most chip_threads
    int pitch = 0;            ///< elements from system to system, odd: lanes read from different banks
    bool along_rows = false;  ///< neighbouring threads copy neighbouring rows, else neighbouring systems
    unsigned long long most_marked = ~0ull;  ///< more are another kernel's
    int across_at = 0, slots_at = 0, lines_at = 0, told_at = 0, verdicts_at = 0, list_at = 0, shared_bytes = 0;
};

/// Scratch: one system, which the caches hold.
template <class T, Place place_of>
struct ChipBlock {
    static constexpr bool on_chip = place_of != Place::scratch;
    const PivotedJob<T>& job;
    const ChipCut& cut;
    unsigned char* memory;
    BlockRows rows;

    __device__ ChipBlock(const PivotedJob<T>& job, const ChipCut& cut, unsigned char* memory) : job(job), cut(cut), memory(memory), rows(BlockRows::whole(static_cast<int>(job.rows))) {
        if constexpr (place_of == Place::cluster) {
            rows.room = cut.rows, rows.before = static_cast<int>(rank_in_cluster()) * cut.rows;
            rows.count = max(min(cut.rows, rows.all - rows.before), 0);
        }
    }

    __device__ T* system(int s) const {
        if constexpr (on_chip) return reinterpret_cast<T*>(memory) + s * cut.pitch;
        else return job.scratch + (job.slots + blockIdx.x) * 4 * job.rows;
    }
    __device__ Line<T>& line(int s, int operand) const { return reinterpret_cast<Line<T>*>(memory + cut.lines_at)[s * 5 + operand]; }
    __device__ int& verdict(int s) const { return reinterpret_cast<int*>(memory + cut.verdicts_at)[s]; }
    __device__ int* told() const { return reinterpret_cast<int*>(memory + cut.told_at); }  ///< what the lanes say of the block's systems
    __device__ int* list() const { return reinterpret_cast<int*>(memory + cut.list_at); }  ///< and behind it, per warp, how many

    /// visit(system, row) for all of `part` systems, in the order in which they lie side by side.
    template <class Visit>
    __device__ __forceinline__ void each(int part, Visit visit) const {
        const int n = rows.count, inner = cut.along_rows ? n : part, outer = cut.along_rows ? part : n, thread = static_cast<int>(threadIdx.x);
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
            told()[s] = rows.all + 1;
        }
        __syncthreads();
    }

    /// visit(system, array, first row, behind the last one) for the pieces of `arrays` arrays of each system, a warp each.
    template <int arrays, class Visit>
    __device__ __forceinline__ void pieces(int part, Visit visit) const {
        constexpr int piece = 512;
        const int n = rows.count, per_array = (n + piece - 1) / piece;
        for (int u = static_cast<int>(threadIdx.x) >> 5; u < part * arrays * per_array; u += chip_threads<T> / 32) {
            const int of = u / per_array, first = (u - of * per_array) * piece;
            visit(of / arrays, of % arrays, first, min(first + piece, n));
        }
    }
    /// Whether a system's rows suffice for that.
    __device__ bool by_pieces() const { return cut.along_rows && job.rows >= 128; }

    __device__ static __forceinline__ void copy(T* to, const T* from) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
        if constexpr (on_chip) return copy_async(shared_address(to), from);
#endif
        *to = *from;
    }

    __device__ void load_pieces(int part) const {
        const int lane = static_cast<int>(threadIdx.x) & 31;
        pieces<4>(part, [&](int s, int k, int first, int last) {
            const Line<T> from = line(s, k);
            T* const to = system(s) + k * rows.room;
            if (!from.data)
                for (int i = first + lane; i < last; i += 32) to[i] = from.value;
            __syncwarp();
            const bool no_first = k == 0 && rows.before + first == 0, no_last = k == 2 && rows.before + last == rows.all;
            if (from.data) {
                const int begin = first + lane + (no_first && lane == 0 ? 32 : 0), end = last - no_last;
                const T* at = from.data + (rows.before + begin) * from.row_stride;
                const std::int64_t step = 32 * from.row_stride;
#pragma unroll 4
                for (int i = begin; i < end; i += 32, at += step) copy(to + i, at);
            }
            if (no_first && lane == 0) to[0] = T(0);
            if (no_last && lane == 0) to[last - 1] = T(0);
        });
    }

    __device__ void load(int part) const {
        if (by_pieces())
            load_pieces(part);
        else
            each(part, [&](int s, int i) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const Line<T>& from = line(s, k);
                    T* const to = system(s) + i + k * rows.room;
                    const bool outside = (k == 0 && rows.before + i == 0) || (k == 2 && rows.before + i + 1 == rows.all);
                    if (from.data && !outside) copy(to, from.data + (rows.before + i) * from.row_stride);
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
        while (2 * lanes * part <= chip_threads<T> && 2 * lanes * least_chunk <= rows.room) lanes *= 2;
        return lanes >= least_lanes ? lanes : 2;
    }

    /// The verdicts are known then.
    __device__ void solve(int part) const {
        const int thread = static_cast<int>(threadIdx.x), n = rows.all, lanes = lanes_for(part);
        if (place_of != Place::block || lanes > 2) {
            auto* const across = reinterpret_cast<Equations<T>*>(memory + cut.across_at);
            // In scratch chunks may be long.
            constexpr bool is_short = on_chip;
            if constexpr (place_of == Place::cluster) {
                const RowsOfOthers<T> others{reinterpret_cast<Equations<T>*>(memory + cut.slots_at), part, cut.blocks};
                solve_by_lanes<is_short>(system(0), cut.pitch, rows, part, lanes, told(), across, others);
                meet_in_cluster();
            } else {
                solve_by_lanes<is_short>(system(0), cut.pitch, rows, part, lanes, told(), across);
                __syncthreads();
            }
            for (int s = thread; s < part; s += chip_threads<T>) {
                const int least = place_of == Place::cluster ? least_in_cluster(told() + s, cut.blocks) : told()[s];
                verdict(s) = least > n ? PairVerdict::solved : least == n ? PairVerdict::left : least;
            }
        } else {
            for (int at = thread; (at & ~31) < 2 * part; at += chip_threads<T>) {
                const bool active = at < 2 * part;
                const int s = active ? at >> 1 : 0, found = solve_pair(system(s), n, active, (at & 1) == 0);
                if (active && (at & 1) == 0) verdict(s) = found;
            }
        }
        __syncthreads();
        if constexpr (place_of == Place::cluster) arrive_in_cluster();  // what was told is written again when all have read it
    }

    __device__ void store(int part) const {
        const int rhs = 3 * rows.room;
        if (by_pieces())
            pieces<1>(part, [&](int s, int, int first, int last) {
                const Line<T> to = line(s, 4);
                if (verdict(s) == PairVerdict::solved)
                    for (int i = first + (static_cast<int>(threadIdx.x) & 31); i < last; i += 32) to.at(rows.before + i) = system(s)[rhs + i];
            });
        else
            each(part, [&](int s, int i) {
                if (verdict(s) == PairVerdict::solved) line(s, 4).at(rows.before + i) = system(s)[rhs + i];
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

template <class T, Place place>
__global__ void __launch_bounds__(chip_threads<T>, place == Place::cluster ? 1 : 2) pivoted_chip_kernel(const __grid_constant__ PivotedJob<T> job, const __grid_constant__ ChipCut cut) {
    extern __shared__ __align__(16) unsigned char chip_memory[];
    after_the_kernel_before();
    if (job.marked && (*job.marked == 0 || *job.marked > cut.most_marked)) return;
    const ChipBlock<T, place> block(job, cut, chip_memory);
    // Blocks of a cluster take the same systems; what none has solved is the first one's.
    const unsigned shares = place == Place::cluster ? static_cast<unsigned>(cut.blocks) : 1, team = blockIdx.x / shares, teams = gridDim.x / shares;
    const int slots = static_cast<int>(min(job.slots / teams, static_cast<std::int64_t>(chip_threads<T>)));
    bool met = true;
    for (std::int64_t first = static_cast<std::int64_t>(team) * cut.window; first < job.levels.systems; first += static_cast<std::int64_t>(teams) * cut.window) {
        const int marked = block.collect(first);
        for (int from = 0; from < marked; from += cut.capacity) {
            const int part = min(cut.capacity, marked - from), *const chosen = block.list() + from;
            if (place == Place::cluster && !met) wait_for_cluster();
            block.place(first, chosen, part);
            block.load(part);
            block.solve(part);
            met = false;
            block.store(part);
            if (static_cast<int>(threadIdx.x) < slots && (place != Place::cluster || block.rows.before == 0))
                block.report(first, chosen, part, static_cast<std::int64_t>(team) * slots + threadIdx.x, slots);
            __syncthreads();
        }
    }
    if (place == Place::cluster && !met) wait_for_cluster();
}

}  // namespace trifold::cuda
