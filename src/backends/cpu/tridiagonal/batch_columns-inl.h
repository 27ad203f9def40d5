// SPDX-License-Identifier: BSD-3-Clause
// A cache line of systems whose rows lie side by side, a line of rows at a time: transposed, eliminated; substituted, transposed.
//
//   equations   see batch_rows-inl.h
//   Arrays      operand k, element (row i, lane j) at p[k][j·stride + i], k = lower, diag, upper, rhs; x alike with its own stride
//   Half        a line of rows of all four, transposed: row i of operand k at row(half, k, i), lanes side by side; two of them
//   Scratch     c' of row i at s[2 i·lanes + j], d' at s[(2i + 1)·lanes + j], as everywhere in this folder
//   Lanes       lane = system; `lanes` of them in `vectors` vectors, at most four at a time
//   Overwritten x; operands never
//   Words       per row and system 4 read, 1 written
//
// While the vectors of a row wait for their division, squares of the next line of rows are transposed into the other half, and a row of
// the block before is substituted: row i of c', d' of this block takes the place of row n-1-i of that one. Lines of the next block are asked for in the
// order of their addresses, one of each operand a row. What goes one after the other (the first and the last block, those whose last line of rows is not whole)
// asks for three quarters of them forward, where there is most time, and the rest backward. One line of systems, not two: c', d' of fewer rows
// leave the first level, and both blocks stay in the second.
// All strides but the operands' are constants: the compiler has 16 general registers for addresses, and spills cost more than
// the arithmetic.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/cpu/simd/turn-inl.h"
#include "backends/cpu/tridiagonal/batch_rows-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_COLUMNS_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_COLUMNS_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_COLUMNS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// lower, diag, upper and rhs of lane 0.
template <class T>
struct FourColumns {
    const T* p[4];
    std::int64_t stride;  ///< from lane to lane, of all four

    FourColumns skip(std::int64_t rows) const { return {{p[0] + rows, p[1] + rows, p[2] + rows, p[3] + rows}, stride}; }
};

/// The operands of the block that comes next, a line of each at a time, in the order of their addresses.
struct NextColumns {
    std::uintptr_t p[4] = {};
    std::int64_t at = 0, run = 0, from_run_to_run = 0;  ///< bytes: of the line that is next, of a run, from run to run
    std::int64_t left = 0;                              ///< lines of each operand

    HWY_INLINE void ask() {
        if (left-- <= 0) return;
        for (const std::uintptr_t q : p) prefetch_second_level(reinterpret_cast<const void*>(q + static_cast<std::uintptr_t>(at)));
        at += 64;
        if (HWY_LIKELY(at < run)) return;
        at = 0;
        for (std::uintptr_t& q : p) q += static_cast<std::uintptr_t>(from_run_to_run);
    }

    /// Where the next `count` lines are one piece of each operand the caller asks for them, from first[k] on; else they are asked for here. Without
    /// arithmetic on addresses in every row, which took 0.5 to 1 ns.
    HWY_INLINE void piece(std::int64_t count, const char** first) {
        if (left >= count && at + 64 * count <= run) {
            for (int k = 0; k < 4; ++k) first[k] = reinterpret_cast<const char*>(p[k] + static_cast<std::uintptr_t>(at));
            left -= count, at += 64 * count;
            if (at == run) {
                at = 0;
                for (std::uintptr_t& q : p) q += static_cast<std::uintptr_t>(from_run_to_run);
            }
            return;
        }
        for (; count > 0; --count) ask();
    }
};

/// computes: else the same loads, requests, transposes and stores without the arithmetic, for benchmarks.
template <class D, bool computes>
class ColumnLines {
public:
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr int N = static_cast<int>(lanes_of<D>), line = 64 / static_cast<int>(sizeof(T)), lanes = line;
    static constexpr int half_elements = 4 * (2 * line + 1) * lanes;

    /// Rows -line … line of a half may be written, 0 … line-1 count: a line at the edge is loaded from further inside.
    static HWY_INLINE T* row(T* half, int operand, int i) { return half + (operand * (2 * line + 1) + line + i) * lanes; }

    /// A line of one operand into rows from `i` on.
    static void load_line(D d, const T* p, std::int64_t stride, T* half, int operand, int i) {
        turn_tile<line>(d, p, stride, row(half, operand, i), lanes);
    }

