// SPDX-License-Identifier: BSD-3-Clause
// One matrix eliminated from both ends and kept, for one right-hand side or a few: ends_kernel.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "problems/tridiagonal/system.hpp"

namespace trifold::cpu {

/// Words that are kept of `rows` rows.
constexpr std::int64_t ends_words(std::int64_t rows) { return 3 * rows; }

/// An elimination from both ends, row by row from the outermost rows on; operands by row: a[i], b[i], c[i].
template <class T>
class BothEnds {
public:
    BothEnds() = default;
    BothEnds(std::int64_t rows, T* kept) : n_(rows), m_(rows / 2), kept_(kept), on_(kept + 2 * rows) {}

    /// Rows above this one come from the top.
    std::int64_t middle() const { return m_; }

    /// Row i < middle() from the top, and the one as far from the end.
    template <class Rows>
    void take(std::int64_t i, const Rows& a, const Rows& b, const Rows& c) {
        good_ &= eliminate(i, i > 0 ? a[i] : T(0), b[i], c[i], down_);
        take_below(i, a, b, c);
    }

    /// The same where somebody else has eliminated row i from the top: 1/p, a/p, c'.
    template <class Rows>
    void take(std::int64_t i, T scale, T lower, T coupling, const Rows& a, const Rows& b, const Rows& c) {
        kept_[2 * i] = scale, kept_[2 * i + 1] = lower, on_[i] = down_ = coupling;
        take_below(i, a, b, c);
    }

    /// The row where they meet; false where the elimination must not be used.
    template <class Rows>
    bool close(const Rows& a, const Rows& b, const Rows& c) {
        const T am = m_ > 0 ? a[m_] : T(0), cm = m_ + 1 < n_ ? c[m_] : T(0), bm = b[m_], above = am * down_, below = cm * up_;
        const T p = bm - (above + below), s = 1 / p;
        kept_[2 * m_] = s, kept_[2 * m_ + 1] = am * s, on_[m_] = cm * s;
        const bool small = std::abs(above) + std::abs(below) < growth * (std::abs(am) + std::abs(bm) + std::abs(cm));
        return good_ && small && std::isfinite(p) && std::isfinite(s) && std::isfinite(kept_[2 * m_ + 1]) && std::isfinite(on_[m_]);
    }

    bool good() const { return good_; }

private:
    static constexpr int growth = 4;

    /// `back` couples to where the end comes from, `on` to where it goes.
    bool eliminate(std::int64_t i, T back, T diag, T on, T& coupling) {
        const T update = back * coupling, p = diag - update, s = 1 / p, l = back * s;
        kept_[2 * i] = s, kept_[2 * i + 1] = l, on_[i] = coupling = on * s;
        return (std::abs(update) < growth * (std::abs(back) + std::abs(diag))) & (p * 0 == 0) & (s * 0 == 0) & (l * 0 == 0);
    }

    template <class Rows>
    void take_below(std::int64_t i, const Rows& a, const Rows& b, const Rows& c) {
        if (const std::int64_t j = n_ - 1 - i; j > m_) good_ &= eliminate(j, j + 1 < n_ ? c[j] : T(0), b[j], a[j], up_);
    }

    std::int64_t n_ = 0, m_ = 0;
    T *kept_ = nullptr, *on_ = nullptr;
    T down_ = 0, up_ = 0;
    bool good_ = true;
};

/// All rows.
template <class T, class Rows>
bool eliminate_from_ends(std::int64_t rows, const Rows& a, const Rows& b, const Rows& c, T* kept) {
    BothEnds<T> ends(rows, kept);
    for (std::int64_t i = 0; i < ends.middle() && ends.good(); ++i) ends.take(i, a, b, c);
    return ends.close(a, b, c);
}

/// Eliminates; false where the elimination must not be used. system: one (levels == 0), neither periodic nor ragged; its rhs is not read.
template <class T>
bool factor_ends(const tridiagonal::System& system, T* kept);

/// One right-hand side. w: room for as many numbers as rows, so that nothing is stored where x is not finite; or null: x takes them, on two threads where
/// there are. -1, or where x is not finite the first row whose rhs is not, 0 if there is none.
template <class T>
std::int64_t solve_ends(const tridiagonal::System& system, const T* kept, int threads, T* w = nullptr);

}  // namespace trifold::cpu
