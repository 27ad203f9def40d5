// SPDX-License-Identifier: BSD-3-Clause
// A Factor whose matrix, right-hand sides and x lie in the device's own memory. On a host device the same calls work on host memory.
#include <cmath>
#include <functional>
#include <optional>

#include "contract/tridiagonal/factored.hpp"
#include "contract/tridiagonal/moved.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Factor;
using tridiagonal::PendingOutcome;

class FactoredMemory : public FactoredOnDevice {
protected:
    bool own_memory() const { return queue.memory().kind == MemoryKind::device; }

    /// Whether the device solves it, and does not leave it to the cpu.
    bool native(const tridiagonal::Problem& problem) { return tridiagonal::plan(queue, problem).device == queue.device(); }

    Outcome enqueued(const Factor& factor, const AnyView& rhs, const AnyView& x) {
        const WorkspaceNeed need = factor.workspace(rhs, x).at(0);
        const DeviceArray<std::byte> scratch(queue, static_cast<std::int64_t>(need.bytes));
        PendingOutcome pending(queue);
        factor.solve_async(queue, rhs, x, pending, {scratch.data(), need.bytes});
        return pending.read();
    }

    static Error refusal(const std::function<void()>& call) {
        try {
            call();
        } catch (const Error& error) {
            return error;
        }
        return Error(ErrorCode::internal, "nothing", "was refused");
    }

    /// All of it on the device, whose matrix is gone before it is solved with: at once, in further dimensions in front, and enqueued.
    template <class T>
    void solve_there(const Recipe& recipe, bool async) {
        SCOPED_TRACE(recipe.text() + (async ? ", enqueued" : ""));
        Trial<T> trial(recipe);
        if (own_memory() && !native(trial.problem())) return;  // a ring of an OpenCL device
        Moved<T> right(queue, trial, true);
        std::optional<Factor> factor;
        {
            const Moved<T> matrix(queue, trial, recipe.seed % 2 == 0);
            const std::vector<std::int64_t> own(recipe.batch.begin() + static_cast<std::ptrdiff_t>(recipe.front), recipe.batch.end());
            factor.emplace(queue, matrix.moved(trial.matrix_behind_front()), recipe.rows, own, dtype_of<T>);
        }
        ASSERT_TRUE(factor->outcome().ok()) << trifold::name_of(factor->outcome().reason);
        if (own_memory()) { EXPECT_STREQ(factor->outcome().device, queue.device()); }
        const Outcome outcome = async ? enqueued(*factor, right.problem.rhs, right.problem.x) : factor->solve(right.problem.rhs, right.problem.x);
        right.bring_back();
        if (own_memory()) { EXPECT_STREQ(outcome.device, queue.device()); }
        trial.expect_solved(outcome);
    }

    /// rows × systems numbers, where the device computes.
    struct Arrays {
        std::int64_t rows, systems;
        DeviceArray<double> lower, diag, upper, rhs, x;

        Arrays(const Queue& queue, std::int64_t rows, std::int64_t systems, double diagonal)
            : rows(rows), systems(systems), lower(queue, numbers(-1)), diag(queue, numbers(diagonal)), upper(queue, numbers(-1)), rhs(queue, numbers(1)), x(queue, numbers(77)) {}

        std::vector<double> numbers(double value) const { return std::vector<double>(static_cast<std::size_t>(rows * systems), value); }
        View<double> view(const DeviceArray<double>& array) const { return View<double>::contiguous(array.data(), systems, rows, 0, array.memory()); }
        tridiagonal::Matrix matrix() const { return {view(lower), view(diag), view(upper)}; }
        std::vector<std::int64_t> batch() const { return {systems}; }

        void expect_solved(double diagonal) const {
            std::vector<double> found(static_cast<std::size_t>(x.size()));
            x.download(found);
            for (std::int64_t k = 0; k < systems; ++k)
                for (std::int64_t i = 0; i < rows; ++i) {
                    const auto at = [&](std::int64_t row) { return row < 0 || row >= rows ? 0 : found[static_cast<std::size_t>(k * rows + row)]; };
                    ASSERT_NEAR(diagonal * at(i) - at(i - 1) - at(i + 1), 1, 1e-12) << "row " << i << ", system " << k;
                }
        }
    };
};