    /// The first line of rows: row 0 of lower is zero and is not read.
    static HWY_INLINE void load_first(D d, FourColumns<T> from, T* half) {
        ++from.p[0];
        load_squares<0, squares>(d, from, half);
        for (int i = line - 1; i > 0; --i) std::copy_n(row(half, 0, i - 1), lanes, row(half, 0, i));
        std::fill_n(row(half, 0, 0), lanes, T(0));
    }

    /// Rows 1 … of an operand become rows 0 …, and the last one zero: upper, whose last row is not read.
    static HWY_INLINE void drop_first(T* half, int operand) {
        for (int i = 0; i + 1 < line; ++i) std::copy_n(row(half, operand, i + 1), lanes, row(half, operand, i));
        std::fill_n(row(half, operand, line - 1), lanes, T(0));
    }

    /// Eliminates the line of rows in `half` into scratch `s`; with `loading`, the line at `next` comes into `other` meanwhile.
    template <bool loading, int g = 0>
    static HWY_NOINLINE void forward(D d, T* half, const FourColumns<T> next, T* other, T* HWY_RESTRICT s, Carry<T> carry, T growth, NextColumns& asked) {
        constexpr int first = g * group * N;
        const V limit = hn::Set(d, growth), one = hn::Set(d, T(1)), nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
        V cp[group], dp[group], test[group];
        decltype(hn::Lt(one, one)) good[group];
        const Carry<T> here = carry.group(first);
#pragma GCC unroll 4
        for (int k = 0; k < group; ++k) {
            cp[k] = hn::Load(d, here.c + k * N), dp[k] = hn::Load(d, here.d + k * N), test[k] = hn::Load(d, here.test + k * N);
            good[k] = hn::Eq(one, one);
        }
        const auto each_row = [&](auto I) HWY_ATTR __attribute__((always_inline)) {
            constexpr int i = I, slot = g * line + i;
            if constexpr (g == 0 && i % 4 != 3) asked.ask();
            if constexpr (loading) load_squares<turned(slot), turned(slot + 1)>(d, next, other);
#pragma GCC unroll 4
            for (int k = 0; k < group; ++k) {
                const auto at = [&](int operand) HWY_ATTR __attribute__((always_inline)) { return hn::Load(d, row(half, operand, i) + first + k * N); };
                const V a = at(0), b = at(1);
                eliminate_row(d, a, b, at(2), at(3), limit, cp[k], dp[k], test[k], good[k]);
                hn::Store(cp[k], d, s + 2 * i * lanes + first + k * N);
                hn::Store(dp[k], d, s + (2 * i + 1) * lanes + first + k * N);
            }
        };
        for_each(each_row, std::make_integer_sequence<int, line>());
#pragma GCC unroll 4
        for (int k = 0; k < group; ++k) {
            hn::Store(cp[k], d, here.c + k * N), hn::Store(dp[k], d, here.d + k * N);
            hn::Store(hn::IfThenElse(good[k], test[k], nan), d, here.test + k * N);
        }
        if constexpr (g + 1 < vectors / group) forward<loading, g + 1>(d, half, next, other, s, carry, growth, asked);
    }

    /// The same for all `lines` of a block, the first of which is in `half`; meanwhile the block before is substituted, whose row n-1-i lies
    /// where row i is going to: at s + i·turn. Its x: row 0 of lane 0 at `x`. Two lines of rows or more.
    template <Store how>
    static HWY_NOINLINE void both(D d, std::int64_t lines, T* half, FourColumns<T> from, T* other, T* s, std::int64_t turn, T* buffer, T* x,
                                  std::int64_t stride, Carry<T> carry, T* x1, T growth, NextColumns& asked) {
        State v(d, carry);
        for (std::int64_t l = lines - 1; l > 0; --l) {
            from = from.skip(line);
            FourColumns<T> next = from;
            next.p[2] -= l == 1;
            eliminate_line<true>(d, half, next, other, s, turn, buffer, growth, asked, v);
            if (l == 1) drop_first(other, 2);
            store_line<how>(d, buffer, x + l * line, stride);
            std::swap(half, other);
            s += line * turn;
        }
        eliminate_line<false>(d, half, from, other, s, turn, buffer, growth, asked, v);
        store_line<how>(d, buffer, x, stride);
        v.keep(d, carry);
#pragma GCC unroll 4
        for (int k = 0; k < vectors; ++k) hn::Store(v.x[k], d, x1 + k * N);
    }

