// SPDX-License-Identifier: BSD-3-Clause
// Many right-hand sides of one matrix, which a device may eliminate once: every layout and size about the places where kernels
// change, and what goes wrong in the matrix or in one right-hand side.
#include <cmath>
#include <initializer_list>
#include <memory>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

/// The same three numbers in every row, and right-hand sides that vary.
class Numbers final : public Entries {
public:
    Numbers(double lower, double diag, double upper) : numbers_{lower, diag, upper} {}
    double coefficient(int band, std::int64_t, std::int64_t) const override { return numbers_[band]; }
    double right(std::int64_t row, std::int64_t system) const override { return std::sin(static_cast<double>(row * 7 + system * 11)) + 0.3; }

private:
    double numbers_[3];
};

class SharedMatrix : public OnDevice {
protected:
    static Recipe recipe_of(std::int64_t rows, std::vector<std::int64_t> batch, Layout layout) {
        Recipe recipe;
        recipe.rows = rows;
        recipe.batch = std::move(batch);
        recipe.layout = layout;
        recipe.lower = recipe.diag = recipe.upper = Source::shared;
        recipe.seed = static_cast<std::uint64_t>(rows);
        return recipe;
    }

    // The same three numbers in every row.
    template <class T>
    static void set_rows(Trial<T>& trial, double lower, double diag, double upper) {
        for (std::int64_t i = 0; i < trial.recipe().rows; ++i) {
            trial.coefficient(0, i, 0) = static_cast<T>(lower);
            trial.coefficient(1, i, 0) = static_cast<T>(diag);
            trial.coefficient(2, i, 0) = static_cast<T>(upper);
        }
    }

    template <class T>
    void errors_are_small(const Trial<T>& trial, std::int64_t except = -1) {
        for (std::int64_t k = 0; k < trial.systems(); ++k)
            if (k != except) {
                ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(dtype_of<T>)) << "system " << k;
            }
    }

    // One small pivot, in every row of the first segments in turn and in the last ones: a kernel whose test leaves out a row of its threads' segments says x is fine.
    template <class T>
    void small_pivots() {
        for (const std::int64_t rows : {100, 700, 1000})
            for (std::int64_t row = 0; row + 1 < rows; row += row == 70 && rows > 170 ? rows - 170 : 1) {
                Trial<T> trial(recipe_of(rows, {40}, Layout::contiguous));
                set_rows(trial, -1, 4, -1);
                trial.coefficient(0, row, 0) = 0;
                trial.coefficient(1, row, 0) = static_cast<T>(0.01 * unit_roundoff(dtype_of<T>));
                const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                ASSERT_TRUE(outcome.ok()) << row << " of " << rows << " rows: " << trifold::name_of(outcome.reason);
                ASSERT_NO_FATAL_FAILURE(errors_are_small(trial)) << row << " of " << rows << " rows";
            }
    }

    template <class T>
    void laplacians() {
        for (const double more : {0.0, 1e-6, 0.5})
            for (const std::int64_t rows : {100, 256, 1000})
                for (const Layout layout : {Layout::contiguous, Layout::interleaved}) {
                    SCOPED_TRACE(testing::Message() << rows << " rows, 2 + " << more << ", " << name_of(layout));
                    Trial<T> trial(recipe_of(rows, {70}, layout));
                    set_rows(trial, -1, 2 + more, -1);
                    const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                    ASSERT_TRUE(outcome.ok());
                    EXPECT_EQ(outcome.rescued, 0);
                    errors_are_small(trial);
                }
    }

    void columns_are_solved(std::initializer_list<std::int64_t> all_rows, std::initializer_list<std::vector<std::int64_t>> batches) {
        for (const std::int64_t rows : all_rows)
            for (const std::vector<std::int64_t>& batch : batches)
                for (const bool in_place : {false, true}) {
                    Recipe recipe = recipe_of(rows, batch, Layout::interleaved);
                    recipe.in_place = in_place;
                    expect_solved<double>(queue, recipe);
                    expect_solved<float>(queue, recipe);
                    if (HasFailure()) return;
                }
    }
};

TEST_P(SharedMatrix, SizesAndLayouts) {
    for (const std::int64_t rows : {2, 3, 5, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 272, 273, 300, 320, 321, 352, 353, 400, 416, 417, 511, 512, 513, 544, 545})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded})
            for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{2}, {150}, {3, 37}}) {
                Recipe recipe = recipe_of(rows, batch, layout);
                recipe.in_place = rows % 2 == 0;
                expect_solved<double>(queue, recipe);
                recipe.in_place = !recipe.in_place;
                expect_solved<float>(queue, recipe);
                if (HasFailure()) return;
            }
}

