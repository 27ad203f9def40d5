// SPDX-License-Identifier: BSD-3-Clause
// Systems side by side, a whole number of cache lines of them: elimination of one block and substitution of the one before, row by row.
//
//   equations   see batch_rows-inl.h
//   Arrays      operand k of row i: vectors at p[k][i·step], k = lower, diag, upper, rhs, or at p[k], a constant; x: x[i·stride]
//   Scratch     rows of c', then d', G vectors each; s: the one that is taken first, the next one `turn` elements on. A row of the block
//               that is substituted makes room for one of the block that is eliminated: turn has the other sign for every next block
//   Lanes       lane = system; G vectors, at most four
//   Overwritten x of the block that is substituted, which may be its rhs; operands never
//   Words       per row and system 4 read, 1 written
//   Numerics    as `eliminate` and `substitute`, the same operations in the same order
//
// Elimination waits for memory, substitution for the second-level cache: one after the other the memory idles while a block is substituted.
// Row i of this block is eliminated together with row n-1-i of the one before, so that lines are asked for all the time; twice, because
// a core drops requests (Zen 4: measured, docs/notes/batches.md), and a line that is not there costs a memory latency in a chain.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "backends/cpu/tridiagonal/batch_rows-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_LINES_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_LINES_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_LINES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// lower, diag, upper, rhs of a block: row i at p[k] + (i·step & mask[k]); mask 0: a constant.
template <class T>
struct LineOperands {
    const T* p[4] = {};
    std::int64_t mask[4] = {};
    std::int64_t step = 0;
};

enum class LineWork { eliminate, both, substitute };

