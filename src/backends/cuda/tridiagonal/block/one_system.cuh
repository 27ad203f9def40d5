// SPDX-License-Identifier: BSD-3-Clause
// One system in one cluster of blocks:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Shapes: a, b, c, d, x are vectors whose rows lie side by side; x may be d. a[0] and c[rows-1] are not read. Overwritten: x.
// Who does what: a lane has R rows, in registers from the first to the last, a cluster up to 32 Each warps. Up to 4096 rows warps with halos come first: of 128 rows a warp keeps the 64 in the
//   middle, and it tells the others only whether its x is good. Where one is not, warps without halos: each makes one Interface of its 32 R rows
//   (device/windows_lane.cuh) and sends it to all blocks (st.async); every warp solves the system of all warps' last unknowns for itself, by the same
//   operations, then its own rows. No other launch: the first thread resets the outcome, and where a residual is too large, all blocks
//   share the system by pivots (cluster_share.cuh), or the first one has it (pivoted_block.cuh).
// Words per row: 4 read, those of halos twice, 1 written. Roof: latency. A launch that does nothing takes 5 us between events on an H200, and reading and
//   writing the rows hardly more if many blocks do it; one block takes 1.1 us to bring 4096 rows of doubles in at 64 bytes per cycle. What is
//   left is the chain: R + 1 eliminations in a lane, then some 8 substitutions of lanes into each other (halos), or 5 eliminations in the warp, a message, 1 + 5 among
//   warps (1 where they do not matter to each other), and substitution back. Rows are asked for before all else, for fences wait for what is under way.
// Numerics: with halos all rows are dominant, |a| + |c| ≤ 15/16 |b|, so that every order of elimination is backward stable without exchanges
//   (docs/decisions/0053-dominant-rows-first.md) and |x| ≤ 16 max|d/b|; what is neglected is at most 1/16 roundoff of the largest |x|. Nothing is checked then, and x is
//   stored when all are known to be good. Without halos neither where no row that elimination leaves takes more than itself of its
//   neighbours, |a| + |c| ≤ 1 where b is 1: what rounding does is nowhere more than it does to the largest x then, and all warps see the same. Else as windows: of every row |rhs - A x| ≤ accept (|a|+|b|+|c|) X, X
//   the largest |x| of its warp and of the last rows of the others; x is stored before that is known, and in place rhs is stored again where it does not hold.
#pragma once

#include <cstring>
#include <type_traits>

#include "backends/cuda/tridiagonal/block/cluster_share.cuh"
#include "backends/cuda/tridiagonal/block/narrowed.cuh"
#include "backends/cuda/tridiagonal/block/warps_of_cluster.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/pivoted_block.cuh"

namespace trifold::cuda::one_system {

using windows::hardly_dominant, windows::solve_parts;

/// As little as can be: what a launch carries costs time.
template <class T>
struct Job {
    T* input[4];          ///< lower, diag, upper, rhs
    T* x;
    int rows;
    unsigned whole;       ///< bit k: input k begins at a multiple of 16 bytes; bit 4: x
    T accept, negligible;
    bool in_place;
    int branch;           ///< of the outcome
    DeviceOutcome* outcome;
    std::int64_t number;  ///< of the system
    std::int8_t* status;
    T* scratch;           ///< bytes_of_news and bytes_per_row of each row
};

/// What blocks that share a system tell each other, with room to be aligned.
inline constexpr std::size_t bytes_of_news = (two_pass::SpreadNews<double>::bytes(most_blocks) + 255) / 256 * 256;
template <class T>
inline constexpr std::size_t bytes_per_row = sizeof(T) == 8 ? 4 * sizeof(double) : 9 * sizeof(double);

/// R rows of one lane, those in [low, high); else `missing`.
template <class T, int R>
__device__ __forceinline__ void load_some(const T* from, int first, int low, int high, T missing, T (&to)[R]) {
#pragma unroll
    for (int i = 0; i < R; ++i) to[i] = first + i >= low && first + i < high ? from[first + i] : missing;
}

template <class T, int R>
__device__ __forceinline__ void load_all(const T* from, T (&to)[R]) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < R; i += vector) {
        const int4 four = *reinterpret_cast<const int4*>(from + i);
        memcpy(&to[i], &four, 16);
    }
}

