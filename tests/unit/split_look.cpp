// SPDX-License-Identifier: BSD-3-Clause
// How far a matrix remembers, as a split solve looks at it: at twelve places, of which each may be the one that decides.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/registry.hpp"
#include "families/device.hpp"
#include "families/tridiagonal/split/executor.hpp"

namespace trifold::tests {
namespace {

using namespace tridiagonal;

struct Matrix {
    std::vector<double> lower, diag, upper, rhs;

    explicit Matrix(std::int64_t rows, double diagonal) : lower(static_cast<std::size_t>(rows), -1), diag(static_cast<std::size_t>(rows), diagonal), upper(lower), rhs(lower) {}

    split::Reach look(int threads) {
        System s;
        s.rows = static_cast<std::int64_t>(diag.size()), s.dtype = DType::f64;
        Operand* const operands[] = {&s.lower, &s.diag, &s.upper, &s.rhs, &s.x};
        std::vector<double>* const arrays[] = {&lower, &diag, &upper, &rhs, &rhs};
        for (int k = 0; k < 5; ++k) operands[k]->kind = Operand::Kind::view, operands[k]->row_stride = 1, operands[k]->data = arrays[k]->data();
        return split::look(s, *static_cast<const Ops*>(find_cell(device_at(find_device("cpu")), "tridiagonal").ops), 0x1p-53, threads);
    }
};

constexpr std::int64_t rows = 300000;

// Rows after which r^k is below `close`.
double forgotten(double diagonal, double close) { return std::log(close) / std::log(diagonal / 2 - std::sqrt(diagonal * diagonal / 4 - 1)); }

TEST(Look, WidthsAreThoseOfTheDecay) {
    for (const double diagonal : {4.0, 2.5, 2.05, 2.001})
        for (const int threads : {1, 3}) {
            const split::Reach reach = Matrix(rows, diagonal).look(threads);
            EXPECT_EQ(reach.close, 0x1p-95) << diagonal;
            // Half as much again, and some.
            EXPECT_NEAR(static_cast<double>(reach.width), 1.5 * forgotten(diagonal, reach.close), 16 + 0.02 * static_cast<double>(reach.width)) << diagonal;
        }
}

TEST(Look, ALessStrictWidthWhereTheOtherIsTooLong) {
    // 42 bits more would take more than 16384 rows.
    const split::Reach reach = Matrix(rows, 2 + 2e-5).look(2);
    EXPECT_EQ(reach.close, 0x1p-57);
    EXPECT_NEAR(static_cast<double>(reach.width), std::min(1.5 * forgotten(2 + 2e-5, reach.close), 16384.0), 500);
}

TEST(Look, NothingIsForgotten) {
    EXPECT_EQ(Matrix(rows, 2).look(1).width, 0);
    EXPECT_EQ(Matrix(rows, 2).look(4).width, 0);
    EXPECT_EQ(Matrix(rows, 1.1).look(2).width, 0);
}

// Whichever of the places it is.
TEST(Look, OnePlaceIsEnough) {
    constexpr int places = 12;
    for (int place = 0; place < places; ++place) {
        Matrix matrix(rows, 4);
        const std::int64_t at = rows / (places + 1) * (place + 1);
        for (std::int64_t row = at - 11000; row < at + 11000; ++row) matrix.diag[static_cast<std::size_t>(row)] = 2;
        EXPECT_EQ(matrix.look(2).width, 0) << "place " << place;
    }
}

// What is put into one of the two rows beside a boundary dies out at once, what is put into the other does not.
TEST(Look, TheOtherRowCounts) {
    Matrix matrix(rows, 1);
    for (double& entry : matrix.lower) entry = 0;
    for (double& entry : matrix.upper) entry = -1;
    EXPECT_EQ(matrix.look(2).width, 0);
    std::swap(matrix.lower, matrix.upper);
    EXPECT_EQ(matrix.look(2).width, 0);
}

}  // namespace
}  // namespace trifold::tests
