// SPDX-License-Identifier: BSD-3-Clause
// The end of a chunk's way through `finish`: its residual, then its x is stored. Included once per Highway target.
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "backends/cpu/simd/transpose-inl.h"
#include "backends/cpu/tridiagonal/finish_call.hpp"
#include "backends/cpu/tridiagonal/reduce_tiles-inl.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_CHECK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_CHECK_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_CHECK_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_CHECK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// rhs - A x over rows low … high - 1, all of whose entries are read. x[-1] and x[high] too.
template <class D>
HWY_INLINE void residual_of_rows(D d, const hn::TFromD<D>* const* row, const hn::TFromD<D>* x, std::int64_t low, std::int64_t high,
                                 ChunkMaxima<hn::TFromD<D>>& maxima) {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    constexpr std::int64_t lanes = static_cast<std::int64_t>(lanes_of<D>);
    V residual = hn::Zero(d), matrix = residual, size = residual, right = residual, sum = residual;
    std::int64_t i = low;
    for (; i + lanes <= high; i += lanes) {
        const V a = hn::LoadU(d, row[0] + i), b = hn::LoadU(d, row[1] + i), c = hn::LoadU(d, row[2] + i), r = hn::LoadU(d, row[3] + i);
        const V v = hn::LoadU(d, x + i);
        const V left = hn::NegMulAdd(c, hn::LoadU(d, x + i + 1), hn::NegMulAdd(b, v, hn::NegMulAdd(a, hn::LoadU(d, x + i - 1), r)));
        residual = of_larger_magnitude(d, residual, left);
        sum = hn::Add(sum, left);
        matrix = of_larger_magnitude(d, of_larger_magnitude(d, matrix, a), of_larger_magnitude(d, b, c));
        size = of_larger_magnitude(d, size, v);
        right = of_larger_magnitude(d, right, r);
    }
    const auto join = [](T& into, T value) HWY_ATTR { into = into < value ? value : into; };
    join(maxima.residual, hn::GetLane(hn::MaxOfLanes(d, hn::Abs(residual))));
    join(maxima.matrix, hn::GetLane(hn::MaxOfLanes(d, hn::Abs(matrix))));
    join(maxima.x, hn::GetLane(hn::MaxOfLanes(d, hn::Abs(size))));
    join(maxima.rhs, hn::GetLane(hn::MaxOfLanes(d, hn::Abs(right))));
    maxima.sum += hn::GetLane(hn::SumOfLanes(d, sum));
    for (; i < high; ++i) {
        const T left = row[3][i] - row[0][i] * x[i - 1] - row[1][i] * x[i] - row[2][i] * x[i + 1];
        join(maxima.residual, std::abs(left));
        join(maxima.matrix, std::abs(row[0][i])), join(maxima.matrix, std::abs(row[1][i])), join(maxima.matrix, std::abs(row[2][i]));
        join(maxima.x, std::abs(x[i]));
        join(maxima.rhs, std::abs(row[3][i]));
        maxima.sum += left;
    }
}

template <class D>
HWY_INLINE void store_past_caches(D d, const hn::TFromD<D>* x, std::int64_t m, hn::TFromD<D>* to) {
    constexpr std::int64_t lanes = static_cast<std::int64_t>(lanes_of<D>);
    std::int64_t i = 0;
    for (; i < m && reinterpret_cast<std::uintptr_t>(to + i) % 64; ++i) to[i] = x[i];
    for (; i + lanes <= m; i += lanes) hn::Stream(hn::LoadU(d, x + i), d, to + i);
    for (; i < m; ++i) to[i] = x[i];
}

/// x[0 … m-1] of the chunk in this lane, x[-1] and x[m] are free.
template <class D>
HWY_INLINE void check_and_store(D d, const FinishCall<hn::TFromD<D>>& call, std::int64_t chunk, std::int64_t m, hn::TFromD<D>* x) {
    using T = hn::TFromD<D>;
    const ChunkEnds<T> ends = stored_ends(call, chunk);
    T* const to = call.arrays.x + call.partition.first(chunk);
    if (call.partition.stored)
        for (std::int64_t i = 1; i < m - 1; ++i) x[i] += to[i];
    x[-1] = ends.before, x[0] = ends.first, x[m - 1] = ends.last, x[m] = ends.after;

    const T* row[4];
    for (int k = 0; k < 4; ++k) row[k] = call.arrays.data[k] + chunk * call.arrays.stride[k];
    const bool top = chunk == 0, bottom = chunk + 1 == call.partition.chunks();
    ChunkMaxima<T> maxima;
    residual_of_rows(d, row, x, top ? 1 : 0, bottom ? m - 1 : m, maxima);
    // The outermost entries of the system are not read.
    const T zero = 0;
    const hn::CappedTag<T, 1> one;
    if (top) {
        const T* const first[4] = {&zero, row[1], row[2], row[3]};
        residual_of_rows(one, first, x, 0, 1, maxima);
    }
    if (bottom) {
        const T* const last[4] = {row[0] + m - 1, row[1] + m - 1, &zero, row[3] + m - 1};
        residual_of_rows(one, last, x + m - 1, 0, 1, maxima);
    }
    const tridiagonal::ChunkResidual result = maxima.result(call.accept);
    call.residuals[chunk] = result;
    if (!result.stored) return;
    if (call.stream) store_past_caches(d, x, m, to);
    else std::copy_n(x, m, to);
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
