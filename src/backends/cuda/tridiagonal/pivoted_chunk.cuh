// SPDX-License-Identifier: BSD-3-Clause
// LU with pivoting of a chunk of a system, by one lane, so that many lanes share a system.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = first … last, rows of the chunk
//
// A chunk's inner unknowns, all but its first and its last one, occur in no row of another chunk. So they are eliminated with every row at hand in which they occur:
//   whatever has to be exchanged is there, and no chunk of a matrix that is not singular lacks a pivot (a chunk's own square matrix may be singular). Two equations are left, in the
//   first and the last unknown and in the neighbours of both. Two chunks beside each other have four, in six unknowns, of which the two in
//   the middle occur nowhere else: eliminated in the same way, the two chunks are one.
// Words: a chunk is read twice. Elimination comes first and keeps nothing but the two equations; when their unknowns are known, elimination again,
//   which now leaves the rows of U in place of the chunk's, and substitution. The columns of the ends are carried again: with their part in the right-hand sides from the beginning rounding
//   would not be that of the first time, and the two equations would not agree with U (up to 150 roundoffs for random matrices, where 2 are left so).
// Numerics: two rows are carried beside the next one, and the pivot is the largest of three in proportion to its row (scaled partial pivoting): unscaled,
//   entries of the first unknowns' columns grow like the solutions of the recurrence, 1.6^rows for -1, -1, 1.01. Magnitudes are compared by the words that hold the exponents, good to
//   6 %. A row that becomes `growth_bound` times as large as it was is not trusted, no more than pivots beyond PivotRange: such systems are left to another path.
// Source: nested dissection of a band; N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 9.3 and 9.6.
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/pivot_range.cuh"

namespace trifold::cuda {

/// How much larger a row may become: 32 times, as a difference of magnitudes.
template <class T>
inline constexpr int growth_bound = 5 * Magnitude<T>::factor_of_two;

/// before x[first-1] + first x[first] + last x[last] + after x[last+1] = rhs; origin: the magnitude of the row that it was.
template <class T>
struct Equation {
    T before, first, last, after, rhs;
    int origin;
};

template <class T>
struct Equations {
    Equation<T> a, b;
};

/// What a chunk has to know of the unknowns.
template <class T>
struct Ends {
    T before, first, last, after;
};

/// Of a chunk without rows: its last unknown is the one before, its first the one after.
template <class T>
__device__ __forceinline__ Equations<T> no_rows() {
    return {{T(1), T(0), T(-1), T(0), T(0), Magnitude<T>::infinite}, {T(0), T(1), T(0), T(-1), T(0), Magnitude<T>::infinite}};
}

template <class T>
__device__ __forceinline__ void exchange_if(bool wanted, T& a, T& b) {
    const T kept = a;
    a = wanted ? b : a, b = wanted ? kept : b;
}

/// A chunk of `count` rows in memory that has lower at `row`, diag and upper n further each, and the right-hand sides rhs further; the rows of U, and with them x, come `to` further, n apart. Short: of 34
/// rows at most, whose choices are remembered. Stored: what memory holds, where that is less than what is computed in.
template <class T, bool Short, class Stored = T>
struct PivotedChunk {
    Stored* row;
    int n, count;
    int rhs = 3 * n, to = 0;
    std::uint64_t choices = 0;  ///< two bits for each row from the third on: whether b went before a, whether the joining row is the pivot

    struct Row {
        T lower, diag, upper, rhs;
    };
    __device__ __forceinline__ Row load(int k) const { return {T(row[k]), T(row[n + k]), T(row[2 * n + k]), T(row[rhs + k])}; }

    __device__ static __forceinline__ int size_of(const Row& r) { return max(max(magnitude(r.lower), magnitude(r.diag)), magnitude(r.upper)); }
    __device__ static __forceinline__ bool finite(const Row& r) { return max(size_of(r), magnitude(r.rhs)) < Magnitude<T>::infinite; }

    /// The two equations. bad: the first of its rows that is not finite, if any; range: what became of the pivots.
    __device__ __forceinline__ Equations<T> reduce(int& bad, PivotRange<T>& range) {
        if (count == 0) return no_rows<T>();
        const Row top = load(0);
        if (!finite(top)) bad = 0;
        if (count == 1) return {{top.lower, top.diag, T(0), top.upper, top.rhs, size_of(top)}, {T(0), T(1), T(-1), T(0), T(0), Magnitude<T>::infinite}};
        return eliminate<false>({}, bad, range);
    }

