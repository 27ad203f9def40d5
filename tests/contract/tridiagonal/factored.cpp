// SPDX-License-Identifier: BSD-3-Clause
// Factored once, solved often: every layout, every matrix.
#include <cmath>

#include "contract/tridiagonal/factored.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Factor;

class Factored : public FactoredOnDevice {};

TEST_P(Factored, EveryLayout) {
    for (const std::int64_t rows : {1, 2, 3, 7, 16, 33, 64, 127})
        for (const Layout layout : layouts)
            for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{}, {1}, {5}, {16}, {37}, {3, 7}, {2, 40}})
                for (const bool periodic : {false, true}) {
                    Recipe recipe = recipe_of(rows, batch, layout);
                    recipe.periodic = periodic;
                    recipe.in_place = rows % 2 == 1;
                    attempt<double>(recipe);
                    recipe.in_place = !recipe.in_place;
                    attempt<float>(recipe);
                    recipe.dominant = false;
                    attempt<double>(recipe);
                    if (HasFailure()) return;
                }
}

TEST_P(Factored, Combinations) {
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        Recipe recipe = random_recipe(seed + 7000);
        if (!recipe.lengths.empty()) continue;
        recipe.accumulate = false;
        attempt<double>(recipe);
        attempt<float>(recipe);
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

TEST_P(Factored, LongSystems) {
    for (const std::int64_t rows : {2000, 4095, 4096, 4097, 5003, 16384, 20011, 100003})
        for (const bool in_place : {false, true})
            for (const bool dominant : {true, false}) {
                Recipe recipe = recipe_of(rows, {});
                recipe.in_place = in_place, recipe.dominant = dominant;
                attempt<double>(recipe);
                attempt<float>(recipe);
                recipe.batch = {3};
                attempt<double>(recipe);
                recipe.layout = Layout::interleaved;
                attempt<float>(recipe);
                recipe.periodic = true;
                if (rows < 20000) attempt<double>(recipe);
                if (HasFailure()) return;
            }
}

TEST_P(Factored, LongSystemsThatDoNotDecay) {
    for (const std::int64_t rows : {4096, 4099, 9001, 100003})
        for (const double diag : {2.0, 2.0001, 2.01, 2.1, 1.0}) {
            SCOPED_TRACE(testing::Message() << rows << " rows, " << diag << " on the diagonal");
            Trial<double> trial(recipe_of(rows, {}));
            set_rows(trial, -1, diag, -1);
            const Factor factor = factor_of(trial);
            ASSERT_TRUE(factor.outcome().ok());
            ASSERT_TRUE(factor.solve(trial.problem().rhs, trial.problem().x).ok());
            EXPECT_LE(backward_error(trial.system(0), trial.solution(0)), 20 * unit_roundoff(DType::f64));
        }
}

// Millions of chunks, where one among them is worse than those of short systems: LAPACK's gttrs leaves 1 u here.
TEST_P(Factored, APoissonEquationOfMillionsOfRows) {
    if (GetParam() != "cpu") GTEST_SKIP() << "other devices take it from the cpu, or solve anew";
    const std::int64_t rows = 8000000;
    const auto noise = [](std::int64_t k) { return static_cast<double>((static_cast<std::uint64_t>(7 * k + 1) * 0x9e3779b97f4a7c15u) >> 40) * 0x1p-24 - 0.5; };
    std::vector<double> rhs(static_cast<std::size_t>(rows)), x(rhs.size());
    for (std::int64_t i = 0; i < rows; ++i) rhs[static_cast<std::size_t>(i)] = noise(i);
    tridiagonal::Matrix matrix;
    matrix.lower = -1.0, matrix.diag = 2.0, matrix.upper = -1.0;
    const Factor factor(queue, matrix, rows, {}, DType::f64);
    ASSERT_TRUE(factor.solve(View<const double>::strided(rhs.data(), {rows, 1}, {}), View<double>::strided(x.data(), {rows, 1}, {})).ok());
    double residual = 0, largest = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const auto at = [&](std::int64_t k) { return k < 0 || k >= rows ? 0.0L : static_cast<long double>(x[static_cast<std::size_t>(k)]); };
        residual = std::max(residual, static_cast<double>(std::abs(rhs[static_cast<std::size_t>(i)] + at(i - 1) - 2 * at(i) + at(i + 1))));
        largest = std::max(largest, std::abs(x[static_cast<std::size_t>(i)]));
    }
    EXPECT_LE(residual / (4 * largest), 10 * unit_roundoff(DType::f64));
}