TEST_P(SharedMatrix, LongSystems) {
    for (const std::int64_t rows : {799, 800, 801, 1023, 1024, 1025, 1056, 1057, 2049, 4353, 5000})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded})
            for (const bool dominant : {true, false}) {
                Recipe recipe = recipe_of(rows, {9}, layout);
                recipe.dominant = dominant;
                expect_solved<double>(queue, recipe);
                expect_solved<float>(queue, recipe);
                if (HasFailure()) return;
            }
}

TEST_P(SharedMatrix, LongColumns) {
    TRIFOLD_NOT_THE_REFERENCE();
    columns_are_solved({2049, 4097, 5003, 9000}, {{36}, {2, 65}});
}

TEST_P(SharedMatrix, LongRows) {
    for (const std::int64_t rows : {4500, 8452, 9001})
        for (const Layout layout : {Layout::contiguous, Layout::padded})
            for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{13}, {70}, {3, 37}}) {
                Recipe recipe = recipe_of(rows, batch, layout);
                recipe.in_place = batch[0] == 70;
                expect_solved<double>(queue, recipe);
                expect_solved<float>(queue, recipe);
                if (HasFailure()) return;
            }
}

// As many as are worth eliminating the matrix for once, on the cpu too.
TEST_P(SharedMatrix, MoreColumnsThanTheMatrixHasLanes) {
    TRIFOLD_NOT_THE_REFERENCE();
    columns_are_solved({2, 3, 17, 64, 257, 1000}, {{255}, {256}, {301}, {3, 97}});
    columns_are_solved({4095, 4096}, {{257}});
    for (const std::int64_t rows : {40, 300})
        for (const bool in_place : {false, true}) {
            Recipe recipe = recipe_of(rows, {270}, Layout::interleaved);
            recipe.dominant = false, recipe.in_place = in_place;
            expect_solved<double>(queue, recipe);
            expect_solved<float>(queue, recipe);
        }
}

// 2 + more on the diagonal: unknowns some 40 rows apart feel each other, or some hundreds, or all. And a row that is not dominant.
TEST_P(SharedMatrix, LongSystemsHoweverFarUnknownsFeelEachOther) {
    TRIFOLD_NOT_THE_REFERENCE();
    const auto solved = [&]<class T>(T, std::int64_t rows, double more, bool scalars, bool dominant) {
        SCOPED_TRACE(testing::Message() << rows << " rows, 2 + " << more << ", scalars " << scalars << ", dominant " << dominant);
        Recipe recipe = recipe_of(rows, {52}, rows % 16 == 0 ? Layout::contiguous : Layout::interleaved);
        recipe.in_place = rows == 9001;
        if (scalars) recipe.lower = recipe.upper = recipe.diag = Source::scalar, recipe.entries = std::make_shared<Numbers>(-1, 2 + more, -1);
        Trial<T> trial(recipe);
        if (!scalars) set_rows(trial, -1, 2 + more, -1);
        if (!dominant) trial.coefficient(1, rows / 2, 0) = static_cast<T>(0.25);
        ASSERT_TRUE(tridiagonal::solve(queue, trial.problem()).ok());
        errors_are_small(trial);
    };
    for (const std::int64_t rows : {4500, 9001, 8992}) {
        for (const double more : {2.0, 0.5, 0.1, 0.02, 1e-3, 0.0})
            for (const bool scalars : {false, true}) solved(1.0, rows, more, scalars, true), solved(1.0f, rows, more, scalars, true);
        solved(1.0, rows, 0.5, false, false), solved(1.0f, rows, 0.5, false, false);
    }
}

TEST_P(SharedMatrix, Laplacians) {
    laplacians<double>();
    laplacians<float>();
}

TEST_P(SharedMatrix, OneBandOfNumbersAndTwoOfArrays) {
    for (const Layout layout : layouts)
        for (const Source diag : {Source::shared, Source::scalar, Source::flat})
            for (const Source couplings : {Source::shared, Source::scalar, Source::flat})
                for (const std::int64_t rows : {40, 300}) {
                    Recipe recipe = recipe_of(rows, {66}, layout);
                    recipe.diag = diag, recipe.lower = couplings;
                    expect_solved<double>(queue, recipe);
                    expect_solved<float>(queue, recipe);
                    if (HasFailure()) return;
                }
}

