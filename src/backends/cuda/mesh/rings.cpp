// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/rings.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace trifold::cuda {

template <class T>
OpenedRing<T> open_ring(const Bands<T>& ring) {
    constexpr double accepted_growth = 6, accepted_amplification = 100;
    OpenedRing<T> opened;
    const std::size_t n = ring.diag.size(), end = n - 1;
    const std::vector<double> a(ring.lower.begin(), ring.lower.end()), c(ring.upper.begin(), ring.upper.end());
    std::vector<double> b(ring.diag.begin(), ring.diag.end()), q(n, 0.0), up(n);
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(a[i]) + std::fabs(b[i]) + std::fabs(c[i]));
    const double g = -b[0];
    opened.first = static_cast<T>(b[0] - g), opened.last = static_cast<T>(b[end] - c[end] * a[0] / g);
    opened.weight = static_cast<T>(a[0] / g);
    b[0] = static_cast<double>(opened.first), b[end] = static_cast<double>(opened.last);
    q[0] = g, q[end] = c[end];
    double before = 0, inverse = 0, growth = 0;  // of |U|, in the row before
    for (std::size_t i = 0; i < n; ++i) {
        const double lower = i > 0 ? a[i] : 0, upper = i < end ? c[i] : 0, pivot = b[i] - (i > 0 ? lower * up[i - 1] : 0), u = std::fabs(pivot) + std::fabs(upper);
        growth = std::max(growth, u + std::fabs(lower * inverse) * before);
        inverse = 1 / pivot, before = u;
        up[i] = upper * inverse;
        q[i] = (q[i] - (i > 0 ? lower * q[i - 1] : 0)) * inverse;
    }
    for (std::size_t i = end; i-- > 0;) q[i] -= up[i] * q[i + 1];
    const double weight = static_cast<double>(opened.weight), closed = 1 + q[0] + weight * q[end];
    opened.scale = static_cast<T>(1 / closed);
    double amplified = 0;
    bool finite = std::isfinite(closed) && std::isfinite(static_cast<double>(opened.scale));
    for (std::size_t i = 0; i < n; ++i) {
        const double row = std::fabs(a[i] * q[i > 0 ? i - 1 : end]) + std::fabs(ring.diag[i] * q[i]) + std::fabs(c[i] * q[i < end ? i + 1 : 0]);
        amplified = std::max(amplified, row * (1 + std::fabs(weight)) / std::fabs(closed));
        opened.q.push_back(static_cast<T>(q[i]));
        finite = finite && std::isfinite(static_cast<double>(opened.q.back()));
    }
    opened.safe = finite && growth <= accepted_growth * largest && amplified <= accepted_amplification * largest;
    return opened;
}

template OpenedRing<float> open_ring<float>(const Bands<float>&);
template OpenedRing<double> open_ring<double>(const Bands<double>&);

}  // namespace trifold::cuda