TEST_P(FactoredMemory, IsSolvedWhereItLies) {
    for (const std::int64_t rows : {1, 2, 3, 17, 64, 300, 1000})
        for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{}, {1}, {33}, {3, 7}})
            for (const Layout layout : layouts)
                for (const bool transposed : {false, true}) {
                    Recipe recipe = recipe_of(rows, batch, layout);
                    recipe.transposed = transposed, recipe.in_place = rows % 2 == 1, recipe.dominant = rows != 17;
                    solve_there<double>(recipe, false);
                    recipe.in_place = !recipe.in_place, recipe.seed += 1, recipe.mixed = true;
                    solve_there<float>(recipe, true);
                    if (HasFailure()) return;
                }
}

TEST_P(FactoredMemory, WhateverTheMatrixIsMadeOf) {
    int there = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        Recipe recipe = random_recipe(seed + 31000);
        if (!recipe.lengths.empty() || recipe.rows == 0 || Trial<float>(recipe).systems() == 0) continue;
        recipe.accumulate = false;
        solve_there<double>(recipe, seed % 2 == 0);
        solve_there<float>(recipe, seed % 2 == 1);
        if (HasFailure()) FAIL() << "seed " << seed + 31000;
        ++there;
    }
    EXPECT_GT(there, 200);
}

TEST_P(FactoredMemory, RingsOfEverySize) {
    for (const std::int64_t rows : {1, 2, 3, 8, 100, 257, 4096, 5000})
        for (const bool transposed : {false, true})
            for (const Source source : {Source::full, Source::shared, Source::scalar, Source::flat, Source::generator}) {
                Recipe recipe = recipe_of(rows, {3}, rows % 2 ? Layout::contiguous : Layout::interleaved);
                recipe.periodic = true, recipe.transposed = transposed, recipe.lower = recipe.diag = recipe.upper = source;
                solve_there<double>(recipe, true);
                solve_there<float>(recipe, false);
                if (HasFailure()) return;
            }
}

TEST_P(FactoredMemory, LongSystems) {
    for (const std::int64_t rows : {4096, 20011, 200003})
        for (const bool dominant : {true, false})
            for (const bool in_place : {false, true}) {
                Recipe recipe = recipe_of(rows, {});
                recipe.dominant = dominant, recipe.in_place = in_place;
                solve_there<double>(recipe, !in_place);
                recipe.transposed = true;
                solve_there<float>(recipe, in_place);
                if (HasFailure()) return;
            }
}

TEST_P(FactoredMemory, FurtherDimensionsInFrontShareTheMatrix) {
    for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{5}, {4, 6}, {2, 3, 5}, {2, 2, 3, 3}})
        for (std::size_t front = 1; front <= batch.size(); ++front)
            for (const Layout layout : layouts)
                for (const bool periodic : {false, true}) {
                    Recipe recipe = recipe_of(40, batch, layout);
                    recipe.front = front, recipe.periodic = periodic, recipe.seed += front;
                    solve_there<double>(recipe, front % 2 == 0);
                    recipe.mixed = recipe.in_place = true;
                    solve_there<double>(recipe, front % 2 == 1);
                    if (HasFailure()) return;
                }
}

// Arrays of the matrix and right-hand sides in either memory.
TEST_P(FactoredMemory, MixesWithTheHosts) {
    const std::int64_t rows = 50, systems = 20;
    Arrays there(queue, rows, systems, 4);
    const std::vector<double> couplings(static_cast<std::size_t>(rows * systems), -1), ones(couplings.size(), 1);
    const View<const double> host = View<const double>::contiguous(couplings.data(), systems, rows);
    const std::vector<std::int64_t> batch{systems};
    const Factor factor(queue, {host, there.view(there.diag), -1.0}, rows, batch);
    ASSERT_TRUE(factor.outcome().ok());
    ASSERT_TRUE(factor.solve(there.view(there.rhs), there.view(there.x)).ok());
    there.expect_solved(4);
    std::vector<double> x(ones.size()), expected(ones.size());
    there.x.download(expected);
    ASSERT_TRUE(factor.solve(View<const double>::contiguous(ones.data(), systems, rows), View<double>::contiguous(x.data(), systems, rows)).ok());
    EXPECT_EQ(x, expected);
    std::ranges::fill(x, 0);
    ASSERT_TRUE(factor.solve(there.view(there.rhs), View<double>::contiguous(x.data(), systems, rows)).ok());
    EXPECT_EQ(x, expected);
}

