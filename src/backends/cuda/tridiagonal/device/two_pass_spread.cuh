// SPDX-License-Identifier: BSD-3-Clause
// One system, pivoted, a few rows per lane of a whole launch: lanes join their chunks by twos, then segments of rows join, and x is corrected once.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1
//
// Who does what: a segment of up to some 4000 rows is a team's of 128 lanes, in its shared memory, a chunk each (pivoted_chunk.cuh, pivoted_lanes.cuh). Two equations are left of it; the
//   first team joins those of all segments, and says what each has at its ends. In double precision then the same for rhs - A x, which is added. A team of several segments keeps what joins its lanes, and
//   brings rows again when their ends are known where it has no room for all of them.
// Words per row: 4 read and 1 written for x, 4 to check, and as many and 5 more for its correction; from the second-level cache, which holds such systems. Limit: latency. Rows per lane times a reciprocal, twice; 7 joints
//   in a segment and 4 to 18 among segments, two reciprocals each; in double precision twice. Segments are waited for by the words that they show, not by meetings.
// Numerics: all arithmetic is in double precision. Single precision needs nothing else: of its ends a chunk knows more digits than it stores, and its own rows of U are as good as LU's. In double
//   precision chunks of few rows, coupled one by one, lose of x what LAPACK's order does not (waves of 10^5 rows: 10 to 200 times its error). The correction, whose residuals are of twice the precision, leaves
//   a unit in the last place of x or two where x had three right digits, wherever they were lost. What it changes by more than 1/64 of the largest |x|, rows that grow and pivots out of range are left to others.
// Source: docs/algorithms/gpu_two_pass.md; N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 12.1.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_spread_news.cuh"
#include "backends/cuda/tridiagonal/device/windows_couple.cuh"
#include "backends/cuda/tridiagonal/pivoted_lanes.cuh"
#include "backends/cuda/tridiagonal/precise_residual.cuh"

namespace trifold::cuda::two_pass {

template <class T, class Team>
struct SpreadTeam {
    using Memory = SpreadMemory<T, Team::size, Team::most_turns>;
    using Equations = cuda::Equations<double>;
    using Ends = cuda::Ends<double>;
    using Chunk = PivotedChunk<double, true, T>;
    static constexpr bool corrects = SpreadNews<T>::corrects;
    static constexpr int at_once = 8;  ///< rows of a lane whose unknowns are asked for together

    const Spread& spread;
    SpreadNews<T>& news;
    Memory& memory;
    PivotRange<double> range;
    bool good = true;

    // Of the segment at hand.
    int turn = 0;  ///< how many of the team's come before
    std::int64_t first = 0;
    int count = 0;

    __device__ __forceinline__ static int lane() { return Team::thread() % 32; }
    __device__ __forceinline__ static int warp() { return Team::thread() / 32; }

    /// The block's segments are side by side; its teams take turns.
    __device__ __forceinline__ int first_segment() const { return static_cast<int>(blockIdx.x) * spread.of_group + Team::own(); }
    __device__ __forceinline__ int segments_end() const { return min((static_cast<int>(blockIdx.x) + 1) * spread.of_group, spread.segments); }

    __device__ __forceinline__ void begin(int s) {
        first = min(static_cast<std::int64_t>(s) * spread.rows, memory.system.count);
        count = static_cast<int>(min(static_cast<std::int64_t>(spread.rows), memory.system.count - first));
    }

    /// `call` for the team's segments, one after the other.
    template <class Call>
    __device__ __forceinline__ void each_segment(const Call& call) {
        turn = 0;
#pragma unroll 1
        for (int s = first_segment(); s < segments_end(); s += spread.teams, ++turn) {
            begin(s);
            call(s);
        }
    }

    /// Where the segment's rows are, its rows of U and its x, if that is there: word k of row r at k spread.rows + r.
    __device__ __forceinline__ T* rows() const { return memory.rows() + (spread.held ? turn * 4 * spread.rows : 0); }
    __device__ __forceinline__ bool apart() const { return spread.words > 5; }
    __device__ __forceinline__ bool has_x() const { return spread.words > 4; }
    __device__ __forceinline__ T* of_u() const { return rows() + (apart() ? 4 * spread.rows : 0); }
    __device__ __forceinline__ T* of_x() const { return rows() + (spread.words - 1) * spread.rows; }