// Growing in one direction, decaying in the other: recurrences that must not be cut.
TEST_P(Factored, LongSystemsThatGrow) {
    for (const std::int64_t rows : {4096, 20011})
        for (const auto& [lower, upper] : {std::pair{1.01, 0.001}, {0.001, 1.01}, {1.5, 0.001}, {0.9, 0.05}}) {
            SCOPED_TRACE(testing::Message() << rows << " rows, " << lower << ", 1, " << upper);
            Trial<double> trial(recipe_of(rows, {}));
            set_rows(trial, -lower, 1, -upper);
            const Factor factor = factor_of(trial);
            if (!factor.outcome().ok()) continue;
            const Outcome outcome = factor.solve(trial.problem().rhs, trial.problem().x);
            if (!outcome.ok()) {
                EXPECT_EQ(outcome.reason, Reason::not_finite);  // 1.5^20011
                continue;
            }
            EXPECT_LE(backward_error(trial.system(0), trial.solution(0)), 20 * unit_roundoff(DType::f64));
        }
}

TEST_P(Factored, FurtherDimensionsInFrontAreMoreRightHandSides) {
    for (const std::int64_t rows : {1, 9, 40, 5000})
        for (const std::int64_t systems : {1, 3, 21})
            for (const bool interleaved : {false, true})
                for (const bool periodic : {false, true}) {
                    if (rows * systems > 20000) continue;
                    SCOPED_TRACE(testing::Message() << rows << " rows, " << systems << " systems, interleaved " << interleaved << ", periodic " << periodic);
                    constexpr std::int64_t sides = 5;
                    Recipe recipe = recipe_of(rows, {systems});
                    recipe.periodic = periodic;
                    Trial<double> trial(recipe);
                    const Factor factor = factor_of(trial);
                    ASSERT_TRUE(factor.outcome().ok());
                    std::vector<double> rhs(static_cast<std::size_t>(sides * systems * rows)), x(rhs.size(), NAN);
                    Random random(3);
                    for (double& value : rhs) value = random.uniform(-1, 1);
                    const std::int64_t all = sides * systems;
                    const Dim axis{rows, interleaved ? all : 1};
                    const Dim batch[] = {{sides, interleaved ? systems : systems * rows}, {systems, interleaved ? 1 : rows}};
                    ASSERT_TRUE(factor.solve(View<double>::strided(rhs.data(), axis, batch), View<double>::strided(x.data(), axis, batch)).ok());
                    for (std::int64_t s = 0; s < sides; ++s)
                        for (std::int64_t k = 0; k < systems; ++k) {
                            Bands<double> system = trial.system(k);
                            std::vector<double> own(static_cast<std::size_t>(rows));
                            for (std::int64_t i = 0; i < rows; ++i) {
                                const std::int64_t at = s * batch[0].stride + k * batch[1].stride + i * axis.stride;
                                system.rhs[static_cast<std::size_t>(i)] = rhs[static_cast<std::size_t>(at)];
                                own[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(at)];
                            }
                            ASSERT_LE(backward_error(system, own), 20 * unit_roundoff(DType::f64)) << "side " << s << ", system " << k;
                        }
                }
}

