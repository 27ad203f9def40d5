// SPDX-License-Identifier: BSD-3-Clause
// Groups one after the other, with factors that are kept: a tile of this group goes down while one of the group before goes up, so that memory is
// asked for all the time and two chains run side by side. Both use one w: a tile of the group before makes room for one of this group.
// Arrays, words and numerics: group_tiles-inl.h.
#include "backends/cpu/tridiagonal/group_kernel.hpp"
#include "backends/cpu/tridiagonal/group_tiles-inl.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_SOLVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_SOLVE_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_SOLVE_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_SOLVE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

template <class D, bool ring, bool shared, class T = hn::TFromD<D>>
class GroupSolver {
public:
    using Tiles = GroupTiles<D>;
    using How = typename LaneOperand<T>::How;
    using Square = typename Tiles::Square;
    static constexpr int W = Tiles::W;

    GroupSolver(const GroupSolve<T>& job, T* scratch) : job_(job), w_(scratch) {}

    void run(std::int64_t first, std::int64_t last) {
        for (std::int64_t k = first; k < last; ++k) {
            Work& here = work_[k & 1];
            Work& before = work_[~k & 1];
            here.number = k, here.skip = 0;
            job_.place(job_.of, k, here.group, here.kept, here.skip);
            here.rows = here.group.longest - ring;
            here.tiles = (std::max<std::int64_t>(here.rows, 0) + W - 1) / W;
            here.turned_round = before.waits && !before.turned_round;
            if (before.waits && before.tiles != here.tiles) up_alone(before), here.turned_round = false;
            look_ahead(here, before, k > first);
            here.w = here.sum = here.x = Line<D>::zero();
            for (std::int64_t t = 0; t < here.tiles; ++t) {
                if (before.waits && count(here, t) == W && count(before, before.tiles - 1 - t) == W) {
                    both(here, t, before, before.tiles - 1 - t);
                    continue;
                }
                if (before.waits) up(before, before.tiles - 1 - t);
                down(here, t);
            }
            if (before.waits) finish(before);
            enter(here);
            if (job_.store.late) up_alone(here);
        }
        for (Work& rest : work_)
            if (rest.waits) up_alone(rest);
        if (job_.store.stream) hwy::FlushStream();
    }

private:
    static constexpr std::int64_t ahead = Tiles::rows_ahead / W;  // tiles between asking and use

    struct Work {
        LaneGroup<T> group;
        const T* kept = nullptr;
        std::int64_t number = 0, rows = 0, tiles = 0;
        std::uint32_t skip = 0;      // lanes that are not stored
        bool waits = false;          // w is there, x is not
        bool turned_round = false;   // the last row of w comes first
        bool whole = false, stream = false;
        Line<D> w, sum, x, last;
    };

    // Row 0 of tile t of w.
    T* slot(const Work& work, std::int64_t t) const { return w_ + (work.turned_round ? ((work.tiles - 1 - t) * W + W - 1) * W : t * W * W); }
    static std::int64_t slot_step(const Work& work) { return work.turned_round ? -W : W; }
    static const T* kept(const Work& work, std::int64_t t) { return work.kept + t * W * kept_words(ring) * (shared ? 1 : W); }
    static int count(const Work& work, std::int64_t t) { return static_cast<int>(std::min<std::int64_t>(W, work.rows - t * W)); }

    // Where the next groups will be, if they are as far apart as this one is from the one before.
    void look_ahead(const Work& here, const Work& before, bool known) {
        const LaneOperand<T>& rhs = here.group.rhs;
        asked_tile_ = ahead;
        asked_ = rhs.data;
        between_ = known ? rhs.data - before.group.rhs.data : 0;
    }
    typename Tiles::Asks asks(const Work& here) {
        const LaneOperand<T>& rhs = here.group.rhs;
        while (asked_tile_ >= here.tiles) asked_tile_ -= here.tiles, asked_ += between_;
        // Where rows are not whole lines, the first of two was the last one of the group before.
        const bool lines = (reinterpret_cast<std::uintptr_t>(rhs.data) % 64 | static_cast<std::uintptr_t>(rhs.row_step) * sizeof(T) % 64) == 0;
        const T* const at = asked_ + asked_tile_++ * W * rhs.row_step + (rhs.how == How::direct && !lines ? W - 1 : 0);
        return {at, rhs.how == How::direct ? rhs.row_step : rhs.lane_step};
    }

