// SPDX-License-Identifier: BSD-3-Clause
// One system, pivoted, a few rows per lane of a whole launch: lanes join their chunks by twos, then segments of rows join, and x is corrected once.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1
//
// Who does what: a segment of up to some 2000 rows is a team's of 128 lanes, in its shared memory, a chunk each (pivoted_chunk.cuh, pivoted_lanes.cuh). Two equations are left of it; the
//   first team joins those of all segments, and says what each has at its ends. Then the same for rhs - A x, which is added. A team of several segments brings and eliminates them again when their ends
//   are known.
// Words per row: 4 read and 1 written for x, 5 and 1 for its correction, 5 to check; from the second-level cache, which holds such systems. Limit: latency. Rows per lane times a reciprocal, four times; 7 joints
//   in a segment and 4 to 10 among segments, two reciprocals each, twice. Segments are waited for by the words that they show, not by meetings.
// Numerics: chunks of few rows, coupled one by one, lose of x what LAPACK's order does not (waves of 10^5 rows: 10 to 200 times its error). The correction, whose residuals are of twice the precision, leaves
//   a unit in the last place of x or two where x had three right digits, wherever they were lost. What it changes by more than 1/64 of the largest |x|, rows that grow and pivots out of range are left to others.
// Source: docs/algorithms/gpu_two_pass.md; N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 12.1.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_check.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_spread.hpp"
#include "backends/cuda/tridiagonal/device/windows_couple.cuh"
#include "backends/cuda/tridiagonal/pivoted_lanes.cuh"
#include "backends/cuda/tridiagonal/precise_residual.cuh"

namespace trifold::cuda::two_pass {

/// A team's, in front of its rows.
template <class T, int Size = block_threads>
struct SpreadMemory {
    static constexpr int warps = Size / 32;
    Equations<T> across[warps];
    Joint<T> joints[2][warps];                  ///< of warps: of a segment's rows, and of all segments; registers would not do
    cuda::Ends<T> ends[2][Spread::most_turns];  ///< of x and of its correction, of the team's segments
    Rows<T> system;                             ///< here, for registers would not do

    __device__ T* rows() { return reinterpret_cast<T*>(this + 1); }
    static constexpr std::int64_t room(std::int64_t bytes) { return (bytes - static_cast<std::int64_t>(sizeof(SpreadMemory))) / static_cast<std::int64_t>(4 * sizeof(T)); }
    static constexpr std::int64_t bytes(std::int64_t rows) { return static_cast<std::int64_t>(sizeof(SpreadMemory)) + rows * static_cast<std::int64_t>(4 * sizeof(T)); }
};

/// What teams tell each other; then two equations of each segment and what it has at its ends, for x and for its correction: words that are nothing until they are there.
template <class T>
struct SpreadNews {
    unsigned long long changed, largest;  ///< bits of the largest correction and the largest |x|
    int distrusted;
    Found found;

    /// By all teams, before they meet.
    template <class Team>
    __device__ __forceinline__ void clear(const Spread& spread) {
        if (Team::number() == 0 && Team::thread() == 0) changed = largest = 0, distrusted = 0, found = {};
        auto* const words = reinterpret_cast<unsigned*>(parts(spread, false));
        const std::int64_t count = 2ll * spread.segments * static_cast<int>((sizeof(Equations<T>) + sizeof(cuda::Ends<T>)) / sizeof(unsigned)), step = Team::count() * Team::size;
        for (std::int64_t k = Team::number() * Team::size + Team::thread(); k < count; k += step) words[k] = ~0u;
    }

    __device__ __forceinline__ Equations<T>* parts(const Spread& spread, bool correction) { return reinterpret_cast<Equations<T>*>(this + 1) + (correction ? spread.segments : 0); }

    __device__ __forceinline__ cuda::Ends<T>* ends(const Spread& spread, bool correction) { return reinterpret_cast<cuda::Ends<T>*>(parts(spread, false) + 2 * spread.segments) + (correction ? spread.segments : 0); }

    __device__ __forceinline__ bool are_good() const {
        constexpr double most_change = 0x1p-6;
        return !distrusted && number(changed) <= most_change * number(largest) && are_small<T>(found);
    }