// One right-hand side or a few, which some devices sweep from both ends.
TEST_P(Factored, AFewRightHandSidesOfShortSystems) {
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 4095})
        for (const std::int64_t systems : {1, 2, 4, 5, 8, 9})
            for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::scattered})
                for (const bool dominant : {true, false})
                    for (const bool bad : {false, true}) {
                        SCOPED_TRACE(testing::Message() << rows << " rows, " << systems << " systems, " << name_of(layout) << ", dominant " << dominant << ", NaN " << bad);
                        Recipe recipe = recipe_of(rows, {systems}, layout);
                        recipe.in_place = true, recipe.dominant = dominant;
                        Trial<double> trial(recipe);
                        const Factor factor = factor_of(trial);
                        ASSERT_TRUE(factor.outcome().ok());
                        if (!bad) {
                            trial.expect_solved(factor.solve(trial.problem().rhs, trial.problem().x));
                            continue;
                        }
                        const std::int64_t k = systems / 2;
                        trial.rhs(rows / 3, k) = NAN;
                        const Outcome outcome = factor.solve(trial.problem().rhs, trial.problem().x);
                        EXPECT_EQ(outcome.reason, Reason::not_finite);
                        EXPECT_EQ(outcome.system, k);
                        if (GetParam() == "cpu") { EXPECT_EQ(outcome.row, rows / 3); }
                        EXPECT_EQ(outcome.failures, 1);
                        for (std::int64_t j = 0; j < systems; ++j) {
                            if (j != k) { ASSERT_LE(backward_error(trial.system(j), trial.solution(j)), 20 * unit_roundoff(DType::f64)) << j; }
                        }
                    }
}

// The same bits with any number of threads, beside the right-hand side and over it, rows apart or not.
TEST_P(Factored, OneLongRightHandSideHoweverItLies) {
    for (const double diag : {2.0, 2.5})
        for (const std::int64_t rows : {4096, 50001, 700001}) {
            std::vector<double> rhs(static_cast<std::size_t>(rows)), expected;
            Random random(4);
            for (double& value : rhs) value = random.uniform(-1, 1);
            for (const int threads : {1, 2, 3})
                for (const std::int64_t step : {1, 2})
                    for (const bool in_place : {false, true}) {
                        SCOPED_TRACE(testing::Message() << rows << " rows, diag " << diag << ", " << threads << " threads, step " << step << ", in place " << in_place);
                        Context other({.threads = threads, .profile_path = "none", .log = {}});
                        Queue on(other, GetParam());
                        const Factor factor(on, {-1.0, diag, -1.0}, rows);
                        std::vector<double> from(static_cast<std::size_t>(rows * step), 7), to(from);
                        for (std::int64_t i = 0; i < rows; ++i) from[static_cast<std::size_t>(i * step)] = rhs[static_cast<std::size_t>(i)];
                        const auto x = View<double>::strided((in_place ? from : to).data(), {rows, step}, {});
                        ASSERT_TRUE(factor.solve(View<double>::strided(from.data(), {rows, step}, {}), x).ok());
                        std::vector<double> own(rhs.size());
                        for (std::int64_t i = 0; i < rows; ++i) own[static_cast<std::size_t>(i)] = (in_place ? from : to)[static_cast<std::size_t>(i * step)];
                        if (step == 2) { ASSERT_EQ((in_place ? from : to)[1], 7); }
                        if (expected.empty() || step == 2) {
                            Bands<double> system(rows);
                            std::ranges::fill(system.lower, -1.0), std::ranges::fill(system.diag, diag), std::ranges::fill(system.upper, -1.0), system.rhs = rhs;
                            ASSERT_LE(backward_error(system, own), 20 * unit_roundoff(DType::f64));
                        }
                        if (step == 2 || (in_place && diag > 2)) continue;  // other ways of the certified pass
                        if (expected.empty()) expected = own;
                        ASSERT_EQ(own, expected);
                    }
        }
}