    /// The segment's rows come to shared memory.
    __device__ __forceinline__ void load() const {
        constexpr int E = 16 / static_cast<int>(sizeof(T));
        static_assert(E <= Spread::together);
        T* const to = rows();
        const int pitch = spread.rows;
        if (memory.system.plain() && pitch % E == 0) {
#pragma unroll 1
            for (int k = 0; k < 4; ++k) {
                const T* const from = memory.system.line[k].data + first;
                // What couples to rows that do not exist may not be there to be read.
                const bool top = k == 0 && first == 0, bottom = k == 2 && first + count == memory.system.count;
                const int end = (count - bottom) / E, begin = min(static_cast<int>(top), end), before = begin * E, single = before + count - end * E;
                for (int i = begin + Team::thread(); i < end; i += Team::size) __pipeline_memcpy_async(to + k * pitch + i * E, from + i * E, 16);
                for (int i = Team::thread(); i < single; i += Team::size) {
                    const int r = i < before ? i : i - before + end * E;
                    to[k * pitch + r] = (top && r == 0) || (bottom && r + 1 == count) ? T(0) : from[r];
                }
            }
        } else {
#pragma unroll 1
            for (int r = Team::thread(); r < count; r += Team::size)
#pragma unroll
                for (int k = 0; k < 4; ++k) memory.system.fetch(to + k * pitch + r, k, first + r);
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        Team::sync();
    }

    /// call(r, a, b, c, d, x, what is left of the row) for the rows of the segment, which are in shared memory; beyond the segment x is what its own team takes it for.
    template <class Residual, class Call>
    __device__ __forceinline__ void each_residual(double before, double after, const Residual& residual, const Call& call) const {
        const T* const from = rows();
        const int pitch = spread.rows;
        const bool here = has_x();
        const Line<T> line = memory.system.x;
        const T* const x = here ? of_x() : line.data + first * line.row_stride;
        const std::int64_t stride = here ? 1 : line.row_stride;
#pragma unroll 1
        for (int begin = Team::thread(); begin < count; begin += at_once * Team::size) {
            T above[at_once], own[at_once], below[at_once];
#pragma unroll
            for (int k = 0; k < at_once; ++k) {
                const int r = min(begin + k * Team::size, count - 1);
                above[k] = x[max(r - 1, 0) * stride], own[k] = x[r * stride], below[k] = x[min(r + 1, count - 1) * stride];
            }
#pragma unroll
            for (int k = 0; k < at_once; ++k) {
                const int r = begin + k * Team::size;
                if (r == 0) above[k] = static_cast<T>(before);
                if (r + 1 == count) below[k] = static_cast<T>(after);
                if (r >= count) continue;
                const T a = from[r], b = from[pitch + r], c = from[2 * pitch + r], d = from[3 * pitch + r];
                call(r, a, b, c, d, own[k], residual(a, b, c, d, above[k], own[k], below[k]));
            }
        }
    }

    /// Of the segment, where x is to be corrected: rhs - A x, where its chunks look for it.
    __device__ __forceinline__ void leave_residuals() const {
        T* const to = of_u() + 3 * spread.rows;
        each_residual(memory.ends[0][turn].before, memory.ends[0][turn].after, [](T a, T b, T c, T d, T above, T x, T below) { return precise_residual(a, b, c, d, above, x, below); },
                      [&](int r, T, T, T, T, T, T rest) { to[r] = rest; });
        Team::sync();
    }

    /// x of the segment's rows, of which chunks have left one part.
    __device__ __forceinline__ void store(bool correction) {
        const T* const part = of_u() + 3 * spread.rows;
        T* const kept = of_x();
        const Line<T> line = memory.system.x;
        const bool here = has_x(), stores = correction || !corrects || !here;
        T change = 0, size = 0;
#pragma unroll 4
        for (int r = Team::thread(); r < count; r += Team::size) {
            const T z = part[r];
            T x = z;
            if (correction) x += here ? kept[r] : line[first + r];
            if (here) kept[r] = x;
            if (stores) line.at(first + r) = x;
            change = max(change, abs(z)), size = max(size, abs(x));
        }
        if (correction) {
            for (int step = 16; step > 0; step /= 2) change = max(change, __shfl_xor_sync(~0u, change, step)), size = max(size, __shfl_xor_sync(~0u, size, step));
            if (lane() == 0) atomicMax(&news.changed, bits(change)), atomicMax(&news.largest, bits(size));
        }
        Team::sync();
    }

    __device__ __forceinline__ void show(double& word, double value) {
        if (windows::is_nothing(value)) value = 0, good = false;
        const_cast<volatile double&>(word) = value;
    }
    __device__ __forceinline__ void show(Equation<double>& word, const Equation<double>& value) {
        show(word.before, value.before), show(word.first, value.first), show(word.last, value.last), show(word.after, value.after), show(word.rhs, value.rhs);
        const_cast<volatile int&>(word.origin) = value.origin;
    }

    __device__ __forceinline__ static double seen(const double& word, bool& there) {
        const double value = windows::from_other_block(&word);
        there = there && !windows::is_nothing(value);
        return value;
    }
    __device__ __forceinline__ static Equation<double> seen(const Equation<double>& at, bool& there) {
        const Equation<double> value{seen(at.before, there), seen(at.first, there), seen(at.last, there), seen(at.after, there), seen(at.rhs, there), const_cast<const volatile int&>(at.origin)};
        there = there && value.origin != -1;
        return value;
    }

    __device__ __forceinline__ void show(Ends& word, const Ends& value) { show(word.before, value.before), show(word.first, value.first), show(word.last, value.last), show(word.after, value.after); }

    /// The ends at `at`, when they are there.
    __device__ __forceinline__ static Ends await(const Ends& at) {
        for (;;) {
            bool there = true;
            const Ends here{seen(at.before, there), seen(at.first, there), seen(at.last, there), seen(at.after, there)};
            if (there) return here;
            __nanosleep(100);  // hundreds of teams that look all the time hold up the one that all wait for
        }
    }

    /// The equations number s of so many, when they are there.
    __device__ __forceinline__ static Equations part(const Equations* parts, int s, int count) {
        if (s >= count) return no_rows<double>();
        for (;;) {
            bool there = true;
            const Equations here{seen(parts[s].a, there), seen(parts[s].b, there)};
            if (there) return here;
        }
    }

    /// What `together` lanes side by side have becomes one, a power of two, and others do as they do. Of two groups that are joined, the first lane of the second keeps how. By the team; up to 32 by a warp.
    __device__ __forceinline__ Equations join(Equations own, Joint<double>& kept, int together) {
        // One loop, so that this is one piece of code, which comes from memory once.
#pragma unroll 1
        for (int step = 1; step < together; step *= 2) {
            Equations other;
            if (step < 32) {
                other = {from_lane(own.a, step), from_lane(own.b, step)};
            } else {
                if (lane() == 0) memory.across[warp()] = own;
                Team::sync();
                other = memory.across[warp() ^ step / 32];
                Team::sync();  // it may be written again
            }
            const bool right = Team::thread() & step;
            Joint<double> joint;
            own = joint.eliminate({either(right, other.a, own.a), either(right, other.b, own.b)}, {either(right, own.a, other.a), either(right, own.b, other.b)}, range);
            if ((Team::thread() & (2 * step - 1)) == step) kept = joint;
        }
        return own;
    }

    /// The other way round: from the ends of all to those of the lane.
    __device__ __forceinline__ Ends substitute(Ends ends, const Joint<double>& kept, int together) const {
#pragma unroll 1
        for (int step = together / 2; step > 0; step /= 2) {
            double left_last, right_first;
            kept.substitute(ends, left_last, right_first);
            const int keeper = Team::thread() & ~(2 * step - 1) | step;
            if (step < 32) {
                left_last = __shfl_sync(~0u, left_last, keeper), right_first = __shfl_sync(~0u, right_first, keeper);
            } else {
                if (Team::thread() == keeper) memory.between[warp()][0] = left_last, memory.between[warp()][1] = right_first;
                Team::sync();
                left_last = memory.between[keeper / 32][0], right_first = memory.between[keeper / 32][1];
            }
            if (Team::thread() & step) ends.before = left_last, ends.first = right_first;
            else ends.last = left_last, ends.after = right_first;
        }
        return ends;
    }

    __device__ __forceinline__ static int lanes_for(int count) {
        int lanes = 1;
        while (lanes < count) lanes *= 2;
        return lanes;
    }

    /// What is at the ends of the team's segments, when it is known; the block's first team finds it, where there are groups.
    __device__ __forceinline__ void await_ends(bool correction) {
        Ends* const ends = news.ends(spread, correction);
        if (spread.groups() > 0 && Team::own() == 0 && warp() == 0) {
            const int s = first_segment() + lane();
            const Ends own = substitute(await(ends[spread.segments + static_cast<int>(blockIdx.x)]), memory.of_group[min(lane(), Memory::group_lanes - 1)], lanes_for(spread.of_group));
            if (s < segments_end()) show(ends[s], own);
        }
        const int own = first_segment() + Team::thread() * spread.teams;
        if (own < segments_end()) memory.ends[correction][Team::thread()] = await(ends[own]);
        Team::sync();
    }

    __device__ __forceinline__ Chunk chunk_of_lane(bool correction) const {
        // Odd, so that lanes read from different banks.
        const int each = (count + Team::size - 1) / Team::size | 1, begin = min(Team::thread() * each, count), pitch = spread.rows, to = apart() ? 4 * pitch : 0;
        return {rows() + begin, pitch, min(each, count - begin), 3 * pitch + (correction ? to : 0), to};
    }

    /// What is known of a segment, out of the way of the next one.
    __device__ __forceinline__ void keep(int s, const Joint<double>& joint, std::uint64_t choices) {
        double* at = news.kept(spread, s, Team::size, Team::thread());
        joint.each_word([&](const double& word) { *at = word, at += Team::size; });
        *at = __longlong_as_double(static_cast<long long>(choices));
    }
    __device__ __forceinline__ void recall(int s, Joint<double>& joint, std::uint64_t& choices) {
        const double* at = news.kept(spread, s, Team::size, Team::thread());
        joint.each_word([&](double& word) { word = *at, at += Team::size; });
        choices = static_cast<std::uint64_t>(__double_as_longlong(*at));
    }

    /// From the rows to two equations of each of the team's segments, which others see, and by the first team from those to the ends of all.
    __device__ __forceinline__ void reduce(bool correction, Joint<double>& of_lane, std::uint64_t& choices) {
        Equations* const parts = news.parts(spread, correction);
        const bool in_turns = spread.turns() > 1;
        const int groups = spread.groups(), end = segments_end(), blocks = groups > 0 ? groups : spread.segments, of_blocks = groups > 0 ? spread.segments : 0;
        Joint<double> kept;
        turn = 0;
        // One loop, so that what joins is one piece of code, which comes from memory once: of the team's segments, by the block's first team of its group, by the first of all of all. One team joins all:
        // where hundreds look for the same words these come late.
        enum What { segment, group, all_of_them };
#pragma unroll 1
        for (int s = first_segment(), done = 0;; s += spread.teams, ++turn) {
            What what = segment;
            if (s >= end) {
                if (Team::own() != 0) return;
                what = groups > 0 && !done ? group : all_of_them, done = 1;
                if (what == all_of_them && blockIdx.x != 0) return;
            }
            int together = Team::size;
            Equations own;
            if (what == group) {
                together = lanes_for(spread.of_group);
                if (warp() != 0) continue;
                own = part(parts, static_cast<int>(blockIdx.x) * spread.of_group + (lane() & (together - 1)), end);
            } else if (what == all_of_them) {
                together = lanes_for(blocks);
                if (together <= 32 && warp() != 0) return;
                own = part(parts + of_blocks, Team::thread() & (together - 1), blocks);
            } else {
                begin(s);
                if (!correction || !apart()) load();
                if (correction) leave_residuals();
                Chunk chunk = chunk_of_lane(correction);
                int bad = chunk.count;
                own = chunk.reduce(bad, range);
                good = good && bad == chunk.count;
                choices = chunk.choices;
            }
            const Equations all = join(own, kept, together);
            if (what == all_of_them) {
                const Ends of_lane = substitute(solve_ends(all, range), kept, together);
                if (Team::thread() < blocks) show(news.ends(spread, correction)[of_blocks + Team::thread()], of_lane);
                return;
            }
            if (Team::thread() == 0) {
                Equations& to = parts[what == group ? spread.segments + static_cast<int>(blockIdx.x) : s];
                show(to.a, all.a), show(to.b, all.b);
            }
            if (what == group) {
                if (lane() < together) memory.of_group[lane()] = kept;
                continue;
            }
            if (in_turns) keep(s, kept, choices);
            else of_lane = kept;
        }
    }

    __device__ __forceinline__ void solve() {
        const bool in_turns = Team::most_turns > 1 && spread.turns() > 1;
        Joint<double> kept;
        std::uint64_t choices = 0;
#pragma unroll 1
        for (int step = 0; step < (corrects ? 2 : 1); ++step) {
            const bool correction = corrects && step > 0;
            reduce(correction, kept, choices);
            await_ends(correction);
            each_segment([&](int s) {
                if (in_turns) {
                    if (!spread.held) load();
                    if (!spread.held && correction) leave_residuals();
                    recall(s, kept, choices);
                }
                Chunk chunk = chunk_of_lane(correction);
                chunk.choices = choices;
                good = chunk.finish(substitute(memory.ends[correction][turn], kept, Team::size)) && good;
                Team::sync();
                store(correction);
            });
        }
    }

    /// Residuals of what was stored.
    __device__ __forceinline__ void check() {
        each_segment([&](int) {
            const Ends x = memory.ends[0][turn], z = corrects ? memory.ends[1][turn] : Ends{};
            Seen<T> seen;
            if (!apart()) load();
            each_residual(x.before + z.before, x.after + z.after, [](T a, T b, T c, T d, T above, T x, T below) { return d - a * above - b * x - c * below; },
                          [&](int, T a, T b, T c, T d, T own, T rest) { seen.add(a, b, c, d, own, rest); });
            Team::sync();  // the rows are done with
            seen.template store<Team>(news.found);
        });
    }
};

/// By all threads of a launch whose teams are all there, when `news` has been cleared and they have met. meet() waits for all of them. Whether x is there, known to all. shared: of the team, and
/// where not all take part of those of its block that do not.
template <class Team, class T, class Meet>
__device__ __forceinline__ bool share_rows(const Rows<T>& system, const Spread& spread, SpreadNews<T>& news, unsigned char* shared, const Meet& meet) {
    if (Team::own() < spread.teams && static_cast<int>(blockIdx.x) * spread.of_group < spread.segments) {
        auto& memory = *reinterpret_cast<typename SpreadTeam<T, Team>::Memory*>(shared);
        if (Team::thread() == 0) memory.system = system;
        Team::sync();
        SpreadTeam<T, Team> team{spread, news, memory, {}};
        team.solve();
        team.check();
        if (!(team.good && team.range.good)) news.distrusted = 1;
    }
    meet();
    return news.are_good();
}

/// In the memory of levels, which are not there yet.
template <class T>
__device__ __forceinline__ SpreadNews<T>& news_of(const Job<T>& job) {
    return *reinterpret_cast<SpreadNews<T>*>(job.work);
}

/// By all teams, before they meet.
template <class Team, class T>
__device__ __forceinline__ void prepare_spread(const Job<T>& job) {
    if (job.spread.segments > 0) news_of(job).template clear<Team>(job.spread);
}

/// The same for what other kernels have left.
template <class T, class Team, class Meet>
__device__ __forceinline__ bool solve_spread(const Job<T>& job, unsigned char* shared, const Meet& meet) {
    SpreadNews<T>& news = news_of(job);
    if (!share_rows<Team>(Rows<T>(job, 0), job.spread, news, shared, meet)) {
        meet();  // until nobody reads the news any more
        return false;
    }
    if (Team::number() == 0 && Team::thread() == 0) report_accepted(job, news.found, false);
    return true;
}

}  // namespace trifold::cuda::two_pass
