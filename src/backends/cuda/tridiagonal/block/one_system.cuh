// SPDX-License-Identifier: BSD-3-Clause
// One system in one block:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Shapes: a, b, c, d, x are vectors whose rows lie side by side; x may be d. a[0] and c[rows-1] are not read. Overwritten: x.
// Who does what: each of 16 warps brings 288 rows and reduces them, 9 per lane; the first one joins what is left of the warps; all finish and check
//   (device/windows_lane.cuh: a window of its own, without neighbours). No other launch: the first thread resets the outcome, and where a
//   residual is too large, it solves by pivots.
// Words per row: 4 read, 1 written. Roof: latency. A launch that does nothing takes 4.8 us between events on an H200; a block takes its rows in at
//   64 bytes per cycle, 1.1 us for 4096 of them in double precision; what is left is a chain of 9 + 5 + 4 eliminations.
// Numerics: as windows: of every row |rhs - A x| ≤ accept (|a|+|b|+|c|) X, X the largest |x| of its warp and of the last rows of the others.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/block/one_launch.cuh"
#include "backends/cuda/tridiagonal/device/windows_couple.cuh"

namespace trifold::cuda::one_system {

inline constexpr int lanes = 32, warps = 16, chunk = 9, warp_rows = lanes * chunk, most_rows = warps * warp_rows;

template <class T>
struct Memory {
    static constexpr int vector = 16 / static_cast<int>(sizeof(T));

    T raw[warps][4][warp_rows + vector];
    windows::Part<T> parts[warps];
    Relation<T> joined[warps];
    T last[1 + warps], first_x[warps + 1];
    unsigned long long full[warps];
};

/// Operand o of the warp's rows on its way, by lane o. Returns how far into a vector its first row lies.
template <class T>
__device__ __forceinline__ int bring(const PivotedJob<T>& job, Memory<T>& shared, int warp, int lane, int first, int count) {
    constexpr int vector = Memory<T>::vector;
    const Arrival arrival{shared_address(&shared.full[warp])};
    if (lane == 0) arrival.prepare(1);
    __syncwarp();
    const T* const base = lane == 0 ? job.lower.data : lane == 1 ? job.diag.data : lane == 2 ? job.upper.data : job.rhs.data;
    const T* const from = base + first;
    const auto in_vector = [](const T* at) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(at) / sizeof(T)) & (vector - 1); };
    const bool mine = lane < 4 && count > 0;
    const int shift = in_vector(from), low = lane == 0 && first == 0, high = count - (lane == 2 && first + count == job.rows);
    const int body = low + min(high - low, (vector - in_vector(from + low)) & (vector - 1)), end = body + (high - body) / vector * vector;
    T* const to = shared.raw[warp][lane & 3] + shift;
    unsigned bytes = 0;
    if (mine) {
        bytes = static_cast<unsigned>((end - body) * static_cast<int>(sizeof(T)));
        for (int i = low; i < body; ++i) copy_async(shared_address(to + i), from + i);
        for (int i = end; i < high; ++i) copy_async(shared_address(to + i), from + i);
    }
    const unsigned all = __reduce_add_sync(~0u, bytes);
    if (lane == 0) arrival.expect(all);
    __syncwarp();
    if (bytes) arrival.copy(shared_address(to + body), from + body, bytes);
    return shift;
}

template <class T>
__global__ void __launch_bounds__(lanes* warps, 1) one_system_kernel(const __grid_constant__ OneLaunch<T> once, T accept) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char bytes[];
    using Parts = windows::WarpsOfWindow<T, warps, warps>;
    Memory<T>& shared = *reinterpret_cast<Memory<T>*>(bytes);
    const PivotedJob<T>& job = once.rest;
    const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes, first = warp * warp_rows,
              rows = static_cast<int>(job.rows), count = max(min(warp_rows, rows - first), 0);
    const int shift = bring(job, shared, warp, lane, first, count);
    if (threadIdx.x == 0) {
        *job.outcome = once.fresh;
        if (job.status) job.status[job.levels.number] = static_cast<std::int8_t>(Reason::exact);
    }
    T* const a = shared.raw[warp][0] + __shfl_sync(~0u, shift, 0) + lane * chunk;
    T* const b = shared.raw[warp][1] + __shfl_sync(~0u, shift, 1) + lane * chunk;
    T* const c = shared.raw[warp][2] + __shfl_sync(~0u, shift, 2) + lane * chunk;
    T* const d = shared.raw[warp][3] + __shfl_sync(~0u, shift, 3) + lane * chunk;
    await_copies();
    Arrival{shared_address(&shared.full[warp])}.wait();
    __syncwarp();
    // What elimination must not see, and the rows that are missing.
    if (threadIdx.x == 0) a[0] = 0;
    if ((lane + 1) * chunk >= count) {
        for (int i = max(count - lane * chunk, 0); i < chunk; ++i) a[i] = 0, b[i] = 1, c[i] = 0, d[i] = 0;
        const int last = rows - 1 - first - lane * chunk;
        if (last >= 0 && last < chunk) c[last] = 0;
    }
    windows::Lane<T, chunk> state;
    bool sums = false;
    state.reduce(a, b, c, d, lane, shared.parts[warp], sums);
    __syncthreads();
    if (warp == 0) {
        const windows::Interface<T> whole = Parts::reduce(shared.parts, shared.joined, lane);
        const T x = Parts::substitute(shared.joined[lane % warps], T(0), whole.last.d, lane);
        if (lane < warps) shared.last[1 + lane] = x;
        if (lane == 0) shared.last[0] = 0, shared.first_x[warps] = 0;
    }
    __syncthreads();
    T x[chunk], left;
    state.solve(a, c, d, shared.last[warp], shared.last[warp + 1], lane, x, left);
    Largest<T> largest;
    largest.add(shared.last[1 + lane % warps]);
#pragma unroll
    for (int i = 0; i < chunk; ++i) largest.add(x[i]);
    const T X = windows::number_of<T>(__reduce_max_sync(~0u, windows::held_bits(largest))) * windows::beyond_cut<T>;
    if (lane == 0) shared.first_x[warp] = x[0];
    __syncthreads();
    T after = __shfl_down_sync(~0u, x[0], 1);
    if (lane == lanes - 1) after = shared.first_x[warp + 1];
    T* const own = shared.raw[warp][3] + __shfl_sync(~0u, shift, 3);
    const bool good = state.check(a, b, c, d, x, left, X, accept, [&] { return after; });
    if (__syncthreads_and(good)) {
        for (int i = lane; i < count; i += lanes) job.x.data[first + i] = own[i];
    } else if (threadIdx.x == 0) {
        const_cast<unsigned char*>(job.marks)[0] = 1;
        solve_lines(job, 0);
    }
#endif
}

}  // namespace trifold::cuda::one_system
