// SPDX-License-Identifier: BSD-3-Clause
// One tridiagonal system in arrays of its own, n rows each. lower[0] and upper[n-1] matter where it is periodic only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trifold::tests {

template <class T>
struct Bands {
    std::vector<T> lower, diag, upper, rhs;
    bool periodic = false;

    Bands() = default;
    explicit Bands(std::int64_t n, bool ring = false) : lower(n), diag(n), upper(n), rhs(n), periodic(ring) {}

    std::int64_t rows() const { return static_cast<std::int64_t>(diag.size()); }
};

/// Coefficients and right-hand side in another type; rounding makes it another system.
template <class To, class From>
Bands<To> cast(const Bands<From>& s) {
    const auto convert = [](const std::vector<From>& v) { return std::vector<To>(v.begin(), v.end()); };
    Bands<To> out;
    out.lower = convert(s.lower), out.diag = convert(s.diag), out.upper = convert(s.upper), out.rhs = convert(s.rhs);
    out.periodic = s.periodic;
    return out;
}

/// The value of row i of A x.
template <class T, class X>
X row_times(const Bands<T>& s, const std::vector<X>& x, std::int64_t i) {
    const std::int64_t n = s.rows();
    X value = X(s.diag[i]) * x[i];
    if (i > 0 || s.periodic) value = value + X(s.lower[i]) * x[i > 0 ? i - 1 : n - 1];
    if (i < n - 1 || s.periodic) value = value + X(s.upper[i]) * x[i < n - 1 ? i + 1 : 0];
    return value;
}

}  // namespace trifold::tests
