// SPDX-License-Identifier: BSD-3-Clause
// Systems of at most N rows, by a thread each, with pivots:   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1
//
// Arrays: as pivoted_line.cuh has them, any strides; lower of row 0 and upper of the last one are not read. x may be rhs. Overwritten, or added to: x of systems that are solved, nothing of one that fails.
// Who does what: a thread has all rows of a system in registers (thread/few_rows.cuh). Where neighbouring systems lie side by side it loads and stores them itself. Where a system's own rows do,
//   a warp copies those of its 32 systems to shared memory, as they lie, without what is between them, and takes x away the same way.
// Words per row: 4 read, 1 written. Limit: memory. A row takes some 50 instructions where a warp brings them (FP32: 40), 70 (60) where a thread does (counted): an H200 can issue 269 (134) in the time.
// Numerics: thread/few_rows.cuh. What it does not solve is solved once more by pivoted_line.cuh, which names what cannot be.
#pragma once

#include "backends/cuda/runtime/opening.hpp"
#include "backends/cuda/tridiagonal/batch.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"
#include "backends/cuda/tridiagonal/thread/few_rows.cuh"

namespace trifold::cuda {

inline constexpr int few_rows_threads = 128, most_few_rows = 16;

/// Systems of N rows that a thread has: blocks that end too soon keep the GPU from starting others.
__host__ __device__ constexpr int few_rows_each(int rows) { return rows <= 8 ? 8 / rows : 1; }

template <class T>
struct FewRowsJob {
    Levels levels;
    int rows;
    bool accumulate;  ///< x is added to
    Source<T> lower, diag, upper, rhs, x;
    std::int8_t* status;
    DeviceOutcome* outcome;
    Opening opening;

    FewRowsJob(const tridiagonal::System& s, const BatchLaunch& launch)
        : levels(s), rows(static_cast<int>(s.rows)), accumulate(s.accumulate), lower(s.lower), diag(s.diag), upper(s.upper), rhs(s.rhs), x(s.x), status(launch.status), outcome(launch.outcome) {}
};

/// Rows of a system in shared memory: an odd number of words apart, so that threads that read the same row of theirs meet in no bank.
__host__ __device__ constexpr int few_rows_pitch(int rows) { return rows | 1; }

/// Rare, and one number at a time: a system that a thread has not solved, by true divisions, or the row that cannot be.
template <class T>
__device__ __noinline__ PivotedVerdict<T> solve_one_of_few(const FewRowsJob<T>* job, std::int64_t k) {
    std::int64_t index[4];
    job->levels.indices(k, index);
    const Line<T> lower = line_of(job->lower, index), diag = line_of(job->diag, index), upper = line_of(job->upper, index), rhs = line_of(job->rhs, index), x = line_of(job->x, index);
    T scratch[4 * most_few_rows];
    if (!job->accumulate) return solve_line(lower, diag, upper, rhs, x, job->rows, scratch, 1);
    T own[most_few_rows];
    const PivotedVerdict<T> verdict = solve_line(lower, diag, upper, rhs, Line<T>{own, T(0), 1}, job->rows, scratch, 1);
    for (int i = 0; i < job->rows && verdict.reason == Reason::exact; ++i) x.at(i) += own[i];
    return verdict;
}

/// Of what a block has, systems that are not solved: numbered from `first` on, a bit of `left` each, `apart` systems apart. By all threads.
template <class T>
__device__ __forceinline__ void solve_left_of_few(const FewRowsJob<T>& job, std::int64_t first, int apart, unsigned left) {
    if (threadIdx.x == 0) job.opening.enter();
    if (!__syncthreads_or(left != 0)) return;
    for (; left; left &= left - 1) {
        const std::int64_t k = first + std::int64_t{__ffs(static_cast<int>(left)) - 1} * apart;
        const PivotedVerdict<T> verdict = solve_one_of_few(&job, k);
        if (verdict.reason == Reason::exact) continue;
        std::int64_t index[4];
        job.levels.indices(k, index);
        report_failure(job.outcome, job.status, job.levels.number_of(index), verdict.row, verdict.reason);
    }
}

/// As Levels::indices, which divides words of 64 bits: where all numbers are short that was most of the instructions of systems of one and two rows.
__device__ __forceinline__ void indices_of(const Levels& levels, std::int64_t k, std::int64_t (&index)[4]) {
    if (levels.systems >> 31) return levels.indices(k, index);
    auto left = static_cast<unsigned>(k);
#pragma unroll
    for (int d = 3; d > 0; --d) {
        if (d >= levels.levels) continue;
        const auto extent = static_cast<unsigned>(levels.extent[d]), next = left / extent;
        index[d] = left - next * extent, left = next;
    }
    index[0] = left;
}

/// Where an operand of system `index` begins. `nested`: it has more levels than one.
template <class T>
__device__ __forceinline__ T* begin_of(const Source<T>& of, const std::int64_t (&index)[4], bool nested) {
    std::int64_t at = index[0] * of.level_stride[0];
    if (nested) at += index[1] * of.level_stride[1] + index[2] * of.level_stride[2] + index[3] * of.level_stride[3];
    return of.data + at;
}

/// Rows first … last of an operand. Every address is the one before and what rows are apart, and whether there is an array is asked once: they were most of the instructions.
template <class T, int N, bool Exact>
__device__ __forceinline__ void load_rows(T (&to)[N], const Source<T>& from, const std::int64_t (&index)[4], bool nested, int first, int last) {
    if (!from.data) {
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (i >= first && (Exact || i <= last)) to[i] = from.value;
        return;
    }
    const T* at = begin_of(from, index, nested) + first * from.row_stride;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (i < first || (i > last)) continue;
        to[i] = __ldcs(at);
        at += from.row_stride;
    }
}