    static constexpr std::size_t bytes(std::int64_t segments) { return sizeof(SpreadNews) + 2 * static_cast<std::size_t>(segments) * (sizeof(Equations<T>) + sizeof(cuda::Ends<T>)); }
};

template <class T, class Team>
struct SpreadTeam {
    using Memory = SpreadMemory<T, Team::size>;
    static constexpr int at_once = 4;  ///< rows of a lane that are asked for together

    const Spread& spread;
    SpreadNews<T>& news;
    Memory& memory;
    PivotRange<T> range;
    bool good = true;

    // Of the segment at hand.
    int turn = 0;  ///< how many of the team's come before
    std::int64_t first = 0;
    int count = 0;

    __device__ __forceinline__ static int lane() { return Team::thread() % 32; }
    __device__ __forceinline__ static int warp() { return Team::thread() / 32; }

    /// `call` for the team's segments, one after the other.
    template <class Call>
    __device__ __forceinline__ void each_segment(const Call& call) {
        turn = 0;
#pragma unroll 1
        for (int s = static_cast<int>(Team::number()); s < spread.segments; s += static_cast<int>(Team::count()), ++turn) {
            first = min(static_cast<std::int64_t>(s) * spread.rows, memory.system.count);
            count = static_cast<int>(min(static_cast<std::int64_t>(spread.rows), memory.system.count - first));
            call(s);
        }
    }

    struct Row {
        T a, b, c, d, above, x, below;
    };

    /// call(r, row) for the rows of the segment, x of theirs and beside them where it is there; beyond the segment it is what its own team takes it for.
    template <class Call>
    __device__ __forceinline__ void each_row(bool with_x, T before, T after, const Call& call) const {
        const T* data[4];
        std::int64_t stride[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const Line<T>& line = memory.system.line[k];
            data[k] = line.data ? line.data : &line.value, stride[k] = line.data ? line.row_stride : 0;
        }
        const Line<T> x = memory.system.x;
        const std::int64_t rows_of_system = memory.system.count;
#pragma unroll 1
        for (int begin = Team::thread(); begin < count; begin += at_once * Team::size) {
            Row rows[at_once];
#pragma unroll
            for (int k = 0; k < at_once; ++k) {
                const int r = min(begin + k * Team::size, count - 1);
                const std::int64_t i = first + r;
                Row& row = rows[k];
                // What couples to rows that do not exist is not there to be read.
                row = {data[0][max(i, std::int64_t{1}) * stride[0]], data[1][i * stride[1]], data[2][min(i, rows_of_system - 2) * stride[2]], data[3][i * stride[3]], T(0), T(0), T(0)};
                if (with_x) row.above = x[r > 0 ? i - 1 : i], row.x = x[i], row.below = x[r + 1 < count ? i + 1 : i];
            }
#pragma unroll
            for (int k = 0; k < at_once; ++k) {
                const int r = begin + k * Team::size;
                Row& row = rows[k];
                if (first + r == 0) row.a = 0;
                if (first + r + 1 == rows_of_system) row.c = 0;
                if (r == 0) row.above = before;
                if (r + 1 == count) row.below = after;
                if (r < count) call(r, row);
            }
        }
    }

    /// The rows of the segment, with rhs - A x where x is to be corrected.
    __device__ __forceinline__ void load(bool correction) const {
        T* const to = memory.rows();
        const int pitch = spread.rows;
        each_row(correction, memory.ends[0][turn].before, memory.ends[0][turn].after, [&](int r, const Row& row) {
            to[r] = row.a, to[pitch + r] = row.b, to[2 * pitch + r] = row.c;
            to[3 * pitch + r] = correction ? precise_residual(row.a, row.b, row.c, row.d, row.above, row.x, row.below) : row.d;
        });
        Team::sync();
    }

