// SPDX-License-Identifier: BSD-3-Clause
// Ragged batches in the device's own memory: solved where they are, at once or enqueued, each system for itself whatever lies beside it. On a host device the same calls work on host memory.
#include <cstring>
#include <limits>
#include <numeric>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Options;
using tridiagonal::PendingOutcome;
using tridiagonal::Problem;

struct Shape {
    const char* name;
    std::vector<std::int64_t> lengths;
};

std::vector<Shape> shapes() {
    Random random(17);
    const auto drawn = [&](int count, std::int64_t least, std::int64_t most) {
        std::vector<std::int64_t> lengths;
        for (int k = 0; k < count; ++k) lengths.push_back(least + random.below(most - least + 1));
        return lengths;
    };
    std::vector<Shape> all{{"one of one row", {1}},
                           {"one", {777}},
                           {"empty ones", {0, 0, 5, 0, 1, 0, 0, 64, 0}},
                           {"tiny ones", drawn(30000, 0, 4)},
                           {"short ones", drawn(3000, 1, 60)},
                           {"some hundred rows", drawn(300, 1, 600)},
                           {"of any length", drawn(60, 1, 6000)},
                           {"more than a block holds", drawn(40, 14000, 15000)},
                           {"a few long ones", {20000, 3, 70001, 0, 16384, 9000}},
                           {"a very long one between short ones", {100, 7, 300000, 1, 64}},
                           {"of one length", std::vector<std::int64_t>(2000, 64)},
                           {"as many rows as a warp holds, or a team of warps", {543, 544, 545, 1055, 1056, 1057, 1088, 1089, 3264, 3265, 6336, 6337, 17408, 17409, 33792, 33793}}};
    std::vector<std::int64_t> some_long = drawn(9000, 0, 60);
    some_long[17] = 2000, some_long[18] = 16000, some_long[7000] = 700, some_long.back() = 1100;
    all.push_back({"short ones and a few of several warps", some_long});
    return all;
}

/// hardly: not every row outweighs its couplings, but nearly. poisson: -1, 2, -1, which forgets nothing.
enum class Matrix { dominant, random, hardly, poisson };
constexpr const char* names[] = {"dominant", "random", "hardly dominant", "Poisson's"};

/// The arrays, twice: on the host, and on the device.
template <class T>
struct Batch {
    std::vector<std::int64_t> offsets;
    std::vector<T> lower, diag, upper, rhs, x;
    DeviceArray<T> d_lower, d_diag, d_upper, d_rhs, d_x;
    bool in_place = false, accumulate = false;

    // What couples systems across their ends is NaN, and so is what lies before and behind them.
    Batch(const std::vector<std::int64_t>& lengths, Matrix matrix) {
        offsets.push_back(5);
        for (const std::int64_t n : lengths) offsets.push_back(offsets.back() + n);
        const auto count = static_cast<std::size_t>(offsets.back() + 3);
        for (std::vector<T>* array : {&lower, &diag, &upper, &rhs, &x}) array->assign(count, std::numeric_limits<T>::quiet_NaN());
        Random random(static_cast<std::uint64_t>(offsets.back()));
        for (std::size_t k = 0; k + 1 < offsets.size(); ++k)
            for (std::int64_t i = offsets[k]; i < offsets[k + 1]; ++i) {
                const double d = random.uniform(-1, 1);
                const bool poisson = matrix == Matrix::poisson;
                if (i > offsets[k]) lower[i] = poisson ? T(-1) : static_cast<T>(random.uniform(-1, 1));
                if (i + 1 < offsets[k + 1]) upper[i] = poisson ? T(-1) : static_cast<T>(random.uniform(-1, 1));
                diag[i] = static_cast<T>(poisson ? 2 : matrix == Matrix::dominant ? std::copysign(2.1 + std::abs(d), d) : matrix == Matrix::hardly ? std::copysign(1.1 + std::abs(d) / 4, d) : d);
                rhs[i] = static_cast<T>(random.uniform(-1, 1)), x[i] = static_cast<T>(random.uniform(-1, 1));
            }
    }

    void upload(const Queue& queue) {
        d_lower = {queue, std::span<const T>(lower)}, d_diag = {queue, std::span<const T>(diag)}, d_upper = {queue, std::span<const T>(upper)};
        d_rhs = {queue, std::span<const T>(rhs)}, d_x = {queue, std::span<const T>(x)};
    }

    std::int64_t systems() const { return static_cast<std::int64_t>(offsets.size()) - 1; }