    /// Substitutes a line of rows from scratch, row i at s + i·turn, turn = ±2·lanes, and stores it at x (row 0 of the line, lane 0); x1: as in `substitute`. `buffer`
    /// holds line·lanes elements: x over d' would make scratch dirty again and send it to the second level once more.
    template <Store how, int turn>
    static HWY_NOINLINE void backward(D d, const T* HWY_RESTRICT s, T* HWY_RESTRICT x1, T* HWY_RESTRICT buffer, T* HWY_RESTRICT x, std::int64_t stride,
                                      NextColumns& asked) {
        V next[vectors];
#pragma GCC unroll 8
        for (int k = 0; k < vectors; ++k) next[k] = hn::Load(d, x1 + k * N);
#pragma GCC unroll 16
        for (int i = line - 1; i >= 0; --i) {
            if (i % 4 == 0) asked.ask();
#pragma GCC unroll 8
            for (int k = 0; k < vectors; ++k) {
                next[k] = substituted(hn::Load(d, s + i * turn + k * N), next[k], hn::Load(d, s + i * turn + lanes + k * N));
                hn::Store(next[k], d, buffer + i * lanes + k * N);
            }
        }
#pragma GCC unroll 8
        for (int k = 0; k < vectors; ++k) hn::Store(next[k], d, x1 + k * N);
        store_line<how>(d, buffer, x, stride);
    }

private:
    using S = Squares<D>;
    static constexpr int vectors = lanes / N, group = vectors < 4 ? vectors : 4, side = static_cast<int>(lanes_of<S>), pieces = line / side;
    static constexpr int squares = 4 * pieces * pieces, slots = vectors / group * line;
    // Squares of the next line of rows that are turned before the given slot: narrow ones some rows before that line is eliminated, see turn_tile.
    static constexpr int busy = side < N ? slots - 3 : slots;
    static constexpr int turned(int slot) { return slot < busy ? squares * slot / busy : squares; }
    static_assert(vectors <= 4, "a row of a block lives in registers");

    template <class Mask>
    static HWY_INLINE void eliminate_row(D d, V a, V b, V c, V f, V limit, V& cp, V& dp, V& test, Mask& good) {
        if constexpr (computes) {
            const V p = hn::NegMulAdd(a, cp, b);
            const V r = hn::Div(hn::Set(d, T(1)), p);
            good = hn::And(good, hn::Lt(hn::Abs(hn::Mul(a, cp)), hn::Mul(limit, hn::Add(hn::Abs(a), hn::Abs(b)))));
            test = hn::MulAdd(p, hn::Zero(d), test);
            cp = hn::Mul(c, r);
            dp = hn::Mul(hn::NegMulAdd(a, dp, f), r);
        } else {
            cp = hn::Xor(a, b), dp = hn::Xor(c, f);
        }
    }
    static HWY_INLINE V substituted(V c, V below, V rest) { return computes ? hn::NegMulAdd(c, below, rest) : hn::Xor(c, rest); }

    /// What passes from row to row.
    struct State {
        V cp[vectors], dp[vectors], test[vectors], x[vectors];
        decltype(hn::Lt(V(), V())) good[vectors];

        HWY_INLINE State(D d, Carry<T> from) {
            const V zero = hn::Zero(d);
#pragma GCC unroll 4
            for (int k = 0; k < vectors; ++k) {
                cp[k] = hn::Load(d, from.c + k * N), dp[k] = hn::Load(d, from.d + k * N), test[k] = hn::Load(d, from.test + k * N);
                x[k] = zero, good[k] = hn::Eq(zero, zero);
            }
        }

        HWY_INLINE void keep(D d, Carry<T> to) const {
            const V nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
#pragma GCC unroll 4
            for (int k = 0; k < vectors; ++k) {
                hn::Store(cp[k], d, to.c + k * N), hn::Store(dp[k], d, to.d + k * N);
                hn::Store(hn::IfThenElse(good[k], test[k], nan), d, to.test + k * N);
            }
        }
    };

