// SPDX-License-Identifier: BSD-3-Clause
// What the second pass finds out about its x: residuals, and what they are small beside.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_job.cuh"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#include "backends/cuda/tridiagonal/thread/largest_bits.cuh"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda::two_pass {

__device__ inline unsigned long long bits(double value) { return static_cast<unsigned long long>(__double_as_longlong(value)); }
__device__ inline double number(unsigned long long bits) { return __longlong_as_double(static_cast<long long>(bits)); }

/// What a thread sees of a block of rows: NaN is the largest of all.
template <class T>
struct Seen {
    Largest<T> residual, entry, size, right;

    __device__ __forceinline__ void add(T l, T d, T u, T f, T x, T rest) {
        entry.add(l), entry.add(d), entry.add(u);
        size.add(x), right.add(f), residual.add(rest);
    }

    /// All threads of the team.
    template <class Team>
    __device__ void store(Found& found) const {
        unsigned here[maxima];
        of_warp(here);
        unsigned* const shared = Team::partial();
        Team::sync();
        if (Team::thread() % lanes == 0)
#pragma unroll
            for (int k = 0; k < maxima; ++k) shared[Team::thread() / lanes * maxima + k] = here[k];
        Team::sync();
        for (int w = 0; w < Team::size / lanes; ++w)
#pragma unroll
            for (int k = 0; k < maxima; ++k) here[k] = max(here[k], shared[w * maxima + k]);
        if (Team::thread() == 0) tell(here, found);
    }
    /// All lanes of a warp, of what they have seen.
    __device__ void store_of_warp(Found& found) const {
        unsigned here[maxima];
        of_warp(here);
        if (threadIdx.x % lanes == 0) tell(here, found);
    }

private:
    __device__ void of_warp(unsigned (&to)[maxima]) const {
        const unsigned own[maxima] = {held_bits(residual), held_bits(entry), held_bits(size), held_bits(right)};
#pragma unroll
        for (int k = 0; k < maxima; ++k) to[k] = __reduce_max_sync(~0u, own[k]);
    }

    __device__ static void tell(const unsigned (&here)[maxima], Found& found) {
        const auto value = [&](int k) { return static_cast<double>(number_of<T>(here[k])); };
        const double e = value(0) * static_cast<double>(beyond_cut<T>), most = isfinite(e) ? e : INFINITY, a = value(1), x = value(2), scale = a * x + value(3);
        atomicMax(&found.ratio, bits(most == 0 ? 0 : isinf(scale) ? most / a / x : most / scale));
        atomicMax(&found.residual, bits(most));
        atomicMax(&found.scale, bits(scale));
    }
};

/// The residuals of what has been corrected, by warps: `warp` of so many.
template <class T>
__device__ __forceinline__ void residuals_of(const Job<T>& job, std::int64_t k, std::int64_t warp, std::int64_t warps) {
    const Rows<T> system(job, k);
    constexpr std::int64_t rows = lanes * chunk_rows;
    for (std::int64_t first = warp * rows; first < job.cut.rows; first += warps * rows) {
        const std::int64_t last = min(first + rows, job.cut.rows);
        Seen<T> seen;
        for (std::int64_t i = first + threadIdx.x % lanes; i < last; i += lanes)
            seen.add(system.lower(i), system.line[1][i], system.upper(i), system.line[3][i], system.x[i], system.residual(i));
        seen.store_of_warp(job.found[k]);
    }
}

template <class T>
__global__ void __launch_bounds__(block_threads) residual_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    constexpr std::int64_t each = block_threads / lanes;
    if (!job.idle(job.system())) residuals_of(job, job.system(), blockIdx.x * each + threadIdx.x / lanes, gridDim.x * each);
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

