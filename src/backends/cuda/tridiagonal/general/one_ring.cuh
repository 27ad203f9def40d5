// SPDX-License-Identifier: BSD-3-Clause
// One ring in one cluster of 16 blocks:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   x[-1] = x[n-1], x[n] = x[0]
//
// Shapes: a, b, c, d, x are vectors of any stride, or scalars (not x); x may be d. The corners a[0], c[n-1] are arrays' elements or scalars. Overwritten: x.
// Who does what: as one system without halos (block/one_system.cuh), but that rows are shared evenly among all lanes, so that no lane, warp or block is empty: a chain of relations that
//   goes on at its end with its beginning closes on itself. A lane has R rows or fewer; those that it lacks come first, and hand on the unknown before them. What fails is solved through T, the ring
//   without its last row and column, in double precision, by all blocks in the same launch (two_pass_spread.cuh), and where that does not do by one thread (ring_line.cuh).
// Words per row: 4 read, 1 written. Roof: latency, as there; one step more closes the ring.
// Numerics: what is stored without a check has no row, left by elimination, that takes more than 17/16 of itself of its neighbours; the last equation's rounding is one of its row, whatever is left of its
//   pivot. Else of every row |rhs - A x| ≤ accept (|a|+|b|+|c|) X, X the largest |x| of its warp and of the last rows of the others. Through T: max|rhs - A x| ≤ accept max(|a|+|b|+|c|) max|x|.
#pragma once

#include "backends/cuda/tridiagonal/block/narrowed.cuh"
#include "backends/cuda/tridiagonal/block/warps_of_cluster.cuh"
#include "backends/cuda/tridiagonal/general/ring_line.cuh"

namespace trifold::cuda::one_ring {

using one_system::lanes, one_system::Memory, one_system::WarpsOfCluster;
inline constexpr int blocks = one_system::most_blocks, rows_each = 8;

template <class T>
struct Job {
    Line<T> a, b, c, d, x, right, left;  ///< right: of row 0 to x[n-1]; left: of the last row to x[0]
    int rows;
    T accept, negligible;  ///< a row's residual; a coupling
    bool in_place;
    int branch;  ///< of the outcome
    DeviceOutcome* outcome;
    std::int64_t number;  ///< of the system
    std::int8_t* status;
    T* scratch;  ///< scratch_bytes

