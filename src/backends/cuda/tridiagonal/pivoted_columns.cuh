// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting of systems side by side, two lanes a system, from both ends; rows come from memory as they are needed.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: as pivoted_line.cuh has them, any layout; neighbouring lanes have neighbouring systems. Overwritten: x of what is solved; in place (`hold`) nothing of a
//   system that fails, else nothing of one whose pivots fail.
// Who does what: a block has Width/2 systems, one lane goes downwards from row 0, one upwards from row rows-1. A lane keeps the row that it carries and the next `ring`
//   rows in registers, and the rows of U, divided by their pivots, in shared memory: three words each. What has no room there is eliminated again, `keep` rows at a time, from where the
//   first time was noted: nothing of U is in memory.
// Words per row: 4 read, 1 written; 4 more read for each row that is eliminated again.
// Numerics: backward stable, element growth at most 2 (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 9.6); that of the two rows in the middle at most 2 more;
//   the row that is carried in twice the precision (pivoted_carried.cuh). What is not finite, of the input too, reaches a pivot or x in the middle: nothing looks for it. Such systems, those with pivots beyond PivotRange and zeros
//   are left to one thread's solve_line, which names the row.
#pragma once

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/pivoted_carried.cuh"
#include "backends/cuda/tridiagonal/pivoted_left.cuh"
#include "backends/cuda/tridiagonal/pivoted_queue.cuh"

namespace trifold::cuda {

template <class T>
struct PivotedColumns {
    PivotedJob<T> job;
    int keep = 0;       ///< rows of U in shared memory, of each half; a multiple of `ring`
    int parts = 1;      ///< of a half, of `keep` rows each, the first one fewer
    bool hold = false;  ///< x is stored when all of it is known to be finite
    int window = 1;     ///< as in PivotedQueue
    unsigned long long least_marked = 1;  ///< fewer are another kernel's
    int ends_at = 0, notes_at = 0, queue_at = 0, flags_at = 0, shared_bytes = 0;
};

/// One half of a system, seen in the direction in which it is eliminated: row 0 first.
template <class T>
struct PivotedHalf {
    const T *near, *diag, *far, *rhs;
    T* x;
    bool wanted;  ///< else nothing is stored
};

/// What is at `at` where `there`, else the other. No branch, which would have registers spilled.
__device__ __forceinline__ double load_with(const double* at, std::uint64_t policy, bool there = true, double other = 0) {
    double value;
    asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0; mov.f64 %0, %3; @p ld.global.L1::no_allocate.L2::cache_hint.f64 %0, [%1], %2;}"
                 : "=&d"(value)
                 : "l"(at), "l"(policy), "d"(other), "r"(static_cast<unsigned>(there)));
    return value;
}
__device__ __forceinline__ float load_with(const float* at, std::uint64_t policy, bool there = true, float other = 0) {
    float value;
    asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0; mov.f32 %0, %3; @p ld.global.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;}"
                 : "=&f"(value)
                 : "l"(at), "l"(policy), "f"(other), "r"(static_cast<unsigned>(there)));
    return value;
}

/// For the second-level cache: what is not read again leaves it first. (256 rows in double precision: 59 instead of 52 % of the roof, measured.)
__device__ __forceinline__ std::uint64_t policy_of(bool again) {
    std::uint64_t first, other;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
    asm volatile("createpolicy.fractional.L2::evict_unchanged.b64 %0, 1.0;" : "=l"(other));
    return again ? other : first;
}

template <class T, int Width, int ring>
struct PivotedTeam {
    static constexpr int systems = Width / 2, group = 4;  ///< group: rows that are asked for together
    const PivotedColumns<T>& cut;
    const PivotedJob<T>& job;
    unsigned char* memory;
    int thread;
    bool downwards;
    int n, count, all, pad;  ///< rows; of this half; steps of both halves, the first `pad` of this one's without a row
    PivotedRow<T> next[ring];

    __device__ __forceinline__ PivotedTeam(const PivotedColumns<T>& cut, unsigned char* memory)
        : cut(cut), job(cut.job), memory(memory), thread(static_cast<int>(threadIdx.x)), downwards(thread < systems), n(static_cast<int>(job.rows)) {
        count = downwards ? n / 2 : n - n / 2;
        all = (n - n / 2 + ring - 1) / ring * ring;
        pad = all - count;
    }

