// SPDX-License-Identifier: BSD-3-Clause
// `reduce` of one or two vectors of chunks of a matrix that forgets nothing: two_row-inl.h. Included once per Highway target.
#include <cmath>

#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/two_row-inl.h"
#include "families/tridiagonal/ops.hpp"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TWO_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TWO_ROW_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TWO_ROW_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TWO_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// The pending row by its largest entry, so that both rows have entries of about 1; then both as large as the matrix is there, as three rows leave those beside them. False where the one that went along has grown.
template <class D, Work work>
HWY_NOINLINE bool store_two_row(D d, const TwoRowReduce<D, work>& chain, const ChunkGroup<hn::TFromD<D>>& g, tridiagonal::InterfaceRow* rows, std::int64_t* zero_pivot) {
    using T = hn::TFromD<D>;
    constexpr int lanes = Tile<D>::lanes;
    constexpr double most = 64;
    alignas(64) T out[9][lanes];
    const hn::Vec<D> parts[9] = {chain.before, chain.x0, chain.x1, chain.r, chain.f_before, chain.f_x0, chain.f_x1, chain.f_r, chain.largest};
    for (int k = 0; k < 9; ++k) hn::Store(parts[k], d, out[k]);
    for (int s = 0; s < g.count; ++s) {
        double sum = 0;
        for (int k = 0; k < 8; ++k) sum += std::fabs(static_cast<double>(out[k][s]));
        if (!(std::fabs(out[8][s]) <= most) || !std::isfinite(sum)) return false;
        const double before = out[0][s], x0 = out[1][s], x1 = out[2][s], size = std::fmax(std::fmax(std::fabs(before), std::fabs(x0)), std::fabs(x1));
        if (size == 0) return false;
        double entry = 0;  // of row s
        for (const int array : {lower, diag, upper})
            if (!(array == lower && g.top && s == 0)) entry = std::fmax(entry, std::fabs(static_cast<double>(g.data[array][s * g.stride[array]])));
        const double scale = entry > 0 ? std::ldexp(1.0, std::ilogb(entry)) : 1, by = scale / size;
        tridiagonal::InterfaceRow* const row = rows + 2 * (g.first + s);
        row[0] = {{before * by, 0, x0 * by, x1 * by}, out[3][s] * by};
        row[1] = {{out[4][s] * scale, scale, out[5][s] * scale, out[6][s] * scale}, out[7][s] * scale};
        zero_pivot[g.first + s] = -1;
    }
    return true;
}

/// The two rows of every chunk of `chains` groups. False where that is not good enough.
template <int chains, Work work = Work::solve, class D>
HWY_NOINLINE bool reduce_two_row(D d, const ChunkGroup<hn::TFromD<D>>* g, Ahead<hn::TFromD<D>> ahead, tridiagonal::InterfaceRow* rows, std::int64_t* zero_pivot) {
    TwoRowReduce<D, work> a, b;
    eliminate<chains>(d, g, 1, ahead, a, b);
    if (!store_two_row(d, a, g[0], rows, zero_pivot)) return false;
    if constexpr (chains == 2) return store_two_row(d, b, g[1], rows, zero_pivot);
    return true;
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