TEST_P(FactoredMemory, TheMatrixIsTheFactorsOwnUntilItIsRefactored) {
    Arrays a(queue, 70, 30, 4);
    Factor factor(queue, a.matrix(), a.rows, a.batch());
    a.diag.upload(a.numbers(9)), a.lower.upload(a.numbers(NAN));
    ASSERT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
    a.expect_solved(4);
    a.lower.upload(a.numbers(-1));
    ASSERT_TRUE(factor.refactor(a.matrix()).ok());
    a.diag.upload(a.numbers(0));
    ASSERT_TRUE(enqueued(factor, a.view(a.rhs), a.view(a.x)).ok());
    a.expect_solved(9);
    // Numbers in place of arrays, and arrays again.
    ASSERT_TRUE(factor.refactor({-1.0, 5.0, -1.0}).ok());
    ASSERT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
    a.expect_solved(5);
    a.diag.upload(a.numbers(6));
    ASSERT_TRUE(factor.refactor({-1.0, a.view(a.diag), a.view(a.upper)}).ok());
    ASSERT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
    a.expect_solved(6);
}

TEST_P(FactoredMemory, SingularMatricesAreNamedAndCanBeReplaced) {
    for (const std::int64_t rows : {1, 9, 200, 5000}) {
        const std::int64_t systems = rows > 1000 ? 3 : 40, row = rows / 2, system = systems - 2;
        SCOPED_TRACE(testing::Message() << rows << " rows, " << systems << " systems");
        Arrays a(queue, rows, systems, 4);
        const auto broken = [&](double value, std::int64_t at) {
            std::vector<double> numbers = a.numbers(value);
            if (at >= 0 && at < rows) numbers[static_cast<std::size_t>(system * rows + at)] = 0;
            return numbers;
        };
        // Row and column.
        std::vector<double> lower = broken(-1, row), upper = broken(-1, row);
        if (row + 1 < rows) lower[static_cast<std::size_t>(system * rows + row + 1)] = 0;
        if (row > 0) upper[static_cast<std::size_t>(system * rows + row - 1)] = 0;
        a.diag.upload(broken(4, row)), a.lower.upload(lower), a.upper.upload(upper);
        Factor factor(queue, a.matrix(), rows, a.batch());
        EXPECT_EQ(factor.outcome().reason, Reason::singular);
        EXPECT_EQ(factor.outcome().system, system);
        EXPECT_EQ(factor.outcome().row, row);
        EXPECT_EQ(factor.outcome().failures, 1);
        PendingOutcome pending(queue);
        EXPECT_EQ(refusal([&] { (void)factor.solve(a.view(a.rhs), a.view(a.x)); }).code(), ErrorCode::usage);
        EXPECT_EQ(refusal([&] { (void)factor.workspace(a.view(a.rhs), a.view(a.x)); }).code(), ErrorCode::usage);
        const Error error = refusal([&] { factor.solve_async(queue, a.view(a.rhs), a.view(a.x), pending); });
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_NE(std::string(error.what()).find("singular"), std::string::npos) << error.what();
        a.diag.upload(a.numbers(4)), a.lower.upload(a.numbers(-1)), a.upper.upload(a.numbers(-1));
        ASSERT_TRUE(factor.refactor(a.matrix()).ok());
        ASSERT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
        a.expect_solved(4);
    }
}