    typename Tiles::Down down_of(const Work& work, std::int64_t t, T* stage) const {
        const Square rhs = Tiles::load(work.group, work.group.rhs, t * W, count(work, t), 0, ring, T(0), stage);
        return {rhs, kept(work, t), slot(work, t), slot_step(work), work.w, work.sum};
    }
    typename Tiles::Up up_of(const Work& work, std::int64_t t, T* stage) const {
        const LaneOperand<T>& x = work.group.x;
        const bool direct = work.whole && x.how == How::direct;
        typename Tiles::Up up{kept(work, t), slot(work, t), slot_step(work), work.x, work.last, direct ? x.data + t * W * x.row_step : stage, direct ? x.row_step : W};
        if (job_.store.late) up.out = slot(work, t), up.step = slot_step(work);
        return up;
    }
    // The tile of x that comes up some rows later, of this group or of the next one. A row that is not whole lines begins where the group before has
    // been just now; the rest of it is in no cache yet.
    const T* soon(const Work& work, std::int64_t t, const Work& next) const {
        if (!work.whole || work.group.x.how != How::direct || work.stream || job_.store.late) return nullptr;
        const LaneOperand<T>& x = t >= ahead ? work.group.x : next.group.x;
        return x.data + W - 1 + (t >= ahead ? t - ahead : std::max<std::int64_t>(t + next.tiles - ahead, 0)) * W * x.row_step;
    }
    static bool streams(const Work& work) { return work.stream && work.group.x.how == How::direct; }

    HWY_NOINLINE void both(Work& here, std::int64_t t, Work& before, std::int64_t u) {
        alignas(64) T in[W * W], out[W * W];
        typename Tiles::Down down = down_of(here, t, in);
        typename Tiles::Up up = up_of(before, u, out);
        up.soon = soon(before, u, here);
        const typename Tiles::Asks ask = asks(here);
        if (streams(before)) Tiles::template both<ring, shared, true>(down, up, ask);
        else Tiles::template both<ring, shared, false>(down, up, ask);
        here.w = down.state, here.sum = down.sum, before.x = up.x;
        if (up.out == out) store(before, out, W, u, before.skip);
    }

    HWY_NOINLINE void down(Work& work, std::int64_t t) {
        alignas(64) T stage[W * W];
        const typename Tiles::Asks ask = asks(work);
        for (int r = 0; r < W; ++r) prefetch_second_level(ask.rhs + r * ask.step);
        typename Tiles::Down down = down_of(work, t, stage);
        Tiles::template go_down<ring, shared>(down, count(work, t));
        work.w = down.state, work.sum = down.sum;
    }

    HWY_NOINLINE void up(Work& work, std::int64_t t) {
        alignas(64) T stage[W * W];
        typename Tiles::Up up = up_of(work, t, stage);
        if (streams(work)) Tiles::template go_up<ring, shared, true>(up, count(work, t));
        else Tiles::template go_up<ring, shared, false>(up, count(work, t));
        work.x = up.x;
        if (up.out == stage) store(work, stage, W, t, work.skip);
    }

    // All of w is there: what is not finite in a right-hand side is so in its last row.
    void enter(Work& work) {
        std::uint32_t bad = work.w.not_finite();
        if constexpr (ring) bad |= work.sum.not_finite() | join(work);
        for (std::uint32_t rest = bad & ~work.skip; rest; rest &= rest - 1) job_.failed(job_.sink, work.number, __builtin_ctz(rest), false);
        work.skip |= bad;
        work.waits = true;
        work.whole = work.group.even && work.skip == 0 && !job_.store.accumulate && !job_.store.late;
        const LaneOperand<T>& x = work.group.x;
        const std::int64_t step = x.how == How::direct ? x.row_step : x.lane_step;
        const bool lines = (reinterpret_cast<std::uintptr_t>(x.data) % 64 | static_cast<std::uintptr_t>(step) * sizeof(T) % 64) == 0;
        work.stream = job_.store.stream && work.whole && lines && (x.how == How::direct || (x.how == How::turned && Tiles::P == 1));
    }

    // The unknown of a ring's last row. Returns the lanes where it is not finite.
    std::uint32_t join(Work& work) {
        alignas(64) T values[W], sums[W];
        work.sum.store(sums);
        for (int j = 0; j < W; ++j) {
            const std::int64_t last = work.group.rows[j] - 1;
            values[j] = last < 0 ? T(0)
                                 : (work.group.rhs.at(last, j) - sums[j]) * (shared ? work.kept[last * kept_words(ring)] : work.kept[last * kept_words(ring) * W + j]);
        }
        work.last = Line<D>::load(values);
        return work.last.not_finite();
    }

    // A ring's last row is a sum over all rows, whose rounding adds up where little is forgotten. The others hold as they are.
    void refine(Work& work, std::uint32_t skip) const {
        constexpr std::int64_t least_rows = 256;
        if (work.group.longest < least_rows) return;
        alignas(64) T last[W];
        work.last.store(last);
        for (int j = 0; j < W; ++j)
            for (int time = 0; time < 2 && (skip >> j & 1) == 0 && work.group.rows[j] >= least_rows; ++time)
                if (!refine(work, j, last[j])) break;
        work.last = Line<D>::load(last);
    }