// Batches larger than caches, of which some devices keep the matrix itself: whatever lay between its elements is left out.
template <class T>
void large_batch(Queue& queue, std::int64_t rows, std::int64_t outer, std::int64_t inner, bool transposed, bool packed, double dominance, std::int64_t sides, bool in_place, bool refactored) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << outer << " by " << inner << ", transposed " << transposed << ", packed " << packed << ", " << sides << " sides");
    const std::int64_t systems = outer * inner, pitch = inner + 3, all = rows * systems;
    Random random(static_cast<std::uint64_t>(rows + outer));
    const auto size = static_cast<std::size_t>(rows * outer * pitch);
    std::vector<T> lower(size), diag(size), upper(size), other(size, T(9)), rhs(static_cast<std::size_t>(all * sides)), x(rhs);
    const auto place = [&](std::int64_t i, std::int64_t k) { return static_cast<std::size_t>((k / inner * rows + i) * pitch + k % inner); };
    for (std::int64_t k = 0; k < systems; ++k)
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::size_t p = place(i, k);
            lower[p] = static_cast<T>(random.uniform(-1, 1)), upper[p] = static_cast<T>(random.uniform(-1, 1));
            diag[p] = static_cast<T>(dominance > 0 ? dominance + random.uniform(0, 1) : random.uniform(-1, 1));
        }
    for (T& value : rhs) value = static_cast<T>(random.uniform(-1, 1));
    const std::vector<T> right = rhs;
    const Dim batch[] = {{outer, rows * pitch}, {inner, 1}};
    const auto matrix = [&](std::vector<T>& from, bool first) {
        return packed && from.data() != diag.data() ? View<T>::strided(from.data() + (first ? pitch : 0), {rows - 1, pitch}, batch) : View<T>::strided(from.data(), {rows, pitch}, batch);
    };
    tridiagonal::Matrix given{matrix(lower, true), matrix(diag, false), matrix(upper, false)};
    given.transposed = transposed;
    tridiagonal::Matrix before = given;
    before.diag = View<T>::strided(other.data(), {rows, pitch}, batch);
    const std::int64_t extents[] = {outer, inner};
    Factor factor(queue, refactored ? before : given, rows, extents, dtype_of<T>);
    if (refactored) { ASSERT_TRUE(factor.refactor(given).ok()); }
    ASSERT_TRUE(factor.outcome().ok());
    // Nobody looks at the arrays any more.
    const std::vector<T> a = lower, b = diag, c = upper;
    std::ranges::fill(lower, T(NAN)), std::ranges::fill(diag, T(NAN)), std::ranges::fill(upper, T(NAN));
    const Dim three[] = {{sides, all}, {outer, rows * inner}, {inner, 1}};
    const std::span<const Dim> dims = sides > 1 ? std::span<const Dim>(three) : std::span<const Dim>(three).subspan(1);
    const auto out = View<T>::strided((in_place ? rhs : x).data(), {rows, inner}, dims);
    ASSERT_TRUE(factor.solve(View<T>::strided(rhs.data(), {rows, inner}, dims), out).ok());
    for (std::int64_t s = 0; s < sides; ++s)
        for (std::int64_t k = s; k < systems; k += 37) {
            Bands<double> system(rows);
            std::vector<double> own(static_cast<std::size_t>(rows));
            for (std::int64_t i = 0; i < rows; ++i) {
                const auto at = static_cast<std::size_t>(i);
                const std::size_t there = static_cast<std::size_t>(s * all + (k / inner * rows + i) * inner + k % inner);
                system.diag[at] = b[place(i, k)], system.rhs[at] = right[there], own[at] = (in_place ? rhs : x)[there];
                if (i > 0) system.lower[at] = transposed ? c[place(i - 1, k)] : a[place(i, k)];
                if (i + 1 < rows) system.upper[at] = transposed ? a[place(i + 1, k)] : c[place(i, k)];
            }
            ASSERT_LE(backward_error(system, own), 20 * unit_roundoff(dtype_of<T>)) << "side " << s << ", system " << k;
        }
}