    /// One line of rows, and a row of the block before with each of them, into `buffer`, the last row first.
    template <bool loading>
    static HWY_INLINE void eliminate_line(D d, T* half, const FourColumns<T>& next, T* other, T* s, std::int64_t turn, T* buffer, T growth, NextColumns& asked,
                                          State& v) {
        const V limit = hn::Set(d, growth);
        constexpr std::int64_t again = 32 * 64;  // a core drops requests: once more, 32 lines later
        const char* ask[4];
        std::fill_n(ask, 4, reinterpret_cast<const char*>(half));
        asked.piece(line, ask);
        const auto each_row = [&](auto I) HWY_ATTR __attribute__((always_inline)) {
            constexpr int i = I;
#pragma GCC unroll 4
            for (const char* p : ask) prefetch_second_level(p + 64 * i), prefetch_second_level(p + 64 * i - again);
            if constexpr (loading) load_squares<turned(i), turned(i + 1)>(d, next, other);
#pragma GCC unroll 4
            for (int k = 0; k < vectors; ++k) {
                v.x[k] = substituted(hn::Load(d, s + k * N), v.x[k], hn::Load(d, s + lanes + k * N));
                hn::Store(v.x[k], d, buffer + (line - 1 - i) * lanes + k * N);
                const auto at = [&](int operand) HWY_ATTR __attribute__((always_inline)) { return hn::Load(d, row(half, operand, i) + k * N); };
                const V a = at(0), b = at(1);
                eliminate_row(d, a, b, at(2), at(3), limit, v.cp[k], v.dp[k], v.test[k], v.good[k]);
                hn::Store(v.cp[k], d, s + k * N);
                hn::Store(v.dp[k], d, s + lanes + k * N);
            }
            s += turn;
        };
        for_each(each_row, std::make_integer_sequence<int, line>());
    }

    /// From `buffer`, a row of lanes after the other, to each lane's rows at x.
    template <Store how>
    static HWY_INLINE void store_line(D d, const T* HWY_RESTRICT buffer, T* HWY_RESTRICT x, std::int64_t stride) {
        turn_tile<line, how>(d, buffer, lanes, x, stride);
    }


    /// The line of rows after this one, from the second level into the first.
    static HWY_INLINE void ask_line(const T* p, std::int64_t stride) {
#pragma GCC unroll 16
        for (int j = 0; j < side; ++j) __builtin_prefetch(p + j * stride + 2 * line - 1, 0, 3);
    }

    template <int first, int last>
    static HWY_INLINE void load_squares(D d, const FourColumns<T>& from, T* half) {
        if constexpr (first < last) {
            constexpr int operand = first % 4, piece = first / 4 % pieces, k = first / 4 / pieces;
            const T* const p = from.p[operand] + k * side * from.stride;
            if constexpr (piece == 0) ask_line(p, from.stride);
            turn_tile<side>(S(), p + piece * side, from.stride, row(half, operand, piece * side) + k * side, lanes);
            load_squares<first + 1, last>(d, from, half);
        }
    }

    template <class Row, int... i>
    static HWY_INLINE void for_each(Row&& each_row, std::integer_sequence<int, i...>) {
        (each_row(std::integral_constant<int, i>()), ...);
    }
};

/// Both sweeps over one block of ColumnLines::lanes systems of more than a line of rows.
template <class D, bool computes, class T = hn::TFromD<D>>
class ColumnSweeps {
public:
    using Lines = ColumnLines<D, computes>;
    static constexpr std::int64_t line = Lines::line, lanes = Lines::lanes;

    /// buffers: two halves.
    ColumnSweeps(const FourColumns<T>& from, std::int64_t rows, T* scratch, T* buffers, T growth, NextColumns& asked, bool there)
        : from_(from), rows_(rows), scratch_(scratch), buffers_(buffers), growth_(growth), asked_(asked), there_(there) {}

    void forward(Carry<T> now) {
        const D d;
        constexpr std::int64_t staged_bytes = 4096;  // of a system and operand at a time: 128 KB of a block
        const std::int64_t stages = (rows_ * static_cast<std::int64_t>(sizeof(T)) + staged_bytes - 1) / staged_bytes;
        const std::int64_t stage_rows = (rows_ / stages + line) / line * line;
        std::int64_t staged = there_ ? rows_ : 0;
        T *half = buffers_, *other = buffers_ + Lines::half_elements;
        for (std::int64_t i = 0; i < rows_; i += line) {
            if (std::min(i + 2 * line, rows_) > staged) {
                stage(staged, std::min(staged + stage_rows, rows_));
                staged += stage_rows;
            }
            if (i == 0) Lines::load_first(d, from_, half);
            const std::int64_t next = i + line;
            T* const s = scratch_ + 2 * i * lanes;
            if (next + line <= rows_) {
                const bool last = next + line == rows_;
                FourColumns<T> soon = from_.skip(next);
                soon.p[2] -= last;
                Lines::template forward<true>(d, half, soon, other, s, now, growth_, asked_);
                if (last) Lines::drop_first(other, 2);
            } else {
                if (next < rows_) load_rest(other, next);
                if (next <= rows_) Lines::template forward<false>(d, half, from_, other, s, now, growth_, asked_);
                else forward_rest(half, rows_ - i, s, now);
            }
            std::swap(half, other);
        }
    }

