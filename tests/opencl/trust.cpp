// SPDX-License-Identifier: BSD-3-Clause
// Long systems, and batches, one after the other on a device with memory of its own, none of which waits for the one before: what did not hold is solved again, and what depends on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t rows = 40000;

class Trust : public testing::Test {
protected:
    void SetUp() override {
        for (const Device* d : registered_devices())
            if (name_.empty() && std::string_view(d->name).starts_with("opencl:") && !why_unavailable(*d) && d->runtime) name_ = d->name;
        if (name_.empty()) GTEST_SKIP() << "no OpenCL device with memory of its own";
        queue_ = std::make_unique<Queue>(context_, name_);
    }

    /// -1, diagonal, -1 applied to ones: its solution is 1 everywhere. Windows hold for a diagonal of 4; for 2 nothing is forgotten.
    static std::vector<double> image_of_ones(double diagonal) {
        std::vector<double> rhs(rows, diagonal - 2);
        rhs.front() = rhs.back() = diagonal - 1;
        return rhs;
    }

    static double error(const DeviceArray<double>& x, const Queue& queue, double expected) {
        std::vector<double> host(rows);
        copy(queue, host.data(), x.data(), rows * sizeof(double));
        double worst = 0;
        for (const double value : host) worst = std::max(worst, std::abs(value - expected));
        return worst;
    }

    static tridiagonal::Problem problem(double diagonal, const DeviceArray<double>& rhs, DeviceArray<double>& x) {
        tridiagonal::Problem p;
        p.matrix = {-1.0, diagonal, -1.0};
        p.rhs = View<const double>::rows(std::span<const double>(rhs.data(), rows));
        p.x = View<double>::rows(std::span<double>(x.data(), rows));
        return p;
    }

    /// One workspace for all that is enqueued in `queue`.
    tridiagonal::Options options(Queue& queue, const tridiagonal::Problem& one) {
        std::size_t bytes = 0;
        for (const WorkspaceNeed& need : tridiagonal::workspace(queue, one, {})) bytes = std::max(bytes, need.bytes);
        scratch_ = DeviceArray<std::byte>(queue, static_cast<std::int64_t>(bytes));
        tridiagonal::Options out;
        out.workspace = {scratch_.data(), bytes};
        return out;
    }

    std::string name_;
    Context context_{{.threads = 2, .profile_path = "none", .log = {}}};
    std::unique_ptr<Queue> queue_;
    DeviceArray<std::byte> scratch_;
};

TEST_F(Trust, WhatDependsOnABrokenSolveIsSolvedAgain) {
    Queue& queue = *queue_;
    DeviceArray<double> rhs(queue, rows), x(queue, rows), y(queue, rows), z(queue, rows);
    // Poisson's equation, which windows cannot solve; y is made of x by a matrix for which they hold, z of y.
    const std::vector<double> given = image_of_ones(2);
    copy(queue, rhs.data(), given.data(), rows * sizeof(double));
    const tridiagonal::Options with = options(queue, problem(2, rhs, x));
    tridiagonal::PendingOutcome first(queue), second(queue), third(queue);
    solve_async(queue, problem(2, rhs, x), with, first);
    solve_async(queue, problem(4, x, y), with, second);
    solve_async(queue, problem(5, y, z), with, third);
    EXPECT_TRUE(third.read().ok());
    EXPECT_TRUE(second.read().ok());
    const Outcome outcome = first.read();
    EXPECT_TRUE(outcome.ok());
    EXPECT_NE(std::string(outcome.branch), "certified");
    EXPECT_LE(error(x, queue, 1), 1e-6);
    // The same on arrays of their own, each waited for.
    DeviceArray<double> y_alone(queue, rows), z_alone(queue, rows);
    ASSERT_TRUE(tridiagonal::solve(queue, problem(4, x, y_alone), {}).ok());
    ASSERT_TRUE(tridiagonal::solve(queue, problem(5, y_alone, z_alone), {}).ok());
    std::vector<double> a(rows), b(rows);
    copy(queue, a.data(), z.data(), rows * sizeof(double)), copy(queue, b.data(), z_alone.data(), rows * sizeof(double));
    EXPECT_EQ(a, b);
}