    __device__ __forceinline__ T* kept(int slot) const { return reinterpret_cast<T*>(memory) + slot * 3 * Width + thread; }
    __device__ __forceinline__ T* note(int part) const { return reinterpret_cast<T*>(memory + cut.notes_at) + part * 3 * Width + thread; }
    __device__ __forceinline__ int& flag(int system) const { return reinterpret_cast<int*>(memory + cut.flags_at)[system]; }

    __device__ __forceinline__ PivotedHalf<T> locate(std::int64_t number, bool wanted) const {
        PivotedHalf<T> half;
        half.wanted = wanted;
        std::int64_t index[4] = {};
        if (job.levels.levels == 1) index[0] = number;
        else job.levels.indices(number, index);
        const std::int64_t first = downwards ? 0 : n - 1;
        const auto at = [&](const Source<T>& source) { return line_of(source, index).data + first * source.row_stride; };
        half.near = at(downwards ? job.lower : job.upper), half.far = at(downwards ? job.upper : job.lower);
        half.diag = at(job.diag), half.rhs = at(job.rhs), half.x = at(job.x);
        return half;
    }

    struct Steps {
        std::int64_t near, diag, far, rhs;
    };
    __device__ __forceinline__ Steps steps() const {
        const std::int64_t sign = downwards ? 1 : -1;
        return {sign * (downwards ? job.lower : job.upper).row_stride, sign * job.diag.row_stride, sign * (downwards ? job.upper : job.lower).row_stride, sign * job.rhs.row_stride};
    }

    /// Asks for the first rows from step `from` on.
    __device__ __forceinline__ void ask(const PivotedHalf<T>& half, int from, bool again) {
        const std::uint64_t policy = policy_of(again);
        const Steps by = steps();
        int row = from - pad;
        const T *near = half.near + row * by.near, *diag = half.diag + row * by.diag, *far = half.far + row * by.far, *rhs = half.rhs + row * by.rhs;
#pragma unroll
        for (int j = 0; j < ring; ++j, ++row) {
            const bool there = row >= 0;
            next[j] = {load_with(near, policy, row > 0, T(0)), load_with(diag, policy, there, T(1)), load_with(far, policy, there, T(0)), load_with(rhs, policy, there, T(0))};
            near += by.near, diag += by.diag, far += by.far, rhs += by.rhs;
        }
    }

    /// Where the next rows are.
    struct Ahead {
        const T *near, *diag, *far, *rhs;
    };

    /// `ring` steps; More: rows of as many further ones are asked for as these are done with. (A condition within has the compiler ask for all of them at the end.) `begins`: the first of these is row 0, whose `near` may
    /// lie outside of its array.
    template <bool More>
    __device__ __forceinline__ void turn(Ahead& ahead, const Steps& by, std::uint64_t policy, T* to_keep, Carried<T>& carried, PivotWatch<T>& watch, bool begins = false) {
#pragma unroll
        for (int g = 0; g < ring; g += group) {
#pragma unroll
            for (int j = g; j < g + group; ++j) {
                T first, second, value;
                carried.eliminate(next[j], watch, first, second, value);
                to_keep[j * 3 * Width] = first, to_keep[j * 3 * Width + Width] = second, to_keep[j * 3 * Width + 2 * Width] = value;
            }
            if constexpr (More) {
#pragma unroll
                for (int j = g; j < g + group; ++j) {
                    next[j] = {load_with(ahead.near, policy, j > 0 || !begins, T(0)), load_with(ahead.diag, policy), load_with(ahead.far, policy), load_with(ahead.rhs, policy)};
                    ahead.near += by.near, ahead.diag += by.diag, ahead.far += by.far, ahead.rhs += by.rhs;
                }
            }
        }
    }

    /// Steps [from, to), whose first rows have been asked for. What a part begins with is noted.
    __device__ __forceinline__ void forwards(const PivotedHalf<T>& half, int from, int to, Carried<T>& carried, PivotWatch<T>& watch, bool again) {
        const Steps by = steps();
        const std::int64_t row = from + ring - pad;
        Ahead ahead{half.near + row * by.near, half.diag + row * by.diag, half.far + row * by.far, half.rhs + row * by.rhs};
        int part = cut.parts - 1 - (all - 1 - from) / cut.keep, slot = from - (all - (cut.parts - part) * cut.keep);
        const auto begin_part = [&] {
            if (slot != cut.keep) return;
            slot = 0, ++part;
            T* const to_note = note(part);
            carried.round();
            to_note[0] = carried.diag.high, to_note[Width] = carried.far.high, to_note[2 * Width] = carried.rhs.high;
        };
#pragma unroll 1
        for (int k = from; k + ring < to; k += ring, slot += ring) {
            begin_part();
            turn<true>(ahead, by, policy_of(again && k + ring < all - cut.keep), kept(slot), carried, watch, k + ring == pad);
        }
        begin_part();
        turn<false>(ahead, by, 0, kept(slot), carried, watch);
    }

