// SPDX-License-Identifier: BSD-3-Clause
// The segments of every column coupled: a tridiagonal system in their last unknowns, one of `segments` rows per column.
//
//   last[s] = d - a last[s-1] - c first[s+1],   first[s] = d' - a' last[s-1] - c' last[s]        (ColumnSegments::relations)
//
// Shapes: every array is [segment][…][system], so that lanes, which are systems, read and write side by side. Overwritten: joined, last, after, marks.
// Who does what: a block has 32 systems, a warp a sixteenth of their segments, which it reduces to two relations; these sixteen are solved by one warp; the way
//   back finds all others.
// Words per segment and system: 6 read, 3 written and read twice, 2 written. Of the rows' own words that is a hundredth. What it takes is latency: two divisions
//   deep for every segment of a warp, rows asked for one ahead.
// Numerics: as columns_dominant.cuh, of which this is the next level: every row left must weigh |a| + |c| ≤ 17/16, else the system is marked and its
//   unknowns are not numbers.
#pragma once

#include "backends/cuda/tridiagonal/block/columns_join.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::cuda::segments {

inline constexpr int couple_warps = 16;

template <class T>
struct CoupleJob {
    int segments = 0;
    std::int64_t systems = 0;
    const T* relations = nullptr;
    T* joined = nullptr;  ///< [segment][a, c, d][system]: within a warp's segments, last[s] = d - a before - c last of the warp's last one
    T *last = nullptr, *after = nullptr;
    unsigned char* marks = nullptr;
    unsigned long long* marked = nullptr;
    unsigned* tickets = nullptr;  ///< of the kernel behind: reset here
    const unsigned* unsettled = nullptr;  ///< as in ColumnSegments
};

template <class T>
struct Segment {
    Relation<T> first, last;
};

/// One system's.
template <class T>
struct Column {
    const CoupleJob<T>& job;
    std::int64_t system;

    __device__ __forceinline__ Segment<T> at(int s) const {
        const T* const from = job.relations + s * 6 * job.systems + system;
        const auto word = [&](int k) { return __ldcg(from + k * job.systems); };
        return {{word(0), word(1), word(2)}, {word(3), word(4), word(5)}};
    }
    __device__ __forceinline__ void keep(int s, const Relation<T>& r) const {
        T* const to = job.joined + s * 3 * job.systems + system;
        to[0] = r.a, to[job.systems] = r.c, to[2 * job.systems] = r.d;
    }
    __device__ __forceinline__ Relation<T> kept(int s) const {
        const T* const from = job.joined + s * 3 * job.systems + system;
        return {from[0], from[job.systems], from[2 * job.systems]};
    }
    __device__ __forceinline__ Relation<T> first_of(int s) const {
        const T* const from = job.relations + s * 6 * job.systems + system;
        return {__ldcg(from), __ldcg(from + job.systems), __ldcg(from + 2 * job.systems)};
    }
};

/// Segments from … to - 1, more than none, become one: `first` of the result, and its last. All but the last one's rows are kept.
template <class T>
__device__ __forceinline__ Relation<T> reduce_segments(const Column<T>& column, int from, int to, Relation<T>& first, bool& fine) {
    const auto watch = [&](const Relation<T>& r) { fine = fine && fabs(r.a) + fabs(r.c) <= row_weight<T> && fabs(r.d) <= join_limit<T>; };
    Segment<T> own = column.at(from);
    first = own.first;
    Relation<T> before{T(-1), T(0), T(0)};  // a row x = before comes first
    T c;
#pragma unroll 1
    for (int s = from; s + 1 < to; ++s) {
        const Segment<T> next = column.at(s + 1);
        const JoinRow<T> row(own.last, next.first);
        const T k = divide_by(fused(-row.a, before.c, row.b), row.c, c);
        before = {-(row.a * k) * before.a, c, fused(-row.a, before.d, row.d) * k};
        column.keep(s, before);
        watch(before);
        own = next;
    }
    const T k = divide_by(fused(-own.last.a, before.c, T(1)), own.last.c, c);
    const Relation<T> last{-(own.last.a * k) * before.a, c, fused(-own.last.a, before.d, own.last.d) * k};
    watch(last);
    if (to - from > 1) {
        Relation<T> ahead = to - 3 >= from ? column.kept(to - 3) : before;
#pragma unroll 1
        for (int s = to - 3; s >= from; --s) {
            const Relation<T> here = ahead;
            if (s > from) ahead = column.kept(s - 1);
            before = after_substitution(here, before);
            column.keep(s, before);
        }
        first = after_substitution(first, before);
    }
    return last;
}

template <class T>
__global__ void __launch_bounds__(32 * couple_warps) couple_kernel(const __grid_constant__ CoupleJob<T> job) {
    __shared__ __align__(16) T links[couple_warps * 32 * 6];
    __shared__ T lasts[(couple_warps + 1) * 32];
    __shared__ unsigned bad;
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
    const std::int64_t system = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
    const bool mine = system < job.systems;
    const int each = (job.segments + couple_warps - 1) / couple_warps, from = min(warp * each, job.segments), to = min(from + each, job.segments), groups = (job.segments + each - 1) / each;
    if (threadIdx.x == 0) bad = 0;
    after_the_kernel_before();
    if (job.unsettled && *const_cast<const volatile unsigned*>(job.unsettled) == 0) return;
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) *job.tickets = 0;
    const Column<T> column{job, system};
    const JoinRows<T, 32> rows{links + lane * 6, 32};
    bool fine = true;
    if (mine && from < to) {
        Relation<T> first;
        const Relation<T> last = reduce_segments(column, from, to, first, fine);
        rows.set(warp, first, last);
    }
    if (mine && !fine) atomicOr(&bad, 1u << lane);
    __syncthreads();
    if (warp == 0 && mine) {
        fine = true;
        solve_few_rows(rows, groups, fine, [&](int i, T x) { lasts[(i + 1) * 32 + lane] = x; });
        lasts[lane] = 0;
        if (!fine) atomicOr(&bad, 1u << lane);
    }
    __syncthreads();
    if (!mine) return;
    const bool failed = bad >> lane & 1;
    const T not_a_number = T(__int_as_float(0x7fffffff));
    if (warp == 0) {
        job.marks[system] = failed;
        if (failed) atomicAdd(job.marked, 1ull);
        job.last[system] = 0;
    }
    const T before = lasts[warp * 32 + lane], end = from < to ? lasts[(warp + 1) * 32 + lane] : T(0);
    const auto last_of = [&](int s, T around_before, T around_end, bool is_end) {
        return is_end ? around_end : value(column.kept(s), around_before, around_end);
    };
    T own = from < to ? last_of(from, before, end, from + 1 == to) : T(0);
#pragma unroll 2
    for (int s = from; s < to; ++s) {
        T next = 0, behind = 0;
        if (s + 1 < job.segments) {
            const bool within = s + 1 < to;
            const int next_end = within ? to : min(to + each, job.segments);
            next = last_of(s + 1, within ? before : end, within ? end : lasts[(warp + 2) * 32 + lane], s + 2 == next_end);
            behind = value(column.first_of(s + 1), own, next);
        }
        job.last[(s + 1) * job.systems + system] = failed ? not_a_number : own;
        job.after[s * job.systems + system] = behind;
        own = next;
    }
}

}  // namespace trifold::cuda::segments
