// SPDX-License-Identifier: BSD-3-Clause
// What cannot be solved is named, counted, and does not spoil its neighbours.
#include <limits>
#include <type_traits>
#include <utility>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

class Failure : public OnDevice {
protected:
    static Recipe batch_of(std::int64_t rows, std::int64_t systems, Layout layout, bool in_place) {
        Recipe recipe;
        recipe.rows = rows;
        if (systems > 0) recipe.batch = {systems};
        recipe.layout = layout;
        recipe.in_place = in_place;
        return recipe;
    }

    // Row i of system k couples to nothing, not even to itself.
    template <class T>
    static void make_singular(Trial<T>& trial, std::int64_t i, std::int64_t k) {
        trial.coefficient(1, i, k) = 0;
        const std::int64_t last = trial.recipe().rows - 1;
        if (i > 0) trial.coefficient(0, i, k) = trial.coefficient(2, i - 1, k) = 0;
        if (i < last) trial.coefficient(2, i, k) = trial.coefficient(0, i + 1, k) = 0;
    }

    template <class T>
    void others_are_solved(const Trial<T>& trial, const std::vector<std::int64_t>& bad) {
        for (std::int64_t k = 0; k < trial.systems(); ++k)
            if (std::ranges::find(bad, k) == bad.end()) {
                ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(dtype_of<T>)) << "system " << k;
            }
    }
};

TEST_P(Failure, SingularSystemsOfABatchAreNamed) {
    for (const Layout layout : layouts)
        for (const bool in_place : {false, true})
            for (const std::int64_t rows : {1, 2, 9, 100}) {
                SCOPED_TRACE(testing::Message() << name_of(layout) << ", in place " << in_place << ", " << rows << " rows");
                Trial<double> trial(batch_of(rows, 50, layout, in_place));
                make_singular(trial, rows / 2, 41);
                make_singular(trial, rows - 1, 13);
                std::vector<std::int8_t> status(52, 77);
                tridiagonal::Options options;
                options.status = status.data() + 1;
                const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
                EXPECT_EQ(outcome.reason, Reason::singular);
                EXPECT_EQ(outcome.system, 13);
                EXPECT_EQ(outcome.row, rows - 1);
                EXPECT_EQ(outcome.failures, 2);
                EXPECT_EQ(status.front(), 77);
                EXPECT_EQ(status.back(), 77);
                for (std::int64_t k = 0; k < 50; ++k) EXPECT_EQ(status[k + 1] < 0, k == 13 || k == 41) << k;
                EXPECT_EQ(status[1 + 13], static_cast<std::int8_t>(Reason::singular));
                others_are_solved(trial, {13, 41});
            }
}

// Long ones, which some devices take one by one, over all threads.
TEST_P(Failure, SingularSystemsAmongLongOnesAreNamed) {
    for (const bool in_place : {false, true})
        for (const bool dominant : {false, true}) {
            Recipe recipe = batch_of(60003, 4, Layout::contiguous, in_place);
            recipe.dominant = dominant;
            Trial<double> trial(recipe);
            make_singular(trial, 31, 0);
            make_singular(trial, 60002, 2);
            std::vector<std::int8_t> status(4, 77);
            tridiagonal::Options options;
            options.status = status.data();
            const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
            EXPECT_EQ(outcome.reason, Reason::singular);
            EXPECT_EQ(outcome.system, 0);
            EXPECT_EQ(outcome.row, 31);
            EXPECT_EQ(outcome.failures, 2);
            for (std::int64_t k = 0; k < 4; ++k) EXPECT_EQ(status[static_cast<std::size_t>(k)] < 0, k == 0 || k == 2) << k;
            others_are_solved(trial, {0, 2});
        }
}

