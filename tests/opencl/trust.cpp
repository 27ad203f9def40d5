// SPDX-License-Identifier: BSD-3-Clause
// Long systems one after the other on a device with memory of its own, none of which waits for the one before: what did not hold is solved again, and what depends on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backends/registry.hpp"
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
    DeviceArray<std::byte> scratch_;
};

TEST_F(Trust, WhatDependsOnABrokenSolveIsSolvedAgain) {
    Queue queue(context_, name_);
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

// A solve that writes what an earlier one reads: that one is looked at first.
TEST_F(Trust, AnInputMayBeWrittenByTheNextSolve) {
    Queue queue(context_, name_);
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
    Queue queue(context_, name_);
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

}  // namespace
}  // namespace trifold::tests