// What one matrix is of many systems is looked at once, and said of all.
TEST_P(FactoredMemory, OfASharedMatrixEverySystemFails) {
    const std::int64_t batch[] = {3, 5, 7};
    for (const bool numbers : {true, false}) {
        std::vector<double> zeros(5 * 40, 4.0);
        std::fill_n(zeros.begin() + 2 * 40, 40, 0.0);
        const DeviceArray<double> diag(queue, zeros);
        const Dim along[] = {{1, 0}, {5, 40}, {7, 0}};
        const Factor factor(queue, {0.0, numbers ? Coefficient(0.0) : Coefficient(View<const double>::strided(diag.data(), {40, 1}, along, diag.memory())), 0.0}, 40, batch);
        EXPECT_EQ(factor.outcome().reason, Reason::singular);
        EXPECT_EQ(factor.outcome().failures, numbers ? 105 : 21);
        EXPECT_EQ(factor.outcome().system, numbers ? 0 : 14);
        EXPECT_EQ(factor.outcome().row, 0);
    }
}

TEST_P(FactoredMemory, AMatrixThatIsNotFiniteIsNamedBehindOneThatIsSingular) {
    for (const bool singular_first : {true, false})
        for (const double value : {double(NAN), double(INFINITY)}) {
            Arrays a(queue, 60, 30, 4);
            std::vector<double> diag = a.numbers(4), lower = a.numbers(-1), upper = a.numbers(-1);
            const std::size_t zero = singular_first ? 4 * 60 : 20 * 60;
            diag[zero + 31] = lower[zero + 31] = lower[zero + 32] = upper[zero + 31] = upper[zero + 30] = 0;
            diag[11 * 60 + 17] = value;
            a.diag.upload(diag), a.lower.upload(lower), a.upper.upload(upper);
            const Factor factor(queue, a.matrix(), a.rows, a.batch());
            EXPECT_EQ(factor.outcome().reason, singular_first ? Reason::singular : Reason::not_finite);
            EXPECT_EQ(factor.outcome().system, singular_first ? 4 : 11);
            EXPECT_EQ(factor.outcome().row, singular_first ? 31 : 17);
            EXPECT_EQ(factor.outcome().failures, 2);
        }
}

// Where x of ordinary numbers would be too large for its type, the matrix is none the worse.
TEST_P(FactoredMemory, VerySmallEntriesAreNoFailure) {
    Arrays a(queue, 100, 8, 4e-307);
    a.lower.upload(a.numbers(-1e-307)), a.upper.upload(a.numbers(-1e-307)), a.rhs.upload(a.numbers(1e-300));
    const Factor factor(queue, a.matrix(), a.rows, a.batch());
    EXPECT_TRUE(factor.outcome().ok()) << trifold::name_of(factor.outcome().reason);
    EXPECT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
}

// Nor where that of any numbers would be, but of zeros.
TEST_P(FactoredMemory, SolutionsThatGrowWithoutEndAreNoFailure) {
    Arrays a(queue, 600, 8, 1);
    a.lower.upload(a.numbers(0.1)), a.upper.upload(a.numbers(3)), a.rhs.upload(a.numbers(0));
    const Factor factor(queue, a.matrix(), a.rows, a.batch());
    EXPECT_TRUE(factor.outcome().ok()) << trifold::name_of(factor.outcome().reason);
    EXPECT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
    std::vector<double> found(static_cast<std::size_t>(a.x.size()));
    a.x.download(found);
    for (const double x : found) ASSERT_EQ(x, 0);
}

