// SPDX-License-Identifier: BSD-3-Clause
// Batches of indefinite systems by LU, of lengths around those where devices share a system among more workers, or hold it elsewhere.
#include <cmath>
#include <cstring>

#include "contract/tridiagonal/pivoted.hpp"
#include "support/lapack.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

TEST_P(Pivoted, BatchesOfEveryLength) {
    for (const std::int64_t rows : {15, 16, 33, 63, 64, 65, 100, 127, 128, 129, 255, 257, 513, 1000, 1777, 2048, 3500, 3571, 4096, 7205, 7260, 7300, 14400, 14600})
        for (const std::int64_t systems : {2, 11, 300})
            for (const Layout layout : layouts) {
                if (rows * systems > 40000) continue;
                const Recipe recipe = recipe_of(rows, systems, layout, systems == 11);
                attempt<double>(recipe, by_lu());
                attempt<float>(recipe, by_lu());
                if (HasFailure()) return;
            }
}

// Longer than a block of a GPU holds, than a cluster of two, four or eight of them, and than any.
TEST_P(Pivoted, BatchesOfLongSystems) {
    TRIFOLD_NOT_THE_REFERENCE();
    for (const std::int64_t rows : {4097, 7231, 10007, 14465, 28917, 57831, 115651})
        for (const std::int64_t systems : {2, 5})
            for (const Layout layout : layouts)
                for (const bool by_name : {true, false}) {
                    if (rows * systems > 240000) continue;
                    const Recipe recipe = recipe_of(rows, systems, layout, by_name == (systems == 2));
                    attempt<double>(recipe, by_name ? by_lu() : tridiagonal::Options{});
                    attempt<float>(recipe, by_name ? by_lu() : tridiagonal::Options{});
                    if (HasFailure()) return;
                }
}

// One system, or a few, by what is chosen for them; they are found to need pivots.
TEST_P(Pivoted, OneSystemOfEveryLength) {
    for (const std::int64_t rows : {20, 63, 64, 65, 100, 300, 511, 512, 777, 1024, 2000, 4096, 4100, 4608, 4609, 9000, 25000})
        for (const bool in_place : {false, true}) {
            Recipe recipe = recipe_of(rows, 1, Layout::contiguous, in_place);
            recipe.batch.clear();
            attempt<double>(recipe, {});
            attempt<float>(recipe, {});
        }
    for (const std::int64_t rows : {20, 64, 100, 300})
        for (const std::int64_t systems : {2, 5}) {
            attempt<double>(recipe_of(rows, systems, Layout::contiguous, false), {});
            attempt<float>(recipe_of(rows, systems, Layout::contiguous, true), {});
        }
}

// Dominant but for one row, in front, in the middle or at the end: little, hardly, of extreme size, not finite, or coupled to nothing.
TEST_P(Pivoted, OneSystemWithOneOddRow) {
    for (const std::int64_t rows : {512, 2000, 4096, 4600})
        for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1})
            for (const double diag : {0.0, 1e-3, 0.7, 1e-200, 1e200, double{NAN}})
                for (const double rhs : {1.0, 1e300, double{NAN}}) {
                    SCOPED_TRACE(testing::Message() << rows << " rows, row " << row << ", diag " << diag << ", rhs " << rhs);
                    Recipe recipe = recipe_of(rows, 1, Layout::contiguous, true);
                    recipe.batch.clear(), recipe.dominant = true;
                    Trial<double> trial(recipe);
                    trial.coefficient(1, row, 0) = diag, trial.rhs(row, 0) = rhs;
                    const std::vector<double> before = trial.stored(0);
                    const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                    if (std::isfinite(diag) && std::isfinite(rhs)) {
                        ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason);
                        Bands<double> system = trial.system(0);
                        system.rhs[row] = rhs;
                        ASSERT_LE(backward_error(system, trial.solution(0)), 20 * unit_roundoff(DType::f64));
                    } else {
                        ASSERT_EQ(outcome.reason, Reason::not_finite);
                        // Others may have overwritten the one system's right-hand side by then.
                        if (GetParam().starts_with("cuda")) {
                            ASSERT_EQ(std::memcmp(before.data(), trial.stored(0).data(), before.size() * sizeof(double)), 0);
                        }
                    }
                }
}

