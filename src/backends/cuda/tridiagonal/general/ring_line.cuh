// SPDX-License-Identifier: BSD-3-Clause
// One ring by one thread, with partial pivoting, whatever its matrix:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   x[-1] = x[n-1], x[n] = x[0]
//
// The ring is pressed flat, in the order 0, n-1, 1, n-2, 2, …, in which neighbours are at most two places apart. Of that band of two diagonals on each side
// three rows are in registers; a finished row of U, five entries and its right-hand side, goes to scratch. Where nothing decays, roundings of all rows meet in
// those where the fold ends: from 4 units of roundoff on what is missing is solved for once more, by eliminating again, and added where that is better.
// Scratch: 8 words per row, `apart` from each other, so that neighbouring threads write neighbouring words. Words per row: 4 read, 6 written and read (twice
// where it is refined), scattered: the path for what no other takes.
// Numerics: backward stable. A column without a pivot is `singular` at its row; what is not finite is named at the first row that has it, in the input, else in x.
// Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 4.3.5.
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/operand.cuh"
#include "backends/cuda/tridiagonal/pivoted_verdict.cuh"

namespace trifold::cuda {

/// Place of a row in the folded order, and the row at a place.
__host__ __device__ inline std::int64_t fold_place(std::int64_t row, std::int64_t n) { return 2 * row < n ? 2 * row : 2 * (n - 1 - row) + 1; }
__host__ __device__ inline std::int64_t fold_row(std::int64_t place, std::int64_t n) { return place % 2 == 0 ? place / 2 : n - 1 - place / 2; }

/// By one thread. n ≥ 1.
template <class T>
struct RingLine {
    static constexpr int words = 8;  ///< of scratch, per row

    Line<T> lower, diag, upper, rhs, x;
    T right, left;  ///< of row 0 to x[n-1], of row n-1 to x[0]
    std::int64_t n;
    T* scratch;
    std::int64_t apart;

    __device__ T& at(int word, std::int64_t place) const { return scratch[(place * words + word) * apart]; }
    __device__ T below(std::int64_t i) const { return i > 0 ? lower[i] : right; }
    __device__ T above(std::int64_t i) const { return i + 1 < n ? upper[i] : left; }
    __device__ std::int64_t before(std::int64_t i) const { return i > 0 ? i - 1 : n - 1; }
    __device__ std::int64_t after(std::int64_t i) const { return i + 1 < n ? i + 1 : 0; }

    /// x is stored, or added, last: a ring that fails is left as it is.
    __device__ PivotedVerdict<T> solve(bool adds) const {
        for (std::int64_t i = 0; i < n; ++i)
            if (!all_finite(below(i), diag[i], above(i), rhs[i])) return {Reason::not_finite, i};
        if (n < 3) return solve_few(adds);
        constexpr int x_word = 6, more_word = 7;
        const auto right_hand_side = [&](std::int64_t i) { return rhs[i]; };
        if (const std::int64_t column = eliminate(right_hand_side, x_word); column >= 0) return {Reason::singular, fold_row(column, n)};
        for (std::int64_t i = 0; i < n; ++i)
            if (!(value(x_word, i) * T(0) == T(0))) return {Reason::not_finite, i};
        constexpr double accepted = sizeof(T) == 8 ? 0x1p-51 : 0x1p-22;  // four units of roundoff
        int found = x_word;
        if (const double residual = worst(x_word); residual > accepted) {
            eliminate([&](std::int64_t i) { return static_cast<T>(missing(x_word, i).value); }, more_word);
            for (std::int64_t place = 0; place < n; ++place) at(more_word, place) += at(x_word, place);
            if (worst(more_word) < residual) found = more_word;
        }
        for (std::int64_t i = 0; i < n; ++i) x.at(i) = adds ? x[i] + value(found, i) : value(found, i);
        return {Reason::exact, -1};
    }

private:
    __device__ T value(int word, std::int64_t row) const { return at(word, fold_place(row, n)); }

    /// Entries of the row at place p in the columns p-2 … p+2 of the folded order.
    template <class F>
    __device__ void enter(std::int64_t p, T (&row)[5], T& f, F right_hand_side) const {
        for (T& entry : row) entry = 0;
        f = 0;
        if (p >= n) return;
        const std::int64_t i = fold_row(p, n);
        const auto down = static_cast<int>(fold_place(before(i), n) - p), up = static_cast<int>(fold_place(after(i), n) - p);
        const T a = below(i), c = above(i);
#pragma unroll
        for (int j = -2; j <= 2; ++j) row[j + 2] = j == 0 ? diag[i] : j == down ? a : j == up ? c : T(0);
        f = right_hand_side(i);
    }