// A matrix that needs pivots, known by then to do so: all that may be needed is enqueued at once. Bits are those of the way that waits, and what has no answer is named.
TEST_F(Trust, WhatNeedsPivotsComesAgain) {
    Queue& queue = *queue_;
    DeviceArray<double> rhs(queue, rows), four(queue, rows), x(queue, rows), y(queue, rows);
    std::vector<double> given = image_of_ones(0), first(rows), again(rows);
    const std::vector<double> of_four = image_of_ones(4);
    copy(queue, rhs.data(), given.data(), rows * sizeof(double)), copy(queue, four.data(), of_four.data(), rows * sizeof(double));
    const tridiagonal::Options with = options(queue, problem(0, rhs, x));
    for (int k = 0; k < 4; ++k) {
        tridiagonal::PendingOutcome one(queue), two(queue), three(queue);
        solve_async(queue, problem(0, rhs, x), with, one);
        solve_async(queue, problem(4, four, y), with, two);
        solve_async(queue, problem(0, rhs, x), with, three);
        ASSERT_TRUE(one.read().ok() && two.read().ok() && three.read().ok()) << k;
        EXPECT_STREQ(three.read().branch, "two_pass");
        EXPECT_LE(error(x, queue, 1), 1e-9);
        EXPECT_LE(error(y, queue, 1), 1e-14);
        copy(queue, (k ? again : first).data(), x.data(), rows * sizeof(double));
        if (k) { EXPECT_EQ(first, again); }
    }
    given[777] = std::nan("");
    copy(queue, rhs.data(), given.data(), rows * sizeof(double));
    tridiagonal::PendingOutcome bad(queue), good(queue);
    solve_async(queue, problem(0, rhs, x), with, bad);
    solve_async(queue, problem(4, four, y), with, good);
    EXPECT_TRUE(good.read().ok());
    EXPECT_EQ(bad.read().reason, Reason::not_finite);
    EXPECT_LE(error(y, queue, 1), 1e-14);
}

// A solve that writes what an earlier one reads: that one is looked at first.
TEST_F(Trust, AnInputMayBeWrittenByTheNextSolve) {
    Queue& queue = *queue_;
    DeviceArray<double> rhs(queue, rows), other(queue, rows), x(queue, rows);
    const std::vector<double> given = image_of_ones(2), four = image_of_ones(4);
    copy(queue, rhs.data(), given.data(), rows * sizeof(double)), copy(queue, other.data(), four.data(), rows * sizeof(double));
    const tridiagonal::Options with = options(queue, problem(2, rhs, x));
    tridiagonal::PendingOutcome first(queue), second(queue);
    solve_async(queue, problem(2, rhs, x), with, first);
    solve_async(queue, problem(4, other, rhs), with, second);
    EXPECT_LE(error(x, queue, 1), 1e-6);
    EXPECT_LE(error(rhs, queue, 1), 1e-14);
    EXPECT_TRUE(first.read().ok() && second.read().ok());
}

// More than are kept, some broken; memory that is given back meanwhile.
TEST_F(Trust, ManyOneAfterTheOther) {
    Queue& queue = *queue_;
    DeviceArray<double> rhs(queue, rows), x(queue, rows);
    const std::vector<double> given = image_of_ones(2), four = image_of_ones(4);
    copy(queue, rhs.data(), four.data(), rows * sizeof(double));
    const tridiagonal::Options with = options(queue, problem(4, rhs, x));
    tridiagonal::PendingOutcome outcome(queue);
    for (int k = 0; k < 150; ++k) solve_async(queue, problem(4, rhs, x), with, outcome);
    EXPECT_LE(error(x, queue, 1), 1e-14);
    {
        DeviceArray<double> gone(queue, rows);
        copy(queue, gone.data(), given.data(), rows * sizeof(double));
        solve_async(queue, problem(2, gone, x), with, outcome);
    }
    EXPECT_TRUE(outcome.read().ok());
    EXPECT_LE(error(x, queue, 1), 1e-6);
}

/// Short systems in place: x over the right-hand side, one behind the other on the same array, on others, or on what another one has made.
class TrustInPlace : public Trust {
protected:
    static constexpr std::int64_t length = 2000;

    DeviceArray<double> image(double diagonal) {
        std::vector<double> rhs(length, diagonal - 2);
        rhs.front() = rhs.back() = diagonal - 1;
        return DeviceArray<double>(*queue_, std::span<const double>(rhs));
    }
    static tridiagonal::Problem problem(double diagonal, const DeviceArray<double>& rhs, DeviceArray<double>& x) {
        tridiagonal::Problem p;
        p.matrix = {-1.0, diagonal, -1.0};
        p.rhs = View<const double>::rows(std::span<const double>(rhs.data(), length)), p.x = View<double>::rows(std::span<double>(x.data(), length));
        return p;
    }
    static std::vector<double> got(const DeviceArray<double>& from) {
        std::vector<double> host(length);
        from.download(host);
        return host;
    }