// One system in twelve needs pivots.
TEST_P(Pivoted, AFewOfABatch) {
    for (const std::int64_t rows : {64, 100, 500, 2048, 4000, 8000, 16000})
        for (const Layout layout : layouts) {
            Recipe recipe = recipe_of(rows, 24, layout, rows == 500);
            recipe.dominant = true;
            Trial<double> trial(recipe);
            for (const std::int64_t k : {std::int64_t{3}, std::int64_t{20}})
                for (std::int64_t i = 0; i < rows; ++i) {
                    trial.coefficient(1, i, k) = 0;
                    if (i > 0) trial.coefficient(0, i, k) = 1;
                    if (i + 1 < rows) trial.coefficient(2, i, k) = -1;
                }
            SCOPED_TRACE(recipe.text());
            const Outcome outcome = tridiagonal::solve(queue, trial.problem());
            ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason);
            for (std::int64_t k = 0; k < trial.systems(); ++k) ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k;
        }
}

TEST_P(Pivoted, WhatCannotBeSolvedIsNamedAndLeftAsItWas) {
    for (const std::int64_t rows : {20, 64, 200, 1000, 3000, 5000, 12000})
        for (const std::int64_t row : {std::int64_t{0}, rows / 3, rows - 1})
            for (const Layout layout : layouts) {
                SCOPED_TRACE(testing::Message() << rows << " rows, " << name_of(layout) << ", row " << row);
                Trial<double> trial(recipe_of(rows, 9, layout, true));
                // Row `row` of system 4 couples to nothing, not even to itself; one of system 6 has a right-hand side that is not finite.
                trial.coefficient(1, row, 4) = 0;
                if (row > 0) trial.coefficient(0, row, 4) = trial.coefficient(2, row - 1, 4) = 0;
                if (row + 1 < rows) trial.coefficient(2, row, 4) = trial.coefficient(0, row + 1, 4) = 0;
                trial.rhs(row, 6) = NAN;
                std::vector<std::int8_t> status(9, 77);
                tridiagonal::Options options = by_lu();
                options.status = status.data();
                const std::vector<double> before[2] = {trial.stored(4), trial.stored(6)};
                const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
                EXPECT_EQ(outcome.reason, Reason::singular);
                EXPECT_EQ(outcome.system, 4);
                EXPECT_EQ(outcome.row, row);
                EXPECT_EQ(outcome.failures, 2);
                EXPECT_EQ(status[6], static_cast<std::int8_t>(Reason::not_finite));
                for (const int k : {4, 6}) {
                    const std::vector<double> now = trial.stored(k);
                    for (std::int64_t i = 0; i < rows; ++i)
                        ASSERT_TRUE(now[i] == before[k / 2 - 2][i] || (std::isnan(now[i]) && std::isnan(before[k / 2 - 2][i]))) << "system " << k << ", row " << i;
                }
                for (std::int64_t k = 0; k < 9; ++k)
                    if (k != 4 && k != 6) { ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k; }
            }
}

// Many side by side, which some devices take by other kernels: all by LU, and what is found to need it; nothing of their neighbours is written.
TEST_P(Pivoted, ManySideBySide) {
    TRIFOLD_NOT_THE_REFERENCE();
    for (const std::int64_t rows : {2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 47, 129, 256, 300, 513})
        for (const bool in_place : {false, true}) {
            Recipe recipe = recipe_of(rows, 2100, Layout::interleaved, in_place);
            if (rows % 2) recipe.batch = {3, 701};
            attempt<double>(recipe, by_lu());
            attempt<float>(recipe, by_lu());
            if (HasFailure()) return;
        }
    attempt<double>(recipe_of(1025, 2050, Layout::interleaved, false), by_lu());
    // Fewer than two lanes each are for, several to a block: a lane has as many rows as it remembers choices for, and no more.
    for (const std::int64_t rows : {1057, 1200, 1447, 1611}) attempt<double>(recipe_of(rows, 700, Layout::interleaved, false), by_lu()), attempt<float>(recipe_of(rows, 1023, Layout::interleaved, true), by_lu());
    attempt<float>(recipe_of(1025, 2050, Layout::interleaved, true), by_lu());
}

