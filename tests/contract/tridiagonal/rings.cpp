// SPDX-License-Identifier: BSD-3-Clause
// Periodic batches: rings side by side around every boundary of chunks, blocks and clusters, with a matrix each or one for all; long ones that forget and such that do not; a few among many that need pivots.
#include <algorithm>
#include <limits>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

class Rings : public OnDevice {
protected:
    static Recipe recipe_of(std::int64_t rows, std::int64_t systems, Layout layout) {
        Recipe recipe;
        recipe.rows = rows, recipe.batch = {systems}, recipe.layout = layout, recipe.periodic = true;
        recipe.seed = static_cast<std::uint64_t>(rows * 131 + systems);
        return recipe;
    }

    template <class T>
    void solve(const Recipe& recipe) {
        SCOPED_TRACE(recipe.text());
        expect_solved<T>(queue, recipe);
    }
};

TEST_P(Rings, SideBySide) {
    for (const std::int64_t rows : {3, 6, 16, 17, 31, 33, 48, 63, 64, 65, 66, 80, 127, 128, 129, 200, 255, 256, 257, 300, 511, 512, 513, 640, 641, 1000, 1023, 1024, 1025, 1500, 2047, 2049, 4095, 4096})
        for (const std::int64_t systems : {12, 13, 64, 129}) {
            if (rows * systems > 140000) continue;
            Recipe recipe = recipe_of(rows, systems, Layout::interleaved);
            recipe.in_place = (rows + systems) % 3 == 0;
            solve<double>(recipe), solve<float>(recipe);
            if (HasFailure()) return;
        }
}

TEST_P(Rings, SideBySideThatNeedPivots) {
    for (const std::int64_t rows : {40, 129, 300, 700, 1100})
        for (const bool in_place : {false, true}) {
            Recipe recipe = recipe_of(rows, 33, Layout::interleaved);
            recipe.dominant = false, recipe.in_place = in_place;
            solve<double>(recipe), solve<float>(recipe);
        }
}

// So many that rows lie far apart: alone, in place, added, with pivots in all of them, in a few, or in none; one that is not finite.
TEST_P(Rings, SideBySideRowsFarApart) {
    for (const std::int64_t rows : {3, 4, 17, 64, 257, 700})
        for (const std::int64_t systems : {271, 512}) {
            if (rows * systems > 200000) continue;
            Recipe recipe = recipe_of(rows, systems, Layout::interleaved);
            for (int kind = 0; kind < 4; ++kind) {
                recipe.dominant = kind % 2 == 0, recipe.in_place = kind == 1 || kind == 2, recipe.accumulate = kind == 3;
                recipe.diag = kind == 2 ? Source::scalar : Source::full;
                solve<double>(recipe), solve<float>(recipe);
            }
            recipe = recipe_of(rows, systems, Layout::interleaved);
            Trial<double> trial(recipe);
            trial.rhs(rows - 1, 9) = std::numeric_limits<double>::quiet_NaN();
            const Outcome outcome = tridiagonal::solve(queue, trial.problem());
            EXPECT_EQ(outcome.failures, 1);
            EXPECT_EQ(outcome.system, 9);
            for (const std::int64_t k : {8, 10, 15, 16}) EXPECT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "ring " << k;
            if (HasFailure()) return;
        }
}

TEST_P(Rings, OneMatrix) {
    for (const std::int64_t rows : {3, 4, 9, 10, 11, 15, 16, 17, 18, 20, 25, 32, 33, 34, 64, 65, 100, 255, 256, 257, 272, 273, 400, 511, 512, 513, 544, 545, 1000, 1023, 1024, 1025, 1056, 1057, 2048, 2112, 2113, 3000})
        for (const std::int64_t systems : {2, 40, 131})
            for (const Layout layout : {Layout::interleaved, Layout::contiguous}) {
                if (rows * systems > 85000) continue;
                Recipe recipe = recipe_of(rows, systems, layout);
                recipe.lower = recipe.diag = recipe.upper = (rows + systems) % 2 ? Source::shared : Source::scalar;
                recipe.in_place = (rows + systems) % 3 == 0;
                recipe.dominant = rows != 257;
                solve<double>(recipe), solve<float>(recipe);
                if (HasFailure()) return;
            }
}