TEST_P(Failure, ASingularSystemIsNamed) {
    for (const bool in_place : {false, true})
        for (const std::int64_t rows : {1, 2, 3, 100, 1000, 5003, 100003})
            for (const std::int64_t row : {std::int64_t{0}, rows / 3, rows - 1}) {
                SCOPED_TRACE(testing::Message() << rows << " rows, in place " << in_place << ", row " << row);
                Trial<double> trial(batch_of(rows, 0, Layout::contiguous, in_place));
                make_singular(trial, row, 0);
                const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                EXPECT_EQ(outcome.reason, Reason::singular);
                EXPECT_EQ(outcome.system, 0);
                EXPECT_EQ(outcome.row, row);
                EXPECT_EQ(outcome.failures, 1);
            }
}

TEST_P(Failure, InPlaceASingularSystemKeepsItsRightHandSide) {
    for (const std::int64_t rows : {9, 1000, 100003})
        for (const std::int64_t systems : {0, 5}) {
            Trial<double> trial(batch_of(rows, systems, Layout::contiguous, true));
            make_singular(trial, rows / 2, 0);
            ASSERT_EQ(tridiagonal::solve(queue, trial.problem()).reason, Reason::singular);
            const Bands<double> s = trial.system(0);
            const std::vector<double> left = trial.solution(0);
            const double allowed = 1e-12 * largest(s.rhs);
            for (std::int64_t i = 0; i < rows; ++i) ASSERT_NEAR(left[i], s.rhs[i], allowed) << "row " << i << " of " << rows;
        }
}

TEST_P(Failure, WhatIsNotFiniteIsNamed) {
    const bool opencl = GetParam().starts_with("opencl:");
    for (const double bad : {double(NAN), double(INFINITY)})
        for (const std::int64_t rows : {1, 9, 100, 500, 5003, 100003})
            for (const auto& [systems, layout] : {std::pair<std::int64_t, Layout>{0, Layout::contiguous}, {20, Layout::contiguous}, {20, Layout::interleaved}})
                for (int band = 0; band < 4; ++band) {
                    if (rows * systems > 200000) continue;
                    const std::int64_t row = band == 0 ? rows - 1 : rows / 2, k = systems ? 7 : 0;
                    if ((band == 0 && row == 0) || (band == 2 && row == rows - 1)) continue;
                    // The certified pass takes an infinite diagonal entry for its limit, x = 0 (outcome.hpp); OpenCL devices have none.
                    if (std::isinf(bad) && band == 1 && rows > 1000 && !opencl) continue;
                    SCOPED_TRACE(testing::Message() << bad << " in array " << band << " at row " << row << " of " << rows << ", systems " << systems << ", " << name_of(layout));
                    Trial<double> trial(batch_of(rows, systems, layout, false));
                    (band == 3 ? trial.rhs(row, k) : trial.coefficient(band, row, k)) = bad;
                    const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                    EXPECT_EQ(outcome.reason, Reason::not_finite);
                    EXPECT_EQ(outcome.system, k);
                    if (GetParam() == "cpu" || GetParam() == "reference") { EXPECT_EQ(outcome.row, row) << outcome.branch; }
                    EXPECT_GE(outcome.row, 0);
                    EXPECT_EQ(outcome.failures, 1);
                    tridiagonal::Options options;
                    if (GetParam() == "cpu" && systems == 0) {
                        for (const auto algorithm : {tridiagonal::Algorithm::thomas, tridiagonal::Algorithm::lu}) {
                            options.algorithm = algorithm;
                            const Outcome named = tridiagonal::solve(queue, trial.problem(), options);
                            EXPECT_EQ(named.reason, Reason::not_finite) << name_of(algorithm);
                            EXPECT_EQ(named.row, row) << name_of(algorithm);
                        }
                        options.algorithm = tridiagonal::Algorithm::certified;
                        if (band == 3 && rows > 1000) {
                            const Outcome named = tridiagonal::solve(queue, trial.problem(), options);
                            EXPECT_EQ(named.reason, Reason::not_finite);
                            EXPECT_EQ(named.row, row) << "certified";
                        }
                        options.algorithm = tridiagonal::Algorithm::automatic;
                    }
                    options.check_finite = true;
                    const Outcome checked = tridiagonal::solve(queue, trial.problem(), options);
                    EXPECT_EQ(checked.reason, Reason::not_finite);
                    EXPECT_EQ(checked.system, k);
                    EXPECT_EQ(checked.row, row);
                }
}