TEST_P(Pivoted, OfManySideBySideOnlyWhatCannotBeSolvedFails) {
    constexpr std::int64_t systems = 2100;
    for (const std::int64_t rows : {5, 40, 600})
        for (const bool in_place : {false, true}) {
            SCOPED_TRACE(testing::Message() << rows << " rows, in place " << in_place);
            Trial<double> trial(recipe_of(rows, systems, Layout::interleaved, in_place));
            std::vector<Reason> expected(systems, Reason::exact);
            const auto alone = [&](std::int64_t row, std::int64_t k) {
                if (row > 0) trial.coefficient(0, row, k) = trial.coefficient(2, row - 1, k) = 0;
                if (row + 1 < rows) trial.coefficient(2, row, k) = trial.coefficient(0, row + 1, k) = 0;
            };
            const auto fails = [&](std::int64_t k, Reason reason) { expected[static_cast<std::size_t>(k)] = reason; };
            for (std::int64_t c = 0; c < 3; ++c) {
                const std::int64_t row = c == 0 ? 0 : c == 1 ? rows / 2 : rows - 1, k = 100 + 33 * c;
                alone(row, k), trial.coefficient(1, row, k) = 0, fails(k, Reason::singular);
                // x is too large for a number; a pivot is hardly one, and all is well.
                alone(row, k + 1), trial.coefficient(1, row, k + 1) = 1e-200, trial.rhs(row, k + 1) = 1e200, fails(k + 1, Reason::not_finite);
                alone(row, k + 2), trial.coefficient(1, row, k + 2) = 1e-300;
                trial.rhs(row, k + 3) = NAN, fails(k + 3, Reason::not_finite);
                trial.coefficient(1, row, k + 4) = INFINITY, fails(k + 4, Reason::not_finite);
                trial.coefficient(c == 2 ? 0 : 2, row, k + 5) = NAN, fails(k + 5, Reason::not_finite);
            }
            trial.rhs(rows - 2, systems - 1) = -INFINITY, fails(systems - 1, Reason::not_finite);
            std::vector<std::vector<double>> before;
            for (std::int64_t k = 0; k < systems; ++k) before.push_back(trial.stored(k));
            std::vector<std::int8_t> status(systems, 77);
            tridiagonal::Options options = by_lu();
            options.status = status.data();
            const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
            EXPECT_EQ(outcome.failures, 16);
            EXPECT_EQ(outcome.reason, Reason::singular);
            EXPECT_EQ(outcome.system, 100);
            EXPECT_EQ(outcome.row, 0);
            for (std::int64_t k = 0; k < systems; ++k) {
                const Reason reason = expected[static_cast<std::size_t>(k)];
                ASSERT_EQ(status[static_cast<std::size_t>(k)], static_cast<std::int8_t>(reason)) << "system " << k;
                if (reason == Reason::exact) {
                    ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k;
                } else if (in_place && (GetParam().starts_with("cuda") || (k - 101) % 33 != 0)) {  // others may have stored x by the time that some of it is too large
                    const std::vector<double> now = trial.stored(k);
                    const auto& was = before[static_cast<std::size_t>(k)];
                    for (std::size_t i = 0; i < now.size(); ++i) ASSERT_TRUE(now[i] == was[i] || (std::isnan(now[i]) && std::isnan(was[i]))) << "system " << k << ", row " << i;
                }
            }
        }
}