    /// The last unknown of this half and the other half's last one. False where the pivots were no good.
    __device__ __forceinline__ bool meet(Carried<T> carried, PivotWatch<T>& watch, T& own, T& other) const {
        carried.round();
        T* const ends = reinterpret_cast<T*>(memory + cut.ends_at);
        ends[thread] = carried.diag.high, ends[Width + thread] = carried.far.high, ends[2 * Width + thread] = watch.good() ? carried.rhs.high : T(NAN);
        __syncthreads();
        const int top = thread & (systems - 1), bottom = top + systems;
        // p x[top-1] + q x[top] = z, from above and from below.
        T p0 = ends[top], q0 = ends[Width + top], z0 = ends[2 * Width + top];
        T p1 = ends[Width + bottom], q1 = ends[bottom], z1 = ends[2 * Width + bottom];
        if (abs(p1) > abs(p0)) {
            const T p = p0, q = q0, z = z0;
            p0 = p1, q0 = q1, z0 = z1, p1 = p, q1 = q, z1 = z;
        }
        const T inverse = watch.divisor(p0).inverse(), m = p1 * inverse;
        const T below = fused(-m, z0, z1) * watch.divisor(fused(-m, q0, q1)).inverse(), above = fused(-q0, below, z0) * inverse;
        own = downwards ? above : below, other = downwards ? below : above;
        return watch.good() && own * T(0) == T(0) && other * T(0) == T(0);
    }

    /// From the unknown of step `to` - 1 to that of step `from` - 1: x is the former, `after` the one behind it. What is not finite stays so in all that follow.
    template <bool Hold>
    __device__ __forceinline__ void backwards(T* to_x, int from, int to, bool wanted, T& x, T& after) const {
        constexpr int each = 8;
        const std::int64_t by = (downwards ? 1 : -1) * job.x.row_stride;
        const int least = max(from, all - (n - n / 2) + 1);
        T* at = to_x + (to - 2 - pad) * by;
        T* row = kept(cut.keep - 1);
        int k = to - 1;
#pragma unroll 1
        for (; k >= least; k -= each, row -= each * 3 * Width) {
            T u[each], v[each], y[each];
#pragma unroll
            for (int j = 0; j < each; ++j) {
                const T* const of = row - j * 3 * Width;
                u[j] = of[0], v[j] = of[Width], y[j] = of[2 * Width];
            }
#pragma unroll
            for (int j = 0; j < each; ++j) {
                const T now = fused(-u[j], x, fused(-v[j], after, y[j]));
                after = x, x = y[j] = now;
            }
            if (Hold) {
#pragma unroll
                for (int j = 0; j < each; ++j) row[(2 - j * 3) * Width] = y[j];
            } else if (k - each > pad) {
#pragma unroll
                for (int j = 0; j < each; ++j, at -= by)
                    if (wanted) __stcs(at, y[j]);
            } else {
#pragma unroll
                for (int j = 0; j < each; ++j, at -= by)
                    if (wanted && k - j > pad) __stcs(at, y[j]);
            }
        }
    }

    /// What backwards<true> has left.
    __device__ __forceinline__ void store(T* to_x, T last) const {
        const std::int64_t by = (downwards ? 1 : -1) * job.x.row_stride;
        T* at = to_x + (count - 1) * by;
        __stcs(at, last);
        at -= by;
        const T* value = kept(cut.keep - 1) + 2 * Width;
#pragma unroll 8
        for (int k = all - 1; k > pad; --k, at -= by, value -= 3 * Width) __stcs(at, *value);
    }
};