TEST_P(SharedMatrix, PivotsAreTakenWhereItNeedsThem) {
    // Zeros on the diagonal: no unpivoted elimination starts, yet the matrix is regular for an even number of rows.
    for (const std::int64_t rows : {2, 64, 256, 600, 1000})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved})
            for (const bool in_place : {false, true}) {
                Recipe recipe = recipe_of(rows, {40}, layout);
                recipe.in_place = in_place;
                Trial<double> trial(recipe);
                set_rows(trial, 1, 0, 1);
                const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                ASSERT_TRUE(outcome.ok()) << rows << " rows: " << trifold::name_of(outcome.reason);
                errors_are_small(trial);
            }
}

TEST_P(SharedMatrix, OneSmallPivotInAnyRowF32) { small_pivots<float>(); }
TEST_P(SharedMatrix, OneSmallPivotInAnyRowF64) { small_pivots<double>(); }

TEST_P(SharedMatrix, SingularFailsForAll) {
    for (const std::int64_t rows : {2, 9, 100, 600, 1000})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded})
            for (const bool in_place : {false, true}) {
                SCOPED_TRACE(testing::Message() << rows << " rows, " << name_of(layout) << ", in place " << in_place);
                Recipe recipe = recipe_of(rows, {70}, layout);
                recipe.in_place = in_place;
                Trial<double> trial(recipe);
                const std::int64_t row = rows / 2;
                trial.coefficient(0, row, 0) = trial.coefficient(1, row, 0) = trial.coefficient(2, row - 1, 0) = 0;
                if (row + 1 < rows) trial.coefficient(2, row, 0) = trial.coefficient(0, row + 1, 0) = 0;
                std::vector<std::int8_t> status(70, 77);
                tridiagonal::Options options;
                options.status = status.data();
                const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
                EXPECT_EQ(outcome.reason, Reason::singular);
                EXPECT_EQ(outcome.system, 0);
                EXPECT_EQ(outcome.row, row);
                EXPECT_EQ(outcome.failures, 70);
                EXPECT_EQ(status, std::vector<std::int8_t>(70, static_cast<std::int8_t>(Reason::singular)));
                if (!in_place) continue;
                for (std::int64_t k = 0; k < 70; ++k) {
                    const Bands<double> s = trial.system(k);
                    const std::vector<double> left = trial.solution(k);
                    for (std::int64_t i = 0; i < rows; ++i) ASSERT_NEAR(left[i], s.rhs[i], 1e-12 * largest(s.rhs)) << "row " << i << " of system " << k;
                }
            }
}

TEST_P(SharedMatrix, ARightHandSideThatIsNotFiniteFailsAlone) {
    for (const double bad : {double(NAN), double(INFINITY)})
        for (const std::int64_t rows : {9, 40, 100, 600, 1000, 2000, 4500, 9000})
            for (const Layout layout : {Layout::contiguous, Layout::interleaved})
                for (const std::int64_t row : {std::int64_t{0}, rows / 3, rows - 1}) {
                    SCOPED_TRACE(testing::Message() << bad << " at row " << row << " of " << rows << ", " << name_of(layout));
                    Trial<double> trial(recipe_of(rows, {70}, layout));
                    trial.rhs(row, 37) = bad;
                    std::vector<std::int8_t> status(70, 77);
                    tridiagonal::Options options;
                    options.status = status.data();
                    const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
                    EXPECT_EQ(outcome.reason, Reason::not_finite);
                    EXPECT_EQ(outcome.system, 37);
                    EXPECT_EQ(outcome.row, row);
                    EXPECT_EQ(outcome.failures, 1);
                    for (std::int64_t k = 0; k < 70; ++k) EXPECT_EQ(status[static_cast<std::size_t>(k)] < 0, k == 37) << k;
                    errors_are_small(trial, 37);
                }
}

