// SPDX-License-Identifier: BSD-3-Clause
// Batches of which a part of the matrix is the same in all systems, as where a Fourier transform has been along the other axes: couplings for all and a diagonal each; and all other parts.
#include <limits>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

class SharedBands : public OnDevice {
protected:
    static Recipe recipe_of(std::int64_t rows, std::vector<std::int64_t> batch, Layout layout, Source couplings = Source::shared) {
        Recipe recipe;
        recipe.rows = rows, recipe.batch = std::move(batch), recipe.layout = layout;
        recipe.lower = recipe.upper = couplings;
        recipe.seed = static_cast<std::uint64_t>(rows);
        return recipe;
    }

    /// Both precisions, one of them in place.
    void solve(Recipe recipe) {
        SCOPED_TRACE(recipe.text());
        recipe.in_place = recipe.rows % 2 == 0;
        expect_solved<double>(queue, recipe);
        recipe.in_place = !recipe.in_place;
        expect_solved<float>(queue, recipe);
    }
};

TEST_P(SharedBands, CouplingsForAllAndADiagonalEach) {
    for (const std::int64_t rows : {1, 2, 3, 5, 6, 16, 17, 31, 32, 33, 34, 48, 49, 63, 64, 65, 66, 100, 127, 128, 129, 200, 255, 256, 257, 258, 300, 511, 512, 513, 640, 777, 800, 801, 1000, 1024, 1025, 1500, 2047, 2048, 2049, 3000, 4096, 4097})
        for (const std::int64_t systems : {2, 12, 13, 64, 131})
            for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded}) {
                if (rows * systems > 70000) continue;
                Recipe recipe = recipe_of(rows, {systems}, layout, (rows + systems) % 2 ? Source::shared : Source::scalar);
                recipe.mixed = systems == 12;
                solve(recipe);
                if (HasFailure()) return;
            }
}

TEST_P(SharedBands, AlongSeveralDimensions) {
    for (const std::int64_t rows : {20, 65, 255, 700})
        for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{3, 37}, {5, 64}, {2, 3, 17}})
            for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded}) solve(recipe_of(rows, batch, layout));
}

TEST_P(SharedBands, AnyPart) {
    const Source own = Source::full, all = Source::shared, number = Source::scalar, row = Source::broadcast;
    const Source parts[][3] = {{all, own, own}, {own, own, all}, {own, all, own}, {own, number, own}, {all, all, own}, {number, own, all}, {own, number, all}, {row, own, row}, {all, own, row}};
    for (const std::int64_t rows : {7, 40, 128, 300, 1100})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved})
            for (const auto& [lower, diag, upper] : parts) {
                Recipe recipe = recipe_of(rows, {4, 20}, layout);
                recipe.lower = lower, recipe.diag = diag, recipe.upper = upper;
                solve(recipe);
            }
}

TEST_P(SharedBands, ThatNeedPivots) {
    for (const std::int64_t rows : {40, 129, 300, 700, 1100})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved}) {
            Recipe recipe = recipe_of(rows, {33}, layout);
            recipe.dominant = false;
            solve(recipe);
        }
}

TEST_P(SharedBands, WhatIsNotFiniteFailsItsSystemAlone) {
    const auto failing = [&]<class T>(T, std::int64_t rows, Layout layout, Source couplings) {
        SCOPED_TRACE(testing::Message() << rows << " rows, " << name_of(layout) << ", couplings " << name_of(couplings) << ", " << trifold::name_of(dtype_of<T>));
        Trial<T> trial(recipe_of(rows, {67}, layout, couplings));
        trial.rhs(0, 0) = std::numeric_limits<T>::quiet_NaN();
        // OpenCL's kernel for systems side by side on GPUs takes an infinite diagonal for x = 0, which is its limit.
        trial.coefficient(1, rows / 2, 23) = GetParam().starts_with("opencl:") ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
        trial.rhs(rows - 1, 66) = std::numeric_limits<T>::infinity();
        std::vector<std::int8_t> status(67, 77);
        tridiagonal::Options options;
        options.status = status.data();
        const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
        EXPECT_EQ(outcome.failures, 3);
        EXPECT_EQ(outcome.system, 0);
        for (std::int64_t k = 0; k < 67; ++k) {
            const bool bad = k == 0 || k == 23 || k == 66;
            EXPECT_EQ(status[static_cast<std::size_t>(k)] > 0, !bad) << "system " << k;
            if (bad) continue;
            ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(dtype_of<T>)) << "system " << k;
        }
    };
    for (const std::int64_t rows : {20, 64, 300, 1000})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved})
            for (const Source couplings : {Source::shared, Source::scalar, Source::full}) failing(double(), rows, layout, couplings), failing(float(), rows, layout, couplings);
}

// As many as make a GPU's warps and blocks take several tiles one after the other, with what is shared kept from one to the next; the last one is not whole.
TEST_P(SharedBands, AsManyAsAreTakenOneAfterTheOther) {
    if (!GetParam().starts_with("cuda:")) GTEST_SKIP() << GetParam() << " has no tiles";
    for (const std::int64_t rows : {3, 20, 100, 700, 1300})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded}) {
            const std::int64_t systems = 4'500'001 / rows;
            solve(recipe_of(rows, {systems}, layout));
            Recipe unit = recipe_of(rows, {systems}, layout, Source::full);
            unit.diag = Source::shared;
            if (layout != Layout::padded) solve(unit);
        }
}

TRIFOLD_ON_EVERY_DEVICE(SharedBands);

}  // namespace
}  // namespace trifold::tests