/// How many roundings LU with partial pivoting gathers in one equation of a long system, as families/tridiagonal/lu_gathers.hpp has it, by up to 512 rows at four places.
template <class T>
__device__ __noinline__ double lu_gathers(const Rows<T>& system) {
    constexpr int places = 4;
    const std::int64_t rows = min(min(max(system.count >> 16, std::int64_t{64}), std::int64_t{512}), system.count / 8);  // one thread counts: some ten microseconds where a system is short
    double x0[places], x1[places], squares[places], most[places];
    const auto row = [&](int k, std::int64_t i) { return (2 * k + 1) * (system.count - rows) / (2 * places) + i; };
#pragma unroll
    for (int k = 0; k < places; ++k) x0[k] = system.line[1][row(k, 0)], x1[k] = system.line[2][row(k, 0)], squares[k] = most[k] = 1;
    constexpr int at_once = 4;  // rows that are asked for together
    for (std::int64_t begin = 1; begin < rows; begin += at_once) {
        T band[3][at_once][places];
#pragma unroll
        for (int j = 0; j < at_once; ++j)
#pragma unroll
            for (int k = 0; k < places; ++k)
#pragma unroll
                for (int m = 0; m < 3; ++m) band[m][j][k] = system.line[m][row(k, min(begin + j, rows - 1))];
#pragma unroll
        for (int j = 0; j < at_once; ++j)
#pragma unroll
            for (int k = 0; k < places; ++k) {
                const double a = band[0][j][k], b = band[1][j][k], c = band[2][j][k];
                const bool stays = abs(x0[k]) >= abs(a), counts = begin + j < rows;
                const double m = (stays ? a : x0[k]) * reciprocal(stays ? x0[k] : a);
                x0[k] = stays ? b - m * x1[k] : x1[k] - m * b, x1[k] = stays ? c : -m * c;
                squares[k] = (stays ? m * m : 1) * squares[k] + 1;
                if (counts) most[k] = max(most[k], squares[k]);
            }
    }
    double least = most[0];
    for (const double other : most) least = min(least, other);
    // Where none of these rows has lost what those before it left, rows beyond them do not either.
    const double all = least >= 0.75 * static_cast<double>(rows) ? static_cast<double>(system.count) / static_cast<double>(rows) : 1;
    return sqrt(least * all);
}

/// Up to 256 u where LU leaves as much: to correct that would take as long again.
template <class T>
__device__ __forceinline__ bool are_as_of_lu(const Rows<T>& system, const Found& found) {
    constexpr double u = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53, most = 256;
    const double ratio = number(found.ratio) / u;
    return ratio <= most && ratio <= lu_gathers(system);
}

/// Accepted, or marked for what comes next.
template <class T>
__device__ __forceinline__ void judge(const Job<T>& job, std::int64_t k, bool again) {
    const Found found = job.found[k];
    const bool regular = !found.irregular && isfinite(number(found.residual));
    if (regular && (are_small<T>(found) || (!again && are_as_of_lu(Rows<T>(job, k), found)))) {
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

/// Which row of a system that is left to LU is not finite, among 1024, by a warp: LU would come to the first one too, but row by row. Found::ratio becomes the number of rows from there on.
template <class T>
__device__ __forceinline__ void look_for_not_finite(const Job<T>& job, std::int64_t k, std::int64_t tile) {
    constexpr std::int64_t rows = lanes * chunk_rows;
    const Rows<T> system(job, k);
    const std::int64_t last = min((tile + 1) * rows, job.cut.rows);
    unsigned long long behind = 0;
    for (std::int64_t i = tile * rows + threadIdx.x % lanes; i < last; i += lanes) {
        const T zero = (system.lower(i) * T(0) + system.line[1][i] * T(0)) + (system.upper(i) * T(0) + system.line[3][i] * T(0));
        if (!(zero == T(0))) behind = max(behind, static_cast<unsigned long long>(job.cut.rows - i));
    }
    if (behind > 0) atomicMax(&job.found[k].ratio, behind);
}

/// By one thread, when all have looked.
template <class T>
__device__ __forceinline__ void report_not_finite(const Job<T>& job, std::int8_t* status, std::int64_t k) {
    const unsigned long long behind = job.found[k].ratio;
    if (job.marks[k] != to_pivot || behind == 0) return;
    std::int64_t index[4];
    job.levels.indices(k, index);
    report_failure(job.outcome, status, job.levels.number_of(index), job.cut.rows - static_cast<std::int64_t>(behind), Reason::not_finite);
    job.marks[k] = accepted;  // nothing is left to be done
}

template <class T>
__global__ void __launch_bounds__(block_threads) not_finite_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    const std::int64_t k = job.system();
    if (job.marks[k] != to_pivot) return;
    constexpr std::int64_t each = block_threads / lanes;
    for (std::int64_t tile = blockIdx.x * each + threadIdx.x / lanes; tile < job.cut.tiles(lanes); tile += gridDim.x * each) look_for_not_finite(job, k, tile);
}

/// One thread per system.
template <class T>
__global__ void report_kernel(const __grid_constant__ Job<T> job, std::int8_t* status) {
    after_the_kernel_before();
    const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k < job.levels.systems) report_not_finite(job, status, k);
}

}  // namespace trifold::cuda::two_pass