// The rows of those beside it are another lane's, or the same one's; in place a right-hand side that has failed stays as it was.
TEST_P(SharedMatrix, LongOnesThatFeelEachOtherFailAlone) {
    const auto fails = [&]<class T>(T bad, std::int64_t rows, Layout layout, bool in_place, std::int64_t row) {
        SCOPED_TRACE(testing::Message() << bad << " at row " << row << " of " << rows << ", " << name_of(layout) << ", in place " << in_place << ", " << name_of(dtype_of<T>));
        Recipe recipe = recipe_of(rows, {70}, layout);
        recipe.in_place = in_place;
        Trial<T> trial(recipe);
        set_rows(trial, -1, 2, -1);
        trial.rhs(row, 37) = trial.rhs(rows - 1 - row, 64) = bad;
        std::vector<std::int8_t> status(70, 77);
        tridiagonal::Options options;
        options.status = status.data();
        const Bands<double> before = trial.system(37);
        const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.system, 37);
        EXPECT_EQ(outcome.row, row);
        EXPECT_EQ(outcome.failures, 2);
        for (std::int64_t k = 0; k < 70; ++k) {
            EXPECT_EQ(status[static_cast<std::size_t>(k)] < 0, k == 37 || k == 64) << k;
            if (k != 37 && k != 64) { ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(dtype_of<T>)) << "system " << k; }
        }
        if (!in_place) return;
        const std::vector<double> left = trial.solution(37);
        for (std::int64_t i = 0; i < rows; ++i)
            if (i != row) { ASSERT_NEAR(left[static_cast<std::size_t>(i)], before.rhs[static_cast<std::size_t>(i)], 1e-5) << "row " << i; }
    };
    for (const std::int64_t rows : {4500, 4545, 9000}) {
        if (GetParam() == "reference" && rows > 4500) return;
        for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded})
            for (const bool in_place : {false, true})
                for (const std::int64_t row : {std::int64_t{0}, std::int64_t{63}, std::int64_t{64}, rows / 3, rows - 1}) {
                    fails(double(row % 2 ? NAN : INFINITY), rows, layout, in_place, row), fails(float(row % 2 ? INFINITY : NAN), rows, layout, in_place, row);
                    if (HasFailure()) return;
                }
    }
}

// A row of zeros at the end of 64 rows, which a device may eliminate by themselves: it shows when they are joined, and right-hand sides have been looked at then. One that is not finite fails once.
TEST_P(SharedMatrix, LongSingularOnesFailOnce) {
    for (const std::int64_t rows : {4500, 9001})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved})
            for (const bool in_place : {false, true}) {
                SCOPED_TRACE(testing::Message() << rows << " rows, " << name_of(layout) << ", in place " << in_place);
                Recipe recipe = recipe_of(rows, {70}, layout);
                recipe.in_place = in_place;
                Trial<double> trial(recipe);
                set_rows(trial, -1, 2, -1);
                constexpr std::int64_t row = 21 * 64 - 1;
                trial.coefficient(0, row, 0) = trial.coefficient(1, row, 0) = trial.coefficient(2, row, 0) = trial.coefficient(2, row - 1, 0) = trial.coefficient(0, row + 1, 0) = 0;
                trial.rhs(100, 37) = NAN;
                const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                EXPECT_EQ(outcome.reason, Reason::singular);
                EXPECT_EQ(outcome.system, 0);
                EXPECT_EQ(outcome.row, row);
                EXPECT_EQ(outcome.failures, 70);
            }
}

TEST_P(SharedMatrix, ManyColumnsWhoseRowsBeginAnywhere) {
    TRIFOLD_NOT_THE_REFERENCE();
    columns_are_solved({7, 100, 255, 400, 700, 1000, 1100, 2000}, {{517}, {3, 255}});
}

TEST_P(SharedMatrix, ColumnsThatAreNotFiniteFailAloneWhereverSetsEnd) {
    for (const std::int64_t rows : {100, 255, 1000, 1500, 2500})
        for (const bool in_place : {false, true}) {
            Recipe recipe = recipe_of(rows, {517}, Layout::interleaved);
            recipe.in_place = in_place;
            Trial<double> trial(recipe);
            const auto bad = [](std::int64_t k) { return (k + 3) % 61 < 7 || (k + 3) % 125 < 7; };
            std::int64_t failures = 0;
            for (std::int64_t k = 0; k < 517; ++k)
                if (bad(k)) trial.rhs(rows / 2, k) = NAN, ++failures;
            std::vector<std::int8_t> status(517, 77);
            tridiagonal::Options options;
            options.status = status.data();
            const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
            EXPECT_EQ(outcome.reason, Reason::not_finite);
            EXPECT_EQ(outcome.failures, failures);
            for (std::int64_t k = 0; k < 517; ++k) {
                ASSERT_EQ(status[static_cast<std::size_t>(k)] < 0, bad(k)) << k;
                if (!bad(k)) {
                    ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(dtype_of<double>)) << "system " << k;
                }
            }
        }
}