// Numbers that are not finite fail their ring alone, wherever it stands in a run.
template <class T>
void what_is_not_finite(Queue& queue, std::int64_t rows, Layout layout, bool shared) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << name_of(layout) << ", shared " << shared << ", " << trifold::name_of(dtype_of<T>));
    Recipe recipe;
    recipe.rows = rows, recipe.batch = {67}, recipe.layout = layout, recipe.periodic = true;
    if (shared) recipe.lower = recipe.diag = recipe.upper = Source::shared;
    Trial<T> trial(recipe);
    const std::int64_t bad[3] = {0, 23, 66};
    for (const std::int64_t k : bad) trial.rhs(k == 23 ? rows / 2 : k ? rows - 1 : 0, k) = k == 66 ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::quiet_NaN();
    std::vector<std::int8_t> status(67, 77);
    tridiagonal::Options options;
    options.status = status.data();
    const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
    EXPECT_EQ(outcome.failures, 3);
    EXPECT_EQ(outcome.system, 0);
    for (std::int64_t k = 0; k < 67; ++k) {
        const bool fails = std::ranges::find(bad, k) != std::end(bad);
        EXPECT_EQ(status[static_cast<std::size_t>(k)] < 0, fails) << "ring " << k;
        if (fails) continue;
        EXPECT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(dtype_of<T>)) << "ring " << k;
    }
}

TEST_P(Rings, WhatIsNotFiniteFailsItsRingAlone) {
    for (const std::int64_t rows : {5, 30, 100, 256, 700})
        for (const Layout layout : {Layout::interleaved, Layout::contiguous})
            for (const bool shared : {false, true}) what_is_not_finite<double>(queue, rows, layout, shared), what_is_not_finite<float>(queue, rows, layout, shared);
    // So many that long ones are tried at their seams.
    for (const Layout layout : {Layout::interleaved, Layout::contiguous}) what_is_not_finite<double>(queue, 8000, layout, false), what_is_not_finite<float>(queue, 8000, layout, true);
}

// Words that a call leaves behind must not matter to the next one: also not those of a call that had to solve rings otherwise.
TEST_P(Rings, LongOnesGiveTheSameBitsAgain) {
    for (const Layout layout : {Layout::interleaved, Layout::contiguous}) {
        Trial<double> trial(recipe_of(9000, 60, layout));
        const double good = trial.rhs(4500, 7);
        std::vector<std::vector<double>> first;
        for (int run = 0; run < 3; ++run) {
            trial.rhs(4500, 7) = run == 1 ? std::numeric_limits<double>::quiet_NaN() : good;
            EXPECT_EQ(tridiagonal::solve(queue, trial.problem()).failures, run == 1) << "run " << run;
            for (std::int64_t k = 0; k < 60 && run != 1; ++k) {
                if (run == 0) first.push_back(trial.stored(k));
                else ASSERT_EQ(trial.stored(k), first[static_cast<std::size_t>(k)]) << "ring " << k;
            }
        }
    }
}

/// -1, 2 + more, -1; or dominant rows, the first two of which are nearly singular without what couples them to the last one.
class Hard final : public Entries {
public:
    Hard(std::int64_t rows, double more, bool ends, std::uint64_t seed) : rows_(rows), more_(more), ends_(ends), seed_(seed) {}
    double coefficient(int band, std::int64_t row, std::int64_t number) const override {
        if (!ends_) return band == 1 ? 2 + more_ : -1;
        constexpr double first[3] = {5, 1, 2}, second[3] = {2, 4 + 4e-10, 0};
        if (number % 3 == 1 && row < 2) return (row ? second : first)[band];
        return band == 1 ? 3.5 + drawn(row, number, 1) : drawn(row, number, band);
    }
    double right(std::int64_t row, std::int64_t system) const override { return drawn(row, system, 3) + (row + 1 == rows_ ? 0.5 : 0); }

private:
    double drawn(std::int64_t row, std::int64_t number, int which) const {
        Random random(seed_ + static_cast<std::uint64_t>((number * 4 + which) * 1000003 + row));
        return random.uniform(-1, 1);
    }
    std::int64_t rows_;
    double more_;
    bool ends_;
    std::uint64_t seed_;
};