// A pivot may be so large that a device takes its reciprocal for 0: x is right then, or the system is named.
template <class T>
void large_diagonals(Queue& queue) {
    const T large = std::numeric_limits<T>::max() * T(0.7);
    for (const std::int64_t rows : {40, 200, 500})
        for (const auto& [side_by_side, ring] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}})
            for (const std::int64_t row : {std::int64_t{0}, rows / 3, rows - 1}) {
                SCOPED_TRACE(testing::Message() << name_of(dtype_of<T>) << ", " << rows << " rows, side by side " << side_by_side << ", a ring " << ring << ", row " << row);
                constexpr std::int64_t systems = 40, bad = 17;
                std::vector<T> coupling(static_cast<std::size_t>(rows * systems), T(-1)), diag(coupling.size(), T(4)), rhs(coupling.size(), T(1)), x(coupling.size());
                const auto at = static_cast<std::size_t>(side_by_side ? row * systems + bad : bad * rows + row);
                diag[at] = rhs[at] = large;
                const auto view = [&, side_by_side = side_by_side](auto* data) {
                    using U = std::remove_pointer_t<decltype(data)>;
                    return side_by_side ? View<U>::interleaved(data, rows, systems) : View<U>::contiguous(data, systems, rows);
                };
                tridiagonal::Problem problem;
                problem.matrix = {view(std::as_const(coupling).data()), view(std::as_const(diag).data()), view(std::as_const(coupling).data())};
                problem.matrix.periodic = ring;
                problem.rhs = view(std::as_const(rhs).data()), problem.x = view(x.data());
                const Outcome outcome = tridiagonal::solve(queue, problem);
                if (outcome.ok()) EXPECT_NEAR(x[at], 1, 1e-5);
                else EXPECT_EQ(outcome.system, bad);
            }
}

/// The same in one system, whose rows are dominant, so that nobody need look at residuals.
template <class T>
void large_diagonal_of_one(Queue& queue) {
    const T large = std::numeric_limits<T>::max() * T(0.7);
    for (const std::int64_t rows : {600, 5000, 40001, 120001, 300007, 3000000}) {
        SCOPED_TRACE(testing::Message() << name_of(dtype_of<T>) << ", one system, " << rows << " rows");
        std::vector<T> coupling(static_cast<std::size_t>(rows), T(-1)), diag(coupling.size(), T(4)), rhs(coupling.size(), T(1)), x(coupling.size());
        const std::size_t at = coupling.size() / 3;
        diag[at] = rhs[at] = large;
        tridiagonal::Problem problem;
        problem.matrix = {View<const T>::rows(coupling), View<const T>::rows(diag), View<const T>::rows(coupling)};
        problem.rhs = View<const T>::rows(rhs), problem.x = View<T>::rows(x);
        if (tridiagonal::solve(queue, problem).ok()) {
            EXPECT_NEAR(x[at], 1, 1e-5);
        }
    }
}

TEST_P(Failure, LargeDiagonalsAreNoInfiniteOnes) {
    large_diagonals<float>(queue), large_diagonal_of_one<float>(queue);
    large_diagonals<double>(queue), large_diagonal_of_one<double>(queue);
}