TEST_P(FactoredMemory, WhatDoesNotFitIsRefused) {
    Arrays a(queue, 20, 6, 4);
    const Factor factor(queue, a.matrix(), a.rows, a.batch());
    ASSERT_TRUE(factor.outcome().ok());
    PendingOutcome pending(queue);
    const auto both = [&](const AnyView& rhs, const AnyView& x, const char* where) {
        for (const bool async : {false, true}) {
            const Error error = refusal([&] { async ? factor.solve_async(queue, rhs, x, pending) : (void)factor.solve(rhs, x); });
            EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
            EXPECT_EQ(error.where(), where) << error.what();
        }
    };
    both(View<double>::contiguous(a.rhs.data(), 5, 20, 0, a.rhs.memory()), View<double>::contiguous(a.x.data(), 5, 20, 0, a.x.memory()), "rhs");
    both(View<double>::contiguous(a.rhs.data(), 6, 19, 20, a.rhs.memory()), View<double>::contiguous(a.x.data(), 6, 19, 20, a.x.memory()), "rhs");
    both(View<double>::strided(a.rhs.data(), {20, 1}, {}, a.rhs.memory()), View<double>::strided(a.x.data(), {20, 1}, {}, a.x.memory()), "rhs");
    both(a.view(a.rhs), View<const double>::contiguous(a.x.data(), 6, 20, 0, a.x.memory()), "x");
    AnyView single = a.view(a.rhs), single_x = a.view(a.x);
    single.dtype = single_x.dtype = DType::f32;
    both(single, single_x, "rhs");
    AnyView elsewhere = a.view(a.rhs);
    elsewhere.memory = {MemoryKind::device, 91};
    both(elsewhere, a.view(a.x), "rhs");
    EXPECT_EQ(refusal([&] { Factor(queue, {elsewhere, 4.0, -1.0}, 20, a.batch()); }).where(), "lower");
    ASSERT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
    a.expect_solved(4);
}

TEST_P(FactoredMemory, QueuesOfOthersAreRefused) {
    Arrays a(queue, 20, 6, 4);
    const Factor factor(queue, a.matrix(), a.rows, a.batch());
    Context other({.threads = 2, .profile_path = "none", .log = {}});
    Queue foreign(other, GetParam()), host(context(), GetParam() == "reference" ? "cpu" : "reference");
    PendingOutcome pending(queue), on_host(host);
    Error error = refusal([&] { factor.solve_async(foreign, a.view(a.rhs), a.view(a.x), pending); });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("Context"), std::string::npos) << error.what();
    error = refusal([&] { factor.solve_async(host, a.view(a.rhs), a.view(a.x), on_host); });
    EXPECT_NE(std::string(error.what()).find(host.device()), std::string::npos) << error.what();
    error = refusal([&] { factor.solve_async(queue, a.view(a.rhs), a.view(a.x), on_host); });
    EXPECT_NE(std::string(error.what()).find("PendingOutcome"), std::string::npos) << error.what();
    const PendingOutcome taken = std::move(pending);
    EXPECT_EQ(refusal([&] { factor.solve_async(queue, a.view(a.rhs), a.view(a.x), pending); }).code(), ErrorCode::usage);
}

TEST_P(FactoredMemory, HostArraysAreRefusedWhereTheyWouldHaveToBeCopied) {
    if (!own_memory()) GTEST_SKIP() << GetParam() << " works in the host's memory";
    Arrays a(queue, 20, 6, 4);
    const Factor factor(queue, a.matrix(), a.rows, a.batch());
    PendingOutcome pending(queue);
    std::vector<double> host(120, 1.0);
    const View<double> view = View<double>::contiguous(host.data(), 6, 20);
    EXPECT_EQ(refusal([&] { factor.solve_async(queue, view, a.view(a.x), pending); }).where(), "rhs");
    EXPECT_EQ(refusal([&] { factor.solve_async(queue, a.view(a.rhs), view, pending); }).where(), "x");
    const WorkspaceNeed need = factor.workspace(a.view(a.rhs), a.view(a.x)).at(0);
    EXPECT_EQ(need.memory, queue.memory());
    if (need.bytes > 0) { EXPECT_EQ(refusal([&] { factor.solve_async(queue, a.view(a.rhs), a.view(a.x), pending); }).where(), "Options::workspace"); }
    AnyView lies = view;
    lies.memory = queue.memory();
    EXPECT_EQ(refusal([&] { (void)factor.solve(lies, a.view(a.x)); }).where(), "rhs");
    EXPECT_EQ(refusal([&] { Factor(queue, {-1.0, lies, -1.0}, 20, a.batch()); }).where(), "diag");
}

