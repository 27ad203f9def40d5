// SPDX-License-Identifier: BSD-3-Clause
// Whatever happens to whichever devices of a set: calls of OpenCL's interface that fail, once or from then on, that do not return, programs that are not ready. Drawn; every solve ends, its x is right, and rows that are
// accounted for are all of them. Only where x comes back over the right-hand side may that be lost, and is said to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "opencl/shared_solve.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

constexpr double much_patience_s = 300;  // programs may be compiled on a machine that has something else to do

enum class Trouble { none, fails, fails_from_then_on, does_not_return, is_not_ready };
constexpr const char* names[] = {"none", "fails", "fails from then on", "does not return", "is not ready"};

/// As many numbers as are drawn for a solve, whatever becomes of it.
struct Drawn {
    std::string devices;
    Trouble trouble = Trouble::none;
    long call = 0;
    std::int64_t rows = 0;
    double diag = 4, patience = 0;
    bool in_place = false, new_context = false;

    Drawn(Random& random, const std::string& device) {
        std::vector<std::string> all{"cpu", device, device + "/0/2", device + "/1/2"};
        const std::int64_t count = 2 + random.below(2);
        for (std::int64_t k = 0; k < count; ++k) {
            const auto at = all.begin() + random.below(static_cast<std::int64_t>(all.size()));
            devices += (k > 0 ? "," : "") + *at;
            all.erase(at);
        }
        trouble = static_cast<Trouble>(random.below(5));
        call = std::lround(std::exp(random.uniform(0, std::log(80.0)))) - 1;
        rows = std::lround(std::exp2(random.uniform(15, 20)));
        diag = random.chance(0.5) ? 4 : 2;
        patience = random.uniform(0.05, 0.5);
        in_place = random.chance(0.5), new_context = random.chance(0.5);
    }

    bool waits() const { return trouble == Trouble::does_not_return || trouble == Trouble::is_not_ready; }

    std::string text() const {
        return devices + ", " + std::to_string(rows) + " rows, diagonal " + std::to_string(diag) + (in_place ? ", in place" : "") + (new_context ? ", a new Context" : "") + ", call " + std::to_string(call) + " " + names[static_cast<int>(trouble)];
    }
};

// TRIFOLD_TEST_SEED: the first solve's, TRIFOLD_TEST_SECONDS: so long, one seed after the other.
double number_of(const char* variable, double otherwise) {
    const char* const text = std::getenv(variable);
    return text ? std::atof(text) : otherwise;
}

TEST(Troubles, OfAnyKind) {
    const std::string device = opencl_device_name();
    if (device.empty()) GTEST_SKIP() << no_device;
    const HeldCalls calls;
    const auto fail = layer_function<void(long, int)>("trifold_fail_call");
    const auto hold_builds = layer_function<void(int)>("trifold_hold_builds");
    if (!calls.there() || !fail || !hold_builds) GTEST_SKIP() << no_layer;
    try {
        SharedSolve one(1 << 16, false);
        Context context({.threads = 2, .profile_path = "none", .log = {}});
        ASSERT_TRUE(one.solve(context, device + "/0/2," + device + "/1/2", much_patience_s));
    } catch (const Error& error) {
        GTEST_SKIP() << error.what();  // it cannot be divided
    }

    std::vector<std::unique_ptr<SharedSolve>> kept;  // calls that come back late may read them
    std::optional<Context> context;
    const auto first = static_cast<std::uint64_t>(number_of("TRIFOLD_TEST_SEED", std::random_device()()));
    std::printf("seeds from %llu on\n", static_cast<unsigned long long>(first));
    const auto start = std::chrono::steady_clock::now();
    const std::chrono::duration<double> most(number_of("TRIFOLD_TEST_SECONDS", 15));
    int solves = 0, met = 0;
    for (std::uint64_t seed = first; std::chrono::steady_clock::now() - start < most; ++seed) {
        Random random(seed);
        const Drawn drawn(random, device);
        SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << drawn.text());
        if (drawn.new_context || !context) context.emplace(ContextOptions{.threads = 2, .profile_path = "none", .log = {}});
        kept.push_back(std::make_unique<SharedSolve>(drawn.rows, drawn.in_place, drawn.diag));
        SharedSolve& one = *kept.back();
        if (drawn.trouble == Trouble::fails || drawn.trouble == Trouble::fails_from_then_on) fail(drawn.call, drawn.trouble == Trouble::fails_from_then_on);
        if (drawn.trouble == Trouble::does_not_return) calls.hold(drawn.call);
        if (drawn.trouble == Trouble::is_not_ready) hold_builds(1);
        bool lost = false;
        try {
            EXPECT_TRUE(one.solve(*context, drawn.devices, drawn.waits() ? drawn.patience : much_patience_s)) << name_of(one.report.outcome.reason) << " by " << one.report.outcome.device;
        } catch (const Error& error) {
            lost = true;
            EXPECT_TRUE(drawn.in_place) << error.what();
            EXPECT_NE(error.hint().find("right-hand side"), std::string::npos) << error.what();
        }
        fail(-1, 0), hold_builds(0), calls.let_go();
        if (!lost && !one.report.devices.empty()) {
            std::int64_t rows = 0;
            for (const DeviceShare& share : one.report.devices) rows += share.rows;
            EXPECT_EQ(rows, drawn.rows);
        }
        if (HasFailure()) {
            for (const DeviceShare& share : one.report.devices) std::printf("  %s: %lld rows, %s\n", share.name.c_str(), static_cast<long long>(share.rows), share.state.c_str());
            return;
        }
        ++solves, met += lost || std::ranges::any_of(one.report.devices, [](const DeviceShare& share) { return share.state.starts_with("retired: "); });
        if (kept.size() > 64) kept.erase(kept.begin());
    }
    std::printf("%d solves, in %d of them a device was retired\n", solves, met);
    EXPECT_GT(solves, 0);
}

}  // namespace
}  // namespace trifold::tests
