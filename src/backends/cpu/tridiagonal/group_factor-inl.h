// SPDX-License-Identifier: BSD-3-Clause
// The matrices of a group, eliminated without pivoting; what is kept and what is tested: group_tiles-inl.h.
#include "backends/cpu/tridiagonal/group_tiles-inl.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_FACTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_FACTOR_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_FACTOR_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_FACTOR_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// What a ring has beside its tridiagonal part of n-1 rows: the column of x[n-1] and the row n-1.
template <class T>
class RingEnds {
public:
    static constexpr int W = group_lanes<T>;

    RingEnds(const LaneGroup<T>& group, bool ring) : group_(group) {
        for (int j = 0; j < W && ring; ++j) {
            const std::int64_t last = group.rows[j] - 1;
            if (last < 0) continue;
            right[j] = group.top_right.at(0, j), left[j] = group.bottom_left.at(0, j), diag[j] = group.diag.at(last, j);
            if (last > 0) above[j] = group.upper.at(last - 1, j), before[j] = group.lower.at(last, j);
            else diag[j] += right[j] + left[j], right[j] = left[j] = 0;
        }
    }

    /// Rows i … i+count-1 of the column (E) and of the row (Q).
    void rows(std::int64_t i, int count, T* E, T* Q) const {
        std::fill_n(E, W * W, T(0)), std::fill_n(Q, W * W, T(0));
        for (int j = 0; j < W; ++j) {
            const std::int64_t end = group_.rows[j] - 2 - i;  // the last row of the tridiagonal part
            if (i == 0) E[j] = right[j], Q[j] = left[j];
            if (end >= 0 && end < count) E[end * W + j] += above[j], Q[end * W + j] += before[j];
        }
    }

    T largest(int j) const { return std::abs(left[j]) + std::abs(before[j]) + std::abs(diag[j]); }

    T right[W] = {}, left[W] = {}, above[W] = {}, before[W] = {}, diag[W] = {};

private:
    const LaneGroup<T>& group_;
};

/// gives_up: where half of the lanes fail within few rows, all are said to.
template <bool ring, class D, class T = hn::TFromD<D>>
HWY_NOINLINE std::uint32_t factor_lanes(D, const LaneGroup<T>& group, T* kept, bool gives_up) {
    using Tiles = GroupTiles<D>;
    constexpr int W = Tiles::W;
    constexpr T growth = 4;
    alignas(64) T stage[3][W * W], E[W * W], Q[W * W], state[Tiles::state_elements] = {};
    const std::int64_t rows = group.longest - ring;
    const RingEnds<T> ends(group, ring);
    if constexpr (ring)
        for (int j = 0; j < W; ++j) state[5 * W + j] = growth * ends.largest(j);
    for (std::int64_t i = 0; i < rows; i += W) {
        const int count = static_cast<int>(std::min<std::int64_t>(W, rows - i));
        Tiles::ask(group, group.lower, i), Tiles::ask(group, group.diag, i), Tiles::ask(group, group.upper, i);
        const auto lower = Tiles::load(group, group.lower, i, count, 1, ring, T(0), stage[0]);
        const auto diag = Tiles::load(group, group.diag, i, count, 0, ring, T(1), stage[1]);
        const auto upper = Tiles::load(group, group.upper, i, count, 0, ring + 1, T(0), stage[2]);
        if constexpr (ring) ends.rows(i, count, E, Q);
        Tiles::template eliminate<ring>(lower, diag, upper, E, Q, count, state, kept + i * kept_words(ring) * W);
        if (gives_up && (i == 2 * W || i == 7 * W) && std::count(state + 4 * W, state + 5 * W, T(0)) <= W / 2) return ~0u;  // what is not 0 is NaN
    }
    std::uint32_t bad = 0;
    for (int j = 0; j < W; ++j) {
        bool good = state[4 * W + j] == 0;
        if (ring && group.rows[j] > 0) {
            const T inverse = T(1) / (ends.diag[j] - state[6 * W + j]);
            good = good && state[3 * W + j] <= growth * ends.largest(j) && inverse * T(0) == T(0) && inverse != T(0);
            T* const last = kept + (group.rows[j] - 1) * kept_words(ring) * W + j;
            last[0] = inverse;
            if (group.rows[j] == group.longest) last[W] = ends.left[j], last[2 * W] = ends.before[j], last[3 * W] = ends.diag[j];  // else it is swept over
        }
        if (!good) bad |= 1u << j;
    }
    return bad;
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
