// SPDX-License-Identifier: BSD-3-Clause
// What the second pass finds out about its x: residuals, and what they are small beside.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_job.cuh"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda::two_pass {

__device__ inline unsigned long long bits(double value) { return static_cast<unsigned long long>(__double_as_longlong(value)); }
__device__ inline double number(unsigned long long bits) { return __longlong_as_double(static_cast<long long>(bits)); }

/// The largest of each of several numbers, by all threads of the team.
template <class Team, int Count>
__device__ __forceinline__ void largest_of(double (&values)[Count]) {
    static_assert(Count <= maxima);
    double* const shared = Team::partial();
#pragma unroll
    for (int k = 0; k < Count; ++k)
        for (int step = 16; step > 0; step /= 2) values[k] = fmax(values[k], __shfl_xor_sync(0xffffffffu, values[k], step));
    Team::sync();
    if (Team::thread() % 32 == 0)
#pragma unroll
        for (int k = 0; k < Count; ++k) shared[Team::thread() / 32 * Count + k] = values[k];
    Team::sync();
    for (int w = 0; w < Team::size / 32; ++w)
#pragma unroll
        for (int k = 0; k < Count; ++k) values[k] = fmax(values[k], shared[w * Count + k]);
}

/// What a thread sees of a block of rows.
template <class T>
struct Seen {
    T entry = 0, size = 0, right = 0, residual = 0, finite = 0;

    __device__ void add(T l, T d, T u, T f, T x, T rest) {
        entry = max(max(entry, abs(d)), max(abs(l), abs(u)));
        size = max(size, abs(x)), right = max(right, abs(f)), residual = max(residual, abs(rest));
        finite += rest * T(0);  // max() lets NaN pass by; it stays in the sum
    }

    /// All threads of the team.
    template <class Team>
    __device__ void store(Found& found) const {
        double found_here[] = {finite == T(0) ? 0.0 : 1.0, residual, entry, size, right};
        largest_of<Team>(found_here);
        if (Team::thread() != 0) return;
        const auto [lost, e, a, x, f] = found_here;
        const double most = lost > 0 ? INFINITY : e, scale = a * x + f;
        atomicMax(&found.ratio, bits(most == 0 ? 0 : isinf(scale) ? most / a / x : most / scale));
        atomicMax(&found.residual, bits(most));
        atomicMax(&found.scale, bits(scale));
    }
};

/// The residuals of what has been corrected.
template <class T, class Team = WholeBlock>
__device__ __forceinline__ void residuals_of(const Job<T>& job, std::int64_t k) {
    const Rows<T> system(job, k);
    constexpr std::int64_t rows = tile_chunks * chunk_rows;
    for (std::int64_t first = Team::number() * rows; first < job.cut.rows; first += Team::count() * rows) {
        const std::int64_t last = min(first + rows, job.cut.rows);
        Seen<T> seen;
        for (std::int64_t i = first + Team::thread(); i < last; i += block_threads)
            seen.add(system.lower(i), system.line[1][i], system.upper(i), system.line[3][i], system.x[i], system.residual(i));
        seen.template store<Team>(job.found[k]);
    }
}

template <class T>
__global__ void __launch_bounds__(block_threads) residual_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    if (!job.idle(job.system())) residuals_of(job, job.system());
}

/// As LAPACK would leave them.
template <class T>
__device__ __forceinline__ bool are_small(const Found& found) {
    const double u = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
    const double ratio = number(found.ratio), residual = number(found.residual), scale = number(found.scale);
    return isfinite(residual) && (ratio <= 10 * u || (isfinite(scale) && residual <= 4 * u * scale));
}

template <class T>
__device__ __forceinline__ void report_accepted(const Job<T>& job, const Found& found, bool again) {
    if (again && job.levels.systems == 1) job.outcome->reason = static_cast<int>(Reason::refined);
    if (job.marked) job.outcome->branch = static_cast<int>(tridiagonal::Algorithm::two_pass);
    // The bits of -1, "not computed", are below those of any number as signed integers.
    atomicMax(reinterpret_cast<long long*>(&job.outcome->residual), static_cast<long long>(found.ratio));
}

/// Accepted, or marked for what comes next.
template <class T>
__device__ __forceinline__ void judge(const Job<T>& job, std::int64_t k, bool again) {
    const Found found = job.found[k];
    const bool regular = !found.irregular && isfinite(number(found.residual));
    if (regular && are_small<T>(found)) {
        job.marks[k] = accepted;
        report_accepted(job, found, again);
        return;
    }
    job.marks[k] = regular && !again ? to_correct : to_pivot;
    job.found[k] = {};
}

/// One thread per system.
template <class T>
__global__ void judge_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k < job.levels.systems && !job.idle(k)) judge(job, k, job.again);
}

}  // namespace trifold::cuda::two_pass
