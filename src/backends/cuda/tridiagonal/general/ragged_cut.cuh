// SPDX-License-Identifier: BSD-3-Clause
// Before runs of a ragged batch are solved: where systems end, a bit for each row; which systems follow each other in a run; marks and status of systems.
//
// Who does what, in launches one after the other: bits are cleared; a thread has a system, sets its bit, and sees whether it is the first of a window of rows; a thread has a window, and puts what begins there into runs, as many systems
//   as fit, one run after the other. Which place a run has in the list depends on who comes first, but what it consists of does not, and so x does not.
// Words: an offset of a system read once, and some ten times for a run; a bit of a row written twice, a byte of a system once.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/ragged_runs.hpp"

namespace trifold::cuda {

struct RaggedCounters {
    unsigned runs = 0, long_runs = 0, parts = 0;                  ///< how many there are
    unsigned tickets = 0, long_tickets = 0, part_tickets = 0;     ///< how many have been asked for
    unsigned cut_systems = 0, others = 0, other_tickets = 0;
    unsigned marked_tickets = 0, small = 0, middle = 0, large = 0, huge = 0;         ///< of ragged_marked.cuh
    unsigned long long marked = 0;
};

struct RaggedCut {
    const std::int64_t* offsets = nullptr;   ///< systems + 1
    std::int64_t systems = 0, first = 0;
    RaggedCounters* counters = nullptr;
    unsigned* ends = nullptr;                ///< `words` of them, a multiple of 4, at a multiple of 16 bytes: bit row - first + bits_before where a system ends with that row, and one for the row before all
    std::int64_t words = 0;
    unsigned char* marks = nullptr;
    bool only_mark = false;                  ///< all systems
    std::int8_t* status = nullptr;
    std::int64_t windows = 0;
    unsigned long long inverse = 0;          ///< 2^64 / rows of a window, rounded up
    std::int64_t* starts = nullptr;          ///< windows + 1: the first system of each
    std::int64_t capacity = 0, step = 1;     ///< rows of a run, systems that are likely to fit
    RaggedRun* runs = nullptr;
    std::int64_t most = 0, most_long = 0;    ///< systems of more than `most` rows and not more than `most_long` have a run for themselves, in the other list
    RaggedRun* long_runs = nullptr;
    std::int64_t whole = 0, least_alone = 0; ///< systems of more than `whole` rows and fewer than least_alone are cut into parts of part_rows
    int part_rows = 1;
    RaggedRun* parts = nullptr;
    RaggedParts* cut_systems = nullptr;
};

inline constexpr int bits_before = 32, cut_threads = 256;

__global__ void __launch_bounds__(cut_threads) clear_ragged(const __grid_constant__ RaggedCut job, DeviceOutcome* outcome, const __grid_constant__ DeviceOutcome fresh) {
    let_the_next_begin();
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * cut_threads + threadIdx.x;
    if (thread == 0) *outcome = fresh, *job.counters = {}, job.counters->marked = job.only_mark;
    auto* const fours = reinterpret_cast<uint4*>(job.ends);
    for (std::int64_t i = thread; i < job.words / 4; i += static_cast<std::int64_t>(gridDim.x) * cut_threads) fours[i] = i == 0 ? uint4{1u << 31, 0, 0, 0} : uint4{0, 0, 0, 0};
}

/// Systems are in the window that this says of their first row; the last one has what is behind all.
__device__ __forceinline__ std::int64_t window_of(const RaggedCut& job, std::int64_t row) {
    return min(static_cast<std::int64_t>(__umul64hi(static_cast<unsigned long long>(row - job.first), job.inverse)), job.windows - 1);
}

/// By whole warps, a thread a system; k = systems for what is behind the last one.
__device__ __forceinline__ void look_at_system(const RaggedCut& job, std::int64_t k) {
    const int lane = static_cast<int>(threadIdx.x) & 31;
    const std::int64_t begin = k <= job.systems ? job.offsets[k] : 0;
    std::int64_t end = __shfl_down_sync(~0u, begin, 1);
    if (lane == 31 && k < job.systems) end = job.offsets[k + 1];
    std::int64_t window = k <= job.systems ? window_of(job, begin) : 0, first_window = __shfl_up_sync(~0u, window, 1) + 1;  // windows that begin with k
    if (lane == 0) first_window = k > 0 && k <= job.systems ? window_of(job, job.offsets[k - 1]) + 1 : 0;
    if (k == job.systems) window = job.windows;
    bool parts = false;
    const std::int64_t n = end - begin;
    if (k < job.systems) {
        job.marks[k] = job.only_mark && n < job.least_alone;
        if (job.status) job.status[k] = static_cast<std::int8_t>(n > 0 ? Reason::exact : Reason::none);
        const std::int64_t bit = end - 1 - job.first + bits_before;
        if (n > 0) atomicOr(job.ends + (bit >> 5), 1u << (bit & 31));
        if (job.most < n && n <= job.most_long) {
            RaggedRun run;
            run.row = begin, run.system = k, run.systems = 1, run.rows = static_cast<int>(n);
            job.long_runs[atomicAdd(&job.counters->long_runs, 1u)] = run;
        }
        parts = job.whole < n && n < job.least_alone;
    }
    if (k <= job.systems && first_window <= window) job.starts[first_window] = k;
    for (unsigned many = __ballot_sync(~0u, k <= job.systems && first_window < window); many; many &= many - 1) {  // a system longer than windows
        const int other = __ffs(static_cast<int>(many)) - 1;
        const std::int64_t from = __shfl_sync(~0u, first_window, other) + 1, to = __shfl_sync(~0u, window, other), its = __shfl_sync(~0u, k, other);
        for (std::int64_t w = from + lane; w <= to; w += 32) job.starts[w] = its;
    }
    const unsigned with_parts = __ballot_sync(~0u, parts);
    if (with_parts == 0) return;
    const int its_parts = parts ? static_cast<int>((n + job.part_rows - 1) / job.part_rows) : 0, all_parts = static_cast<int>(__reduce_add_sync(~0u, static_cast<unsigned>(its_parts)));
    int place = 0, first_part = 0;
    if (lane == 0) first_part = static_cast<int>(atomicAdd(&job.counters->parts, static_cast<unsigned>(all_parts))), place = static_cast<int>(atomicAdd(&job.counters->cut_systems, static_cast<unsigned>(__popc(with_parts))));
    first_part = __shfl_sync(~0u, first_part, 0), place = __shfl_sync(~0u, place, 0);
    for (unsigned many = with_parts; many; many &= many - 1, ++place) {
        const int other = __ffs(static_cast<int>(many)) - 1;
        const std::int64_t row = __shfl_sync(~0u, begin, other), rows = __shfl_sync(~0u, n, other), its = __shfl_sync(~0u, k, other);
        const int count = __shfl_sync(~0u, its_parts, other), first = first_part;
        first_part += count;
        if (lane == 0) job.cut_systems[place] = {its, first, count};
        for (int p = lane; p < count; p += 32) {
            RaggedRun run;
            run.row = row + static_cast<std::int64_t>(p) * job.part_rows, run.system = its, run.systems = 1, run.part = first + p;
            run.rows = static_cast<int>(min(static_cast<std::int64_t>(job.part_rows), row + rows - run.row));
            job.parts[run.part] = run;
        }
    }
}

__global__ void __launch_bounds__(cut_threads) look_at_ragged(const __grid_constant__ RaggedCut job) {
    after_the_kernel_before();
    const std::int64_t grid = static_cast<std::int64_t>(gridDim.x) * cut_threads;
    for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * cut_threads; base <= job.systems; base += grid) look_at_system(job, base + threadIdx.x);
}