TEST_P(Failure, WhatAGeneratorMakesIsLookedAtToo) {
    for (const std::int64_t rows : {9, 5000})
        for (const std::int64_t systems : {1, 3}) {
            Trial<double> trial(batch_of(rows, systems, Layout::contiguous, false));
            tridiagonal::Problem problem = trial.problem();
            Generator diagonal;
            diagonal.fill_f64 = [](double* tile, std::int64_t row, std::int64_t n, std::int64_t system, std::int64_t count, const void*) {
                for (std::int64_t i = 0; i < n; ++i)
                    for (std::int64_t j = 0; j < count; ++j) tile[i * count + j] = row + i == 7 && (system + j) % 2 == 0 ? NAN : 3;
            };
            problem.matrix.diag = diagonal;
            tridiagonal::Options options;
            options.check_finite = true;
            const Outcome outcome = tridiagonal::solve(queue, problem, options);
            EXPECT_EQ(outcome.reason, Reason::not_finite);
            EXPECT_EQ(outcome.system, 0);
            EXPECT_EQ(outcome.row, 7);
            EXPECT_TRUE(trial.surroundings_untouched());
        }
}

// One row couples to nothing, whatever number is given for that.
TEST_P(Failure, CouplingsOfOneRowAreNotRead) {
    for (const double bad : {double(NAN), double(INFINITY)})
        for (const std::int64_t systems : {1, 4, 5000}) {
            Trial<double> trial(batch_of(1, systems, Layout::interleaved, false));
            tridiagonal::Problem problem = trial.problem();
            problem.matrix.lower = problem.matrix.upper = bad;
            ASSERT_TRUE(tridiagonal::solve(queue, problem).ok()) << systems << " systems, " << bad;
            others_are_solved(trial, {});
        }
}

// Systems of a batch that are solved one after another keep their numbers.
TEST_P(Failure, WhatIsNotCertifiedIsNamed) {
    if (GetParam() != "cpu") GTEST_SKIP();
    constexpr std::int64_t rows = 20000;
    std::vector<double> diag(3 * rows, 4.0), rhs(3 * rows, 1.0), x(3 * rows);
    std::fill(diag.begin() + rows, diag.end(), 2.0);  // Poisson's forgets nothing
    tridiagonal::Problem problem;
    problem.matrix = {-1.0, View<const double>::contiguous(diag.data(), 3, rows), -1.0};
    problem.rhs = View<const double>::contiguous(rhs.data(), 3, rows), problem.x = View<double>::contiguous(x.data(), 3, rows);
    std::vector<std::int8_t> status(3);
    tridiagonal::Options options;
    options.algorithm = tridiagonal::Algorithm::certified, options.status = status.data();
    const Outcome outcome = tridiagonal::solve(queue, problem, options);
    EXPECT_EQ(outcome.reason, Reason::not_certified);
    EXPECT_EQ(outcome.system, 1);
    EXPECT_EQ(outcome.failures, 2);
    EXPECT_EQ(status, (std::vector<std::int8_t>{static_cast<std::int8_t>(Reason::certified), static_cast<std::int8_t>(Reason::not_certified), static_cast<std::int8_t>(Reason::not_certified)}));
}

TEST_P(Failure, PivotsAreTakenWhereTheyAreNeeded) {
    // Zeros on the diagonal: no unpivoted elimination starts, yet the matrix is regular for an even number of rows.
    for (const std::int64_t rows : {2, 4, 64, 1000, 5000, 100000})
        for (const std::int64_t systems : {0, 20}) {
            if (rows * systems > 200000) continue;
            Trial<double> trial(batch_of(rows, systems, Layout::contiguous, false));
            for (std::int64_t k = 0; k < trial.systems(); ++k)
                for (std::int64_t i = 0; i < rows; ++i) {
                    trial.coefficient(1, i, k) = 0;
                    if (i > 0) trial.coefficient(0, i, k) = 1;
                    if (i < rows - 1) trial.coefficient(2, i, k) = 1;
                }
            const Outcome outcome = tridiagonal::solve(queue, trial.problem());
            ASSERT_TRUE(outcome.ok()) << rows << " rows: " << trifold::name_of(outcome.reason);
            others_are_solved(trial, {});
        }
}

TRIFOLD_ON_EVERY_DEVICE(Failure);

}  // namespace
}  // namespace trifold::tests
