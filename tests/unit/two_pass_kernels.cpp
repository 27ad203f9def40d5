// SPDX-License-Identifier: BSD-3-Clause
// reduce and finish of the cpu: every target, sizes around every block, against the solution in double-double.
#include <cmath>
#include <limits>

#include "backends/cpu/tridiagonal/finish.hpp"
#include "support/truth.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::ChunkResidual;
using tridiagonal::InterfaceRow;
using tridiagonal::Launch;
using tridiagonal::Partition;
using tridiagonal::System;

const std::int64_t shapes[][2] = {{4, 2},   {5, 2},   {6, 3},    {7, 2},    {9, 3},    {16, 4},    {31, 5},     {33, 8},   {63, 9},
                                  {65, 15}, {66, 16}, {100, 17}, {128, 31}, {257, 32}, {545, 33},  {550, 16},   {1000, 7}, {1003, 30},
                                  {1111, 2}, {40, 20}, {39, 20}, {2050, 64}, {2100, 63}, {2200, 65}, {9000, 128}, {3000, 1500}};

template <class T>
struct Verbs {
    Bands<T> s;
    std::vector<T> x;
    System system;
    Partition partition;
    Scratch64 scratch;
    Launch launch;
    std::vector<InterfaceRow> rows;
    std::vector<std::int64_t> zero_pivot;

    Verbs(const Bands<T>& bands, std::int64_t chunk_rows, int threads = 1)
        : s(bands), x(s.rhs.size(), T{77}), system(tridiagonal::normalise(problem_of(s, x))), partition{s.rows(), chunk_rows},
          scratch(cpu::two_pass_scratch(system, chunk_rows, threads)), rows(2 * partition.chunks()), zero_pivot(partition.chunks(), 99) {
        launch.threads = threads;
        launch.scratch = scratch.data;
        launch.scratch_bytes = scratch.memory.size() - 64;
    }
    void reduce() { cpu::reduce(system, partition, launch, rows.data(), zero_pivot.data()); }
    std::vector<ChunkResidual> finish(const std::vector<double>& boundary, double accept) {
        std::vector<ChunkResidual> residuals(partition.chunks());
        cpu::finish(system, partition, launch, boundary.data(), accept, residuals.data());
        return residuals;
    }
    std::vector<double> boundary_of(const std::vector<double>& values) const {
        std::vector<double> boundary;
        for (std::int64_t k = 0; k < partition.chunks(); ++k)
            boundary.insert(boundary.end(), {values[partition.first(k)], values[partition.last(k)]});
        return boundary;
    }
};

template <class T>
Bands<T> with_unread_ends(Bands<T> s) {
    s.lower.front() = s.upper.back() = std::numeric_limits<T>::quiet_NaN();
    return s;
}

template <class T>
std::vector<double> truth_of(const Bands<T>& s) {
    Bands<double> exact = cast<double>(s);
    exact.lower.front() = exact.upper.back() = 0;
    std::vector<double> x;
    for (const DoubleDouble value : true_solution(exact)) x.push_back(static_cast<double>(value));
    return x;
}

template <class T>
void truth_solves_interface_rows() {
    const double u = unit_roundoff(dtype_of<T>);
    for (const auto& [n, chunk_rows] : shapes)
        for (const double dominance : {0.0, 1.5}) {
            SCOPED_TRACE(testing::Message() << n << " rows in chunks of " << chunk_rows << ", dominance " << dominance);
            Verbs<T> verbs(with_unread_ends(cast<T>(random_system(n, dominance, 5))), chunk_rows);
            const std::vector<double> x = truth_of(verbs.s);
            verbs.reduce();
            double largest = 0;
            for (const double value : x) largest = std::max(largest, std::abs(value));
            for (std::int64_t k = 0; k < verbs.partition.chunks(); ++k) {
                EXPECT_EQ(verbs.zero_pivot[k], -1);
                const std::int64_t first = verbs.partition.first(k), last = verbs.partition.last(k);
                for (const InterfaceRow* row : {&verbs.rows[2 * k], &verbs.rows[2 * k + 1]}) {
                    const double* const c = row->coefficient;
                    const double size = std::abs(c[0]) + std::abs(c[1]) + std::abs(c[2]) + std::abs(c[3]);
                    const double before = first > 0 ? x[first - 1] : 0, after = last + 1 < n ? x[last + 1] : 0;
                    const double residual = row->rhs - c[0] * before - c[1] * x[first] - c[2] * x[last] - c[3] * after;
                    EXPECT_LE(std::abs(residual), 200 * u * (size + 1) * largest) << "chunk " << k;
                    EXPECT_GT(size, 0);
                }
            }
        }
}