    Problem problem() const {
        const auto view = [](const DeviceArray<T>& array) { return View<T>::strided(array.data(), {array.size(), 1}, {}, array.memory()); };
        Problem p;
        p.matrix = {view(d_lower), view(d_diag), view(d_upper)};
        p.rhs = view(d_rhs), p.x = in_place ? view(d_rhs) : view(d_x);
        p.accumulate = accumulate, p.offsets = offsets;
        return p;
    }

    std::vector<T> found() const {
        std::vector<T> out(rhs.size());
        (in_place ? d_rhs : d_x).download(out);
        return out;
    }

    double error_of(std::int64_t k, const std::vector<T>& found) const {
        Bands<double> one(offsets[k + 1] - offsets[k]);
        std::vector<double> solution;
        for (std::int64_t i = 0; i < one.rows(); ++i) {
            const std::int64_t row = offsets[k] + i;
            one.lower[i] = i ? lower[row] : 0, one.diag[i] = diag[row], one.upper[i] = i + 1 < one.rows() ? upper[row] : 0, one.rhs[i] = rhs[row];
            solution.push_back(static_cast<double>(found[row]) - (accumulate ? static_cast<double>(x[row]) : 0));
        }
        return backward_error(one, solution);
    }

    /// What is added is rounded once more, beside whatever x was: in roundoffs of what was found.
    double rounded_beside(std::int64_t k, const std::vector<T>& found) const {
        if (!accumulate) return 0;
        double sum = 0, part = 0;
        for (std::int64_t row = offsets[k]; row < offsets[k + 1]; ++row)
            sum = std::max<double>(sum, std::abs(found[row])), part = std::max<double>(part, std::abs(static_cast<double>(found[row]) - static_cast<double>(x[row])));
        return 4 * sum / part;
    }

    /// Bit by bit what was there before.
    bool as_before(const std::vector<T>& found, std::int64_t first, std::int64_t end) const {
        const std::vector<T>& before = in_place ? rhs : x;
        return std::memcmp(found.data() + first, before.data() + first, static_cast<std::size_t>(end - first) * sizeof(T)) == 0;
    }
};

class RaggedMemory : public OnDevice {
protected:
    void SetUp() override {
        const std::int64_t offsets[] = {0, 2};
        const DeviceArray<double> some(queue, 2);
        Problem problem;
        problem.rhs = View<const double>::strided(some.data(), {2, 1}, {}, some.memory()), problem.x = View<double>::strided(some.data(), {2, 1}, {}, some.memory());
        problem.offsets = offsets;
        if (tridiagonal::plan(queue, problem).device != queue.device()) GTEST_SKIP() << GetParam() << " leaves ragged batches to the cpu";
    }

    bool own_memory() const { return queue.memory().kind == MemoryKind::device; }

    template <class T>
    Outcome solve(Batch<T>& batch, Options options, bool async, std::vector<std::int8_t>& status) {
        batch.upload(queue);
        status.assign(static_cast<std::size_t>(batch.systems()), 77);
        DeviceArray<std::int8_t> there(queue, std::span<const std::int8_t>(status));
        options.status = there.data();
        const Problem problem = batch.problem();
        Outcome outcome;
        if (async) {
            const RegisteredMemory pinned(queue, batch.offsets.data(), batch.offsets.size() * sizeof(std::int64_t));
            const WorkspaceNeed need = tridiagonal::workspace(queue, problem, options).at(0);
            const DeviceArray<std::byte> scratch(queue, static_cast<std::int64_t>(need.bytes));
            if (own_memory()) options.workspace = {scratch.data(), need.bytes};
            PendingOutcome pending(queue);
            tridiagonal::solve_async(queue, problem, options, pending);
            outcome = pending.read();
        } else {
            outcome = tridiagonal::solve(queue, problem, options);
        }
        there.download(status);
        return outcome;
    }