    /// x, n behind the last column of U (by default in place of rhs); false: some of it is not finite.
    __device__ __forceinline__ bool finish(const Ends<T>& ends) {
        if (count == 0) return true;
        if (count > 2) {
            int known = 0;
            PivotRange<T> range;
            eliminate<true>(ends, known, range);
        }
        Stored *const u = row + to, *const solution = u + 3 * n;
        T x = ends.last, after = ends.after, zero = ends.first * T(0) + ends.last * T(0);
        solution[count - 1] = static_cast<Stored>(x);
        for (int k = count - 2; k > 0; --k) {
            const T now = fused(-T(u[n + k]), x, fused(-T(u[2 * n + k]), after, T(solution[k]))) * T(u[k]);
            solution[k] = static_cast<Stored>(now), zero = fused(now, T(0), zero);
            after = x, x = now;
        }
        solution[0] = static_cast<Stored>(ends.first);
        return zero == T(0);
    }

private:
    /// Of two rows at least. keep: the rows of U go to the chunk's memory, without what they take of the known ends; the choices are the same.
    template <bool keep>
    __device__ __forceinline__ Equations<T> eliminate(const Ends<T>& ends, int& bad, PivotRange<T>& range) {
        const Row top = load(0), second = load(1);
        if (!keep && !finite(second)) bad = min(bad, 1);
        Equation<T> a{top.lower, top.diag, top.upper, T(0), top.rhs, size_of(top)}, b{T(0), second.lower, second.diag, second.upper, second.rhs, size_of(second)};
        Row next = load(min(2, count - 1));
#pragma unroll 1
        for (int k = 2; k < count; ++k) {
            // In a, b and now `last` is the unknown to eliminate, `after` the next one.
            const Row now = next;
            next = load(min(k + 1, count - 1));
            if (!keep && !finite(now)) bad = min(bad, k);
            const int size = size_of(now);
            bool b_first = choices & 1, fresh = choices & 2;
            if (keep && Short) {
                choices >>= 2;
            } else {
                const int size_a = size_of(a), size_b = size_of(b), key_a = magnitude(a.last) - size_a, key_b = magnitude(b.last) - size_b;
                b_first = key_b > key_a, fresh = magnitude(now.lower) - size > max(key_a, key_b);
                if (!keep) range.good = range.good && max(size_a - a.origin, size_b - b.origin) <= growth_bound<T>;
                if (Short) choices |= static_cast<std::uint64_t>(2 * fresh + b_first) << 2 * (k - 2);
            }
            exchange_if(b_first, a.before, b.before), exchange_if(b_first, a.first, b.first), exchange_if(b_first, a.last, b.last);
            exchange_if(b_first, a.after, b.after), exchange_if(b_first, a.rhs, b.rhs), exchange_if(b_first, a.origin, b.origin);
            const T inverse = range.invert(fresh ? now.lower : a.last), m = -(fresh ? a.last : now.lower) * inverse, m_b = -b.last * inverse;
            const Equation<T> pivot{fresh ? T(0) : a.before, fresh ? T(0) : a.first, fresh ? now.diag : a.after, fresh ? now.upper : T(0), fresh ? now.rhs : a.rhs, 0};
            if (keep) {
                Stored* const u = row + to + k - 1;
                u[0] = static_cast<Stored>(inverse), u[n] = static_cast<Stored>(pivot.last), u[2 * n] = static_cast<Stored>(pivot.after);
                u[3 * n] = static_cast<Stored>(fused(-pivot.first, ends.first, fused(-pivot.before, ends.before, pivot.rhs)));
            }
            b = {fused(m_b, pivot.before, b.before), fused(m_b, pivot.first, b.first), fused(m_b, pivot.last, b.after), m_b * pivot.after, fused(m_b, pivot.rhs, b.rhs), b.origin};
            a = {fresh ? a.before : m * pivot.before, fresh ? a.first : m * pivot.first, fused(m, pivot.last, fresh ? a.after : now.diag), fresh ? m * pivot.after : now.upper,
                 fused(m, pivot.rhs, fresh ? a.rhs : now.rhs), fresh ? a.origin : size};
        }
        return {a, b};
    }

    __device__ static __forceinline__ int size_of(const Equation<T>& e) {
        return max(max(magnitude(e.before), magnitude(e.first)), max(magnitude(e.last), magnitude(e.after)));
    }
};

/// Two chunks beside each other as one: what is needed to find the two unknowns between them, when those at the ends are known.
template <class T>
struct Joint {
    T inverse[2], between;         ///< of the pivots; what the left one's last unknown takes of the right one's first
    T before[2], first[2], last[2], after[2], rhs[2];

    static constexpr int words = 13;
    /// call(word) for all of them, in one order.
    template <class Call>
    __device__ __forceinline__ void each_word(const Call& call) {
        of_all(*this, call);
    }
    template <class Call>
    __device__ __forceinline__ void each_word(const Call& call) const {
        of_all(*this, call);
    }