    /// x of the segment's rows, from what has taken the place of their right-hand sides.
    __device__ __forceinline__ void store(bool correction) {
        const T* const from = memory.rows() + 3 * spread.rows;
        const Line<T> line = memory.system.x;
        T change = 0, size = 0;
#pragma unroll 4
        for (int r = Team::thread(); r < count; r += Team::size) {
            T& x = line.at(first + r);
            const T z = from[r], now = correction ? x + z : z;
            x = now;
            change = max(change, abs(z)), size = max(size, abs(now));
        }
        if (correction) {
            for (int step = 16; step > 0; step /= 2) change = max(change, __shfl_xor_sync(~0u, change, step)), size = max(size, __shfl_xor_sync(~0u, size, step));
            if (lane() == 0) atomicMax(&news.changed, bits(change)), atomicMax(&news.largest, bits(size));
        }
        Team::sync();
    }

    __device__ __forceinline__ void show(T& word, T value) {
        if (windows::is_nothing(value)) value = 0, good = false;
        const_cast<volatile T&>(word) = value;
    }
    __device__ __forceinline__ void show(Equation<T>& word, const Equation<T>& value) {
        show(word.before, value.before), show(word.first, value.first), show(word.last, value.last), show(word.after, value.after), show(word.rhs, value.rhs);
        const_cast<volatile int&>(word.origin) = value.origin;
    }

    __device__ __forceinline__ static T seen(const T& word, bool& there) {
        const T value = windows::from_other_block(&word);
        there = there && !windows::is_nothing(value);
        return value;
    }
    __device__ __forceinline__ static Equation<T> seen(const Equation<T>& at, bool& there) {
        const Equation<T> value{seen(at.before, there), seen(at.first, there), seen(at.last, there), seen(at.after, there), seen(at.rhs, there), const_cast<const volatile int&>(at.origin)};
        there = there && value.origin != -1;
        return value;
    }

    /// The equations of segment s, when they are there.
    __device__ __forceinline__ Equations<T> part(const Equations<T>* parts, int s) const {
        if (s >= spread.segments) return no_rows<T>();
        for (;;) {
            bool there = true;
            const Equations<T> here{seen(parts[s].a, there), seen(parts[s].b, there)};
            if (there) return here;
        }
    }

    enum Of { rows_of_segment, segments };

    /// By all lanes: what they have becomes one. `following` warps follow each other, a power of two, and others do as they do.
    __device__ __forceinline__ Equations<T> join(const Equations<T>& own, LaneTree<T>& lanes, Of of, int following) {
        __syncwarp();
        const Equations<T> group = lanes.join(own, range);
        if (lane() == 0) memory.across[warp()] = group;
        Team::sync();
        LaneTree<T> over{{}, lane() & (following - 1), following};
        const Equations<T> all = over.join(memory.across[over.lane], range);
        if (warp() == 0 && lane() < following) memory.joints[of][lane()] = over.kept;
        Team::sync();  // `across` may be written again
        return all;
    }

    /// The other way round: from the ends of all to those of the lane.
    __device__ __forceinline__ cuda::Ends<T> substitute(const cuda::Ends<T>& all, const LaneTree<T>& lanes, Of of, int following) const {
        const int place = lane() & (following - 1), own = warp() & (following - 1);
        const cuda::Ends<T> of_warps = LaneTree<T>{memory.joints[of][place], place, following}.substitute(all);
        return lanes.substitute({__shfl_sync(~0u, of_warps.before, own), __shfl_sync(~0u, of_warps.first, own), __shfl_sync(~0u, of_warps.last, own), __shfl_sync(~0u, of_warps.after, own)});
    }

    /// What all segments have at their ends, from what they show. One team does so: where hundreds look for the same words these come late.
    __device__ __forceinline__ void join_segments(const Equations<T>* parts, cuda::Ends<T>* ends) {
        constexpr int most = (Spread::most_segments + Team::size - 1) / Team::size;
        const int each = (spread.segments + Team::size - 1) / Team::size;
        int wide = 1;
        while (wide * each < spread.segments) wide *= 2;
        const int following = max(wide / 32, 1);
        LaneTree<T> lanes{{}, lane(), min(wide, 32)};
        const int mine = (Team::thread() & (wide - 1)) * each;
        Joint<T> joints[most > 1 ? most - 1 : 1];  // of the lane's segments, from left to right
        Equations<T> own = part(parts, mine);
#pragma unroll 1
        for (int k = 1; k < each; ++k) own = joints[k - 1].eliminate(own, part(parts, mine + k), range);
        const Equations<T> all = join(own, lanes, segments, following);
        cuda::Ends<T> now = substitute(solve_ends(all, range), lanes, segments, following);
#pragma unroll 1
        for (int k = each - 1; k >= 0; --k) {
            cuda::Ends<T> right = now;
            if (k > 0) {
                T left_last, right_first;
                joints[k - 1].substitute(now, left_last, right_first);
                right.before = left_last, right.first = right_first;
                now.last = left_last, now.after = right_first;
            }
            if (Team::thread() >= wide || mine + k >= spread.segments) continue;
            cuda::Ends<T>& to = ends[mine + k];
            show(to.before, right.before), show(to.first, right.first), show(to.last, right.last), show(to.after, right.after);
        }
    }