template <class T, int Width, int ring, int blocks>
__global__ void __launch_bounds__(Width, blocks) pivoted_columns_kernel(const __grid_constant__ PivotedColumns<T> cut) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char columns_memory[];
    const PivotedJob<T>& job = cut.job;
    after_the_kernel_before();
    if (job.marked && *job.marked < cut.least_marked) return;
    using Team = PivotedTeam<T, Width, ring>;
    Team team(cut, columns_memory);
    const int thread = team.thread, system = thread & (Team::systems - 1);
    const int slots = static_cast<int>(min(job.slots / gridDim.x, static_cast<std::int64_t>(Width)));
    PivotedQueue<T, Width> queue(job, cut.window, columns_memory + cut.queue_at);
    const auto locate = [&](const PivotedSet& set) { return team.locate(queue.number(set, system < set.count ? system : 0), system < set.count); };
    PivotedSet set = queue.next(), following;
    if (!set.count) return;
    PivotedHalf<T> half = locate(set);
    team.ask(half, 0, cut.parts > 1);
    for (;; set = following) {
        T* const to_x = half.x;
        const bool wanted = half.wanted;
        bool good = false;
        T x = 0, after = 0, last = 0;
#pragma unroll 1
        for (int part = cut.parts - 1; part >= 0; --part) {
            const bool first_time = part == cut.parts - 1;
            const int begin = max(team.all - (cut.parts - part) * cut.keep, 0), end = team.all - (cut.parts - 1 - part) * cut.keep;
            PivotWatch<T> watch;
            Carried<T> carried;
            if (!first_time && part > 0) {
                const T* const note = team.note(part);
                carried = {{note[0]}, {note[Width]}, {note[2 * Width]}};
            }
            team.forwards(half, first_time ? 0 : begin, end, carried, watch, first_time);
            if (first_time) {
                good = team.meet(carried, watch, x, after);
                last = x;
                if (!cut.hold && good && wanted) __stcs(to_x + (team.count - 1) * (team.downwards ? job.x.row_stride : -job.x.row_stride), x);
            }
            // What comes next is on its way while this is substituted.
            if (part == 0) {
                following = queue.next();
                if (following.count) half = locate(following);
            }
            if (part > 0 || following.count) team.ask(half, part > 0 ? max(begin - cut.keep, 0) : 0, part == 0 && cut.parts > 1);
            if (cut.hold) team.template backwards<true>(to_x, begin, end, false, x, after);
            else team.template backwards<false>(to_x, begin, end, good && wanted, x, after);
        }
        const bool failed = wanted && !(good && x * T(0) == T(0));
        const bool some = __syncthreads_or(failed);
        bool fine = wanted;
        if (some) {
            if (thread < Team::systems) team.flag(thread) = 0;
            __syncthreads();
            if (failed) team.flag(system) = 1;
            __syncthreads();
            fine = fine && !team.flag(system);
        }
        if (cut.hold && fine) team.store(to_x, last);
        if (job.marks.of_systems && thread < Team::systems) {
            const int rescued = __popc(__ballot_sync(__activemask(), fine));
            if ((thread & 31) == 0 && rescued) report_rescued(job.outcome, static_cast<unsigned>(rescued));
        }
        if (some) {
            __syncthreads();
#pragma unroll 1
            for (int s = thread; thread < slots && s < Team::systems; s += slots) {
                if (!team.flag(s)) continue;
                std::int64_t index[4];
                job.levels.indices(queue.number(set, s), index);
                const PivotedVerdict<T> found = solve_left(job, index, static_cast<std::int64_t>(blockIdx.x) * slots + thread);
                if (found.reason != Reason::exact) report_failure(job.outcome, job.status, job.levels.number_of(index), found.row, found.reason);
                else if (job.marks.of_systems) report_rescued(job.outcome);
            }
        }
        if (!following.count) return;
    }
#endif
}

/// In `most_bytes` of shared memory. False: they do not fit.
template <int Width, int ring, class T>
bool cut_pivoted_columns(PivotedColumns<T>& cut, bool in_place, int most_bytes) {
    constexpr int word = static_cast<int>(sizeof(T)), row = 3 * Width * word, systems = Width / 2;
    const int half = static_cast<int>(cut.job.rows - cut.job.rows / 2), all = (half + ring - 1) / ring * ring;
    const auto place = [&](int keep) {
        cut.keep = keep, cut.parts = (all + keep - 1) / keep;
        cut.ends_at = keep * row, cut.notes_at = cut.ends_at + row, cut.queue_at = cut.notes_at + (cut.parts > 1 ? cut.parts * row : 0);
        cut.flags_at = cut.queue_at + (cut.job.marks.of_systems ? PivotedQueue<T, Width>::shared_bytes : 0);
        cut.shared_bytes = cut.flags_at + 4 * systems;
        return cut.shared_bytes <= most_bytes;
    };
    cut.hold = in_place;
    if (place(all)) return true;
    if (in_place) return false;
    for (int keep = all - ring; keep >= ring; keep -= ring)
        if (place(keep)) return true;
    return false;
}

}  // namespace trifold::cuda