    template <class T>
    void attempt(const Shape& shape, Matrix matrix, bool in_place, bool accumulate, bool async, tridiagonal::Algorithm algorithm = tridiagonal::Algorithm::automatic) {
        SCOPED_TRACE(testing::Message() << shape.name << ", " << names[static_cast<int>(matrix)] << ", in place " << in_place << ", added to x " << accumulate << ", enqueued " << async << ", " << tridiagonal::name_of(algorithm) << ", "
                                        << trifold::name_of(dtype_of<T>));
        Batch<T> batch(shape.lengths, matrix);
        batch.in_place = in_place, batch.accumulate = accumulate;
        std::vector<std::int8_t> status;
        Options options;
        options.algorithm = algorithm;
        const Outcome outcome = solve(batch, options, async, status);
        ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason) << " in system " << outcome.system << ", row " << outcome.row;
        EXPECT_EQ(outcome.failures, 0);
        if (own_memory()) { EXPECT_STREQ(outcome.device, queue.device()); }
        const std::vector<T> found = batch.found();
        for (std::int64_t k = 0; k < batch.systems(); ++k) {
            const bool empty = shape.lengths[static_cast<std::size_t>(k)] == 0;
            ASSERT_EQ(status[static_cast<std::size_t>(k)] > 0, !empty) << "system " << k;
            if (empty) continue;
            ASSERT_LE(batch.error_of(k, found), (32 + batch.rounded_beside(k, found)) * unit_roundoff(dtype_of<T>)) << "system " << k << " of " << shape.lengths[static_cast<std::size_t>(k)] << " rows";
        }
        EXPECT_TRUE(batch.as_before(found, 0, batch.offsets.front()) && batch.as_before(found, batch.offsets.back(), batch.offsets.back() + 3)) << "what belongs to no system was written";
        for (const auto& [there, host] : {std::pair{&batch.d_lower, &batch.lower}, {&batch.d_diag, &batch.diag}, {&batch.d_upper, &batch.upper}}) {
            std::vector<T> now(host->size());
            there->download(now);
            EXPECT_EQ(std::memcmp(now.data(), host->data(), now.size() * sizeof(T)), 0) << "an array of the matrix was written";
        }
    }
};

TEST_P(RaggedMemory, IsSolvedWhereItLies) {
    for (const Shape& shape : shapes())
        for (const Matrix matrix : {Matrix::dominant, Matrix::random})
            for (const auto& [in_place, accumulate] : {std::pair{false, false}, {true, false}, {false, true}}) {
                attempt<double>(shape, matrix, in_place, accumulate, false);
                attempt<float>(shape, matrix, in_place, accumulate, false);
                if (HasFailure()) return;
            }
}

// Unknowns are felt from one end to the other; rows are not dominant, and need no pivots or few.
TEST_P(RaggedMemory, IsSolvedWhateverTheMatrix) {
    for (const Shape& shape : shapes()) {
        if (GetParam() == "reference" && shape.lengths.size() > 1000) continue;
        for (const Matrix matrix : {Matrix::hardly, Matrix::poisson}) {
            attempt<double>(shape, matrix, false, false, false);
            attempt<double>(shape, matrix, true, false, false);
            attempt<float>(shape, matrix, false, false, false);
            if (HasFailure()) return;
        }
    }
}

TEST_P(RaggedMemory, IsSolvedWhenEnqueued) {
    for (const Shape& shape : shapes()) {
        attempt<double>(shape, Matrix::dominant, false, false, true);
        attempt<float>(shape, Matrix::random, true, false, true);
        if (HasFailure()) return;
    }
}

TEST_P(RaggedMemory, IsEliminatedWithPivotsByName) {
    for (const Shape& shape : shapes()) {
        if (GetParam() == "reference" && shape.lengths.size() > 1000) continue;
        attempt<double>(shape, Matrix::random, false, false, false, tridiagonal::Algorithm::lu);
        if (HasFailure()) return;
    }
}

// Of every size that is solved in another way: one that is singular, one that is not finite; in place, rhs of short ones is there bit by bit.
TEST_P(RaggedMemory, WhatFailsIsNamedAndTheRestIsSolved) {
    for (const std::int64_t longest : {40, 700, 3000, 14500, 20000})
        for (const bool in_place : {false, true}) {
            SCOPED_TRACE(testing::Message() << "up to " << longest << " rows, in place " << in_place);
            // More than a block holds: each a block where there are many, launches of its own where there are few.
            std::vector<std::int64_t> lengths(longest == 14500 ? 40 : 7, longest);
            lengths[2] = 0, lengths[4] = 3;
            Batch<double> batch(lengths, Matrix::dominant);
            batch.in_place = in_place;
            const std::int64_t singular = batch.offsets[1] + longest / 2, nan = batch.offsets[5] + longest / 3;
            batch.lower[singular] = batch.diag[singular] = batch.upper[singular] = batch.upper[singular - 1] = batch.lower[singular + 1] = 0;
            batch.rhs[nan] = std::numeric_limits<double>::quiet_NaN();
            std::vector<std::int8_t> status;
            const Outcome outcome = solve(batch, {}, false, status);
            EXPECT_EQ(outcome.reason, Reason::singular);
            EXPECT_EQ(outcome.system, 1);
            EXPECT_EQ(outcome.row, longest / 2);
            EXPECT_EQ(outcome.failures, 2);
            const std::vector<double> found = batch.found();
            for (std::int64_t k = 0; k < batch.systems(); ++k) {
                EXPECT_EQ(std::min<int>(status[static_cast<std::size_t>(k)], 1), k == 1 ? -1 : k == 5 ? -2 : k == 2 ? 0 : 1) << "system " << k;
                if (k != 1 && k != 5 && k != 2) { ASSERT_LE(batch.error_of(k, found), 32 * unit_roundoff(DType::f64)) << "system " << k; }
            }
        }
}

