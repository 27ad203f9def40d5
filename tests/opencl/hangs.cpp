// SPDX-License-Identifier: BSD-3-Clause
// Calls of OpenCL's interface that do not return in time, or fail from one of them on (failing_layer.cpp), in a solve that is shared with the cpu: the cpu finishes, the report says so, and when the call
// returns after all nothing changes.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "opencl/shared_solve.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t rows = 1 << 20;
// Of one call: where one is meant not to return; and where none is, though programs may be compiled on a machine that has something else to do.
constexpr double patience_s = 2, much_patience_s = 300;

struct Solved : SharedSolve {
    explicit Solved(bool in_place, double d = 4) : SharedSolve(rows, in_place, d) {}
};

TEST(Hangs, OthersFinish) {
    const std::string device = opencl_device_name();
    if (device.empty()) GTEST_SKIP() << no_device;
    const HeldCalls calls;
    if (!calls.there()) GTEST_SKIP() << no_layer;
    const std::string both = "cpu," + device;
    const ContextOptions options{.threads = 2, .profile_path = "none", .log = {}};

    // Programs are compiled, which may take longer than we wait below.
    {
        Context context(options);
        for (const bool in_place : {false, true}) {
            Queue alone(context, device);
            Solved once(in_place);
            ASSERT_TRUE(once.solve(context, device, much_patience_s));
            Solved shared(in_place);  // the Context waits for a device that is being made ready
            ASSERT_TRUE(shared.solve(context, both, much_patience_s));
        }
    }
    std::vector<std::unique_ptr<Solved>> kept;
    std::vector<std::vector<double>> before;
    // Where the cpu has taken all rows before the device comes to that call, nobody waits for it: then once more.
    int behind = 0;
    for (int round = 0; round < 4 && behind < 2; ++round)
        for (const long call : {0, 6, 13})
            for (const bool in_place : {false, true}) {
                Context context(options);
                kept.push_back(std::make_unique<Solved>(in_place));
                Solved& one = *kept.back();
                calls.hold(call);
                ASSERT_TRUE(one.solve(context, both, patience_s)) << "call " << call;
                calls.hold(-1);
                before.push_back(one.solution());
                const std::string state = one.state_of(device);
                if (!state.starts_with("retired: a call has not returned")) continue;
                ++behind;
                // This Context does not ask it again.
                Solved next(in_place);
                ASSERT_TRUE(next.solve(context, both, patience_s));
                EXPECT_EQ(next.state_of(device), "left out: a call to it has not returned");
            }
    EXPECT_GE(behind, 2);
    calls.let_go();
    for (std::size_t k = 0; k < kept.size(); ++k) EXPECT_EQ(kept[k]->solution(), before[k]) << k;
}

// A driver that has gone: all its calls fail from one of them on, those too that wait for what was enqueued.
TEST(Hangs, OthersFinishWhereAllCallsFail) {
    const std::string device = opencl_device_name();
    if (device.empty()) GTEST_SKIP() << no_device;
    const auto fail = layer_function<void(long, int)>("trifold_fail_call");
    if (!fail) GTEST_SKIP() << no_layer;
    const std::string both = "cpu," + device;
    for (const double diag : {4.0, 2.0}) {
        const auto solved = [&](Context& context, bool in_place) {
            auto one = std::make_unique<Solved>(in_place, diag);
            EXPECT_TRUE(one->solve(context, both, much_patience_s)) << diag;
            return one;
        };
        const ContextOptions options{.threads = 2, .profile_path = "none", .log = {}};
        for (const bool in_place : {false, true}) {
            Context context(options);
            solved(context, in_place);  // programs are compiled
        }
        int retired = 0;
        for (int round = 0; round < 4 && retired < 3; ++round)
            for (const long call : {0, 1, 3, 8, 20, 50})
                for (const bool in_place : {false, true}) {
                    Context context(options);  // its first solve is everybody's
                    fail(call, 1);
                    const auto one = solved(context, in_place);
                    fail(-1, 0);
                    EXPECT_EQ(one->rows_of("cpu") + one->rows_of(device), rows);
                    retired += one->state_of(device).starts_with("retired: ");
                    solved(context, in_place);
                }
        EXPECT_GE(retired, 3) << diag;
    }
}

