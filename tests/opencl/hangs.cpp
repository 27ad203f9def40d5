// SPDX-License-Identifier: BSD-3-Clause
// A call of OpenCL's interface that does not return in time (failing_layer.cpp), in a solve that is shared with the cpu: the cpu finishes, the report says so, and when the call
// returns after all nothing changes.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t rows = 1 << 20;
constexpr long asleep_ms = 9000;
constexpr double patience_s = 2;

/// -1, 4, -1; x is 1 everywhere.
struct Solved {
    std::vector<double> beside, diag, rhs, x;
    Report report;

    explicit Solved(bool in_place) : beside(rows, -1.0), diag(rows, 4.0), rhs(rows, 2.0), x(in_place ? 0 : rows, 0.0) { rhs.front() = rhs.back() = 3; }

    const std::vector<double>& solution() const { return x.empty() ? rhs : x; }

    bool solve(Context& context, const std::string& devices) {
        Queue queue(context, devices);
        tridiagonal::Problem problem;
        problem.matrix = {View<const double>::rows(std::span<const double>(beside)), View<const double>::rows(std::span<const double>(diag)), View<const double>::rows(std::span<const double>(beside))};
        problem.rhs = View<const double>::rows(std::span<const double>(rhs));
        problem.x = View<double>::rows(std::span<double>(x.empty() ? rhs : x));
        tridiagonal::Options options;
        options.report = &report, options.patience_s = patience_s;
        if (!tridiagonal::solve(queue, problem, options).ok()) return false;
        for (const double value : solution())
            if (!(std::abs(value - 1) < 1e-13)) return false;
        return true;
    }

    std::string state_of(const std::string& device) const {
        for (const DeviceShare& share : report.devices)
            if (share.name == device) return share.state;
        return "not in the report";
    }
};

TEST(Hangs, OthersFinish) {
    const std::string device = opencl_device_name();
    if (device.empty()) GTEST_SKIP() << no_device;
    const auto sleep = layer_function<void(long, long)>("trifold_sleep_call");
    if (!sleep) GTEST_SKIP() << no_layer;
    const std::string both = "cpu," + device;
    const ContextOptions options{.threads = 2, .profile_path = "none", .log = {}};

    // Programs are compiled, which may take longer than we wait below.
    {
        Context context(options);
        for (const bool in_place : {false, true}) {
            Queue alone(context, device);
            Solved once(in_place);
            ASSERT_TRUE(once.solve(context, device));
            Solved shared(in_place);  // the Context waits for a device that is being made ready
            ASSERT_TRUE(shared.solve(context, both));
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
                sleep(call, asleep_ms);
                ASSERT_TRUE(one.solve(context, both)) << "call " << call;
                sleep(-1, 0);
                before.push_back(one.solution());
                const std::string state = one.state_of(device);
                if (!state.starts_with("retired: a call has not returned")) continue;
                ++behind;
                // This Context does not ask it again.
                Solved next(in_place);
                ASSERT_TRUE(next.solve(context, both));
                EXPECT_EQ(next.state_of(device), "left out: a call to it has not returned");
            }
    EXPECT_GE(behind, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(asleep_ms + 500));
    for (std::size_t k = 0; k < kept.size(); ++k) EXPECT_EQ(kept[k]->solution(), before[k]) << k;
}

}  // namespace
}  // namespace trifold::tests