TEST(TwoPassKernels, TruthSolvesTheInterfaceRows) {
    on_every_target([] {
        truth_solves_interface_rows<double>();
        truth_solves_interface_rows<float>();
    });
}

template <class T>
void finish_finds_truth() {
    const double u = unit_roundoff(dtype_of<T>);
    for (const auto& [n, chunk_rows] : shapes) {
        SCOPED_TRACE(testing::Message() << n << " rows in chunks of " << chunk_rows);
        Verbs<T> verbs(with_unread_ends(cast<T>(random_system(n, 1.5, 6))), chunk_rows);
        const std::vector<double> truth = truth_of(verbs.s);
        const std::vector<double> boundary = verbs.boundary_of(truth);
        // Nothing is accepted, nothing is stored.
        for (const ChunkResidual& chunk : verbs.finish(boundary, -1)) EXPECT_FALSE(chunk.stored);
        for (const T value : verbs.x) ASSERT_EQ(value, T{77});
        for (const ChunkResidual& chunk : verbs.finish(boundary, 8 * u)) {
            EXPECT_TRUE(chunk.stored) << chunk.residual / u << " u";
            EXPECT_GE(chunk.residual, 0);
        }
        EXPECT_LE(backward_error([&] { auto e = cast<double>(verbs.s); e.lower.front() = e.upper.back() = 0; return e; }(), as_double(verbs.x)), 6 * u);
        for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(verbs.x[i], truth[i], 100 * u * (std::abs(truth[i]) + 3)) << i;
    }
}

TEST(TwoPassKernels, FinishFindsTheTruthBetweenItsEnds) {
    on_every_target([] {
        finish_finds_truth<double>();
        finish_finds_truth<float>();
    });
}

template <class T>
void residual_is_the_residual() {
    // A wrong boundary value makes two chunks wrong, by an amount that can be computed from what was stored.
    Verbs<T> verbs(cast<T>(random_system(1000, 1.5, 7)), 31);
    std::vector<double> boundary = verbs.boundary_of(truth_of(verbs.s));
    boundary[9] *= 1.5;
    const std::vector<ChunkResidual> seen = verbs.finish(boundary, std::numeric_limits<double>::infinity());
    const Bands<double> s = cast<double>(verbs.s);
    const std::vector<double> x = as_double(verbs.x);
    for (std::int64_t k = 0; k < verbs.partition.chunks(); ++k) {
        double residual = 0, matrix = 0, size = 0, right = 0;
        for (std::int64_t i = verbs.partition.first(k); i <= verbs.partition.last(k); ++i) {
            residual = std::max(residual, std::abs(s.rhs[i] - row_times(s, x, i)));
            matrix = std::max({matrix, i > 0 ? std::abs(s.lower[i]) : 0, std::abs(s.diag[i]), i + 1 < 1000 ? std::abs(s.upper[i]) : 0});
            size = std::max(size, std::abs(x[i])), right = std::max(right, std::abs(s.rhs[i]));
        }
        const double u = unit_roundoff(dtype_of<T>);
        EXPECT_NEAR(seen[k].scale, matrix * size + right, 4 * u * seen[k].scale) << k;
        EXPECT_NEAR(seen[k].residual, residual / seen[k].scale, 4 * u + 1e-3 * seen[k].residual) << k;
        EXPECT_EQ(seen[k].residual > 1e-4, k == 4 || k == 5) << k;
    }
}

TEST(TwoPassKernels, ResidualIsThatOfWhatIsStored) {
    on_every_target([] {
        residual_is_the_residual<double>();
        residual_is_the_residual<float>();
    });
}