/// What is there. By itself: a condition at every store would have each wait for the one before.
template <class T, int N, bool Exact>
__device__ __forceinline__ void add_rows(T (&to)[N], const T* at, std::int64_t stride, int n) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (!Exact && i >= n) break;
        to[i] += *at;
        at += stride;
    }
}

/// Systems that lie side by side, or anyhow. Behind the last one it is solved once more, and not stored.
template <class T, int N, bool Exact>
__device__ __forceinline__ void solve_few_across(const FewRowsJob<T>& job) {
    constexpr int each = few_rows_each(N);
    const int n = Exact ? N : job.rows;
    const bool nested = job.levels.levels > 1;
    const std::int64_t first = blockIdx.x * std::int64_t{each * few_rows_threads} + threadIdx.x;
    FewRows<T, N> systems[each];
    std::int64_t index[each][4] = {};
#pragma unroll
    for (int j = 0; j < each; ++j) {
        const std::int64_t k = min(first + j * few_rows_threads, job.levels.systems - 1);
        if (nested) indices_of(job.levels, k, index[j]);
        else index[j][0] = k;
        FewRows<T, N>& system = systems[j];
        if constexpr (!Exact)
#pragma unroll
            for (int i = 0; i < N; ++i) system.close(i);
        load_rows<T, N, Exact>(system.lower, job.lower, index[j], nested, 1, n - 1);
        load_rows<T, N, Exact>(system.diag, job.diag, index[j], nested, 0, n - 1);
        load_rows<T, N, Exact>(system.upper, job.upper, index[j], nested, 0, n - 2);
        load_rows<T, N, Exact>(system.rhs, job.rhs, index[j], nested, 0, n - 1);
        system.lower[0] = 0;
        if constexpr (Exact) system.upper[N - 1] = 0;
    }
    unsigned left = 0;
#pragma unroll
    for (int j = 0; j < each; ++j) {
        const bool there = first + j * few_rows_threads < job.levels.systems, good = systems[j].solve();
        if (there && !good) left |= 1u << j;
        if (there && good) {
            T* at = begin_of(job.x, index[j], nested);
            if (job.accumulate) add_rows<T, N, Exact>(systems[j].rhs, at, job.x.row_stride, n);
#pragma unroll
            for (int i = 0; i < N; ++i) {
                if (!Exact && i >= n) break;
                __stcs(at, systems[j].rhs[i]);
                at += job.x.row_stride;
            }
        }
        if (there && job.status) job.status[job.levels.number_of(index[j])] = static_cast<std::int8_t>(Reason::exact);
    }
    solve_left_of_few(job, first, few_rows_threads, left);
}

