// SPDX-License-Identifier: BSD-3-Clause
// Rings that are solved as lines and closed, as the host prepares them; and division by multiplication.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cuda/mesh/divisor.hpp"
#include "backends/cuda/mesh/rings.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

using cuda::Bands;
using cuda::OpenedRing;

Bands<double> ring_of(std::size_t n, double lower, double diag, double upper) { return {std::vector<double>(n, lower), std::vector<double>(n, diag), std::vector<double>(n, upper)}; }

// What kernels do with an opened ring, in the type of the ring; the largest residual over what is allowed for a stable solve.
template <class T>
double residual(const Bands<T>& ring, const OpenedRing<T>& opened, const std::vector<T>& d) {
    const std::size_t n = d.size();
    std::vector<T> up(n), x = d;
    for (std::size_t i = 0; i < n; ++i) {
        const T diag = i == 0 ? opened.first : i + 1 == n ? opened.last : ring.diag[i], lower = i > 0 ? ring.lower[i] : T(0);
        const T pivot = diag - (i > 0 ? lower * up[i - 1] : T(0));
        up[i] = i + 1 < n ? ring.upper[i] / pivot : T(0);
        x[i] = (x[i] - (i > 0 ? lower * x[i - 1] : T(0))) / pivot;
    }
    for (std::size_t i = n - 1; i-- > 0;) x[i] -= up[i] * x[i + 1];
    const T sum = opened.scale * std::fma(opened.weight, x[n - 1], x[0]);
    for (std::size_t i = 0; i < n; ++i) x[i] = std::fma(-opened.q[i], sum, x[i]);
    double worst = 0, largest = 0, scale = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double a = ring.lower[i], b = ring.diag[i], c = ring.upper[i], before = x[i > 0 ? i - 1 : n - 1], next = x[i + 1 < n ? i + 1 : 0];
        worst = std::max(worst, std::fabs(a * before + b * x[i] + c * next - d[i]));
        largest = std::max(largest, std::fabs(static_cast<double>(x[i]))), scale = std::max(scale, std::fabs(a) + std::fabs(b) + std::fabs(c));
    }
    return worst / (std::numeric_limits<T>::epsilon() * largest * scale);
}

template <class T>
void closes(double spread) {
    Random random(3);
    int safe = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const auto n = static_cast<std::size_t>(3 + random.below(60));
        Bands<T> ring;
        std::vector<T> d;
        for (std::size_t i = 0; i < n; ++i) {
            ring.lower.push_back(static_cast<T>(random.uniform(-1, 1))), ring.upper.push_back(static_cast<T>(random.uniform(-1, 1)));
            ring.diag.push_back(static_cast<T>(random.uniform(2 - spread, 3)));
            d.push_back(static_cast<T>(random.uniform(-1, 1)));
        }
        const OpenedRing<T> opened = cuda::open_ring(ring);
        if (!opened.safe) continue;
        ++safe;
        ASSERT_LT(residual(ring, opened, d), 60) << n << " rows, trial " << trial;
    }
    EXPECT_GT(safe, spread > 0 ? 20 : 390);
}

TEST(Rings, OpenedOnesAreSolvedStably) {
    closes<double>(0), closes<float>(0);
    closes<double>(2), closes<float>(2);
}

TEST(Rings, WhatCannotBeOpenedIsRefused) {
    EXPECT_TRUE(cuda::open_ring(ring_of(40, -0.3, 1.6, -0.3)).safe);
    EXPECT_TRUE(cuda::open_ring(ring_of(3, -0.3, 1.6, -0.3)).safe);
    EXPECT_FALSE(cuda::open_ring(ring_of(40, -1, 2, -1)).safe) << "singular";
    EXPECT_FALSE(cuda::open_ring(ring_of(40, -1, 0, -1)).safe) << "no first pivot";
    EXPECT_FALSE(cuda::open_ring(ring_of(40, -1, 1e-3, -1)).safe);
    EXPECT_FALSE(cuda::open_ring(ring_of(40, -1, NAN, -1)).safe);
}

TEST(Rings, DivisionByMultiplication) {
    Random random(4);
    for (int trial = 0; trial < 20000; ++trial) {
        const auto d = static_cast<std::int64_t>(1 + (random.below(0xffffffff) >> random.below(32)));
        const cuda::Divisor by = cuda::divisor_of(d);
        for (const std::uint64_t n : {static_cast<std::uint64_t>(random.below(0xffffffff)), std::uint64_t{0xffffffffu}, std::uint64_t{0}, static_cast<std::uint64_t>(d), static_cast<std::uint64_t>(d - 1)})
            ASSERT_EQ(cuda::quotient(by, static_cast<unsigned>(n)), n / static_cast<std::uint64_t>(d)) << n << " / " << d;
    }
}

}  // namespace
}  // namespace trifold::tests