    // What is missing in the last row of lane j is added by a solution for the unit in that row. False: nothing is.
    HWY_NOINLINE bool refine(const Work& work, int j, T& last) const {
        constexpr double accept = sizeof(T) == 4 ? 0x1p-22 : 0x1p-51;
        const LaneGroup<T>& group = work.group;
        const std::int64_t m = group.rows[j] - 1;
        const auto kept = [&](std::int64_t i, int what) { return work.kept[i * kept_words(true) * (shared ? 1 : W) + (shared ? what : what * W + j)]; };
        const auto x = [&](std::int64_t i) -> T& {
            return job_.store.late ? slot(work, i / W)[i % W * slot_step(work) + j] : group.x.data[group.x.offset[j] + i * group.x.row_step];
        };
        const bool given = job_.store.late;
        const double left = given ? group.bottom_left.at(0, j) : kept(m, 1), before = given ? group.lower.at(m, j) : kept(m, 2), diag = given ? group.diag.at(m, j) : kept(m, 3);
        const double first = left * static_cast<double>(x(0)), next = before * static_cast<double>(x(m - 1)), own = diag * static_cast<double>(last), right = group.rhs.at(m, j);
        const double residual = right - (first + next + own);
        if (!(std::abs(residual) > accept * (std::abs(first) + std::abs(next) + std::abs(own) + std::abs(right)))) return false;
        const auto units = [&](const auto& take) {
            T unit = 0;
            for (std::int64_t i = m - 1; i >= 0; --i) take(i, unit = -(kept(i, 2) * unit + kept(i, 3)));
        };
        T at_first = 0, at_next = 0;
        units([&](std::int64_t i, T unit) { at_first = unit, at_next = i == m - 1 ? unit : at_next; });
        // Not by the last pivot: it is a sum over all rows, of which little but rounding is left where the ring is nearly singular. This is what the unit does to the row.
        const double from_first = left * static_cast<double>(at_first), from_next = before * static_cast<double>(at_next), sum = from_first + from_next + diag;
        const double least = accept * (std::abs(from_first) + std::abs(from_next) + std::abs(diag));
        const T step = static_cast<T>(residual / std::copysign(std::max(std::abs(sum), least), sum));
        if (!std::isfinite(step)) return false;
        last += step;
        units([&](std::int64_t i, T unit) { x(i) += step * unit; });
        return true;
    }

    void store(const Work& work, const T* from, std::int64_t step, std::int64_t t, std::uint32_t skip) const {
        const LaneOperand<T>& x = work.group.x;
        const bool all = work.group.even && skip == 0;
        const bool whole = all && !job_.store.accumulate && x.how == How::turned && count(work, t) == W && step == W;
        if (all && x.how == How::direct) Tiles::store_rows(from, step, count(work, t), x.data + t * W * x.row_step, x.row_step, job_.store.accumulate);
        else if (!whole) Tiles::scatter(work.group, from, step, t * W, count(work, t), ring, skip, job_.store.accumulate);
        else if (work.stream) Tiles::template turn_back<true>(from, x.data + t * W, x.lane_step);
        else Tiles::template turn_back<false>(from, x.data + t * W, x.lane_step);
    }

    void up_alone(Work& work) {
        for (std::int64_t t = work.tiles - 1; t >= 0; --t) up(work, t);
        finish(work);
    }

    void finish(Work& work) {
        work.waits = false;
        const std::uint32_t bad = work.x.not_finite() & ~work.skip;
        for (std::uint32_t rest = bad; rest; rest &= rest - 1) job_.failed(job_.sink, work.number, __builtin_ctz(rest), !job_.store.late);
        if constexpr (ring) refine(work, work.skip | bad);
        if (job_.store.late)
            for (std::int64_t t = 0; t < work.tiles; ++t) store(work, slot(work, t), slot_step(work), t, work.skip | bad);
        if constexpr (ring) {
            alignas(64) T last[W];
            work.last.store(last);
            for (int j = 0; j < W; ++j) {
                if (((work.skip | (job_.store.late ? bad : 0)) >> j & 1) != 0 || work.group.rows[j] == 0) continue;
                T& place = work.group.x.data[work.group.x.offset[j] + (work.group.rows[j] - 1) * work.group.x.row_step];
                place = job_.store.accumulate ? place + last[j] : last[j];
            }
        }
    }

    const GroupSolve<T>& job_;
    T* w_;
    Work work_[2];
    const T* asked_ = nullptr;        // tile 0 of the group whose lines are asked for
    std::int64_t asked_tile_ = 0, between_ = 0;
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