    __device__ __forceinline__ Equations<T> eliminate(const Equations<T>& left, const Equations<T>& right, PivotRange<T>& range) {
        struct Row {
            T inner[2], before, first, last, after, rhs;
            int origin, key;
        } row[4] = {{{left.a.last, left.a.after}, left.a.before, left.a.first, T(0), T(0), left.a.rhs, left.a.origin, 0},
                    {{left.b.last, left.b.after}, left.b.before, left.b.first, T(0), T(0), left.b.rhs, left.b.origin, 0},
                    {{right.a.before, right.a.first}, T(0), T(0), right.a.last, right.a.after, right.a.rhs, right.a.origin, 0},
                    {{right.b.before, right.b.first}, T(0), T(0), right.b.last, right.b.after, right.b.rhs, right.b.origin, 0}};
#pragma unroll
        for (int u = 0; u < 2; ++u) {
#pragma unroll
            for (int k = u; k < 4; ++k) {
                int size = max(max(magnitude(row[k].before), magnitude(row[k].first)), max(magnitude(row[k].last), magnitude(row[k].after)));
                size = max(size, max(u == 0 ? magnitude(row[k].inner[0]) : 0, magnitude(row[k].inner[1])));
                range.good = range.good && size - row[k].origin <= growth_bound<T>;
                row[k].key = magnitude(row[k].inner[u]) - size;
            }
#pragma unroll
            for (int k = u + 1; k < 4; ++k) {
                const bool larger = row[k].key > row[u].key;
                if (u == 0) exchange_if(larger, row[u].inner[0], row[k].inner[0]);
                exchange_if(larger, row[u].inner[1], row[k].inner[1]);
                exchange_if(larger, row[u].before, row[k].before), exchange_if(larger, row[u].first, row[k].first), exchange_if(larger, row[u].last, row[k].last);
                exchange_if(larger, row[u].after, row[k].after), exchange_if(larger, row[u].rhs, row[k].rhs);
                exchange_if(larger, row[u].origin, row[k].origin), exchange_if(larger, row[u].key, row[k].key);
            }
            inverse[u] = range.invert(row[u].inner[u]);
            if (u == 0) between = row[u].inner[1];
            before[u] = row[u].before, first[u] = row[u].first, last[u] = row[u].last, after[u] = row[u].after, rhs[u] = row[u].rhs;
#pragma unroll
            for (int k = u + 1; k < 4; ++k) {
                const T m = -row[k].inner[u] * inverse[u];
                if (u == 0) row[k].inner[1] = fused(m, between, row[k].inner[1]);
                row[k].before = fused(m, before[u], row[k].before), row[k].first = fused(m, first[u], row[k].first);
                row[k].last = fused(m, last[u], row[k].last), row[k].after = fused(m, after[u], row[k].after), row[k].rhs = fused(m, rhs[u], row[k].rhs);
            }
        }
        return {{row[2].before, row[2].first, row[2].last, row[2].after, row[2].rhs, row[2].origin}, {row[3].before, row[3].first, row[3].last, row[3].after, row[3].rhs, row[3].origin}};
    }

    /// The left one's last unknown and the right one's first.
    __device__ __forceinline__ void substitute(const Ends<T>& ends, T& left_last, T& right_first) const {
        const auto known = [&](int u) {
            return fused(-before[u], ends.before, fused(-first[u], ends.first, fused(-last[u], ends.last, fused(-after[u], ends.after, rhs[u]))));
        };
        right_first = known(1) * inverse[1];
        left_last = fused(-between, right_first, known(0)) * inverse[0];
    }

private:
    template <class Self, class Call>
    __device__ static __forceinline__ void of_all(Self& self, const Call& call) {
        call(self.between);
#pragma unroll
        for (int u = 0; u < 2; ++u) call(self.inverse[u]), call(self.before[u]), call(self.first[u]), call(self.last[u]), call(self.after[u]), call(self.rhs[u]);
    }
};

/// The first and the last unknown of a whole system, which has nothing before and after it.
template <class T>
__device__ __forceinline__ Ends<T> solve_ends(const Equations<T>& both, PivotRange<T>& range) {
    Equation<T> p = both.a, q = both.b;
    const int key_p = magnitude(p.first) - max(magnitude(p.first), magnitude(p.last)), key_q = magnitude(q.first) - max(magnitude(q.first), magnitude(q.last));
    const bool other = key_q > key_p;
    exchange_if(other, p.first, q.first), exchange_if(other, p.last, q.last), exchange_if(other, p.rhs, q.rhs);
    const T inverse = range.invert(p.first), m = -q.first * inverse;
    const T last = fused(m, p.rhs, q.rhs) * range.invert(fused(m, p.last, q.last));
    return {T(0), fused(-p.last, last, p.rhs) * inverse, last, T(0)};
}

}  // namespace trifold::cuda