/// Systems whose own rows lie side by side, one after the other with gaps or without.
template <class T, int N, bool Exact>
__device__ __forceinline__ void solve_few_along(const FewRowsJob<T>& job) {
    extern __shared__ __align__(16) unsigned char few_rows_memory[];
    const int n = Exact ? N : job.rows, lane = static_cast<int>(threadIdx.x) & 31, pitch = few_rows_pitch(n), more_systems = 32 / n, more_rows = 32 % n;
    const std::int64_t k = blockIdx.x * std::int64_t{few_rows_threads} + threadIdx.x, first = k - lane;
    const int count = static_cast<int>(max(min(job.levels.systems - first, std::int64_t{32}), std::int64_t{0}));
    T* const tile = reinterpret_cast<T*>(few_rows_memory) + (threadIdx.x / 32) * 4 * 32 * pitch;
    // Number e of the warp's systems is row e % n of system e / n.
    const auto each_number = [&](auto&& call) {
        for (int e = lane, s = lane / n, row = lane % n; e < count * n; e += 32) {
            call(s, row);
            row += more_rows, s += more_systems;
            if (row >= n) row -= n, ++s;
        }
    };
    const auto bring = [&](const Source<T>& from, T* to, int skipped) {
        const T* const data = from.data + first * from.level_stride[0];
        const auto apart = static_cast<int>(from.level_stride[0]);
        each_number([&](int s, int row) {
            if (row == skipped) return;
            const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to + s * pitch + row));
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(data + s * apart + row), "n"(sizeof(T)) : "memory");
        });
    };
    bring(job.lower, tile, 0), bring(job.diag, tile + 32 * pitch, -1), bring(job.upper, tile + 64 * pitch, n - 1), bring(job.rhs, tile + 96 * pitch, -1);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
    FewRows<T, N> system;
    T* const own = tile + lane * pitch;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (lane >= count || (!Exact && i >= n)) system.close(i);
        else system.lower[i] = i > 0 ? own[i] : T(0), system.diag[i] = own[32 * pitch + i], system.upper[i] = i + 1 < n ? own[64 * pitch + i] : T(0), system.rhs[i] = own[96 * pitch + i];
    }
    const bool good = system.solve();
    if (lane < count)
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (Exact || i < n) own[96 * pitch + i] = system.rhs[i];
    const unsigned stored = __ballot_sync(~0u, good);
    __syncwarp();
    T* const data = job.x.data + first * job.x.level_stride[0];
    const auto apart = static_cast<int>(job.x.level_stride[0]);
    if (job.accumulate) each_number([&](int s, int row) { tile[(96 + s) * pitch + row] += data[s * apart + row]; });
    each_number([&](int s, int row) {
        if (stored >> s & 1) __stcs(data + s * apart + row, tile[(96 + s) * pitch + row]);
    });
    if (lane < count && job.status) {
        std::int64_t index[4] = {k, 0, 0, 0};
        job.status[job.levels.number_of(index)] = static_cast<std::int8_t>(Reason::exact);
    }
    solve_left_of_few(job, k, few_rows_threads, lane < count && !good);
}

template <class T, int N, bool Exact, bool Along>
__global__ void __launch_bounds__(few_rows_threads) few_rows_kernel(const __grid_constant__ FewRowsJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    if (job.opening.outcome) job.opening.open();
    else after_the_kernel_before();
    if constexpr (Along) solve_few_along<T, N, Exact>(job);
    else solve_few_across<T, N, Exact>(job);
#endif
}

}  // namespace trifold::cuda
