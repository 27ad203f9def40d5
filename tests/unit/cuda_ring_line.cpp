// SPDX-License-Identifier: BSD-3-Clause
// A ring by one thread of a GPU, on the host: the way of what no other kernel takes.
#define __device__
#define __host__
#define __forceinline__ inline
#include <cmath>
using std::fabs, std::fmax;
#include "backends/cuda/tridiagonal/general/ring_line.cuh"

#include <gtest/gtest.h>

#include "support/bands.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

/// x, which begins as 3 everywhere.
template <class T>
cuda::PivotedVerdict<T> solve(Bands<T> ring, std::vector<T>& x, bool adds = false) {
    constexpr std::int64_t apart = 3;
    const auto n = static_cast<std::int64_t>(ring.diag.size());
    std::vector<T> scratch(static_cast<std::size_t>(n * apart) * cuda::RingLine<T>::words, T(NAN));
    x.assign(ring.diag.size(), T(3));
    const auto line = [](std::vector<T>& values) { return cuda::Line<T>{values.data(), T(0), 1}; };
    return cuda::RingLine<T>{line(ring.lower), line(ring.diag), line(ring.upper), line(ring.rhs), line(x), ring.lower.front(), ring.upper.back(), n, scratch.data() + 1, apart}.solve(adds);
}

template <class T>
Bands<T> random_ring(std::int64_t rows, double diag, std::uint64_t seed) {
    Bands<T> ring(rows, true);
    Random random(seed);
    for (std::int64_t i = 0; i < rows; ++i) {
        ring.lower[i] = static_cast<T>(random.uniform(-1, 1)), ring.upper[i] = static_cast<T>(random.uniform(-1, 1));
        ring.diag[i] = static_cast<T>(diag * random.uniform(-1, 1)), ring.rhs[i] = static_cast<T>(random.uniform(-1, 1));
    }
    return ring;
}

template <class T>
void solves() {
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 17, 64, 101, 1000})
        for (const double diag : {0.0, 0.1, 1.0, 4.0})
            for (std::uint64_t seed = 1; seed <= 10; ++seed) {
                SCOPED_TRACE(testing::Message() << rows << " rows, " << diag << ", seed " << seed << ", " << sizeof(T));
                const Bands<T> ring = random_ring<T>(rows, diag, seed);
                std::vector<T> x, more;
                const auto verdict = solve(ring, x);
                if (diag == 0 && verdict.reason == Reason::singular) continue;  // of four rows and multiples of four, it may be
                ASSERT_EQ(verdict.reason, Reason::exact);
                EXPECT_LE(backward_error(cast<double>(ring), as_double(x)), 10 * unit_roundoff(dtype_of<T>));
                ASSERT_EQ(solve(ring, more, true).reason, Reason::exact);
                for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(more[i], T(3) + x[i]);
            }
}

TEST(RingLine, Solves) { solves<double>(), solves<float>(); }

// The last unknowns are sums over all others, and what the fold leaves is corrected.
TEST(RingLine, Waves) {
    for (const std::int64_t rows : {1000, 8192, 100000}) {
        Bands<double> ring(rows, true);
        std::ranges::fill(ring.lower, -1.0), std::ranges::fill(ring.diag, 0.5), std::ranges::fill(ring.upper, -1.0), std::ranges::fill(ring.rhs, 1.0);
        std::vector<double> x;
        ASSERT_EQ(solve(ring, x).reason, Reason::exact);
        EXPECT_LE(backward_error(ring, x), 5 * unit_roundoff(DType::f64)) << rows << " rows";
    }
}

TEST(RingLine, WhatFailsIsNamedAndNotStored) {
    for (const std::int64_t rows : {3, 8, 33}) {
        SCOPED_TRACE(rows);
        Bands<double> ring = random_ring<double>(rows, 4, 5);
        for (const std::int64_t bad : {std::int64_t{0}, rows / 2, rows - 1}) {
            Bands<double> spoilt = ring;
            std::vector<double> x;
            spoilt.rhs[bad] = NAN;
            auto verdict = solve(spoilt, x);
            EXPECT_EQ(verdict.reason, Reason::not_finite);
            EXPECT_EQ(verdict.row, bad);
            EXPECT_EQ(x, std::vector<double>(x.size(), 3));
            spoilt = ring;
            const std::int64_t before = bad > 0 ? bad - 1 : rows - 1, after = bad + 1 < rows ? bad + 1 : 0;
            spoilt.diag[bad] = 0, spoilt.upper[before] = 0, spoilt.lower[after] = 0;  // a column of zeros
            verdict = solve(spoilt, x);
            EXPECT_EQ(verdict.reason, Reason::singular);
            EXPECT_EQ(verdict.row, bad);
            EXPECT_EQ(x, std::vector<double>(x.size(), 3));
        }
    }
}

}  // namespace
}  // namespace trifold::tests