TEST_P(Rings, LongOnes) {
    for (const auto& [rows, systems] : {std::pair<std::int64_t, std::int64_t>{5001, 128}, {20000, 40}, {262144, 3}, {600000, 1}})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved}) {
            Recipe recipe = recipe_of(rows, systems, layout);
            solve<double>(recipe), solve<float>(recipe);
            recipe.lower = recipe.diag = recipe.upper = Source::shared;
            solve<double>(recipe);
            recipe.lower = recipe.diag = recipe.upper = Source::scalar;
            solve<float>(recipe);
            if (HasFailure()) return;
        }
}

TEST_P(Rings, LongOnesThatDoNotForget) {
    for (const auto& [rows, systems] : {std::pair<std::int64_t, std::int64_t>{5001, 128}, {600000, 1}})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved}) {
            Recipe recipe = recipe_of(rows, systems, layout);
            recipe.entries = std::make_shared<Hard>(rows, 1e-3, false, recipe.seed);
            solve<double>(recipe);
            recipe.entries = std::make_shared<Hard>(rows, 1e-1, false, recipe.seed);
            solve<float>(recipe);
            recipe.entries = nullptr, recipe.dominant = systems == 1;
            solve<double>(recipe);
            if (HasFailure()) return;
        }
}

TEST_P(Rings, Alone) {
    for (const std::int64_t rows : {1000, 2047, 2048, 2049, 2053, 4095, 4096, 4097, 7001, 8191, 8192, 8193, 12345, 16383, 16384, 16385, 20011, 32767, 32768, 32769})
        for (const bool in_place : {false, true}) {
            Recipe recipe = recipe_of(rows, 1, in_place ? Layout::interleaved : Layout::contiguous);
            recipe.in_place = in_place;
            solve<double>(recipe), solve<float>(recipe);
            recipe.lower = Source::scalar, recipe.upper = Source::flat;
            solve<double>(recipe), solve<float>(recipe);
            recipe.lower = recipe.upper = Source::full, recipe.dominant = false;
            solve<double>(recipe), solve<float>(recipe);
            recipe.dominant = true, recipe.entries = std::make_shared<Hard>(rows, 1e-3, false, recipe.seed);
            solve<double>(recipe);
            recipe.entries = std::make_shared<Hard>(rows, 1e-1, false, recipe.seed);
            solve<float>(recipe);
            if (HasFailure()) return;
        }
}

// Waves without end, nearly singular or not: single precision has no digits of some of these on the way.
TEST_P(Rings, AloneOfWaves) {
    class Waves final : public Entries {
    public:
        double coefficient(int band, std::int64_t, std::int64_t) const override { return band == 1 ? 0.7 : -1; }
        double right(std::int64_t row, std::int64_t) const override { return row % 7 - 3.0; }
    };
    for (const std::int64_t rows : {3001, 9000, 30000}) {
        Recipe recipe = recipe_of(rows, 1, Layout::contiguous);
        recipe.entries = std::make_shared<Waves>();
        solve<double>(recipe), solve<float>(recipe);
    }
}

TEST_P(Rings, AloneTheSameBitsAgainAndWhatIsNotFinite) {
    for (const std::int64_t rows : {3000, 9000, 30000}) {
        Trial<double> trial(recipe_of(rows, 1, Layout::contiguous));
        const double good = trial.rhs(rows / 2, 0);
        std::vector<double> first;
        for (int run = 0; run < 3; ++run) {
            trial.rhs(rows / 2, 0) = run == 1 ? std::numeric_limits<double>::quiet_NaN() : good;
            const Outcome outcome = tridiagonal::solve(queue, trial.problem());
            EXPECT_EQ(outcome.failures, run == 1) << "run " << run;
            if (run == 0) first = trial.stored(0);
            else if (run == 2) EXPECT_EQ(trial.stored(0), first);
            else EXPECT_EQ(outcome.row, rows / 2);
        }
    }
}

// What is not taken of the opened ring is some 10^10 times as large as what is.
TEST_P(Rings, ThatAreNearlySingularWhereTheyAreOpened) {
    for (const auto& [rows, systems] : {std::pair<std::int64_t, std::int64_t>{150, 40}, {700, 40}, {5001, 128}})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved}) {
            Recipe recipe = recipe_of(rows, systems, layout);
            recipe.entries = std::make_shared<Hard>(rows, 0, true, recipe.seed);
            solve<double>(recipe), solve<float>(recipe);
        }
}

TRIFOLD_ON_EVERY_DEVICE(Rings);

}  // namespace
}  // namespace trifold::tests