/// The last e ≤ end for which systems k … e-1 have at most `capacity` rows. offset(k): of system k.
template <class Offset>
__device__ __forceinline__ std::int64_t as_many_as_fit(const RaggedCut& job, std::int64_t k, std::int64_t end, Offset offset) {
    const std::int64_t limit = offset(k) + job.capacity;
    std::int64_t step = job.step;
    while (k + step <= end && offset(k + step) <= limit) k += step, step = step < end ? 2 * step : step;
    std::int64_t over = min(k + step, end + 1);  // does not fit, or is not there
    while (over - k > 1) {
        const std::int64_t middle = k + (over - k) / 2;
        if (offset(middle) <= limit) k = middle;
        else over = middle;
    }
    return k;
}

inline constexpr int window_threads = 64, window_offsets = 2816;  ///< of a block; that a warp has in shared memory: what a thread looks at next depends on what it has seen

/// By a block, a thread a window.
template <class Offset>
__device__ __forceinline__ void cut_windows(const RaggedCut& job, std::int64_t k, std::int64_t end, Offset offset) {
    constexpr int at_once = 8;
    __shared__ unsigned of_warps[window_threads / 32 + 1];
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) / 32;
    while (__syncthreads_or(k < end)) {
        RaggedRun found[at_once];
        int count = 0;
        while (count < at_once && k < end) {
            const std::int64_t next = as_many_as_fit(job, k, end, offset), row = offset(k), rows = offset(next) - row;
            if (rows > 0) found[count].row = row, found[count].system = k, found[count].systems = next - k, found[count].rows = static_cast<int>(rows), ++count;
            k = next > k ? next : k + 1;  // a system that does not fit is others'
        }
        int before = count;
#pragma unroll
        for (int apart = 1; apart < 32; apart *= 2) {
            const int other = __shfl_up_sync(~0u, before, apart);
            if (lane >= apart) before += other;
        }
        if (lane == 31) of_warps[warp] = static_cast<unsigned>(before);
        __syncthreads();
        if (threadIdx.x == 0) {  // one request of a block: a single counter bears some 300 in a microsecond
            unsigned all = 0;
            for (int w = 0; w < window_threads / 32; ++w) {
                const unsigned its = of_warps[w];
                of_warps[w] = all, all += its;
            }
            of_warps[window_threads / 32] = all > 0 ? atomicAdd(&job.counters->runs, all) : 0;
        }
        __syncthreads();
        const unsigned place = of_warps[window_threads / 32] + of_warps[warp] + static_cast<unsigned>(before - count);
        for (int r = 0; r < count; ++r) job.runs[place + r] = found[r];
    }
}