template <class T>
void zero_column_is_named() {
    for (const std::int64_t chunk_rows : {3, 8, 31, 100})
        for (const std::int64_t row : {1, 40, 74, 299, 998}) {
            Bands<T> s = cast<T>(random_system(1000, 0, 8));
            s.upper[row - 1] = s.diag[row] = 0;
            if (row + 1 < 1000) s.lower[row + 1] = 0;
            Verbs<T> verbs(s, chunk_rows);
            const std::int64_t chunk = std::min(row / chunk_rows, verbs.partition.chunks() - 1);
            verbs.reduce();
            const bool inside = row != verbs.partition.first(chunk) && row != verbs.partition.last(chunk);
            for (std::int64_t k = 0; k < verbs.partition.chunks(); ++k)
                EXPECT_EQ(verbs.zero_pivot[k], k == chunk && inside ? row : -1) << "chunk " << k << " of " << chunk_rows << " rows, zero column " << row;
        }
}

TEST(TwoPassKernels, NamesAColumnOfZeros) {
    on_every_target([] {
        zero_column_is_named<double>();
        zero_column_is_named<float>();
    });
}

// lower without its first entry, upper without its last: LAPACK's packed form, between pages that cannot be read.
template <class T>
void reads_nothing_outside(bool at_start) {
    for (const auto& [n, chunk_rows] : shapes) {
        const Bands<T> s = cast<T>(random_system(n, 1.5, 9));
        const Fenced<T> lower({s.lower.begin() + 1, s.lower.end()}, at_start), upper({s.upper.begin(), s.upper.end() - 1}, at_start);
        const Fenced<T> diag(s.diag, at_start), rhs(s.rhs, at_start), x(std::vector<T>(n, T{77}), at_start);
        Verbs<T> verbs(s, chunk_rows);
        verbs.system.lower.data = lower.data - 1, verbs.system.upper.data = upper.data, verbs.system.diag.data = diag.data;
        verbs.system.rhs.data = rhs.data, verbs.system.x.data = x.data;
        verbs.reduce();
        verbs.finish(verbs.boundary_of(truth_of(s)), 1);
        EXPECT_LE(backward_error(cast<double>(s), as_double(std::vector<T>(x.data, x.data + n))), 8 * unit_roundoff(dtype_of<T>));
    }
}

TEST(TwoPassKernels, ReadsNothingOutsideTheArrays) {
    on_every_target([] {
        for (const bool at_start : {false, true}) reads_nothing_outside<double>(at_start), reads_nothing_outside<float>(at_start);
    });
}

template <class T>
void scalars_are_arrays() {
    Bands<T> s(5000);
    std::fill(s.lower.begin(), s.lower.end(), T(-1.25)), std::fill(s.upper.begin(), s.upper.end(), T(0.75));
    std::fill(s.diag.begin(), s.diag.end(), T(0.5)), std::fill(s.rhs.begin(), s.rhs.end(), T(3));
    for (int scalars = 0; scalars < 16; ++scalars) {
        Verbs<T> arrays(s, 100), mixed(s, 100);
        tridiagonal::Operand* const operands[4] = {&mixed.system.lower, &mixed.system.diag, &mixed.system.upper, &mixed.system.rhs};
        const double values[4] = {-1.25, 0.5, 0.75, 3};
        for (int k = 0; k < 4; ++k)
            if (scalars & 1 << k) operands[k]->kind = tridiagonal::Operand::Kind::scalar, operands[k]->value = values[k], operands[k]->data = nullptr;
        arrays.reduce(), mixed.reduce();
        std::vector<double> boundary(2 * arrays.partition.chunks(), 0.25);
        arrays.finish(boundary, 1e9), mixed.finish(boundary, 1e9);
        EXPECT_EQ(arrays.x, mixed.x) << scalars;
        for (std::size_t k = 0; k < arrays.rows.size(); ++k) {
            ASSERT_EQ(arrays.rows[k].rhs, mixed.rows[k].rhs) << scalars;
            for (int c = 0; c < 4; ++c) ASSERT_EQ(arrays.rows[k].coefficient[c], mixed.rows[k].coefficient[c]) << scalars;
        }
    }
}

TEST(TwoPassKernels, ScalarsActAsArrays) {
    on_every_target([] {
        scalars_are_arrays<double>();
        scalars_are_arrays<float>();
    });
}

}  // namespace
}  // namespace trifold::tests
