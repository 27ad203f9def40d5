// SPDX-License-Identifier: BSD-3-Clause
// A device whose programs take long to compile (failing_layer.cpp), in solves that are shared with others: the first ones are theirs, it takes part when it is ready, and a Context that ends waits for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t rows = 1 << 20;
constexpr long build_ms = 2500;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <class T>
struct Solved {
    std::vector<T> beside = std::vector<T>(rows, T(-1)), diag = std::vector<T>(rows, T(4)), rhs = std::vector<T>(rows, T(2)), x = std::vector<T>(rows);
    Report report;
    double seconds = 0;

    Solved() { rhs.front() = rhs.back() = 3; }

    /// -1, 4, -1; x is 1 everywhere.
    bool solve(Context& context, const std::string& devices, double patience = 300) {
        const auto view = [](const std::vector<T>& of) { return View<const T>::rows(std::span<const T>(of)); };
        Queue queue(context, devices);
        tridiagonal::Problem problem;
        problem.matrix = {view(beside), view(diag), view(beside)};
        problem.rhs = view(rhs), problem.x = View<T>::rows(std::span<T>(x));
        tridiagonal::Options options;
        options.report = &report, options.patience_s = patience;  // sanitizers make compilers slow
        const auto start = Clock::now();
        const bool good = tridiagonal::solve(queue, problem, options).ok();
        seconds = seconds_since(start);
        for (const T value : x)
            if (!(std::abs(value - 1) < 1e-6)) return false;
        return good;
    }

    DeviceShare share_of(const std::string& device) const {
        for (const DeviceShare& share : report.devices)
            if (share.name == device) return share;
        return {.name = "not in the report", .state = {}};
    }
};

struct LateDevice : testing::Test {
    void SetUp() override {
        device = opencl_device_name();
        if (device.empty()) GTEST_SKIP() << no_device;
        slow_builds = layer_function<void(long)>("trifold_slow_builds");
        hold_builds = layer_function<void(int)>("trifold_hold_builds");
        if (!slow_builds || !hold_builds) GTEST_SKIP() << no_layer;
    }
    void TearDown() override {
        if (slow_builds && hold_builds) slow_builds(0), hold_builds(0);
        wait_for_calls_left_behind();
    }

    const ContextOptions options{.threads = 2, .profile_path = "none", .log = {}};
    std::string device;
    void (*slow_builds)(long) = nullptr;
    void (*hold_builds)(int) = nullptr;
};

// Its programs are held for as long as we look at what the others do without it: on a busy machine no number of seconds would be long enough.
TEST_F(LateDevice, TakesPartWhenItIsReady) {
    Context context(options);
    Solved<double> one;
    hold_builds(1);
    ASSERT_TRUE(one.solve(context, "cpu," + device));
    EXPECT_EQ(one.share_of(device).rows, 0);
    double least = one.seconds;
    for (int k = 0; k < 20 && least > 0.5; ++k) {
        ASSERT_TRUE(one.solve(context, "cpu," + device));
        EXPECT_EQ(one.share_of(device).rows, 0);
        EXPECT_EQ(one.share_of(device).state, "left out: its programs are being compiled");
        least = std::min(least, one.seconds);
    }
    EXPECT_LT(least, 0.5) << "the first one waits a second for it, the next ones do not";
    hold_builds(0);
    const auto start = Clock::now();
    bool took_part = false;
    while (!took_part && seconds_since(start) < 300) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ASSERT_TRUE(one.solve(context, "cpu," + device));
        took_part = one.share_of(device).rows > 0;
    }
    EXPECT_TRUE(took_part);
    EXPECT_EQ(one.share_of(device).state, "");
}

// Of another type it needs other programs. The Context ends while they are compiled; the next one finds them.
TEST_F(LateDevice, IsWaitedForAtTheEnd) {
    slow_builds(build_ms);
    Solved<float> one;
    {
        Context context(options);
        ASSERT_TRUE(one.solve(context, "cpu," + device));
    }
    slow_builds(0), hold_builds(1);  // nothing is left to compile
    Context context(options);
    ASSERT_TRUE(one.solve(context, "cpu," + device));
    hold_builds(0);
    EXPECT_EQ(one.share_of(device).state, "");
}

// Where nobody else was named there is nobody to begin without it.
TEST_F(LateDevice, IsWaitedForWhereNobodyElseIs) {
    const std::string parts[] = {device + "/0/2", device + "/1/2"};
    slow_builds(build_ms);
    Context context(options);
    Solved<double> one;
    try {
        ASSERT_TRUE(one.solve(context, parts[0] + "," + parts[1]));
    } catch (const Error& error) {
        GTEST_SKIP() << error.what();
    }
    EXPECT_EQ(one.share_of(parts[0]).rows + one.share_of(parts[1]).rows, rows);
    EXPECT_EQ(one.share_of("cpu").rows, 0);
}

// Of those that were named none is ever ready: the host solves it, and nobody waits for them any longer.
TEST_F(LateDevice, IsNotWaitedForForGood) {
    const std::string parts[] = {device + "/0/2", device + "/1/2"};
    Context context(options);
    Solved<float> one;  // of another type, as above
    hold_builds(1);
    for (int k = 0; k < 2; ++k) {
        try {
            ASSERT_TRUE(one.solve(context, parts[0] + "," + parts[1], 1));
        } catch (const Error& error) {
            GTEST_SKIP() << error.what();
        }
        for (const std::string& part : parts) {
            EXPECT_EQ(one.share_of(part).state, "left out: a call to it has not returned");
            EXPECT_EQ(one.share_of(part).rows, 0);
        }
        EXPECT_EQ(one.share_of("cpu").rows, rows);
        EXPECT_EQ(one.share_of("cpu").state, "took what was left");
    }
}

}  // namespace
}  // namespace trifold::tests
