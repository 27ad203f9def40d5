// SPDX-License-Identifier: BSD-3-Clause
// `reduce` of one or two vectors of chunks whose rows stay dominant: dominant_row-inl.h. Included once per Highway target.
#include <cmath>

#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/dominant_row-inl.h"
#include "families/tridiagonal/ops.hpp"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_DOMINANT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_DOMINANT_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_DOMINANT_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_DOMINANT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// The largest coefficient of either row as its excess leaves it, in double precision; both rows as large as rows s and e are when the unknowns between them have been
/// eliminated from these (whose first coefficient stays a_s): then coupling, which pivots, takes these rows for x[s] and x[e], as it should where rows are dominant.
template <class D, Work work>
HWY_NOINLINE void store_dominant(D d, const DominantReduce<D, work>& chain, const ChunkGroup<hn::TFromD<D>>& g, tridiagonal::InterfaceRow* rows, std::int64_t* zero_pivot) {
    using T = hn::TFromD<D>;
    constexpr int lanes = Tile<D>::lanes;
    alignas(64) T out[13][lanes];
    const auto& pending = chain.pending;
    const hn::Vec<D> parts[13] = {pending.before,    pending.excess,     pending.next,  pending.r,     pending.most,       chain.edge,
                                  chain.befores.sum, chain.befores.lost, chain.rs.sum,  chain.rs.lost, chain.excesses.sum, chain.of_next, chain.lost};
    for (int k = 0; k < 13; ++k) hn::Store(parts[k], d, out[k]);
    for (int s = 0; s < g.count; ++s) {
        const double before = out[0][s], excess = out[1][s], next = out[2][s], most = out[4][s], edge = out[5][s], p = (excess + before) + next;
        const double of_before = static_cast<double>(out[6][s]) + out[7][s], of_excess = out[10][s], of_last = static_cast<double>(out[11][s]) + out[12][s], q = static_cast<double>(out[8][s]) + out[9][s];
        const double b = of_before < of_excess ? of_before : 1 - of_last - of_excess;
        const double scale = std::ldexp(1.0, std::ilogb(b > 0 && edge > 0 ? std::fmin(edge / b, most) : p));
        tridiagonal::InterfaceRow* const row = rows + 2 * (g.first + s);
        row[0] = {{-before, 0, p, -next}, out[3][s]};
        row[1] = {{-b * scale, scale, -of_last * scale, 0}, q * scale};
        zero_pivot[g.first + s] = -1;
    }
}

/// The two rows of every chunk of `chains` groups. False where some row is not dominant enough.
template <int chains, Work work = Work::solve, class D>
HWY_NOINLINE bool reduce_dominant(D d, const ChunkGroup<hn::TFromD<D>>* g, Ahead<hn::TFromD<D>> ahead, tridiagonal::InterfaceRow* rows, std::int64_t* zero_pivot) {
    DominantReduce<D, work> chain[2];
    eliminate<chains>(d, g, 1, ahead, chain[0], chain[1]);
    for (int k = 0; k < chains; ++k)
        if (work == Work::solve && !chain[k].pending.dominant(d)) return false;
    for (int k = 0; k < chains; ++k) {
        chain[k].gather(d);
        store_dominant(d, chain[k], g[k], rows, zero_pivot);
    }
    return true;
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