TEST_P(RaggedMemory, WhatIsNotFiniteIsLookedForInRowsOnly) {
    Batch<double> batch({5, 0, 300, 9000, 2}, Matrix::dominant);
    std::vector<std::int8_t> status;
    Options options;
    options.check_finite = true;
    EXPECT_TRUE(solve(batch, options, false, status).ok());
    for (const auto& [array, row] : {std::pair{&batch.lower, 8999}, {&batch.diag, 0}, {&batch.upper, 17}, {&batch.rhs, 4000}}) {
        double& entry = (*array)[static_cast<std::size_t>(batch.offsets[3] + row)];
        const double before = std::exchange(entry, std::numeric_limits<double>::infinity());
        const Outcome outcome = solve(batch, options, false, status);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.system, 3);
        EXPECT_EQ(outcome.row, row);
        const std::vector<double> found = batch.found();
        EXPECT_TRUE(batch.as_before(found, 0, static_cast<std::int64_t>(found.size()))) << "x was written";
        entry = before;
    }
}

// Recorded by nobody, but asked for twice: what offsets point to may have changed.
// Copies to a device have none, and may be solved in another way than scratch was asked for.
TEST_P(RaggedMemory, OfTheHostWithGaps) {
    for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{1025}, {40, 3000, 0, 7, 14500}, std::vector<std::int64_t>(500, 33)})
        for (const bool in_place : {false, true}) {
            Recipe recipe;
            recipe.lengths = lengths, recipe.rows = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
            recipe.layout = Layout::interleaved, recipe.mixed = true, recipe.in_place = in_place;
            SCOPED_TRACE(recipe.text());
            expect_solved<double>(queue, recipe), expect_solved<float>(queue, recipe);
        }
}

TEST_P(RaggedMemory, OffsetsMayChangeBetweenCalls) {
    Batch<double> batch({100, 200, 5000}, Matrix::dominant);
    std::vector<std::int8_t> status;
    EXPECT_TRUE(solve(batch, {}, false, status).ok());
    for (const std::int64_t middle : {4000, 50, 100}) {
        const std::int64_t row = batch.offsets[0] + middle, other = batch.offsets[1];
        batch.offsets[1] = batch.offsets[2] = row;  // the second one is empty now
        // Entries at the old ends are NaN: they count now, and those at the new ones do not.
        for (std::vector<double>* array : {&batch.lower, &batch.upper})
            for (std::int64_t i = batch.offsets[0]; i < batch.offsets[3]; ++i)
                if (!((*array)[static_cast<std::size_t>(i)] * 0 == 0)) (*array)[static_cast<std::size_t>(i)] = 0.25;
        ASSERT_TRUE(solve(batch, {}, false, status).ok()) << middle << ", " << other;
        const std::vector<double> found = batch.found();
        for (const std::int64_t k : {0, 2}) EXPECT_LE(batch.error_of(k, found), 32 * unit_roundoff(DType::f64)) << "system " << k << ", " << middle;
        EXPECT_EQ(status[1], 0);
    }
}

TEST_P(RaggedMemory, OffsetsAreTheHosts) {
    if (!own_memory()) GTEST_SKIP() << GetParam() << " is the host";
    const auto refusal = [](const auto& call) {
        try {
            call();
        } catch (const Error& error) {
            return error;
        }
        return Error(ErrorCode::internal, "nothing", "was refused");
    };
    Batch<double> batch({5, 7}, Matrix::dominant);
    batch.upload(queue);
    Problem problem = batch.problem();
    const WorkspaceNeed need = tridiagonal::workspace(queue, problem).at(0);
    const DeviceArray<std::byte> scratch(queue, static_cast<std::int64_t>(need.bytes));
    Options options;
    options.workspace = {scratch.data(), need.bytes};
    PendingOutcome pending(queue);
    Error error = refusal([&] { tridiagonal::solve_async(queue, problem, options, pending); });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(error.where(), "offsets");
    EXPECT_NE(std::string(error.what()).find("pinned"), std::string::npos) << error.what();
    const DeviceArray<std::int64_t> there(queue, std::span<const std::int64_t>(batch.offsets));
    problem.offsets = {there.data(), batch.offsets.size()};
    for (const bool only_plan : {false, true}) {
        error = refusal([&] { only_plan ? void(tridiagonal::plan(queue, problem)) : void(tridiagonal::solve(queue, problem)); });
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_EQ(error.where(), "offsets");
    }
}

TRIFOLD_ON_EVERY_DEVICE(RaggedMemory);

}  // namespace
}  // namespace trifold::tests