    __device__ __forceinline__ T lower(int i) const { return i > 0 ? a[i] : right[0]; }
    __device__ __forceinline__ T upper(int i) const { return i + 1 < rows ? c[i] : left[0]; }
};

/// What is solved through T tells; then that of the spread.
template <class T>
struct News {
    unsigned residual, matrix, size;
    alignas(16) two_pass::SpreadNews<T> spread;  ///< and the words behind it
};

inline constexpr std::size_t bytes_of_news = (sizeof(News<double>) + two_pass::SpreadNews<double>::bytes(blocks) + 255) / 256 * 256;
/// In double precision, and for single precision its arrays.
template <class T>
inline constexpr std::size_t words_per_row = RingLine<double>::words + (sizeof(T) == 4 ? 5 : 0);
template <class T>
constexpr std::size_t scratch_bytes(std::int64_t rows) { return bytes_of_news + static_cast<std::size_t>(rows) * words_per_row<T> * sizeof(double); }

template <class T>
__device__ __forceinline__ Relation<T> of_next(const Relation<T>& row, int lane) {
    const int next = (lane + 1) % lanes;
    return {__shfl_sync(~0u, row.a, next), __shfl_sync(~0u, row.c, next), __shfl_sync(~0u, row.d, next)};
}

/// The last unknowns of all warps, Each per lane, and their first ones; left: the unknown before the lane's. light: whether all rows of the lane's warps are; returns whether all were, those that join warps too.
template <class T, int Each>
__device__ __forceinline__ bool solve_warps(const windows::Interface<T> (&mine)[Each], bool light, T negligible, int lane, T (&last)[Each], T (&first)[Each], T& left) {
    // Last unknowns in the one before the lane and its last one; that one in the last ones of the lanes beside it.
    Relation<T> rows[Each];
    Largest<T> coupling;
#pragma unroll
    for (int i = 0; i < Each; ++i) {
        rows[i] = windows::close_with(mine[i].last, i + 1 < Each ? mine[i + 1 < Each ? i + 1 : 0].first : of_next(mine[0].first, lane));
        light = light && is_light(rows[i]), coupling.add(rows[i].a), coupling.add(rows[i].c);
        last[i] = rows[i].d;
    }
    if (!__all_sync(~0u, coupling.value() <= negligible)) {
#pragma unroll
        for (int i = 1; i < Each; ++i) rows[i] = windows::eliminated(rows[i], rows[i - 1]), light = light && is_light(rows[i]);
#pragma unroll
        for (int i = Each - 3; i >= 0; --i) rows[i] = through(rows[i], rows[i + 1]);
        Relation<T> own = rows[Each - 1];
        if constexpr (Each > 1) own = windows::close_with(own, of_next(rows[0], lane));
        // Of the first lane's last unknown, in the one before it and the last lane's.
        Relation<T> begin{T(0), T(-1), T(0)};
        T none = 0;
        OddEven<T, lanes>::template reduce<false, true>(own, none, lane, begin, T(-1));
        light = light && is_light(own);
        const Relation<T> end{__shfl_sync(~0u, own.a, lanes - 1), __shfl_sync(~0u, own.c, lanes - 1), __shfl_sync(~0u, own.d, lanes - 1)};
        const Divisor<T> by(fused(-end.c, begin.a + begin.c, T(1)) + end.a);
        const T closed = by.of(fused(-end.c, begin.d, end.d)), x = OddEven<T, lanes>::substitute(own, closed, closed, lane), above = __shfl_sync(~0u, x, (lane + lanes - 1) % lanes);
#pragma unroll
        for (int i = 0; i < Each; ++i) last[i] = i + 1 < Each ? fused(-rows[i].c, x, fused(-rows[i].a, above, rows[i].d)) : x;
    }
    left = __shfl_sync(~0u, last[Each - 1], (lane + lanes - 1) % lanes);
#pragma unroll
    for (int i = 0; i < Each; ++i) first[i] = fused(-mine[i].first.c, last[i], fused(-mine[i].first.a, i ? last[i ? i - 1 : 0] : left, mine[i].first.d));
    return __all_sync(~0u, light);
}

/// T x = rhs, pivoted, by all threads of the cluster, which have met; false where that is not trusted.
template <class T, int Threads>
__device__ __noinline__ bool solve_open(const Job<T>* job, two_pass::SpreadNews<T>* news, unsigned char* shared, T* rhs, T* x) {
    using Team = two_pass::BlockOf<Threads>;
    const auto meet = [] { meet_in_cluster(); };
    const int n = job->rows - 1;
    two_pass::Spread spread;
    spread.rows = (n + blocks - 1) / blocks, spread.segments = (n + spread.rows - 1) / spread.rows;
    spread.deal_memory(static_cast<std::int64_t>(spread.rows) * one_system::pivot_words<Threads>((job->rows + blocks - 1) / blocks), true);
    const two_pass::Rows<T> system(job->a, job->b, job->c, rhs ? Line<T>{rhs, T(0), 1} : job->d, Line<T>{x, T(0), 1}, n);
    news->template clear<Team>(spread);
    __threadfence();
    __syncthreads();
    meet();
    const bool good = two_pass::share_rows<Team>(system, spread, *news, shared, meet);
    meet();  // until nobody reads the news any more
    return good;
}

/// x through T, or by one thread, or the failure is told. By all threads of the cluster; in place rhs is there. Whether x is there, as far as the first block knows.
template <class T, int Threads>
__device__ __noinline__ bool solve_through_t(const Job<T>* job, unsigned char* shared) {
    const int thread = static_cast<int>(blockIdx.x * Threads + threadIdx.x), rows = job->rows, last = rows - 1;
    auto& news = *reinterpret_cast<News<T>*>(job->scratch);
    T* const words = job->scratch + bytes_of_news / sizeof(T);
    T *const y = words, *const q = words + rows, *const column = words + 2 * rows;
    if (thread == 0) news.residual = news.matrix = news.size = 0;
    for (int i = thread; i < last; i += blocks * Threads) column[i] = (i == 0 ? job->right[0] : T(0)) + (i + 1 == last ? job->c[i] : T(0));
    __threadfence();
    bool good = solve_open<T, Threads>(job, &news.spread, shared, nullptr, y);
    good = good && solve_open<T, Threads>(job, &news.spread, shared, column, q);  // all know alike
    if (good) {
        const T corner = job->left[0], above = job->a[last], known = fused(-above, y[last - 1], fused(-corner, y[0], job->d[last])), pivot = fused(-above, q[last - 1], fused(-corner, q[0], job->b[last])),
                z = known / pivot;
        const auto solution = [&](int i) { return i == last ? z : fused(-q[i], z, y[i]); };
        Largest<T> residual, matrix, size;
        for (int i = thread; i < rows; i += blocks * Threads) {
            const T a = job->lower(i), b = job->b[i], c = job->upper(i), x = solution(i);
            residual.add(fused(-a, solution(i > 0 ? i - 1 : last), fused(-c, solution(i < last ? i + 1 : 0), fused(-b, x, job->d[i]))));
            matrix.add(fabs(a) + fabs(b) + fabs(c)), size.add(x);
        }
        unsigned* const to[3] = {&news.residual, &news.matrix, &news.size};
        const unsigned most[3] = {windows::held_bits(residual), windows::held_bits(matrix), windows::held_bits(size)};
        for (int k = 0; k < 3; ++k) {
            const unsigned all = __reduce_max_sync(~0u, most[k]);
            if (threadIdx.x % lanes == 0) atomicMax(to[k], all);
        }
        meet_in_cluster();
        const auto told = [](const unsigned& at) { return windows::number_of<T>(*const_cast<const volatile unsigned*>(&at)); };
        const T off = told(news.residual) * windows::beyond_cut<T>, entries = told(news.matrix), largest = told(news.size);
        // The quotient does not overflow where the product of the other two would.
        good = entries * T(0) == T(0) && largest * T(0) == T(0) && (off == T(0) || off / entries <= job->accept * largest);
        if (good) {
            for (int i = thread; i < rows; i += blocks * Threads) job->x.at(i) = solution(i);
            __threadfence();
            meet_in_cluster();
            return true;
        }
    }
    meet_in_cluster();  // until nobody reads what comes to lie elsewhere
    if (blockIdx.x != 0) return false;
    if (thread == 0) {
        const RingLine<T> ring{job->a, job->b, job->c, job->d, job->x, job->right[0], job->left[0], rows, words, 1};
        const PivotedVerdict<T> verdict = ring.solve(false);
        good = verdict.reason == Reason::exact;
        if (!good) report_failure(job->outcome, job->status, job->number, verdict.row, verdict.reason);
    }
    return __syncthreads_or(thread == 0 && good);
}

/// The same in double precision, of which single precision may have no digits.
template <int Threads>
__device__ __noinline__ void solve_in_double(const Job<float>* job, unsigned char* shared) {
    const int rows = job->rows, thread = static_cast<int>(blockIdx.x * Threads + threadIdx.x);
    auto* const words = reinterpret_cast<double*>(job->scratch) + bytes_of_news / sizeof(double) + static_cast<std::size_t>(rows) * words_per_row<double>;
    double *const a = words, *const b = a + rows, *const c = b + rows, *const d = c + rows, *const x = d + rows;
    for (int i = thread; i < rows; i += blocks * Threads) a[i] = job->lower(i), b[i] = job->b[i], c[i] = job->upper(i), d[i] = job->d[i];
    __threadfence();
    meet_in_cluster();
    const auto line = [](double* data) { return Line<double>{data, 0, 1}; };
    constexpr double from_single = 0x1p-29;  // roundoffs of double precision in those of single
    const Job<double> wide{line(a), line(b), line(c), line(d), line(x), line(a), line(c + rows - 1), rows, job->accept * from_single, 0, false, job->branch, job->outcome, job->number, job->status,
                           reinterpret_cast<double*>(job->scratch)};
    if (!solve_through_t<double, Threads>(&wide, shared) || blockIdx.x != 0) return;
    store_narrowed(x, rows, reinterpret_cast<int*>(shared), job->outcome, job->status, job->number, [&](int i, float value) { job->x.at(i) = value; });
}

template <class T, int Each>
__global__ void __launch_bounds__(2 * Each * lanes, 1) one_ring_kernel(const __grid_constant__ Job<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int R = rows_each, warps = 2 * Each, all = blocks * warps, threads = warps * lanes;
    extern __shared__ __align__(16) unsigned char bytes[];
    Memory<T, Each>& shared = *reinterpret_cast<Memory<T, Each>*>(bytes);
    const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes, block = static_cast<int>(blockIdx.x), number = block * warps + warp, rows = job.rows,
              part_of = number * lanes + lane, least = rows / (all * lanes), more = rows - least * (all * lanes), count = least + (part_of < more), first = part_of * least + min(part_of, more), skipped = R - count;
    T a[R], b[R], c[R], d[R];
#pragma unroll
    for (int s = 0; s < R; ++s) {
        const int i = first + s - skipped;
        const bool there = s >= skipped;
        a[s] = there ? job.lower(i) : T(-1), b[s] = there ? job.b[i] : T(1), c[s] = there ? job.upper(i) : -T(0), d[s] = there ? job.d[i] : T(0);
    }
    const WarpsOfCluster<T, Each> cluster{shared, lane, number, all, blocks};
    if (threadIdx.x == 0) cluster.prepare();
    __syncwarp();
    arrive_relaxed();
    windows::Lane<T, R> state;
    windows::WholeOfRing<T> part;
    part.negligible = job.negligible, part.skipped = skipped;
    bool sums = false;
    state.reduce_only(a, b, c, d, lane, part, sums);
    wait_for_cluster();
    cluster.show(part);
    one_system::begin_outcome(job.outcome, job.status, job.number, rows, job.branch);
    windows::Interface<T> mine[Each];
    T last[Each], head[Each], beside;
    const bool light = cluster.await(mine), certain = solve_warps<T, Each>(mine, light, job.negligible, lane, last, head, beside);
    const T before = cluster.of_warp(last, (number + all - 1) % all), end = cluster.of_warp(last, number), own_head = cluster.of_warp(head, number), beyond = cluster.of_warp(head, (number + 1) % all);
    T x[R], left, foremost = own_head;
    state.solve(a, c, d, before, end, lane, x, left, part.apart);
#pragma unroll
    for (int s = 0; s < R; ++s) {
        if (s == skipped && lane == 0) x[s] = own_head;  // the very number that the warp before takes it for
        if (s == skipped) foremost = x[s];
        if (s >= skipped) job.x.at(first + s - skipped) = x[s];
    }
    if (certain) return;
    T stored[R];
#pragma unroll
    for (int s = 0; s < R; ++s) stored[s] = d[s];
    const T X = one_system::largest_nearby(x, last);
    T after = __shfl_down_sync(~0u, foremost, 1);
    if (lane == lanes - 1) after = beyond;
    cluster.say_good(state.check(a, b, c, stored, x, left, X, job.accept, [&] { return after; }));
    if (cluster.are_good()) return;
    if (job.in_place)
#pragma unroll
        for (int s = 0; s < R; ++s)
            if (s >= skipped) job.x.at(first + s - skipped) = d[s];
    __threadfence();
    meet_in_cluster();
    if constexpr (sizeof(T) == 4) solve_in_double<threads>(&job, shared.rows());
    else if (solve_through_t<T, threads>(&job, shared.rows()) && block == 0 && threadIdx.x == 0) report_rescued(job.outcome);
#endif
}

}  // namespace trifold::cuda::one_ring
