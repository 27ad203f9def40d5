// SPDX-License-Identifier: BSD-3-Clause
// A rigorous bound on the error of a computed x, truncation and rounding together, for (generalised) dominant matrices.
//
// Theorem. Let M have |diag| on its diagonal and -|lower|, -|upper| beside it (Ostrowski's comparison matrix). If w > 0 and
// M w > 0, A is an H-matrix and |A^-1| ≤ M^-1. With |rhs - A x| ≤ f and f ≤ t (M w) for every row, |A^-1 rhs - x| ≤ t w.
// Sources: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., theorem 8.12; A. Neumaier, 1999; S. M. Rump,
// Verification methods, Acta Numerica 19, 2010, section 10. How w was found does not matter, M w is checked: here M w ≈ f, solved in
// double precision. The rounding of f and of M w is added and taken away.
#pragma once

#include "backends/reference/tridiagonal/lu.hpp"
#include "backends/reference/tridiagonal/residual.hpp"
#include "backends/reference/tridiagonal/ring_lu.hpp"

namespace trifold::tridiagonal::reference {

/// max|error| / max|x|, or infinity where A is not seen to be an H-matrix. ring.bands.x is rhs.
template <class T>
double error_bound(const Ring<T>& ring, std::span<const T> x, bool periodic, Scratch scratch) {
    constexpr double gamma = 8 * 0x1p-53;
    const Bands<T>& s = ring.bands;
    const std::int64_t n = s.rows();
    const auto doubles = [&] { return scratch.take<double>(n); };
    const Ring<double> M{{doubles(), doubles(), doubles(), doubles()}, -std::abs(double{ring.top_right}), -std::abs(double{ring.bottom_left})};
    const std::span<double> f = doubles();
    double largest_f = 0, largest_x = 0;  // f over its row's diagonal entry: rows may have any scale
    for (std::int64_t i = 0; i < n; ++i) {
        const RowResidual r = row_residual(ring, x, i);
        f[i] = std::abs(r.value) + gamma * r.scale;
        if (f[i] > 0) largest_f = std::max(largest_f, f[i] / std::abs(double{s.diag[i]}));
        largest_x = std::max(largest_x, std::abs(double{x[i]}));
    }
    if (largest_f == 0) return 0;
    if (!std::isfinite(largest_f)) return HUGE_VAL;
    for (std::int64_t i = 0; i < n; ++i) {
        f[i] = std::max(f[i], 1e-3 * largest_f * std::abs(double{s.diag[i]}));  // no row of M w may vanish
        M.bands.lower[i] = -std::abs(double{s.lower[i]});
        M.bands.diag[i] = std::abs(double{s.diag[i]});
        M.bands.upper[i] = -std::abs(double{s.upper[i]});
        M.bands.x[i] = f[i];
    }
    if (!(periodic ? ring_lu(M, scratch) : lu(M.bands, scratch)).good()) return HUGE_VAL;
    const std::span<const double> w = M.bands.x;
    double t = 0, largest_w = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double up = i > 0 ? std::abs(double{s.lower[i]}) * w[i - 1] : std::abs(double{ring.top_right}) * w[n - 1];
        const double down = i < n - 1 ? std::abs(double{s.upper[i]}) * w[i + 1] : std::abs(double{ring.bottom_left}) * w[0];
        const double centre = std::abs(double{s.diag[i]}) * w[i];
        const double image = centre - up - down - gamma * (centre + up + down);
        if (!(w[i] > 0 && image > 0)) return HUGE_VAL;
        t = std::max(t, f[i] / image);
        largest_w = std::max(largest_w, w[i]);
    }
    const double error = t * largest_w * (1 + gamma);
    return error < largest_x ? error / (largest_x - error) : HUGE_VAL;
}

}  // namespace trifold::tridiagonal::reference