    /// What the team's segments have at their ends, when it is known.
    __device__ __forceinline__ void find_ends(bool correction) {
        cuda::Ends<T>* const ends = news.ends(spread, correction);
        if (Team::number() == 0) join_segments(news.parts(spread, correction), ends);
        const std::int64_t own = Team::number() + Team::thread() * Team::count();
        if (own < spread.segments) {
            const cuda::Ends<T>& at = ends[own];
            for (;;) {
                bool there = true;
                const cuda::Ends<T> here{seen(at.before, there), seen(at.first, there), seen(at.last, there), seen(at.after, there)};
                memory.ends[correction][Team::thread()] = here;
                if (there) break;
                __nanosleep(100);  // hundreds of teams that look all the time hold up the one that all wait for
            }
        }
        Team::sync();
    }

    __device__ __forceinline__ void solve() {
        const bool held = spread.segments <= Team::count();
        PivotedChunk<T, true> chunk{};
        LaneTree<T> lanes{{}, lane(), 32};
#pragma unroll 1
        for (int step = 0; step < 4; ++step) {
            const bool correction = step / 2, finish = step % 2;
            each_segment([&](int s) {
                if (!finish || !held) {
                    load(correction);
                    // Odd, so that lanes read from different banks.
                    const int each = (count + Team::size - 1) / Team::size | 1, begin = min(Team::thread() * each, count);
                    chunk = {memory.rows() + begin, spread.rows, min(each, count - begin)};
                    int bad = chunk.count;
                    const Equations<T> own = chunk.reduce(bad, range), all = join(own, lanes, rows_of_segment, Memory::warps);
                    good = good && bad == chunk.count;
                    if (!finish && Team::thread() == 0) {
                        Equations<T>& to = news.parts(spread, correction)[s];
                        show(to.a, all.a), show(to.b, all.b);
                    }
                }
                if (finish) {
                    good = chunk.finish(substitute(memory.ends[correction][turn], lanes, rows_of_segment, Memory::warps)) && good;
                    Team::sync();
                    store(correction);
                }
            });
            if (!finish) find_ends(correction);
        }
    }

    /// Residuals of what was stored.
    __device__ __forceinline__ void check() {
        each_segment([&](int) {
            const cuda::Ends<T> x = memory.ends[0][turn], z = memory.ends[1][turn];
            Seen<T> seen;
            each_row(true, x.before + z.before, x.after + z.after,
                     [&](int, const Row& row) { seen.add(row.a, row.b, row.c, row.d, row.x, row.d - row.a * row.above - row.b * row.x - row.c * row.below); });
            seen.template store<Team>(news.found);
        });
    }
};

/// By all threads of a launch whose teams are all there, when `news` has been cleared and they have met. meet() waits for all of them. Whether x is there, known to all.
template <class Team, class T, class Meet>
__device__ __forceinline__ bool share_rows(const Rows<T>& system, const Spread& spread, SpreadNews<T>& news, unsigned char* shared, const Meet& meet) {
    auto& memory = *reinterpret_cast<SpreadMemory<T, Team::size>*>(shared);
    if (Team::thread() == 0) memory.system = system;
    Team::sync();
    SpreadTeam<T, Team> team{spread, news, memory, {}};
    team.solve();
    team.check();
    if (!(team.good && team.range.good)) news.distrusted = 1;
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