// So many that a launch of its own for what most of them need is little beside the rest.
TEST_P(Pivoted, MostOfVeryManySideBySide) {
    if (!GetParam().starts_with("cuda")) GTEST_SKIP() << "others do not tell few from many";
    constexpr std::int64_t rows = 256, systems = 65600;
    for (const bool in_place : {false, true}) {
        Trial<float> trial(recipe_of(rows, systems, Layout::interleaved, in_place));
        for (std::int64_t k = 5; k < systems; k += 3)
            for (std::int64_t i = 0; i < rows; ++i) trial.coefficient(1, i, k) = 4;
        trial.coefficient(1, 100, 4711) = 0, trial.coefficient(0, 100, 4711) = trial.coefficient(2, 100, 4711) = 0;
        const std::vector<float> before = trial.stored(4711);
        const Outcome outcome = tridiagonal::solve(queue, trial.problem());
        EXPECT_EQ(outcome.reason, Reason::singular);
        EXPECT_EQ(outcome.system, 4711);
        EXPECT_EQ(outcome.failures, 1);
        EXPECT_GT(outcome.rescued, systems / 4);
        if (in_place) { EXPECT_EQ(trial.stored(4711), before); }
        for (std::int64_t k = 0; k < systems; ++k)
            if (k != 4711) { ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f32)) << "system " << k; }
    }
}

TEST_P(Pivoted, ManySideBySideGiveTheSameBitsAgain) {
    for (const std::int64_t rows : {100, 600}) {
        const Recipe recipe = recipe_of(rows, 2100, Layout::interleaved, false);
        Trial<float> first(recipe), second(recipe);
        ASSERT_TRUE(tridiagonal::solve(queue, first.problem(), by_lu()).ok());
        ASSERT_TRUE(tridiagonal::solve(queue, second.problem(), by_lu()).ok());
        for (std::int64_t k = 0; k < first.systems(); ++k) ASSERT_EQ(first.stored(k), second.stored(k)) << recipe.text();
    }
}

// Equal rows round alike, and one row waits for a pivot through thousands of them: what they miss adds up in it, unless eliminated is what is stored.
template <class T>
void batch_of_waves(Queue& queue, std::int64_t rows, double diag, double coupling, Layout layout, bool as_lapack, std::int64_t systems = 40) {
    Recipe recipe;
    recipe.rows = rows, recipe.batch = {systems}, recipe.layout = layout;
    Trial<T> trial(recipe);
    for (std::int64_t k = 0; k < systems; ++k)
        for (std::int64_t i = 0; i < rows; ++i) {
            trial.coefficient(1, i, k) = static_cast<T>(diag);
            if (i > 0) trial.coefficient(0, i, k) = static_cast<T>(-coupling);
            if (i + 1 < rows) trial.coefficient(2, i, k) = static_cast<T>(-coupling);
        }
    ASSERT_TRUE(tridiagonal::solve(queue, trial.problem()).ok());
    for (std::int64_t k = 0; k < systems; k += systems / 3) {
        const Bands<double> s = trial.system(k);
        const double peer = backward_error(s, as_double(gtsv(cast<T>(s)).x));
        // What gtsv leaves of waves, with other roundings: 0.12 √n u.
        const double gathered = as_lapack ? 1.2 * std::sqrt(static_cast<double>(rows)) : 0;
        ASSERT_LE(backward_error(s, trial.solution(k)), std::max(std::max(20.0, gathered) * unit_roundoff(dtype_of<T>), 10 * peer))
            << rows << " rows, " << diag << ", " << coupling << ", " << name_of(layout) << ", " << trifold::name_of(dtype_of<T>);
    }
}

TEST_P(Pivoted, BatchesOfWaves) {
    for (const std::int64_t rows : {292, 767, 1000, 3000, 8000})
        for (const double diag : {0.1, 0.7, 1.2, 1.7, 1.9})
            for (const double coupling : {3.0, 10.0})
                for (const Layout layout : {Layout::contiguous, Layout::interleaved}) {
                    const bool as_lapack = GetParam().starts_with("opencl:");
                    batch_of_waves<double>(queue, rows, diag, coupling, layout, as_lapack), batch_of_waves<float>(queue, rows, diag, coupling, layout, as_lapack);
                    if (HasFatalFailure()) return;
                }
    // A symmetric matrix whose quotients upper / lower were not 1, but what a rounded reciprocal makes of them, left 394 u of these rows.
    if (GetParam() == "cpu") batch_of_waves<float>(queue, 9215, 0.647875964641571, 1.653214931488037, Layout::interleaved, false);
}