/// A lane's rows of all four arrays.
template <class T, int R>
__device__ __forceinline__ void load_rows(const Job<T>& job, int first, T (&a)[R], T (&b)[R], T (&c)[R], T (&d)[R]) {
    const int rows = job.rows;
    if (R % (16 / sizeof(T)) == 0 && (job.whole & 15) == 15 && first >= 0 && first + R <= rows) {
        load_all(job.input[1] + first, b);
        if (first > 0) load_all(job.input[0] + first, a);
        else load_some(job.input[0], first, 1, rows, T(0), a);
        if (first + R < rows) load_all(job.input[2] + first, c);
        else load_some(job.input[2], first, 0, rows - 1, T(0), c);
        load_all(job.input[3] + first, d);
    } else {
        load_some(job.input[1], first, 0, rows, T(1), b);
        load_some(job.input[0], first, 1, rows, T(0), a);
        load_some(job.input[2], first, 0, rows - 1, T(0), c);
        load_some(job.input[3], first, 0, rows, T(0), d);
    }
}

/// |a| + |c| ≤ 15/16 |b| in all rows, and all of moderate size: then so is x.
template <class T, int R>
__device__ __forceinline__ bool are_dominant(const T (&a)[R], const T (&b)[R], const T (&c)[R], const T (&d)[R]) {
    constexpr T most = sizeof(T) == 8 ? T(0x1p400) : T(0x1p50), least = 1 / most;
    bool all = true;
#pragma unroll
    for (int i = 0; i < R; ++i) all = all && fabs(a[i]) + fabs(c[i]) <= T(0.9375) * fabs(b[i]) && fabs(b[i]) <= most && fabs(b[i]) >= least && fabs(d[i]) <= most;
    return all;
}

template <class T, int R>
__device__ __forceinline__ void store_rows(T* to, bool whole, int first, int rows, const T (&from)[R]) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T));
    if (R % vector == 0 && whole && first + R <= rows) {
#pragma unroll
        for (int i = 0; i < R; i += vector) {
            int4 four;
            memcpy(&four, &from[i], 16);
            *reinterpret_cast<int4*>(to + first + i) = four;
        }
    } else {
#pragma unroll
        for (int i = 0; i < R; ++i)
            if (first + i < rows) to[first + i] = from[i];
    }
}

/// Warps with halos: of 32 lanes those in the middle are kept. How many of them a block has, for as many rows as its two warps without.
inline constexpr int halo = 8, kept = lanes - 2 * halo, warps_apart = 4;

/// x of the lane's rows, `first` and those after it, which is good for kept lanes where what lies beyond the halos and what rounds of substitution leave is at most 1/16 roundoff of the
/// largest |x|, and all rows are dominant. tell(good) as soon as that is known; returns whether it may be. By all lanes of a warp.
template <class T, int R, class Prepare, class Tell>
__device__ __forceinline__ bool solve_apart(const Job<T>& job, int first, int lane, T (&x)[R], Prepare prepare, Tell tell) {
    constexpr int enough = (sizeof(T) == 8 ? 57 : 28) * windows::log_unit, most_rounds = 12, first_rounds = 4;
    T a[R], b[R], c[R], d[R];
    load_rows(job, first, a, b, c, d);
    prepare();
    if (!__all_sync(~0u, are_dominant(a, b, c, d))) {
        tell(false);
        return false;
    }
    Chunk<T, R> rows;
#pragma unroll
    for (int i = 0; i < R; ++i) rows.eliminate_to_check(i, a[i], b[i], c[i], d[i]);
    rows.reduce();
    Relation<T> own = rows.last();
    const Relation<T> next = from_below(rows.first(), 1, lanes);
    if (lane < lanes - 1) own = windows::close_with(own, next);
    // An unknown moves by at most |a| / (1 - |c|) of what the one before it does.
    const float fa = static_cast<float>(fabs(own.a)), fc = static_cast<float>(fabs(own.c));
    const bool shrinks = fa + fc <= 1;
    const int from_left = __reduce_add_sync(~0u, lane < halo && shrinks ? windows::log_of_ratio(fa, 1 - fc) : 0);
    const int from_right = __reduce_add_sync(~0u, lane >= lanes - halo && shrinks ? windows::log_of_ratio(fc, 1 - fa) : 0);
    if (lane == 0) own.a = 0;
    if (lane == lanes - 1) own.c = 0;
    const float coupling = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint((lane ? fa : 0.0f) + (lane < lanes - 1 ? fc : 0.0f))));
    T x_last = own.d;
    const auto round = [&] {
        const T above = __shfl_up_sync(~0u, x_last, 1), below = __shfl_down_sync(~0u, x_last, 1);
        x_last = fused(-own.c, below, fused(-own.a, above, own.d));
    };