    /// Whole lines only; row i of c', d' at first + i·turn; x1: x of the row below them on entry, of row 0 on return.
    template <Store how, int turn>
    void backward(const T* first, T* x1, T* x, std::int64_t stride) {
        const D d;
        for (std::int64_t i = rows_ / line * line - line; i >= 0; i -= line)
            Lines::template backward<how, turn>(d, first + i * turn, x1, buffers_, x + i, stride, asked_);
        if (how == Store::stream) hwy::FlushStream();
    }

    /// Eliminates this block and substitutes the one before, see ColumnLines::both. Whole lines, two or more.
    template <Store how>
    void both(T* s, std::int64_t turn, T* buffer, Carry<T> now, T* x1, T* x, std::int64_t stride) {
        const D d;
        if (!there_) stage(0, rows_);
        Lines::load_first(d, from_, buffers_);
        Lines::template both<how>(d, rows_ / line, buffers_, from_, buffers_ + Lines::half_elements, s, turn, buffer, x, stride, now, x1, growth_, asked_);
        if (how == Store::stream) hwy::FlushStream();
    }

private:
    // Rows [first, end) that no block before has asked for, in the order of their addresses: in a tile's own order, one line here and
    // there, the processor does not run ahead, and the solve takes twice as long.
    void stage(std::int64_t first, std::int64_t end) const {
        const bool dense = first == 0 && end == rows_ && from_.stride == rows_;
        const std::int64_t runs = dense ? 1 : lanes, length = static_cast<std::int64_t>(sizeof(T)) * (dense ? lanes * rows_ : end - first);
        std::uint64_t seen = 0;
        for (std::int64_t run = 0; run < runs; ++run) {
            const char* p[4];
            for (int k = 0; k < 4; ++k) p[k] = reinterpret_cast<const char*>(from_.p[k] + first + run * from_.stride);
            // Neither the first element nor the last: one of lower and upper may not be there.
            for (std::int64_t at = 64; at < length - 64; at += 64)
                for (int k = 0; k < 4; ++k) {
                    std::uint64_t word;
                    std::memcpy(&word, p[k] + at, sizeof(word));
                    seen |= word;
                }
        }
        volatile std::uint64_t kept = seen;
        (void)kept;
    }

    // The last rows, less than a line: those outside an operand's range are zero and are not read.
    void load_rest(T* half, std::int64_t first) const {
        const D d;
        const std::int64_t low[4] = {1, 0, 0, 0}, high[4] = {rows_, rows_, rows_ - 1, rows_};
        for (int k = 0; k < 4; ++k) {
            const std::int64_t window = std::clamp(first, low[k], high[k] - line);
            Lines::load_line(d, from_.p[k] + window, from_.stride, half, k, static_cast<int>(window - first));
            for (std::int64_t i = high[k]; i < first + line; ++i) std::fill_n(Lines::row(half, k, static_cast<int>(i - first)), lanes, T(0));
        }
    }

    void forward_rest(T* half, std::int64_t rows, T* s, Carry<T> now) const {
        const D d;
        constexpr int N = Lines::N, group = lanes / N < 4 ? lanes / N : 4;
        for (int first = 0; first < lanes; first += group * N) {
            const auto at = [&](int operand) { return Rows<T>{Lines::row(half, operand, 0) + first, lanes, N, (group - 1) * N}; };
            eliminate<group>(d, at(0), at(1), at(2), at(3), rows, Reduced<T>{s + first, nullptr, lanes}, now.group(first), growth_, [] {});
        }
    }

    FourColumns<T> from_;
    std::int64_t rows_;
    T *scratch_, *buffers_;
    T growth_;
    NextColumns& asked_;
    bool there_;  ///< the block before has asked for this one
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
