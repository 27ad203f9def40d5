// SPDX-License-Identifier: BSD-3-Clause
// Every call of OpenCL's interface fails once, and all from it on (failing_layer.cpp), while the cpu and two parts of the device, or the cpu and the device, solve one system: the answer is right, and the report
// says who has gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "opencl/loaded.hpp"
#include "unit/split_whole.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t rows = 1 << 16;  // fewer are not shared

struct OpenclBeside : testing::Test {
    void SetUp() override {
        const std::string device = opencl_device_name();
        if (device.empty()) GTEST_SKIP() << no_device;
        calls = layer_function<long()>("trifold_calls"), fail = layer_function<void(long, int)>("trifold_fail_call");
        if (!fail) GTEST_SKIP() << no_layer;
        names = "cpu," + device + "/0/2," + device + "/1/2";
        try {
            Context context(options);
            Queue queue(context, names);
        } catch (const Error&) {
            names = "cpu," + device;
        }
    }
    void TearDown() override {
        if (fail) fail(-1, 0);
    }

    void solve(SplitCase<double>& system, const std::string& what) {
        const std::int64_t sum = solve_whole(system, options, names, {}, report, what);
        // Where nobody has failed and chunks did not meet, one device has solved it, and there are no shares.
        if (sum >= 0) {
            EXPECT_EQ(sum, report.devices.empty() ? 0 : rows) << what;
        }
    }

    bool anybody(const char* state) const {
        return std::ranges::any_of(report.devices, [&](const DeviceShare& share) { return share.state.starts_with(state); });
    }

    bool others_took_part() const {
        return std::ranges::any_of(report.devices, [](const DeviceShare& share) { return share.name.starts_with("opencl") && (share.rows > 0 || share.state.starts_with("retired: ")); });
    }

    void any_call_may_fail(Matrix matrix) {
        for (const bool in_place : {false, true}) {
            SplitCase<double> system(matrix, rows, in_place, 5);
            // Programs are compiled.
            for (int k = 0; k < 100 && (k < 2 || anybody("left out: ")); ++k) solve(system, "nothing fails");
            for (const bool lasting : {false, true}) {
                int retired = 0;
                long reached = 0;
                // As many calls as chunks want, and that is never the same.
                for (long call = 0, beyond = 0, idle = 0; beyond < 5;) {
                    fail(call, lasting);
                    const std::string what = "call " + std::to_string(call) + (lasting ? " and all after it" : "") + (in_place ? ", in place" : "");
                    solve(system, what);
                    const bool failed = calls() > call;
                    fail(-1, 0);
                    reached += failed, beyond = failed ? 0 : beyond + 1;
                    retired += anybody("retired: ");
                    EXPECT_FALSE(anybody("retired: ") && !failed) << what;
                    EXPECT_FALSE(report.devices.empty() && failed) << what;
                    if (HasFailure()) return;
                    // Where the cpu was done before others had begun, nothing was asked of them: once more.
                    if (!failed && !others_took_part() && ++idle < most_idle) {
                        beyond = 0;
                        continue;
                    }
                    ++call;
                }
                std::printf("%s%s%s: %ld calls failed, %d reported as retired\n", matrix == Matrix::poisson ? "coupled" : "dominant", in_place ? ", in place" : "", lasting ? ", and all after them" : "", reached, retired);
                EXPECT_GE(retired, 2);
            }
        }
    }

    static constexpr long most_idle = 300;
    const ContextOptions options{.threads = 2, .profile_path = "none", .log = {}};
    long (*calls)() = nullptr;
    void (*fail)(long, int) = nullptr;
    std::string names;
    Report report;
};

TEST_F(OpenclBeside, AnyCallMayFail) { any_call_may_fail(Matrix::dominant); }
TEST_F(OpenclBeside, AnyCallMayFailCoupled) { any_call_may_fail(Matrix::poisson); }

}  // namespace
}  // namespace trifold::tests
