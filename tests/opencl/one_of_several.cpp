// SPDX-License-Identifier: BSD-3-Clause
// A set of devices of which one is best alone: after a few solves nobody looks any more how far the matrix remembers, but for every sixteenth solve, where the matrix is another one at some rows, and after one that
// took another branch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t rows = 200000;

struct OneOfSeveral : testing::Test {
    void SetUp() override {
        other = opencl_device_name();
        if (other.empty()) GTEST_SKIP() << no_device;
    }

    /// Whether it was looked at. Joules decide, and those of the other device are a thousand times as many.
    bool looked(Queue& queue, double most_diag, double seen = 0, double cpu_watts = 1) {
        const std::vector<tridiagonal::DeviceWatts> watts{{"cpu", cpu_watts}, {other, 1000}};
        tridiagonal::Problem problem;
        problem.matrix = {-1.0, View<const double>::rows(diagonal(most_diag, seen)), -1.0};
        problem.rhs = View<const double>::rows(in_place ? x : rhs), problem.x = View<double>::rows(x);
        tridiagonal::Options options;
        options.report = &report, options.objective = Objective::energy, options.watts = watts;
        Outcome outcome;
        const auto compiles = [](const DeviceShare& share) { return share.state.find("being compiled") != share.state.npos; };
        do {
            // A solve in place has overwritten rhs; elsewhere the x of the solve before must not pass for this one's.
            if (in_place)
                x = rhs;
            else
                std::fill(x.begin(), x.end(), std::nan(""));
            outcome = tridiagonal::solve(queue, problem, options);
        } while (std::any_of(report.devices.begin(), report.devices.end(), compiles));
        EXPECT_TRUE(outcome.ok());
        double off = 0, most = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            off = std::max(off, std::abs(rhs[i] - diag[i] * x[i] + (i > 0 ? x[i - 1] : 0) + (i + 1 < x.size() ? x[i + 1] : 0)));
            most = std::max(most, std::abs(x[i]));
        }
        EXPECT_LE(off, 1e-15 * 16 * (2 + most_diag) * most);
        return std::any_of(report.phases.begin(), report.phases.end(), [](const auto& phase) { return phase.first == "look for decay"; });
    }

    std::string states() const {
        std::string text;
        for (const DeviceShare& share : report.devices) text += share.name + ": " + std::to_string(share.rows) + " rows, " + share.state + "; ";
        return text;
    }

    std::span<const double> diagonal(double most_rows, double seen) {
        diag.assign(static_cast<std::size_t>(rows), most_rows);
        if (seen > 0)
            for (std::int64_t k = 1; k <= 3; ++k) std::fill(diag.begin() + rows / 4 * k - 20, diag.begin() + rows / 4 * k + 20, seen);
        return diag;
    }

    std::string other;
    bool in_place = false;
    Report report;
    std::vector<double> diag, rhs = std::vector<double>(static_cast<std::size_t>(rows), 1.0), x = std::vector<double>(static_cast<std::size_t>(rows));
};

TEST_F(OneOfSeveral, IsLookedAtSeldom) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    Queue queue(context, "cpu," + other);
    int first = 0;
    while (looked(queue, 3) && first < 8) ++first;
    EXPECT_LT(first, 8);
    // One of the next sixteen, and the one before these was not.
    int times = 0;
    for (int k = 0; k < 16; ++k) times += looked(queue, 3);
    EXPECT_EQ(times, 1);
}

TEST_F(OneOfSeveral, IsLookedAtWhereTheMatrixIsAnotherOne) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    Queue queue(context, "cpu," + other);
    int first = 0;
    while (looked(queue, 3) && first < 8) ++first;
    ASSERT_LT(first, 8);
    EXPECT_FALSE(looked(queue, 3.01)) << "a little another one";
    EXPECT_TRUE(looked(queue, 2.1));
    EXPECT_TRUE(looked(queue, 2));
}

// Where a glance is taken it is as before, but it does not forget elsewhere.
TEST_F(OneOfSeveral, IsLookedAtAfterAnotherBranch) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    Queue queue(context, "cpu," + other);
    int first = 0;
    while (looked(queue, 3) && first < 8) ++first;
    ASSERT_LT(first, 8);
    EXPECT_FALSE(looked(queue, 2, 3));
    EXPECT_TRUE(looked(queue, 2, 3));
}

// It is the other device that is chosen, and its driver fails at one call after the other: the cpu solves in its place, and the report says so. In place the right-hand side is there until x comes back from the device's
// memory; from then on it is an error that says so.
TEST_F(OneOfSeveral, MayFail) {
    const auto fail = layer_function<void(long, int)>("trifold_fail_call");
    if (!fail) GTEST_SKIP() << no_layer;
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    Queue queue(context, "cpu," + other);
    constexpr double cpu_watts = 1e9;  // a first solve of the other device that is a thousand times too slow, as one was in a hundred, must not decide
    const auto rows_of = [&](const std::string& device) {
        std::int64_t sum = 0;
        for (const DeviceShare& share : report.devices) sum += share.name == device ? share.rows : 0;
        return sum;
    };
    const bool own_memory = opencl_device()->runtime;  // else it solves into memory of the lane's own
    for (const bool over_rhs : {false, true}) {
        in_place = over_rhs;
        for (int k = 0; k < 8 || (rows_of(other) < rows && k < 200); ++k) looked(queue, 3, 0, cpu_watts);  // on a busy machine what was seen of it may be forgotten once more
        ASSERT_EQ(rows_of(other), rows) << states();
        int retired = 0, lost = 0;
        bool reached = true;
        for (long call = 0; call < 400 && reached; ++call) {
            const int before = retired + lost;
            fail(call, call % 9 == 4);  // then all after it, too
            try {
                looked(queue, 3, 0, cpu_watts);
                EXPECT_EQ(rows_of("cpu") + rows_of(other), rows) << call;
                for (const DeviceShare& share : report.devices) retired += share.state.starts_with("retired: ");
            } catch (const Error& error) {
                EXPECT_TRUE(over_rhs && own_memory) << error.what();
                EXPECT_NE(error.hint().find("right-hand side"), std::string::npos) << error.what();
                ++lost;
            }
            fail(-1, 0);
            reached = retired + lost > before;
        }
        EXPECT_FALSE(reached);
        EXPECT_GE(retired, 3) << over_rhs;
        EXPECT_EQ(lost > 0, over_rhs && own_memory) << lost;
        EXPECT_LT(lost, retired);
    }
}

}  // namespace
}  // namespace trifold::tests
