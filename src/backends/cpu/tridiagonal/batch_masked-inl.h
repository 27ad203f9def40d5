// SPDX-License-Identifier: BSD-3-Clause
// Lanes of a block that failed their test: found, eliminated once more with pivoting, or left as they were. Rows: batch_rows-inl.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/tridiagonal/batch_job.hpp"
#include "backends/cpu/tridiagonal/batch_rows-inl.h"
#include "backends/cpu/tridiagonal/batch_tiles-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_MASKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_MASKED_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_MASKED_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_MASKED_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// The vectors of a block, four at a time: body(how many, the first one).
template <class Body>
HWY_INLINE void each_group(const Span& span, const Body& body) {
    int k = 0;
    for (; k + 4 <= span.vectors; k += 4) body(std::integral_constant<int, 4>(), k);
    switch (span.vectors - k) {
        case 3: return body(std::integral_constant<int, 3>(), k);
        case 2: return body(std::integral_constant<int, 2>(), k);
        case 1: return body(std::integral_constant<int, 1>(), k);
        default: return;
    }
}

template <class T>
struct MaskedRows {
    using D = hn::ScalableTag<T>;
    static constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>), tile_rows = Source<D>::tile_rows;

    const BatchJob<T>& job;
    const Span& span;
    const Reduced<T>& reduced;
    Source<D>&lower, &diag, &upper, &rhs;
    T* buffers;  ///< eight rows of the block's width, see Block
    const std::int64_t width = reduced.half;

    T* waiting(int k) const { return buffers + (2 + k) * width; }  ///< diagonal, upper, right-hand side, test
    T* state() const { return buffers + 6 * width; }               ///< per lane: 0 good, 1 pivoted, 2 refused

    // Marks the lanes whose test failed; true where there are any (or all are to be pivoted).
    bool judge(const Carry<T>& end) {
        const D d;
        bool any = job.method == BatchMethod::pivoted;
        auto good = hn::Eq(hn::Zero(d), hn::Zero(d));
        const auto zero = hn::Zero(d);
        for (int k = 0; k < span.vectors; ++k)
            good = hn::And(good, hn::Eq(hn::MulAdd(hn::Load(d, end.d + k * N), zero, hn::Load(d, end.test + k * N)), zero));
        if (!any && hn::AllTrue(d, good)) return false;
        for (std::int64_t j = 0; j < span.vectors * N; ++j) {
            const bool failed = job.method == BatchMethod::pivoted || !(end.test[j] + end.d[j] * 0 == 0);
            state()[j] = failed ? 2 : 0;
            end.test[j] = failed ? std::numeric_limits<T>::quiet_NaN() : T(0);
        }
        return true;
    }

    // Redoes the marked lanes with pivoting; those that come out finite are solved. ahead(i): what to ask for while the tile from row i on is read.
    template <class Ahead>
    void pivoted(const Carry<T>& end, const Ahead& ahead) {
        const D d;
        for (std::int64_t i = 0; i < job.rows; i += tile_rows) {
            std::int64_t count = std::min(tile_rows, job.rows - i);
            const Soon<T> soon = ahead(i);
            Rows<T> a = lower.rows(d, i, count, soon.p[0]), b = diag.rows(d, i, count, soon.p[1]);
            Rows<T> c = upper.rows(d, i, count, soon.p[2]), f = rhs.rows(d, i, count, soon.p[3]);
            const bool top = i == 0;
            if (top) --count;
            each_group(span, [&](auto G, int k) HWY_ATTR {
                auto part = [&](const Rows<T>& r) { return r.group(k, G, span.vectors); };
                const Waiting<T> wait = Waiting<T>{waiting(0), waiting(1), waiting(2), waiting(3)}.group(k * N);
                Rows<T> ga = part(a), gb = part(b), gc = part(c), gf = part(f);
                if (top) {
                    for (int v = 0; v < G; ++v) {
                        const auto at = [&](const Rows<T>& r) HWY_ATTR { return hn::LoadU(d, r.p + (v == G - 1 ? r.last : v * r.column_step)); };
                        hn::Store(at(gb), d, wait.diag + v * N), hn::Store(at(gc), d, wait.upper + v * N), hn::Store(at(gf), d, wait.rhs + v * N);
                        hn::Store(hn::Mul(hn::Add(hn::Abs(at(gb)), hn::Abs(at(gc))), hn::Zero(d)), d, wait.test + v * N);
                    }
                    ga = ga.skip(1), gb = gb.skip(1), gc = gc.skip(1), gf = gf.skip(1);
                }
                Asks<T> mine = soon.asks.group(k);
                eliminate_pivoted<G>(d, ga, gb, gc, gf, count, reduced.skip(i + top).group(k * N), wait, end.test + k * N,
                                     [&]() HWY_ATTR { mine.template in_row<G>(); });
            });
        }
        T* const s = reduced.s + (job.rows - 1) * 2 * width;
        T* const u = reduced.u + (job.rows - 1) * width;
        for (std::int64_t j = 0; j < span.vectors * N; ++j) {
            u[j] = 0;
            if (state()[j] == 0) continue;
            s[j] = 0, s[width + j] = waiting(2)[j] / waiting(0)[j];
            // A pivot of zero leaves NaN or infinity in the rest of the lane's right-hand side.
            if (std::isfinite(s[width + j]) && waiting(3)[j] == 0) state()[j] = 1;
        }
    }

    // Refused lanes: d' is what shall be stored, the right-hand side itself.
    void freeze(const Reduced<T>& to, std::int64_t first, std::int64_t end) {
        for (std::int64_t j = 0; j < span.vectors * N; ++j) {
            T& frozen = waiting(0)[j] = state()[j] == 2;
            if (frozen == 0) continue;
            const std::int64_t lane = lane_of<N>(span, j);
            for (std::int64_t i = first; i < end; ++i)
                to.s[(i - first) * 2 * width + width + j] = rhs.base()[i * job.rhs.row_stride + lane * job.rhs.lane_stride];
        }
    }

    void substitute(const Reduced<T>& from, std::int64_t count, T* x1, T* x2, bool second) {
        const D d;
        each_group(span, [&](auto G, int k) HWY_ATTR { substitute_pivoted<G>(d, from.group(k * N), count, x1 + k * N, x2 + k * N, waiting(0) + k * N, second); });
    }
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
