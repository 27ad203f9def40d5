// SPDX-License-Identifier: BSD-3-Clause
// Double-double arithmetic: a value is hi + lo with |lo| ≤ ulp(hi)/2, about 32 decimal digits.
// Source: Y. Hida, X. S. Li and D. H. Bailey, Library for double-double and quad-double arithmetic, 2007; two-sum of Knuth,
// two-product by fused multiply-add.
#pragma once

#include <cmath>

// Before functions that do much of it: compiled also for machines with fused multiply-adds, since std::fma is a library call in code for any x86-64.
// Not by clang, whose builds are those of sanitizers: what chooses when a program is loaded would run before they are ready.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define TRIFOLD_ALSO_WITH_FMA __attribute__((target_clones("fma", "default"), flatten))
#else
#define TRIFOLD_ALSO_WITH_FMA
#endif

namespace trifold::tests {

struct DoubleDouble {
    double hi = 0, lo = 0;

    constexpr DoubleDouble() = default;
    constexpr DoubleDouble(double value) : hi(value) {}
    constexpr DoubleDouble(double high, double low) : hi(high), lo(low) {}
    explicit operator double() const { return hi + lo; }
};

/// hi + lo == a + b exactly.
inline DoubleDouble two_sum(double a, double b) {
    const double s = a + b, v = s - a;
    return {s, (a - (s - v)) + (b - v)};
}

/// The same for |a| ≥ |b|.
inline DoubleDouble quick_two_sum(double a, double b) {
    const double s = a + b;
    return {s, b - (s - a)};
}

/// hi + lo == a b exactly, barring underflow.
inline DoubleDouble two_product(double a, double b) {
    const double p = a * b;
    return {p, std::fma(a, b, -p)};
}

inline DoubleDouble operator-(DoubleDouble a) { return {-a.hi, -a.lo}; }

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
    DoubleDouble s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
    s = quick_two_sum(s.hi, s.lo + t.hi);
    return quick_two_sum(s.hi, s.lo + t.lo);
}

inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble p = two_product(a.hi, b.hi);
    return quick_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
    const double first = a.hi / b.hi;
    DoubleDouble rest = a - b * first;
    const double second = rest.hi / b.hi;
    rest = rest - b * second;
    const DoubleDouble q = quick_two_sum(first, second);
    return q + DoubleDouble(rest.hi / b.hi);
}

inline DoubleDouble abs(DoubleDouble a) { return a.hi < 0 || (a.hi == 0 && a.lo < 0) ? -a : a; }
inline bool is_zero(DoubleDouble a) { return a.hi == 0 && a.lo == 0; }

}  // namespace trifold::tests