TEST_P(Pivoted, ManyWavesSideBySide) {
    TRIFOLD_NOT_THE_REFERENCE();
    const bool as_lapack = GetParam().starts_with("opencl:");
    const std::int64_t times = GetParam().starts_with("cuda:") ? 16 : 1;  // as many as it has another kernel for
    for (const std::int64_t rows : {120, 500, 2000})
        for (const double diag : {0.21, 0.647875964641571, 1.1, 1.483, 1.77})
            for (const double coupling : {1.0, 1.653214931488037}) {
                const std::int64_t systems = (rows < 2000 ? 256 : 64) * times;
                batch_of_waves<double>(queue, rows, diag * coupling, coupling, Layout::interleaved, as_lapack, systems);
                batch_of_waves<float>(queue, rows, diag * coupling, coupling, Layout::interleaved, as_lapack, systems);
                if (HasFatalFailure()) return;
            }
}

// One long system: what chunks are stored with, and what is lost where LU has to make the right-hand side again, is no reason to give up.
struct Waves final : Entries {
    double diag, coupling;
    bool alternating;

    Waves(double on_diagonal, double beside, bool alternates) : diag(on_diagonal * beside), coupling(-beside), alternating(alternates) {}
    double coefficient(int band, std::int64_t, std::int64_t) const override { return band == 1 ? diag : coupling; }
    double right(std::int64_t row, std::int64_t) const override { return alternating ? (row % 2 ? -1 : 1) : std::sin(0.37 * static_cast<double>(row * row % 1009)); }
};

template <class T>
void long_waves_in_place(Queue& queue, std::int64_t rows, const Waves& waves) {
    Recipe recipe;
    recipe.rows = rows, recipe.in_place = true, recipe.entries = std::make_shared<Waves>(waves);
    Trial<T> trial(recipe);
    const Outcome outcome = tridiagonal::solve(queue, trial.problem());
    SCOPED_TRACE(testing::Message() << rows << " rows, " << waves.diag << ", " << waves.coupling << ", " << trifold::name_of(dtype_of<T>));
    ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason) << ", " << outcome.branch;
    ASSERT_LE(backward_error(trial.system(0), trial.solution(0)), 3 * std::sqrt(static_cast<double>(rows)) * unit_roundoff(dtype_of<T>));
}

TEST_P(Pivoted, LongWavesInPlace) {
    for (const std::int64_t rows : {12000, 25207, 43008})
        for (const double diag : {-1.9, -1.3, -0.4, 0.05, 0.8, 1.55, 1.94})
            for (const double coupling : {1.1, 2.3, 3.9})
                for (const bool alternating : {false, true}) {
                    long_waves_in_place<double>(queue, rows, {diag, coupling, alternating}), long_waves_in_place<float>(queue, rows, {diag, coupling, alternating});
                    if (HasFatalFailure()) return;
                }
}

// What is accepted must not depend on how large a matrix is: rows that only fill a lane were once measured with it.
template <class T>
void small_numbers(Queue& queue, std::int64_t rows, std::int64_t systems, int exponent) {
    Recipe recipe;
    recipe.rows = rows, recipe.batch = {systems}, recipe.seed = static_cast<std::uint64_t>(rows + systems);
    Trial<T> trial(recipe);
    Random random(recipe.seed);
    for (std::int64_t k = 0; k < systems; ++k)
        for (std::int64_t i = 0; i < rows; ++i)
            for (int band = 0; band < 3; ++band) {
                if ((band == 0 && i == 0) || (band == 2 && i + 1 == rows)) continue;
                const double value = random.uniform(-1, 1);
                trial.coefficient(band, i, k) = static_cast<T>(std::ldexp(band == 1 ? 1e-4 * value : value, exponent));
            }
    ASSERT_TRUE(tridiagonal::solve(queue, trial.problem()).ok());
    for (std::int64_t k = 0; k < systems; k += 7)
        ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(dtype_of<T>))
            << rows << " rows, system " << k << " of " << systems << ", 2^" << exponent << ", " << trifold::name_of(dtype_of<T>);
}