// It streams alone and does not return, and what the host takes in its place is singular: the device is not asked for the whole then.
TEST(Hangs, IsNotAskedForTheWhole) {
    const Device* const device = opencl_device();
    if (!device || !device->runtime) GTEST_SKIP() << "no OpenCL device with memory of its own";
    const HeldCalls calls;
    if (!calls.there()) GTEST_SKIP() << no_layer;
    constexpr std::int64_t long_rows = std::int64_t{7} << 20;  // streamed
    const auto solve = [&](const std::string& name, double last, double patience) {
        Context context({.threads = 2, .profile_path = "none", .log = {}});
        Queue queue(context, name);
        std::vector<double> beside(long_rows, -1.0), diag(long_rows, 4.0), rhs(long_rows, 1.0), x(long_rows);
        diag[long_rows - 1] = last, beside[long_rows - 1] = last == 0 ? 0 : -1;
        tridiagonal::Problem problem;
        problem.matrix = {View<const double>::rows(std::span<const double>(beside)), View<const double>::rows(std::span<const double>(diag)), View<const double>::rows(std::span<const double>(beside))};
        problem.rhs = View<const double>::rows(std::span<const double>(rhs)), problem.x = View<double>::rows(std::span<double>(x));
        tridiagonal::Options options;
        options.patience_s = patience;
        return tridiagonal::solve(queue, problem, options);
    };
    solve("cpu," + std::string(device->name), 4, much_patience_s);  // programs are compiled
    EXPECT_TRUE(solve(device->name, 4, much_patience_s).ok());
    calls.hold(6);
    try {
        const Outcome outcome = solve(device->name, 0, patience_s);
        ADD_FAILURE() << name_of(outcome.reason) << " by " << outcome.device;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
        EXPECT_NE(std::string(error.what()).find("has not returned"), std::string::npos) << error.what();
    }
}

// Of two that were named one is left: it solves what comes next, whether the matrix forgets or not.
TEST(Hangs, WhoIsLeftGoesOn) {
    const std::string device = opencl_device_name();
    if (device.empty()) GTEST_SKIP() << no_device;
    const HeldCalls calls;
    if (!calls.there()) GTEST_SKIP() << no_layer;
    const std::string parts[] = {device + "/0/2", device + "/1/2"}, both = parts[0] + "," + parts[1];
    const ContextOptions options{.threads = 2, .profile_path = "none", .log = {}};
    std::vector<std::unique_ptr<Solved>> kept;
    const auto solved = [&](Context& context, double diag, double patience_here) -> Solved& {
        kept.push_back(std::make_unique<Solved>(false, diag));
        EXPECT_TRUE(kept.back()->solve(context, both, patience_here)) << diag;
        return *kept.back();
    };
    try {
        Context context(options);
        // Programs are compiled: whoever is late has no rows, and PoCL compiles for long and for short launches apart.
        for (int turn = 0; turn < 3; ++turn)
            for (const double diag : {4.0, 2.0}) solved(context, diag, much_patience_s);
    } catch (const Error& error) {
        GTEST_SKIP() << error.what();
    }
    for (const double diag : {4.0, 2.0})
        // On a busy machine the other one may seem not to return either: then once more, and longer.
        for (double patience = patience_s;; patience *= 2) {
            Context context(options);
            calls.hold(5);
            const Solved& first = solved(context, diag, patience);
            calls.hold(-1);
            const bool hangs[] = {first.state_of(parts[0]).starts_with("retired: a call"), first.state_of(parts[1]).starts_with("retired: a call")};
            if (hangs[0] && hangs[1] && patience < much_patience_s) {
                calls.let_go();
                continue;
            }
            ASSERT_NE(hangs[0], hangs[1]) << first.state_of(parts[0]) << ", " << first.state_of(parts[1]);
            for (const double next : {4.0, 2.0}) {
                const Solved& second = solved(context, next, much_patience_s);
                EXPECT_EQ(second.rows_of(parts[hangs[0]]), rows) << diag << ", then " << next;
                EXPECT_EQ(second.state_of(parts[hangs[1]]), "left out: a call to it has not returned");
            }
            calls.let_go();  // it is the process's device, which the next Context asks again
            break;
        }
}

}  // namespace
}  // namespace trifold::tests