__global__ void __launch_bounds__(window_threads) cut_ragged(const __grid_constant__ RaggedCut job) {
    constexpr std::int64_t far = 1 << 30;
    __shared__ std::int64_t near[window_threads / 32][window_offsets];
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) / 32;
    after_the_kernel_before();
    const std::int64_t window = static_cast<std::int64_t>(blockIdx.x) * window_threads + threadIdx.x;
    std::int64_t k = 0, end = 0;
    if (window < job.windows) k = job.starts[window], end = job.starts[window + 1];
    const std::int64_t first = __shfl_sync(~0u, k, 0), last = first + __reduce_max_sync(~0u, static_cast<unsigned>(min(max(end - first, std::int64_t{0}), far)));
    if (__syncthreads_and(last - first < window_offsets)) {
        for (int i = lane; i <= last - first; i += 32) copy_async(shared_address(&near[warp][i]), job.offsets + first + i);
        await_copies();
        __syncwarp();
        cut_windows(job, k, end, [&](std::int64_t at) { return near[warp][at - first]; });
    } else {
        cut_windows(job, k, end, [&](std::int64_t at) { return job.offsets[at]; });
    }
}

/// The first system from k on, before `end`, that begins with `row` or behind it.
__device__ __forceinline__ std::int64_t system_from(const std::int64_t* offsets, std::int64_t k, std::int64_t end, std::int64_t row) {
    while (k < end) {
        const std::int64_t middle = k + (end - k) / 2;
        if (offsets[middle] < row) k = middle + 1;
        else end = middle;
    }
    return k;
}

}  // namespace trifold::cuda