// Rows in whole vectors, sets of columns that are full or nearly so.
TEST_P(SharedMatrix, ManyColumnsInWholeVectors) {
    TRIFOLD_NOT_THE_REFERENCE();
    columns_are_solved({2, 31, 32, 33, 64, 129, 200, 256, 257, 512, 513, 800, 1024, 1100, 2000}, {{252}, {3, 128}, {2, 3, 64}});
}

// Bands that have room for x on its way out, too: it was not counted where rows are whole vectors, and the launch was refused.
TEST_P(SharedMatrix, ManyColumnsInWholeVectorsThatAreNoSectors) {
    columns_are_solved({400, 448}, {{402}, {3, 402}});
}

// More sets than a device has blocks for at a time.
template <class T>
void many_sets(Queue& queue, Recipe recipe) {
    for (const bool in_place : {false, true}) {
        recipe.in_place = in_place;
        Trial<T> trial(recipe);
        const std::int64_t systems = trial.systems();
        const auto bad = [](std::int64_t k) { return k % 997 == 5 || k % 64 == 63; };
        std::int64_t failures = 0;
        for (std::int64_t k = 0; k < systems; ++k)
            if (bad(k)) trial.rhs(k % recipe.rows, k) = NAN, ++failures;
        std::vector<std::int8_t> status(static_cast<std::size_t>(systems), 77);
        tridiagonal::Options options;
        options.status = status.data();
        const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.system, 5);
        EXPECT_EQ(outcome.failures, failures);
        for (std::int64_t k = 0; k < systems; ++k) {
            ASSERT_EQ(status[static_cast<std::size_t>(k)] < 0, bad(k)) << k;
            if (!bad(k) && k % 7 == 0) {
                ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(dtype_of<T>)) << "system " << k;
            }
        }
    }
}

TEST_P(SharedMatrix, ManySetsOfColumnsOfWhichSomeAreNotFinite) {
    TRIFOLD_NOT_THE_REFERENCE();
    many_sets<float>(queue, recipe_of(200, {2, 12800}, Layout::interleaved));
    many_sets<double>(queue, recipe_of(100, {19200}, Layout::interleaved));
    many_sets<double>(queue, recipe_of(600, {6400}, Layout::interleaved));
    many_sets<float>(queue, recipe_of(600, {9600}, Layout::interleaved));
    many_sets<float>(queue, recipe_of(1024, {3200}, Layout::interleaved));
    many_sets<float>(queue, recipe_of(1000, {5201}, Layout::interleaved));
    many_sets<double>(queue, recipe_of(500, {5201}, Layout::interleaved));
    many_sets<double>(queue, recipe_of(150, {5201}, Layout::interleaved));
    many_sets<double>(queue, recipe_of(1100, {5201}, Layout::interleaved));
    many_sets<double>(queue, recipe_of(1500, {3200}, Layout::interleaved));
    many_sets<float>(queue, recipe_of(330, {3, 5201}, Layout::interleaved));
}

// Sets are taken from places far apart then.
TEST_P(SharedMatrix, ManySetsOfColumnsWhoseRowsAreALargePowerOfTwoApart) {
    TRIFOLD_NOT_THE_REFERENCE();
    many_sets<float>(queue, recipe_of(40, {65536}, Layout::interleaved));
    many_sets<float>(queue, recipe_of(320, {32768}, Layout::interleaved));
}

TEST_P(SharedMatrix, GivesTheSameBitsAgain) {
    for (const Layout layout : layouts)
        for (const std::int64_t rows : {31, 129, 600, 1000, 4500}) {
            const Recipe recipe = recipe_of(rows, {rows == 600 ? 1203 : 203}, layout);
            Trial<float> first(recipe), second(recipe);
            ASSERT_TRUE(tridiagonal::solve(queue, first.problem()).ok());
            ASSERT_TRUE(tridiagonal::solve(queue, second.problem()).ok());
            for (std::int64_t k = 0; k < first.systems(); ++k) ASSERT_EQ(first.stored(k), second.stored(k)) << recipe.text();
        }
}

TRIFOLD_ON_EVERY_DEVICE(SharedMatrix);

}  // namespace
}  // namespace trifold::tests