    struct Step {
        double diagonal;
        int rhs, x;
    };
    /// Enqueued without looking, and each waited for, on arrays of their own: the same bits.
    void compare(const std::vector<Step>& steps) {
        DeviceArray<double> arrays[2][3];
        for (auto& set : arrays) set[0] = image(4), set[1] = image(0), set[2] = image(5);
        const tridiagonal::Options with = options(*queue_, problem(4, arrays[0][0], arrays[0][0]));
        std::vector<tridiagonal::PendingOutcome> outcomes;
        for (const Step& s : steps) outcomes.emplace_back(*queue_), solve_async(*queue_, problem(s.diagonal, arrays[0][s.rhs], arrays[0][s.x]), with, outcomes.back());
        for (const Step& s : steps) ASSERT_TRUE(tridiagonal::solve(*queue_, problem(s.diagonal, arrays[1][s.rhs], arrays[1][s.x]), {}).ok());
        for (std::size_t k = 0; k < steps.size(); ++k) EXPECT_TRUE(outcomes[k].read().ok()) << k << ": " << name_of(outcomes[k].read().reason);
        for (int a = 0; a < 3; ++a) EXPECT_EQ(got(arrays[0][a]), got(arrays[1][a])) << "array " << a;
    }
    /// So that nothing is known of what comes next.
    void forget() {
        DeviceArray<double> rhs(*queue_, 600), x(*queue_, 600);
        tridiagonal::Problem p;
        std::vector<double> of(600, 0.0);
        of.front() = of.back() = -1;
        rhs.upload(of);
        p.matrix = {-1.0, 0.0, -1.0}, p.rhs = View<const double>::rows(std::span<const double>(rhs.data(), 600)), p.x = View<double>::rows(std::span<double>(x.data(), 600));
        ASSERT_TRUE(tridiagonal::solve(*queue_, p, {}).ok());
    }
};

TEST_F(TrustInPlace, WhatNeedsPivotsIsSolvedAgainAndWhatFollowsIt) {
    const std::vector<Step> lists[] = {
        {{4, 0, 0}, {4, 0, 0}, {5, 2, 2}, {4, 1, 1}},             // all hold
        {{4, 0, 0}, {0, 1, 1}, {5, 2, 2}, {4, 1, 1}, {4, 0, 0}},  // the second one does not; what follows depends on it, or not
        {{0, 1, 1}, {0, 1, 1}, {4, 1, 1}},
        {{4, 0, 0}, {4, 0, 2}, {5, 2, 2}, {0, 1, 1}, {4, 1, 0}, {5, 0, 0}},  // among others that are not in place
        {{4, 0, 0}, {4, 0, 2}, {0, 1, 0}, {5, 0, 0}, {5, 2, 1}},
    };
    for (const auto& list : lists) forget(), compare(list);
}

TEST_F(TrustInPlace, MoreThanAreKept) {
    std::vector<Step> steps(150, {2.5, 0, 0});
    forget();
    compare(steps);
    steps[100] = {0, 1, 1}, steps[120] = {5, 1, 1};
    forget();
    compare(steps);
}

TEST_F(TrustInPlace, NoneWaits) {
    const auto waits = layer_function<long()>("trifold_waits");
    const auto reset = layer_function<void(long, int)>("trifold_fail_call");
    if (!waits) GTEST_SKIP() << no_layer;
    DeviceArray<double> a = image(4);
    const tridiagonal::Options with = options(*queue_, problem(4, a, a));
    forget();
    tridiagonal::PendingOutcome outcome(*queue_);
    reset(-1, 0);
    for (int k = 0; k < 20; ++k) solve_async(*queue_, problem(4, a, a), with, outcome);
    EXPECT_EQ(waits(), 0);
    EXPECT_TRUE(outcome.read().ok());
    EXPECT_GT(waits(), 0);
}

/// Batches of 200 rows, side by side or not: a matrix that needs no pivots, and one of which every 37th system does.
class TrustedBatches : public Trust {
protected:
    static constexpr std::int64_t length = 200, systems = 300, all = length * systems;

    void SetUp() override {
        Trust::SetUp();
        if (IsSkipped()) return;
        for (DeviceArray<double>* a : {&lower_, &good_, &bad_, &rhs_, &x_, &y_, &z_}) *a = DeviceArray<double>(*queue_, all);
        std::vector<double> a(all), b(all), c(all), d(all);
        for (std::int64_t i = 0; i < all; ++i) a[i] = -1 + 0.01 * (i % 7), b[i] = 3 + 0.1 * (i % 5), d[i] = i % 11 - 5.0;
        put(lower_, a), put(good_, b), put(rhs_, d);
        for (std::int64_t s = 5; s < systems; s += 37)
            for (std::int64_t r = 0; r < length; r += 2) b[beside ? r * systems + s : s * length + r] = 1e-9;
        put(bad_, b);
        // So many are not trusted after one that was broken (trusted.cpp), as in the test before.
        tridiagonal::Problem few;
        const auto corner = [](const DeviceArray<double>& a) { return View<const double>::contiguous(a.data(), 2, 2); };
        few.matrix = {corner(lower_), corner(good_), corner(lower_)}, few.rhs = corner(rhs_), few.x = View<double>::contiguous(x_.data(), 2, 2);
        const tridiagonal::Options with = options(*queue_, few);
        tridiagonal::PendingOutcome outcome(*queue_);
        for (int k = 0; k < 1000; ++k) solve_async(*queue_, few, with, outcome);
        ASSERT_TRUE(outcome.read().ok());
    }

