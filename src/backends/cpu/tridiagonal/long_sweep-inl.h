// SPDX-License-Identifier: BSD-3-Clause
// A group of stretches of one long system with kept factors, lanes = stretches: w runs ahead, x follows block by block.
// Tiles, words and numerics: group_tiles-inl.h. Halos and chunks: factored_long.hpp.
#include "backends/cpu/tridiagonal/chunk_spread-inl.h"
#include "backends/cpu/tridiagonal/group_tiles-inl.h"
#include "backends/cpu/tridiagonal/long_job.hpp"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_LONG_SWEEP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_LONG_SWEEP_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_LONG_SWEEP_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_LONG_SWEEP_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

template <class D, class T = hn::TFromD<D>>
class LongSweeper {
public:
    using Tiles = GroupTiles<D>;
    using How = typename LaneOperand<T>::How;
    using Spread = ChunkSpread<D>;
    static constexpr int W = Tiles::W;

    LongSweeper(const LongSweep<T>& job, T* ring) : job_(job), ring_(ring), ring_tiles_(LongSweep<T>::ring_tiles(job.block, job.right)) {}

    bool run() {
        const std::int64_t tiles = job_.length / W, ahead = job_.right / W, blocks = (job_.length + job_.block - 1) / job_.block;
        w_ = job_.before ? Line<D>::load(job_.before) : Line<D>::zero();
        std::int64_t down_to = 0, low = 0, high = 0;  // x of tiles low … high-1 is to be had
        for (std::int64_t b = 0; b < blocks; ++b) {
            const std::int64_t begin = tiles * b / blocks, end = tiles * (b + 1) / blocks;
            for (; down_to < end + ahead; ++down_to) {
                if (high > low) both(down_to, --high);
                else down(down_to);
            }
            while (high > low) up(--high);
            if (w_.not_finite() != 0) return false;
            if (job_.leaving) mend_down(tiles);
            x_ = ahead == 0 && job_.after ? Line<D>::load(job_.after) : Line<D>::zero();
            for (std::int64_t t = end + ahead - 1; t >= end; --t) up_halo(t);
            low = begin, high = end;
        }
        while (high > low) up(--high);
        if (job_.first) mend_up(tiles);
        if (job_.last_w) w_.store(job_.last_w);
        if (job_.first_x) x_.store(job_.first_x);
        return true;
    }

private:
    T* slot(std::int64_t t) const { return ring_ + t % ring_tiles_ * W * W; }
    const T* kept(std::int64_t t) const { return job_.kept + t * W * kept_words(false) * W; }

    typename Tiles::Down down_of(std::int64_t t, T* stage) const {
        const bool beyond = t * W >= job_.length;
        const typename Tiles::Square rhs = beyond ? typename Tiles::Square{job_.beyond + (t * W - job_.length) * W, W}
                                                  : Tiles::load(job_.group, job_.group.rhs, t * W, W, 0, 0, T(0), stage);
        return {rhs, kept(t), slot(t), W, w_, w_};
    }
    typename Tiles::Up up_of(std::int64_t t, T* out) const { return {kept(t), slot(t), W, x_, x_, out, W}; }

    HWY_NOINLINE void both(std::int64_t t, std::int64_t u) {
        alignas(64) T in[W * W], out[W * W];
        typename Tiles::Down down = down_of(t, in);
        typename Tiles::Up up = up_of(u, out);
        const LaneOperand<T>& rhs = job_.group.rhs;
        Tiles::template both<false, false, false>(down, up, {rhs.data + t * W + Tiles::rows_ahead, rhs.lane_step});
        w_ = down.state, x_ = up.x;
        store(u, out);
    }

    HWY_NOINLINE void down(std::int64_t t) {
        alignas(64) T stage[W * W];
        const LaneOperand<T>& rhs = job_.group.rhs;
        for (int r = 0; r < W; ++r) {
            for (int what = 0; what < 3; ++what) prefetch_second_level(kept(t) + ((Tiles::rows_ahead + r) * 3 + what) * W);
            prefetch_second_level(rhs.data + t * W + Tiles::rows_ahead + r * rhs.lane_step);
        }
        typename Tiles::Down down = down_of(t, stage);
        Tiles::template go_down<false, false>(down, W);
        w_ = down.state;
    }

    // Of a chunk between others: w, before x is made of it.
    void mend_down(std::int64_t tiles) {
        Spread spread(job_.leaving, w_, job_.after, job_.down_share);
        if (!spread.needed()) return;
        for (std::int64_t t = 0; t < tiles; ++t) spread.down(slot(t), kept(t));
    }
    // And x, which is made once more.
    void mend_up(std::int64_t tiles) {
        Spread spread(job_.first, x_, job_.before, job_.up_share);
        if (!spread.needed()) return;
        x_ = Line<D>::load(job_.after);
        for (std::int64_t t = tiles - 1; t >= 0; --t) {
            alignas(64) T out[W * W];
            typename Tiles::Up up = up_of(t, out);
            Tiles::template go_up<false, false, false>(up, W);
            x_ = up.x;
            spread.up(out, kept(t));
            store(t, out);
        }
    }

    HWY_NOINLINE void up_halo(std::int64_t t) {
        alignas(64) T unused[W * W];
        typename Tiles::Up up = up_of(t, unused);
        Tiles::template go_up<false, false, false>(up, W);
        x_ = up.x;
    }

    HWY_NOINLINE void up(std::int64_t t) {
        alignas(64) T out[W * W];
        typename Tiles::Up up = up_of(t, out);
        Tiles::template go_up<false, false, false>(up, W);
        x_ = up.x;
        store(t, out);
    }

    HWY_INLINE void store(std::int64_t t, const T* from) const {
        if (!job_.stores) return;
        const LaneOperand<T>& x = job_.group.x;
        if (!job_.group.even || x.how != How::turned) Tiles::scatter(job_.group, from, W, t * W, W, 0, 0, false);
        else if (job_.stream && Tiles::P == 1) Tiles::template turn_back<true>(from, x.data + t * W, x.lane_step);
        else Tiles::template turn_back<false>(from, x.data + t * W, x.lane_step);
    }

    const LongSweep<T>& job_;
    T* const ring_;
    const std::int64_t ring_tiles_;
    Line<D> w_, x_;
};

template <class D, class T = hn::TFromD<D>>
void gather_tiles(D, const LaneGroup<T>& group, const LaneOperand<T>& from, std::int64_t first, std::int64_t count, T* lines) {
    constexpr int W = GroupTiles<D>::W;
    alignas(64) T stage[W * W];
    for (std::int64_t i = 0; i < count; i += W) {
        const auto rows = static_cast<int>(std::min<std::int64_t>(W, count - i));
        const auto square = GroupTiles<D>::load(group, from, first + i, rows, 0, 0, T(0), stage);
        for (int r = 0; r < rows; ++r) std::copy_n(square.row + r * square.step, W, lines + (i + r) * W);
    }
}

template <class D, class T = hn::TFromD<D>>
void halo_lines(D, const T* lines, const T* kept, std::int64_t rows, T* w) {
    constexpr int W = GroupTiles<D>::W;
    alignas(64) T unused[W * W];
    Line<D> now = Line<D>::zero();
    for (std::int64_t i = 0; i < rows; i += W) {
        typename GroupTiles<D>::Down down{{lines + i * W, W}, kept + i * kept_words(false) * W, unused, W, now, now};
        GroupTiles<D>::template go_down<false, false>(down, W);
        now = down.state;
    }
    now.store(w);
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