TEST_P(Factored, BatchesLargerThanCaches) {
    large_batch<double>(queue, 300, 1, 2501, false, false, 2.5, 1, false, false);
    large_batch<double>(queue, 300, 2501, 1, false, false, 2.5, 1, true, true);
    large_batch<double>(queue, 100, 90, 77, true, false, 2.5, 2, false, false);
    large_batch<float>(queue, 100, 90, 150, false, true, 0, 3, true, false);
    large_batch<float>(queue, 16, 4, 21000, true, true, 2.5, 1, false, true);
}

TEST_P(Factored, NumbersInPlaceOfArraysInBatchesLargerThanCaches) {
    constexpr std::int64_t rows = 64, systems = 10000;
    std::vector<double> rhs(rows * systems, 1.0), x(rhs), diag(rhs);
    for (std::size_t k = 0; k < diag.size(); ++k) diag[k] = 3 + static_cast<double>(k % 7);
    const std::int64_t batch[] = {systems};
    const Factor factor(queue, {-1.0, View<double>::contiguous(diag.data(), systems, rows), -2.0}, rows, batch, DType::f64);
    ASSERT_TRUE(factor.solve(View<double>::contiguous(rhs.data(), systems, rows), View<double>::contiguous(x.data(), systems, rows)).ok());
    for (std::int64_t k = 0; k < systems; k += 99) {
        Bands<double> system(rows);
        std::ranges::fill(system.lower, -1.0), std::ranges::fill(system.upper, -2.0), std::ranges::fill(system.rhs, 1.0);
        std::copy_n(diag.begin() + k * rows, rows, system.diag.begin());
        ASSERT_LE(backward_error(system, std::vector<double>(x.begin() + k * rows, x.begin() + (k + 1) * rows)), 20 * unit_roundoff(DType::f64));
    }
}

TEST_P(Factored, RefactoringReplacesTheMatrix) {
    for (const std::int64_t rows : {1, 20, 6000})
        for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{}, {4}, {30}}) {
            Recipe recipe = recipe_of(rows, batch);
            Trial<double> first(recipe);
            Factor factor = factor_of(first);
            for (const bool dominant : {false, true}) {
                recipe.seed += 1, recipe.dominant = dominant;
                Trial<double> next(recipe);
                ASSERT_TRUE(factor.refactor(next.problem().matrix).ok());
                next.expect_solved(factor.solve(next.problem().rhs, next.problem().x));
                if (HasFailure()) return;
            }
        }
}

TEST_P(Factored, DoesNotDependOnThreads) {
    for (const auto& [rows, systems, dominant] : {std::tuple{100003, 0, true}, {100003, 0, false}, {20000, 3, true}, {200, 300, true}, {200, 300, false}}) {
        Recipe recipe = recipe_of(rows, systems ? std::vector<std::int64_t>{systems} : std::vector<std::int64_t>{});
        recipe.dominant = dominant;
        std::vector<std::vector<double>> expected;
        for (const int threads : {1, 2, 3}) {
            Context other({.threads = threads, .profile_path = "none", .log = {}});
            Queue on(other, GetParam());
            Trial<double> trial(recipe);
            const Factor factor(on, trial.problem().matrix, recipe.rows, recipe.batch);
            ASSERT_TRUE(factor.solve(trial.problem().rhs, trial.problem().x).ok());
            for (std::int64_t k = 0; k < trial.systems(); ++k) {
                if (threads == 1) expected.push_back(trial.stored(k));
                else ASSERT_EQ(trial.stored(k), expected[static_cast<std::size_t>(k)]) << recipe.text() << ", " << threads << " threads";
            }
        }
    }
}

TRIFOLD_ON_EVERY_DEVICE(Factored);

}  // namespace
}  // namespace trifold::tests