// Who leaves it to the cpu keeps it in host memory, and says so.
TEST_P(FactoredMemory, WhatIsLeftToTheCpuTakesHostArrays) {
    if (!own_memory()) GTEST_SKIP() << GetParam() << " works in the host's memory";
    Arrays a(queue, 20, 6, 4);
    tridiagonal::Problem ring;
    ring.matrix = a.matrix(), ring.matrix.periodic = true;
    ring.rhs = a.view(a.rhs), ring.x = a.view(a.x);
    if (native(ring)) GTEST_SKIP() << GetParam() << " solves rings itself, and leaves nothing that is small enough for a test";
    Error error = refusal([&] { Factor(queue, ring.matrix, 20, a.batch()); });
    EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
    EXPECT_NE(std::string(error.what()).find("lower lies on the device"), std::string::npos) << error.what();
    Factor factor(queue, a.matrix(), 20, a.batch());
    tridiagonal::Matrix numbers{-1.0, 4.0, -1.0};
    numbers.periodic = true;
    ASSERT_TRUE(factor.refactor(numbers).ok());
    EXPECT_STREQ(factor.outcome().device, "cpu");
    error = refusal([&] { (void)factor.solve(ring.rhs, ring.x); });
    EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
    EXPECT_NE(std::string(error.what()).find("rhs lies on the device"), std::string::npos) << error.what();
    PendingOutcome pending(queue);
    EXPECT_EQ(refusal([&] { factor.solve_async(queue, ring.rhs, ring.x, pending); }).code(), ErrorCode::device_unavailable);
    std::vector<double> host(120, 2.0), x(120);
    ASSERT_TRUE(factor.solve(View<double>::contiguous(host.data(), 6, 20), View<double>::contiguous(x.data(), 6, 20)).ok());
    for (const double value : x) EXPECT_NEAR(value, 1, 1e-14);
    EXPECT_EQ(refusal([&] { factor.solve_async(queue, View<double>::contiguous(host.data(), 6, 20), View<double>::contiguous(x.data(), 6, 20), pending); }).code(), ErrorCode::usage);
    ASSERT_TRUE(factor.refactor(a.matrix()).ok());
    ASSERT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
    a.expect_solved(4);
}

TEST_P(FactoredMemory, AFactorAfterAFailedRefactorHoldsNothing) {
    if (!own_memory()) GTEST_SKIP() << GetParam() << " works in the host's memory";
    Arrays a(queue, 20, 6, 4);
    Factor factor(queue, a.matrix(), 20, a.batch());
    std::vector<double> host(120, 4.0);
    AnyView lies = View<double>::contiguous(host.data(), 6, 20);
    lies.memory = queue.memory();
    EXPECT_THROW((void)factor.refactor({-1.0, lies, -1.0}), Error);
    EXPECT_NE(std::string(refusal([&] { (void)factor.solve(a.view(a.rhs), a.view(a.x)); }).what()).find("refactor first"), std::string::npos);
    ASSERT_TRUE(factor.refactor(a.matrix()).ok());
    ASSERT_TRUE(factor.solve(a.view(a.rhs), a.view(a.x)).ok());
    a.expect_solved(4);
}

TEST_P(FactoredMemory, EmptyOnes) {
    PendingOutcome pending(queue);
    for (const std::int64_t rows : {0, 5}) {
        const std::int64_t batch[] = {rows == 0 ? 3 : 0};
        Factor factor(queue, {-1.0, 4.0, -1.0}, rows, batch);
        EXPECT_EQ(factor.outcome().reason, Reason::none);
        const DeviceArray<double> some(queue, 1);
        const Dim systems[] = {{batch[0], rows}};
        const AnyView nothing = View<double>::strided(some.data(), {rows, 1}, systems, some.memory());
        EXPECT_EQ(factor.solve(nothing, nothing).reason, Reason::none);
        factor.solve_async(queue, nothing, nothing, pending);
        EXPECT_EQ(pending.read().reason, Reason::none);
    }
}

TRIFOLD_ON_EVERY_DEVICE(FactoredMemory);

}  // namespace
}  // namespace trifold::tests
