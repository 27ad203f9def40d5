// SPDX-License-Identifier: BSD-3-Clause
// LU of a few rows as a thread of a GPU has them in registers, on the host.
#include "unit/cuda_pivots_on_host.hpp"

#include "backends/cuda/tridiagonal/thread/few_rows.cuh"

#include <gtest/gtest.h>

#include <limits>

#include "support/lapack.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

template <class T, int N>
cuda::FewRows<T, N> in_registers(const Bands<T>& s) {
    cuda::FewRows<T, N> few;
    const auto n = static_cast<int>(s.rows());
    for (int i = 0; i < N; ++i) {
        few.close(i);
        if (i < n) few.lower[i] = i > 0 ? s.lower[i] : T(0), few.diag[i] = s.diag[i], few.upper[i] = i + 1 < n ? s.upper[i] : T(0), few.rhs[i] = s.rhs[i];
    }
    return few;
}

template <class T>
Bands<T> random_rows(std::int64_t n, double diag, Random& random) {
    Bands<T> s(n);
    for (std::int64_t i = 0; i < n; ++i) {
        s.lower[i] = static_cast<T>(random.uniform(-1, 1)), s.upper[i] = static_cast<T>(random.uniform(-1, 1)), s.rhs[i] = static_cast<T>(random.uniform(-1, 1));
        s.diag[i] = static_cast<T>(random.uniform(-diag, diag));
    }
    return s;
}

template <class T, int N>
void as_lapack(Random& random) {
    for (int k = 0; k < 3000; ++k) {
        const std::int64_t n = 1 + random.below(N);
        const Bands<T> s = random_rows<T>(n, k % 3 == 0 ? 1e-8 : k % 3 == 1 ? 1 : 4, random);
        auto few = in_registers<T, N>(s);
        ASSERT_TRUE(few.solve()) << n << " rows, case " << k;
        const std::vector<double> x(few.rhs, few.rhs + n);
        ASSERT_LE(backward_error(cast<double>(s), x), 8 * (std::numeric_limits<T>::epsilon() / 2)) << n << " rows, case " << k;
        for (int i = static_cast<int>(n); i < N; ++i) ASSERT_EQ(few.rhs[i], T(0)) << "what is behind the last row";
    }
}

TEST(CudaFewRows, AreSolvedWithPivots) {
    Random random(2026);
    as_lapack<double, 4>(random), as_lapack<double, 8>(random), as_lapack<double, 12>(random), as_lapack<double, 16>(random);
    as_lapack<float, 4>(random), as_lapack<float, 8>(random), as_lapack<float, 12>(random), as_lapack<float, 16>(random);
}

// Whatever is not a number, and wherever it stands: an infinite coefficient makes x = 0 of its row, which is finite.
TEST(CudaFewRows, WhatIsNotFiniteIsSeen) {
    Random random(3);
    for (std::int64_t n = 1; n <= 8; ++n)
        for (std::int64_t row = 0; row < n; ++row)
            for (int band = 0; band < 4; ++band)
                for (const double bad : {HUGE_VAL, -HUGE_VAL, std::numeric_limits<double>::quiet_NaN()}) {
                    if ((band == 0 && row == 0) || (band == 2 && row + 1 == n)) continue;
                    Bands<double> s = random_rows<double>(n, 1, random);
                    (band == 0 ? s.lower : band == 1 ? s.diag : band == 2 ? s.upper : s.rhs)[static_cast<std::size_t>(row)] = bad;
                    auto few = in_registers<double, 8>(s);
                    EXPECT_FALSE(few.solve()) << n << " rows, row " << row << ", band " << band << ", " << bad;
                }
}

TEST(CudaFewRows, AColumnWithoutAPivotIsSeen) {
    Random random(4);
    for (std::int64_t n = 1; n <= 16; ++n)
        for (std::int64_t row = 0; row < n; ++row)
            for (const double right : {0.0, 1.0}) {
                Bands<double> s = random_rows<double>(n, 4, random);
                s.diag[row] = 0, s.rhs[row] = right;
                if (row > 0) s.lower[row] = s.upper[row - 1] = 0;
                if (row + 1 < n) s.upper[row] = s.lower[row + 1] = 0;
                auto few = in_registers<double, 16>(s);
                EXPECT_FALSE(few.solve()) << n << " rows, row " << row << ", right-hand side " << right;
            }
}

// Whose reciprocals are no numbers, or not to a roundoff: they are left to true divisions.
TEST(CudaFewRows, PivotsThatAreHardlyNumbersAreLeft) {
    for (const double pivot : {1e-310, 1e-300, 1e300}) {
        Bands<double> s(3);
        s.diag = {1, pivot, 2}, s.lower = {0, 0, 0}, s.upper = {0, 0, 0}, s.rhs = {3, pivot, 5};
        auto few = in_registers<double, 4>(s);
        EXPECT_FALSE(few.solve()) << pivot;
    }
}

}  // namespace
}  // namespace trifold::tests