    /// Returns the place of a column without a pivot, or -1 and the solution in `word`.
    template <class F>
    __device__ std::int64_t eliminate(F right_hand_side, int word) const {
        T row[3][5], f[3];
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            enter(p, row[p], f[p], right_hand_side);
            for (int shift = p; shift < 2; ++shift)  // there are no columns before the first one
#pragma unroll
                for (int j = 0; j < 5; ++j) row[p][j] = j < 4 ? row[p][j + 1] : T(0);
        }
        for (std::int64_t k = 0; k < n; ++k) {
#pragma unroll
            for (int r = 1; r < 3; ++r) {
                const bool larger = fabs(row[r][0]) > fabs(row[0][0]);
#pragma unroll
                for (int j = 0; j < 5; ++j) exchange_if(larger, row[0][j], row[r][j]);
                exchange_if(larger, f[0], f[r]);
            }
            T pivot[5];
#pragma unroll
            for (int j = 0; j < 5; ++j) at(j, k) = pivot[j] = row[0][j];
            const T known = at(5, k) = f[0];
            if (pivot[0] == T(0)) return k;
#pragma unroll
            for (int r = 1; r < 3; ++r) {
                const T m = row[r][0] / pivot[0];
#pragma unroll
                for (int j = 1; j < 5; ++j) row[r - 1][j - 1] = row[r][j] - m * pivot[j];
                row[r - 1][4] = 0;
                f[r - 1] = f[r] - m * known;
            }
            enter(k + 3, row[2], f[2], right_hand_side);
        }
        T next[4] = {};
        for (std::int64_t k = n - 1; k >= 0; --k) {
            T sum = at(5, k);
#pragma unroll
            for (int j = 0; j < 4; ++j) sum -= at(j + 1, k) * next[j];
#pragma unroll
            for (int j = 3; j > 0; --j) next[j] = next[j - 1];
            at(word, k) = next[0] = sum / at(0, k);
        }
        return -1;
    }

    __device__ static void exchange_if(bool so, T& a, T& b) {
        const T own = a;
        a = so ? b : own, b = so ? own : b;
    }

    struct Missing {
        double value, scale;  ///< rhs - A x; |A| |x| + |rhs|
    };
    __device__ Missing missing(int word, std::int64_t i) const {
        const double a = static_cast<double>(below(i)) * value(word, before(i)), b = static_cast<double>(diag[i]) * value(word, i), c = static_cast<double>(above(i)) * value(word, after(i));
        const double d = rhs[i];
        return {d - (a + b + c), fabs(d) + fabs(a) + fabs(b) + fabs(c)};
    }

    /// In the maximum norm.
    __device__ double worst(int word) const {
        double most = 0, scale = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const Missing row = missing(word, i);
            most = fmax(most, fabs(row.value)), scale = fmax(scale, row.scale);
        }
        return most > 0 ? most / scale : 0;
    }

    /// One row meets itself on both sides, two meet each other.
    __device__ PivotedVerdict<T> solve_few(bool adds) const {
        T found[2] = {};
        if (n == 1) {
            const T pivot = diag[0] + (right + left);
            if (pivot == T(0)) return {Reason::singular, 0};
            found[0] = rhs[0] / pivot;
        } else {
            T a = diag[0], b = upper[0] + right, f = rhs[0], c = lower[1] + left, d = diag[1], g = rhs[1];
            const bool other = fabs(c) > fabs(a);
            exchange_if(other, a, c), exchange_if(other, b, d), exchange_if(other, f, g);
            if (a == T(0)) return {Reason::singular, 0};
            const T m = c / a, pivot = d - m * b;
            if (pivot == T(0)) return {Reason::singular, 1};
            found[1] = (g - m * f) / pivot, found[0] = (f - b * found[1]) / a;
        }
        for (std::int64_t i = 0; i < n; ++i)
            if (!(found[i] * T(0) == T(0))) return {Reason::not_finite, i};
        for (std::int64_t i = 0; i < n; ++i) x.at(i) = adds ? x[i] + found[i] : found[i];
        return {Reason::exact, -1};
    }
};

}  // namespace trifold::cuda