/// Two rows or more. before: x of the block that is substituted, row 0. `ahead` rows further down lines are asked for, behind the last row those of `next`; x_first: x of row 0;
/// zeros: a row of them. masked: there are constants. computes: else the same loads, requests and stores without the arithmetic, for benchmarks. Addresses are few and share an offset: there are 16 registers for them.
template <int G, LineWork work, bool masked, bool stream, bool computes, class D, class T = hn::TFromD<D>>
HWY_NOINLINE void sweep_lines(D d, std::int64_t rows, const LineOperands<T>& from, const LineOperands<T>& next, std::int64_t ahead, T* s, std::int64_t turn,
                              Carry<T> carry, T growth, const T* zeros, T* before, std::int64_t x_step, T* x_first) {
    using V = hn::Vec<D>;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>), line = 64 / static_cast<std::int64_t>(sizeof(T)), width = G * N;
    constexpr bool eliminates = work != LineWork::substitute, substitutes = work != LineWork::eliminate;
    const V one = hn::Set(d, T(1)), zero = hn::Zero(d), limit = hn::Set(d, growth);
    V cp[G], dp[G], test[G], x[G];
    decltype(hn::Lt(one, one)) good[G];
    TRIFOLD_EACH(k) cp[k] = dp[k] = test[k] = x[k] = zero, good[k] = hn::Eq(one, one);
    const T *const a = from.p[0], *const b = from.p[1], *const c = from.p[2], *const f = from.p[3];
    const std::int64_t step = from.step;
    std::int64_t offset = 0;
    T* to = before + (rows - 1) * x_step;
    const auto at = [&](const T* p, int k) HWY_ATTR __attribute__((always_inline)) { return p + (masked ? offset & from.mask[k] : offset); };
    // Requests are dropped where they come in bursts: whatever is not there by then is asked for again.
    const std::int64_t again = ahead * 3 / 8;
    std::int64_t near = again * step + line - 1;
    const auto once_more = [&](const T* p, int k) HWY_ATTR __attribute__((always_inline)) { return p + (masked ? (offset + near) & from.mask[k] : offset + near); };
    const T *ask0 = nullptr, *ask1 = nullptr, *ask2 = nullptr, *ask3 = nullptr;
    const auto ask_from = [&](const LineOperands<T>& block, std::int64_t shift) {
        // The last element: rows may begin inside a line, whose other part the block before has brought.
        const auto moved = [&](int k) { return block.p[k] + line - 1 + (shift & from.mask[k]); };
        ask0 = moved(0), ask1 = moved(1), ask2 = moved(2), ask3 = moved(3);
    };
    const auto row = [&](const T* lower, const T* upper) HWY_ATTR __attribute__((always_inline)) {
        if constexpr (substitutes) {
            TRIFOLD_EACH(k) {
                const V c1 = hn::Load(d, s + k * N), d1 = hn::Load(d, s + width + k * N);
                x[k] = computes ? hn::NegMulAdd(c1, x[k], d1) : hn::Xor(c1, d1);
            }
        }
        if constexpr (eliminates) {
#pragma GCC unroll 4
            for (std::int64_t l = 0; l < width; l += line) {
                prefetch_second_level(at(ask0, 0) + l), prefetch_second_level(at(ask1, 1) + l);
                prefetch_second_level(at(ask2, 2) + l), prefetch_second_level(at(ask3, 3) + l);
                prefetch_second_level(once_more(a, 0) + l), prefetch_second_level(once_more(b, 1) + l);
                prefetch_second_level(once_more(c, 2) + l), prefetch_second_level(once_more(f, 3) + l);
            }
            TRIFOLD_EACH(k) {
                const V ai = hn::LoadU(d, lower + k * N), bi = hn::LoadU(d, at(b, 1) + k * N);
                const V ci = hn::LoadU(d, upper + k * N), fi = hn::LoadU(d, at(f, 3) + k * N);
                if constexpr (computes) {
                    const V p = hn::NegMulAdd(ai, cp[k], bi);
                    const V r = hn::Div(one, p);
                    good[k] = hn::And(good[k], hn::Lt(hn::Abs(hn::Mul(ai, cp[k])), hn::Mul(limit, hn::Add(hn::Abs(ai), hn::Abs(bi)))));
                    test[k] = hn::MulAdd(p, zero, test[k]);
                    cp[k] = hn::Mul(ci, r);
                    dp[k] = hn::Mul(hn::NegMulAdd(ai, dp[k], fi), r);
                } else {
                    cp[k] = hn::Xor(ai, bi), dp[k] = hn::Xor(ci, fi);
                }
                hn::Store(cp[k], d, s + k * N);
                hn::Store(dp[k], d, s + width + k * N);
            }
            offset += step;
        }
        if constexpr (substitutes) {
            TRIFOLD_EACH(k) {
                if constexpr (stream) hn::Stream(x[k], d, to + k * N);
                else hn::StoreU(x[k], d, to + k * N);
            }
            to -= x_step;
        }
        s += turn;
    };
    // What lies outside the matrix is not read. Behind the last row that is asked for of this block the next one follows.
    const std::int64_t own = std::clamp<std::int64_t>(rows - ahead, 1, rows - 1);
    ask_from(from, std::min(ahead, rows - 1) * step);
    // The first row, those up to own, up to the last one, the last one: one loop, so that there is one copy of it.
    const std::int64_t ends[5] = {1, own, std::clamp(rows - again, own, rows - 1), rows - 1, rows};
    std::int64_t i = 0;
    for (int part = 0; part < 5; ++part) {
        if (part == 2) ask_from(next, -own * step);
        if (part == 3) near = next.p[3] - from.p[3] - ends[2] * step + line - 1;  // as far as all operands go on alike
        const auto where = [&](const T* p, int k, bool outside) { return outside ? zeros - (offset & from.mask[k]) : p; };
        const T *const lower = where(a, 0, part == 0), *const upper = where(c, 2, part == 4);
        for (const std::int64_t end = ends[part]; i < end; ++i) row(at(lower, 0), at(upper, 2));
    }
    if constexpr (eliminates) {
        const V nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
        TRIFOLD_EACH(k) {
            hn::Store(cp[k], d, carry.c + k * N), hn::Store(dp[k], d, carry.d + k * N);
            hn::Store(hn::IfThenElse(good[k], test[k], nan), d, carry.test + k * N);
        }
    }
    if constexpr (substitutes) { TRIFOLD_EACH(k) hn::Store(x[k], d, x_first + k * N); }
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