TEST_P(Pivoted, SmallNumbers) {
    for (const std::int64_t rows : {2, 5, 12, 40, 100, 700, 1000, 1100, 2000, 3000})
        for (const std::int64_t systems : {1, 2, 40})
            for (const int exponent : {0, -10, -36}) {
                small_numbers<double>(queue, rows, systems, exponent), small_numbers<float>(queue, rows, systems, exponent);
                if (HasFatalFailure()) return;
            }
}

// Of long systems what decays is set to zero before it is below the normal range; nothing of a matrix near that may be lost unseen.
struct Tiny final : Entries {
    std::vector<double> numbers;
    double diag;
    int exponent;
    bool small_rhs;

    Tiny(std::int64_t rows, double on_diagonal, int power, bool rhs_too) : numbers(static_cast<std::size_t>(4 * rows)), diag(on_diagonal), exponent(power), small_rhs(rhs_too) {
        Random random(static_cast<std::uint64_t>(rows));
        for (double& number : numbers) number = random.uniform(-1, 1);
    }
    double coefficient(int band, std::int64_t row, std::int64_t) const override {
        return std::ldexp((band == 1 ? diag : 0) + numbers[static_cast<std::size_t>(4 * row + band)], exponent);
    }
    double right(std::int64_t row, std::int64_t) const override { return std::ldexp(numbers[static_cast<std::size_t>(4 * row + 3)], small_rhs ? exponent : 0); }
};

template <class T>
void tiny_numbers(Queue& queue, std::int64_t rows, double diag, int exponent, bool small_rhs) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << diag << ", 2^" << exponent << (small_rhs ? ", rhs too, " : ", ") << trifold::name_of(dtype_of<T>));
    Recipe recipe;
    recipe.rows = rows, recipe.entries = std::make_shared<Tiny>(rows, diag, exponent, small_rhs);
    Trial<T> trial(recipe);
    ASSERT_TRUE(tridiagonal::solve(queue, trial.problem()).ok());
    ASSERT_LE(backward_error(trial.system(0), trial.solution(0)), 20 * unit_roundoff(dtype_of<T>));
}

// Far from the one row that has a right-hand side x dies out, through all numbers there are.
struct OneEntry final : Entries {
    Tiny matrix;
    std::int64_t place;

    OneEntry(std::int64_t rows, double diag, std::int64_t row) : matrix(rows, diag, 0, false), place(row) {}
    double coefficient(int band, std::int64_t row, std::int64_t number) const override { return matrix.coefficient(band, row, number); }
    double right(std::int64_t row, std::int64_t) const override { return row == place ? 1 : 0; }
};

TEST_P(Pivoted, LongSystemsWhoseUnknownsDieOut) {
    for (const std::int64_t rows : {20000, 60000})
        for (const double diag : {0.0, 3.1})
            for (const std::int64_t place : {std::int64_t{-1}, rows / 3}) {
                SCOPED_TRACE(testing::Message() << rows << " rows, " << diag << ", row " << place);
                Recipe recipe;
                recipe.rows = rows, recipe.entries = std::make_shared<OneEntry>(rows, diag, place);
                const Trial<float> trial(recipe);
                const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                ASSERT_TRUE(outcome.ok());
                if (!GetParam().starts_with("cuda:")) { EXPECT_NE(outcome.reason, Reason::refined); }
                EXPECT_LE(backward_error(trial.system(0), trial.solution(0)), 20 * unit_roundoff(DType::f32));
            }
}

TEST_P(Pivoted, LongSystemsOfTinyNumbers) {
    for (const std::int64_t rows : {5000, 20000, 60000})
        for (const double diag : {0.0, 3.1})
            for (const bool small_rhs : {false, true}) {
                for (const int exponent : {-60, -85, -98}) tiny_numbers<float>(queue, rows, diag, exponent, small_rhs);
                for (const int exponent : {-500, -960}) tiny_numbers<double>(queue, rows, diag, exponent, small_rhs);
                if (HasFatalFailure()) return;
            }
}

TRIFOLD_ON_EVERY_DEVICE(Pivoted);

}  // namespace
}  // namespace trifold::tests
