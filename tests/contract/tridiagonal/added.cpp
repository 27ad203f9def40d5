// SPDX-License-Identifier: BSD-3-Clause
// x += A^-1 rhs, of so many systems that a device's kernels may add where they solve: every kernel's rows, systems that are left to pivots among others, failures, sums that are not normal.
#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/moved.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

class Added : public OnDevice {
protected:
    void SetUp() override { TRIFOLD_NOT_THE_REFERENCE(); }

    bool adds_in_its_memory() const { return !GetParam().starts_with("opencl:"); }

    /// In the device's memory, where arrays keep their gaps.
    template <class T>
    Outcome solve(Trial<T>& trial, std::vector<std::int8_t>* status = nullptr) {
        tridiagonal::Options options;
        if (status) {
            status->assign(static_cast<std::size_t>(trial.systems()), 77);
            options.status = status->data();
        }
        if (!adds_in_its_memory()) return tridiagonal::solve(queue, trial.problem(), options);
        Moved<T> there(queue, trial, trial.recipe().seed % 2 == 0);
        const Outcome outcome = tridiagonal::solve(queue, there.problem, options);
        there.bring_back();
        return outcome;
    }

    template <class T>
    void attempt(const Recipe& recipe) {
        Trial<T> trial(recipe);
        trial.expect_solved(solve(trial));
    }

    static Recipe recipe_of(std::int64_t rows, std::vector<std::int64_t> batch, Layout layout, std::uint64_t seed) {
        Recipe recipe;
        recipe.rows = rows, recipe.batch = std::move(batch), recipe.layout = layout, recipe.accumulate = true, recipe.seed = seed;
        recipe.around = seed % 2 ? Around::nan : Around::numbers;
        return recipe;
    }

    /// Layouts, matrices of their own and one for all, in turns of precisions.
    void every_way(const std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>& shapes) {
        std::uint64_t seed = 0;
        for (const auto& [rows, batch] : shapes)
            for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded})
                for (const bool one_matrix : {false, true}) {
                    Recipe recipe = recipe_of(rows, batch, layout, ++seed);
                    if (one_matrix) share_matrix(recipe);
                    else if (seed % 3 == 0) recipe.lower = recipe.upper = Source::shared;
                    recipe.dominant = one_matrix ? seed % 8 != 0 : seed % 5 != 0;
                    (seed / 2) % 2 ? attempt<double>(recipe) : attempt<float>(recipe);
                    if (HasFailure()) return;
                }
    }

    static void share_matrix(Recipe& recipe) { recipe.lower = recipe.diag = recipe.upper = Source::shared; }
};

TEST_P(Added, EveryKernelAdds) {
    every_way({{17, {700}}, {33, {5, 131}}, {64, {512}}, {100, {301}}, {128, {8, 48}}, {257, {3, 40}}, {512, {64}}, {777, {66}}, {1024, {36}}, {1501, {2, 20}}});
}

// Of which some are solved apart.
TEST_P(Added, LongSystems) { every_way({{2600, {17}}, {5003, {9}}, {9001, {6}}}); }

// Some need exchanges of rows, and are solved apart.
TEST_P(Added, MarkedSystemsAreAddedOnce) {
    for (const Layout layout : {Layout::contiguous, Layout::interleaved})
        for (const std::int64_t rows : {24, 150, 700, 2100}) {
            Trial<double> trial(recipe_of(rows, {2, 40}, layout, static_cast<std::uint64_t>(rows)));
            for (std::int64_t k = 3; k < trial.systems(); k += 7)
                for (std::int64_t i = 5; i < rows; i += 11) trial.coefficient(1, i, k) = 0;
            SCOPED_TRACE(trial.recipe().text());
            const Outcome outcome = solve(trial);
            ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason) << ", system " << outcome.system << ", row " << outcome.row;
            for (std::int64_t k = 0; k < trial.systems(); ++k) { ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 64 * unit_roundoff(DType::f64)) << "system " << k; }
        }
}

TEST_P(Added, FailedSystemsKeepTheirX) {
    for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded})
        for (const bool one_matrix : {false, true})
            for (const std::int64_t rows : {30, 256, 600, 1024, 1800}) {
                Recipe recipe = recipe_of(rows, {90}, layout, static_cast<std::uint64_t>(rows));
                if (one_matrix) share_matrix(recipe);
                SCOPED_TRACE(recipe.text());
                Trial<float> trial(recipe);
                const std::int64_t bad[] = {13, 71};
                for (const std::int64_t k : bad) trial.rhs(rows / 3, k) = std::numeric_limits<float>::infinity();
                std::vector<std::vector<double>> before;
                for (const std::int64_t k : bad) before.push_back(trial.stored_before(k));
                std::vector<std::int8_t> status;
                const bool asked = rows % 4 == 0;
                const Outcome outcome = solve(trial, asked ? &status : nullptr);
                EXPECT_EQ(outcome.reason, Reason::not_finite);
                EXPECT_EQ(outcome.failures, 2);
                EXPECT_EQ(outcome.system, 13);
                for (std::int64_t k = 0; k < trial.systems(); ++k) {
                    const auto* const found = std::ranges::find(bad, k);
                    if (asked) { ASSERT_EQ(status[static_cast<std::size_t>(k)] < 0, found != std::end(bad)) << "system " << k; }
                    if (found != std::end(bad)) {
                        ASSERT_EQ(as_double(trial.stored(k)), before[static_cast<std::size_t>(found - bad)]) << "system " << k;
                    } else {
                        ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 64 * unit_roundoff(DType::f32)) << "system " << k;
                    }
                }
            }
}

// 1, 1, 1 and no couplings: x is what it was and rhs, to the bit.
TEST_P(Added, SumsThatAreNotNormal) {
    if (!adds_in_its_memory()) GTEST_SKIP() << "devices may make zeros of them";
    constexpr float step = std::numeric_limits<float>::denorm_min();
    for (const std::int64_t rows : {40, 200, 512, 1100})
        for (const bool columns : {false, true})
            for (const bool one_matrix : {false, true}) {
                constexpr std::int64_t systems = 96;
                const auto all = static_cast<std::size_t>(rows * systems);
                std::vector<float> zeros(all, 0), ones(all, 1), rhs(all), x(all), sum(all);
                for (std::size_t k = 0; k < all; ++k) rhs[k] = static_cast<float>(k % 1000) * step, x[k] = static_cast<float>(k % 777 + 1) * -step, sum[k] = rhs[k] + x[k];
                const auto view = [&](std::vector<float>& values) { return columns ? View<float>::interleaved(values.data(), rows, systems) : View<float>::contiguous(values.data(), systems, rows); };
                tridiagonal::Problem problem;
                const auto line = [&](std::vector<float>& values) { return View<float>::rows(std::span(values).first(static_cast<std::size_t>(rows))); };
                if (one_matrix) problem.matrix = {line(zeros), line(ones), line(zeros)};
                else problem.matrix = {view(zeros), view(ones), view(zeros)};
                problem.rhs = view(rhs), problem.x = view(x), problem.accumulate = true;
                const Outcome outcome = tridiagonal::solve(queue, problem);
                EXPECT_EQ(outcome.reason, Reason::exact);
                ASSERT_EQ(x, sum) << rows << " rows, columns " << columns << ", one matrix " << one_matrix;
            }
}

TRIFOLD_ON_EVERY_DEVICE(Added);

}  // namespace
}  // namespace trifold::tests
