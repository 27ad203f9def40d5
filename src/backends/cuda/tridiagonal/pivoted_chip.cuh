// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting on chip, for systems of which several fit into a block's shared memory; those that are marked, or all.
//
// Arrays: as pivoted_line.cuh has them, any layout. Overwritten: x of what is solved.
// Who does what: a block looks at a window of systems, collects the marked ones and brings as many as fit into shared memory, its threads
//   along whichever direction has the smaller stride. Two lanes solve a system (pivoted_pair.cuh). What they leave, or what is singular, is for one
//   thread's solve_line, which also finds the row.
// Words per row: 4 read, 1 written.
// Limit: a block holds 3500 rows in double precision, and a step of a lane waits for one reciprocal and what depends on it, n/2 steps down and up for all
//   of them at a time. Measured: 50 % of the memory's roof at 64 rows, 17 at 512 (docs/algorithms/gpu_batches.md).
// Numerics: pivoted_pair.cuh.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"
#include "backends/cuda/tridiagonal/pivoted_pair.cuh"

namespace trifold::cuda {

inline constexpr int chip_threads = 256;

struct ChipCut {
    int capacity = 0;         ///< systems in shared memory
    int window = 0;           ///< systems looked at, at most chip_threads
    int pitch = 0;            ///< elements from system to system, odd: lanes read from different banks
    bool along_rows = false;  ///< neighbouring threads copy neighbouring rows, else neighbouring systems
    int lines_at = 0, verdicts_at = 0, list_at = 0, shared_bytes = 0;
};

template <class T>
struct ChipBlock {
    const PivotedJob<T>& job;
    const ChipCut& cut;
    unsigned char* memory;

    __device__ T* system(int s) const { return reinterpret_cast<T*>(memory) + s * cut.pitch; }
    __device__ Line<T>& line(int s, int operand) const { return reinterpret_cast<Line<T>*>(memory + cut.lines_at)[s * 5 + operand]; }
    __device__ int& verdict(int s) const { return reinterpret_cast<int*>(memory + cut.verdicts_at)[s]; }
    __device__ int* list() const { return reinterpret_cast<int*>(memory + cut.list_at); }  ///< and behind it, per warp, how many

    /// visit(system, row) for all of `part` systems, in the order in which they lie side by side.
    template <class Visit>
    __device__ __forceinline__ void each(int part, Visit visit) const {
        const int n = static_cast<int>(job.rows), inner = cut.along_rows ? n : part, all = n * part;
        for (int e = static_cast<int>(threadIdx.x); e < all; e += chip_threads) {
            const int outer = e / inner, rest = e - outer * inner;
            visit(cut.along_rows ? outer : rest, cut.along_rows ? rest : outer);
        }
    }

    /// The offsets of marked systems in the window, in order; how many there are.
    __device__ int collect(std::int64_t first) const {
        const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
        const std::int64_t k = first + thread;
        const bool wanted = thread < cut.window && k < job.levels.systems && (!job.marks || job.marks[k]);
        const unsigned votes = __ballot_sync(~0u, wanted);
        int* const counts = list() + chip_threads;
        if (lane == 0) counts[warp] = __popc(votes);
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < chip_threads / 32; ++w) before += w < warp ? counts[w] : 0, all += counts[w];
        if (wanted) list()[before + __popc(votes & ((1u << lane) - 1))] = thread;
        __syncthreads();
        return all;
    }

    __device__ void place(std::int64_t first, const int* chosen, int part) const {
        for (int s = static_cast<int>(threadIdx.x); s < part; s += chip_threads) {
            std::int64_t index[4];
            job.levels.indices(first + chosen[s], index);
            const Source<T>* const sources[5] = {&job.lower, &job.diag, &job.upper, &job.rhs, &job.x};
            for (int k = 0; k < 5; ++k) line(s, k) = line_of(*sources[k], index);
        }
        __syncthreads();
    }

    __device__ void load(int part) const {
        const int n = static_cast<int>(job.rows);
        each(part, [&](int s, int i) {
            T* const to = system(s) + i;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const Line<T>& from = line(s, k);
                const bool outside = (k == 0 && i == 0) || (k == 2 && i + 1 == n);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
                to[k * n] = outside ? T(0) : from[i];
#else
                if (from.data && !outside) copy_async(shared_address(to + k * n), from.data + i * from.row_stride);
                else to[k * n] = outside ? T(0) : from.value;
#endif
            }
        });
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
        await_copies();
#endif
        __syncthreads();
    }

    __device__ void solve(int part) const {
        const int thread = static_cast<int>(threadIdx.x);
        for (int at = thread; (at & ~31) < 2 * part; at += chip_threads) {
            const bool active = at < 2 * part;
            const int s = active ? at >> 1 : 0, found = solve_pair(system(s), static_cast<int>(job.rows), active, (at & 1) == 0);
            if (active && (at & 1) == 0) verdict(s) = found;
        }
        __syncthreads();
    }

    __device__ void store(int part) const {
        const int n = static_cast<int>(job.rows);
        each(part, [&](int s, int i) {
            const Line<T>& to = line(s, 4);
            if (verdict(s) == PairVerdict::solved) to.data[i * to.row_stride] = system(s)[3 * n + i];
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
                if (verdict(s) == PairVerdict::left) found = solve_line(job, index, slot);
            }
            if (found.reason == Reason::exact) ++rescued;
            else report_failure(job.outcome, job.status, job.levels.number_of(index), found.row, found.reason);
        }
        if (job.marks && rescued) report_rescued(job.outcome, rescued);
    }
};

template <class T>
__global__ void __launch_bounds__(chip_threads, 2) pivoted_chip_kernel(const __grid_constant__ PivotedJob<T> job, const __grid_constant__ ChipCut cut) {
    extern __shared__ __align__(16) unsigned char chip_memory[];
    after_the_kernel_before();
    if (job.marked && *job.marked == 0) return;
    const ChipBlock<T> block{job, cut, chip_memory};
    const int slots = static_cast<int>(min(job.slots / gridDim.x, static_cast<std::int64_t>(chip_threads)));
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
