// SPDX-License-Identifier: BSD-3-Clause
// Elimination with row exchanges whose row that waits for its pivot is kept in twice the precision, on the host.
#include "unit/cuda_pivots_on_host.hpp"

#include "backends/cuda/tridiagonal/pivoted_carried.cuh"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "support/measure.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

template <class T>
std::vector<double> eliminated(const Bands<T>& s) {
    const std::size_t n = s.diag.size();
    std::vector<T> first(n), second(n), value(n);
    cuda::Carried<T> carried;
    cuda::PivotWatch<T> watch;
    // The first step has nothing to eliminate: 1 x[-1] = 0.
    for (std::size_t i = 0; i < n; ++i) carried.eliminate({i > 0 ? s.lower[i] : T(0), s.diag[i], i + 1 < n ? s.upper[i] : T(0), s.rhs[i]}, watch, first[i], second[i], value[i]);
    EXPECT_TRUE(watch.good());
    std::vector<double> x(n);
    carried.round();
    T next = carried.rhs.high / carried.diag.high, after = 0;
    x[n - 1] = next;
    for (std::size_t i = n - 1; i > 0; --i) {
        const T now = std::fma(-first[i], next, std::fma(-second[i], after, value[i]));
        x[i - 1] = now, after = next, next = now;
    }
    return x;
}

template <class T>
void all_alike(std::int64_t n, double lower, double diag, double upper) {
    Random random(11);
    Bands<T> s(n);
    for (std::int64_t i = 0; i < n; ++i) s.lower[i] = static_cast<T>(lower), s.diag[i] = static_cast<T>(diag), s.upper[i] = static_cast<T>(upper), s.rhs[i] = static_cast<T>(random.uniform(-1, 1));
    const double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
    // What each x is rounded by comes into the row that has waited for it, with signs as they fall.
    EXPECT_LE(backward_error(cast<double>(s), eliminated(s)), std::max(4.0, 0.5 * std::sqrt(static_cast<double>(n))) * u) << n << " rows of " << lower << ", " << diag << ", " << upper << ", " << sizeof(T) << " bytes";
}

// A row that waits in the numbers' own precision loses 0.07 roundoffs with each row that it waits for, all alike: more than 1000 of 16 384 rows of convection.
TEST(CudaPivotedCarried, WhatWaitsLosesNothing) {
    for (const std::int64_t n : {1, 2, 3, 100, 1000, 16384}) {
        all_alike<double>(n, -2.5, 2, 0.5), all_alike<double>(n, -1, 0.7, -1), all_alike<double>(n, 1, 1e-8, 1), all_alike<double>(n, 0.5, 2, -2.5), all_alike<double>(n, -1, 2, -1);
        all_alike<float>(n, -2.5, 2, 0.5), all_alike<float>(n, -1, 0.7, -1), all_alike<float>(n, 1, 1e-4, 1), all_alike<float>(n, 0.5, 2, -2.5), all_alike<float>(n, -1, 2, -1);
    }
}

// So many that a row nearly cancels now and then, where what it has lost is large beside what is left of it.
template <class T>
void random_rows() {
    Random random(12);
    for (int k = 0; k < 20000; ++k) {
        const std::int64_t n = k % 2 ? 256 : 1 + random.below(400);
        Bands<T> s(n);
        for (std::int64_t i = 0; i < n; ++i)
            for (auto* band : {&s.lower, &s.diag, &s.upper, &s.rhs}) (*band)[static_cast<std::size_t>(i)] = static_cast<T>(random.uniform(-1, 1));
        ASSERT_LE(backward_error(cast<double>(s), eliminated(s)), 3 * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2) << "case " << k << ", " << n << " rows";
    }
}

TEST(CudaPivotedCarried, RandomRows) {
    random_rows<double>();
    random_rows<float>();
}

// The three parts are the sum to twice the precision.
TEST(CudaPivotedCarried, SumsLoseNothing) {
    Random random(13);
    const auto all = [](const cuda::Twice<float>& sum) { return static_cast<double>(sum.high) + static_cast<double>(sum.low) + static_cast<double>(sum.fresh); };
    for (int k = 0; k < 10000; ++k) {
        const cuda::Twice<float> base{static_cast<float>(random.uniform(-1, 1)), static_cast<float>(random.uniform(-1e-8, 1e-8)), static_cast<float>(random.uniform(-1e-8, 1e-8))};
        const auto factor = static_cast<float>(random.uniform(-4, 4)), lost = static_cast<float>(random.uniform(-1e-8, 1e-8)), q = static_cast<float>(random.uniform(-1, 1));
        const double exact = all(base) - (static_cast<double>(factor) + static_cast<double>(lost)) * static_cast<double>(q);
        ASSERT_LE(std::abs(all(base.less(factor, lost, q)) - exact), 0x1p-44) << k;
    }
}

}  // namespace
}  // namespace trifold::tests