#pragma unroll
    for (int r = 0; r < first_rounds; ++r) round();  // while the rest is found out
    const int decay = -windows::log_of_ratio(coupling, 1.0f);
    const bool good = max(from_left, from_right) <= -enough && most_rounds * decay >= enough;
    tell(good);
    if (good)
#pragma unroll 1
        for (int left_over = enough - first_rounds * decay; left_over > 0; left_over -= decay) round();
    T left = __shfl_up_sync(~0u, x_last, 1);
    if (lane == 0) left = 0;
#pragma unroll
    for (int i = 0; i < R; ++i) x[i] = rows.x(i, left, x_last);
    return good;
}

/// In double precision: systems so ill-conditioned that single precision has no digits of them are still solved as well as their entries say.
template <int Threads>
__device__ __noinline__ void solve_in_double(const Job<float>* job, unsigned char* shared) {
    const int rows = job->rows, thread = static_cast<int>(blockIdx.x * Threads + threadIdx.x), threads = static_cast<int>(gridDim.x) * Threads;
    auto& news = *reinterpret_cast<two_pass::SpreadNews<double>*>(job->scratch);
    auto* const words = reinterpret_cast<double*>(reinterpret_cast<unsigned char*>(job->scratch) + bytes_of_news);
    double *const lower = words, *const diag = lower + rows, *const upper = diag + rows, *const rhs = upper + rows, *const x = rhs + rows;
    for (int i = thread; i < rows; i += threads) {
        lower[i] = i > 0 ? job->input[0][i] : 0, diag[i] = job->input[1][i];
        upper[i] = i + 1 < rows ? job->input[2][i] : 0, rhs[i] = job->input[3][i];
    }
    __threadfence();
    meet_in_cluster();
    const bool good = share_arrays<double, Threads>(lower, diag, upper, rhs, x, nullptr, rows, &news, shared);
    __threadfence();
    meet_in_cluster();
    if (blockIdx.x != 0) return;
    if (!good) {
        const PivotedVerdict<double> verdict = solve_arrays_by_block(lower, diag, upper, rhs, x, rows, x + rows, reinterpret_cast<BlockPivoting<double>*>(shared));
        if (verdict.reason != Reason::exact) {
            if (threadIdx.x == 0) report_failure(job->outcome, job->status, job->number, verdict.row, verdict.reason);
            return;
        }
    }
    store_narrowed(x, rows, reinterpret_cast<int*>(shared), job->outcome, job->status, job->number, [&](int i, float value) { job->x[i] = value; });
}

/// By all threads of the cluster, Threads a block: by all blocks, else by the first one. rhs is there; shared: room for a block's share of the rows, in double precision.
template <class T, int Threads>
__device__ __forceinline__ void solve_with_pivots(const Job<T>& job, unsigned char* shared) {
    auto* const news = reinterpret_cast<two_pass::SpreadNews<T>*>(job.scratch);
    T* const kept = job.in_place ? job.scratch + bytes_of_news / sizeof(T) : nullptr;
    if (share_arrays<T, Threads>(job.input[0], job.input[1], job.input[2], job.input[3], job.x, kept, job.rows, news, shared)) {
        if (blockIdx.x == 0 && threadIdx.x == 0) report_rescued(job.outcome);
        return;
    }
    meet_in_cluster();
    if constexpr (sizeof(T) == 4) {
        solve_in_double<Threads>(&job, shared);
    } else {
        if (blockIdx.x != 0) return;
        const PivotedVerdict<T> verdict = solve_arrays_by_block(job.input[0], job.input[1], job.input[2], job.input[3], job.x, job.rows, job.scratch + bytes_of_news / sizeof(T), reinterpret_cast<BlockPivoting<T>*>(shared));
        if (threadIdx.x != 0) return;
        if (verdict.reason == Reason::exact) report_rescued(job.outcome);
        else report_failure(job.outcome, job.status, job.number, verdict.row, verdict.reason);
    }
}