    void put(DeviceArray<double>& to, const std::vector<double>& from) { copy(*queue_, to.data(), from.data(), all * sizeof(double)); }
    std::vector<double> got(const DeviceArray<double>& from) {
        std::vector<double> host(all);
        copy(*queue_, host.data(), from.data(), all * sizeof(double));
        return host;
    }

    template <class T>
    View<T> view(T* data) const { return beside ? View<T>::interleaved(data, length, systems) : View<T>::contiguous(data, systems, length); }

    void solve_next(const DeviceArray<double>& diag, const DeviceArray<double>& rhs, DeviceArray<double>& x, tridiagonal::PendingOutcome& outcome) {
        solve_async(*queue_, problem_of(diag, rhs, x), options_, outcome);
    }
    Outcome solve_alone(const DeviceArray<double>& diag, const DeviceArray<double>& rhs, DeviceArray<double>& x) { return tridiagonal::solve(*queue_, problem_of(diag, rhs, x), {}); }

    tridiagonal::Problem problem_of(const DeviceArray<double>& diag, const DeviceArray<double>& rhs, DeviceArray<double>& x) {
        tridiagonal::Problem p;
        p.matrix = {view<const double>(lower_.data()), view<const double>(diag.data()), view<const double>(lower_.data())};
        p.rhs = view<const double>(rhs.data()), p.x = view<double>(x.data());
        if (!options_.workspace.data) options_ = options(*queue_, p);
        return p;
    }

    void chain() {
        tridiagonal::PendingOutcome outcomes[4] = {tridiagonal::PendingOutcome(*queue_), tridiagonal::PendingOutcome(*queue_), tridiagonal::PendingOutcome(*queue_), tridiagonal::PendingOutcome(*queue_)};
        solve_next(good_, rhs_, x_, outcomes[0]), solve_next(bad_, x_, y_, outcomes[1]), solve_next(good_, y_, z_, outcomes[2]);
        const std::vector<double> x = got(x_), y = got(y_), z = got(z_);
        solve_next(good_, z_, rhs_, outcomes[3]);  // what the first one read
        EXPECT_EQ(outcomes[0].read().rescued, 0);
        EXPECT_EQ(outcomes[1].read().rescued, 8);
        EXPECT_EQ(outcomes[2].read().rescued, 0);
        EXPECT_TRUE(outcomes[3].read().ok());
        EXPECT_EQ(solve_alone(bad_, x_, y_).rescued, 8);
        EXPECT_EQ(y, got(y_));
        ASSERT_TRUE(solve_alone(good_, y_, x_).ok());
        EXPECT_EQ(z, got(x_));
    }

    bool beside = false;
    DeviceArray<double> lower_, good_, bad_, rhs_, x_, y_, z_;
    tridiagonal::Options options_;
};

TEST_F(TrustedBatches, WhatNeedsPivotsIsSolvedAgainAndWhatDependsOnIt) { chain(); }

struct TrustedBatchesBeside : TrustedBatches {
    TrustedBatchesBeside() { beside = true; }
};
TEST_F(TrustedBatchesBeside, WhatNeedsPivotsIsSolvedAgainAndWhatDependsOnIt) { chain(); }

// Batches behind windows and before them, and more than are kept; one that writes what an earlier one reads.
TEST_F(TrustedBatches, AmongLongSystems) {
    DeviceArray<double> given(*queue_, rows), long_x(*queue_, rows);
    const std::vector<double> poisson = image_of_ones(2);
    copy(*queue_, given.data(), poisson.data(), rows * sizeof(double));
    tridiagonal::PendingOutcome outcome(*queue_), whole(*queue_), last(*queue_);
    const std::vector<double> first = got(rhs_);
    const tridiagonal::Options with = options(*queue_, problem(2, given, long_x));
    const DeviceArray<std::byte> kept = std::move(scratch_);
    solve_async(*queue_, problem(2, given, long_x), with, whole);
    for (int k = 0; k < 70; ++k) solve_next(good_, rhs_, x_, outcome);
    solve_async(*queue_, problem(2, given, long_x), with, whole);
    solve_next(bad_, x_, rhs_, last);
    EXPECT_EQ(last.read().rescued, 8);
    EXPECT_TRUE(whole.read().ok() && outcome.read().ok());
    EXPECT_LE(error(long_x, *queue_, 1), 1e-6);
    const std::vector<double> x = got(x_);
    put(rhs_, first);
    ASSERT_TRUE(solve_alone(good_, rhs_, y_).ok());
    EXPECT_EQ(x, got(y_));
}

}  // namespace
}  // namespace trifold::tests