/// The grid is one cluster. Halos: warps with halos come first, which tell each other nothing but whether x is good.
template <class T, int R, int Each, bool Halos>
__global__ void __launch_bounds__(lanes* most_warps<Each>, 1) one_system_kernel(const __grid_constant__ Job<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char bytes[];
    Memory<T, Each>& shared = *reinterpret_cast<Memory<T, Each>*>(bytes);
    const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes, block = static_cast<int>(blockIdx.x),
              warps = Halos ? warps_apart / 2 : static_cast<int>(blockDim.x) / lanes, blocks = static_cast<int>(gridDim.x), all = blocks * warps, number = block * warps + warp, rows = job.rows,
              first = (number * lanes + lane) * R;
    const WarpsOfCluster<T, Each> cluster{shared, lane, number, all, blocks};
    const Arrival answers{shared_address(&shared.asked)};
    const auto prepare = [&] {
        if (threadIdx.x == 0) {
            cluster.prepare(), answers.prepare(1);
            if (Halos) answers.expect(2 * static_cast<unsigned>(all * static_cast<int>(sizeof(unsigned))));
        }
        __syncwarp();
        arrive_relaxed();
    };
    T a[R], b[R], c[R], d[R];
    const bool has_rows = !Halos || warp < warps;  // the others of a block only have to know how it ends
    bool may_be = false;
    if constexpr (Halos) {
        const int place = block * warps_apart + warp, first_apart = (place * kept - halo + lane) * R;
        T x[R];
        may_be = solve_apart<T, R>(job, first_apart, lane, x, prepare, [&](bool good) {
            if (!good && has_rows) load_rows(job, first, a, b, c, d);  // they are near until blocks have waited for each other
            wait_for_cluster();
            cluster.tell(shared.apart, place, good, answers);
            begin_outcome(job.outcome, job.status, job.number, rows, job.branch);
        });
        if (may_be) {  // else nobody needs to ask the others
            answers.wait_cluster(0);
            __syncwarp();
            if (__all_sync(~0u, (lane >= 2 * all || shared.apart[lane]) && (lane + lanes >= 2 * all || shared.apart[lane + lanes]))) {
                if (lane >= halo && lane < lanes - halo) store_rows<T, R>(job.x, job.whole & 16, first_apart, rows, x);
                return;
            }
        }
    }
    windows::Lane<T, R> state;
    windows::Whole<T> part;
    if (has_rows) {
        if (!Halos || may_be) load_rows(job, first, a, b, c, d);  // before all else: what comes next would wait for it
        if (!Halos) prepare();
        part.negligible = job.negligible;
        bool sums = hardly_dominant(a, b, c, lane);
        state.reduce_only(a, b, c, d, lane, part, sums);
        if (!Halos) wait_for_cluster();
        cluster.show(part);
        if (!Halos) begin_outcome(job.outcome, job.status, job.number, rows, job.branch);
    }
    windows::Interface<T> mine[Each];
    T last[Each], head[Each], beside;
    const bool light = cluster.await(mine), certain = solve_parts<T, Each>(mine, light, job.negligible, lane, last, head, beside);
    if (has_rows) {
        const T before = number ? cluster.of_warp(last, max(number - 1, 0)) : T(0), end = cluster.of_warp(last, number);
        const T own_head = cluster.of_warp(head, number), beyond = cluster.of_warp(head, min(number + 1, lanes * Each - 1));

        T x[R], left, stored[R];
        state.solve(a, c, d, before, end, lane, x, left, part.apart);
        if (lane == 0) x[0] = own_head;  // the very number that the warp before takes it for
        store_rows<T, R>(job.x, job.whole & 16, first, rows, x);
        if (!certain) {
#pragma unroll
            for (int i = 0; i < R; ++i) stored[i] = d[i];
            const T X = largest_nearby(x, last);
            T after = __shfl_down_sync(~0u, x[0], 1);
            if (lane == lanes - 1) after = number + 1 < all ? beyond : T(0);
            cluster.say_good(state.check(a, b, c, stored, x, left, X, job.accept, [&] { return after; }));
        }
    }
    if (Halos) answers.wait_cluster(0);  // a block is there until nobody sends to it any more
    if (certain || cluster.are_good()) return;
    if (job.in_place && has_rows) store_rows<T, R>(job.x, job.whole & 16, first, rows, d);
    __syncwarp();
    constexpr int most = lanes * most_warps<Each>;
    if constexpr (Halos || Each > 1) solve_with_pivots<T, most>(job, shared.rows());
    else if (static_cast<int>(blockDim.x) == most) solve_with_pivots<T, most>(job, shared.rows());
    else solve_with_pivots<T, most / 2>(job, shared.rows());
#endif
}

/// A grid that is one cluster. `cluster` has to stay.
inline cudaLaunchConfig_t configuration(int blocks, int warps, std::size_t shared_bytes, cudaStream_t stream, cudaLaunchAttribute& cluster) {
    cluster = cluster_of(static_cast<unsigned>(blocks));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks)), config.blockDim = dim3(static_cast<unsigned>(lanes * warps));
    config.dynamicSmemBytes = shared_bytes, config.stream = stream;
    config.attrs = &cluster, config.numAttrs = 1;
    return config;
}

}  // namespace trifold::cuda::one_system
