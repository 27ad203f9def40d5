// SPDX-License-Identifier: BSD-3-Clause
// Calls of CUDA's driver that fail, sleep or are slow while the cpu solves the same system: whatever they are, the answer is right, and the report says who has gone.
#include "cuda/failures.hpp"

#include <memory>
#include <thread>
#include <vector>

#include "unit/split_whole.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t rows = 1 << 20;
const std::string both = "cpu,cuda:0";

struct CudaBeside : testing::Test {
    void SetUp() override {
        if (const std::string why = no_failing_gpu(); !why.empty()) GTEST_SKIP() << why;
    }
    void TearDown() override {
        const FailingDriver& driver = failing_driver();
        if (driver.fail) driver.fail(-1, 0, unknown_error), driver.sleep(-1, 0), driver.slow(0);
        alarm(0);
    }

    void solve(SplitCase<double>& system, const std::string& what, double patience_s = 0) {
        must_end(what);
        tridiagonal::Options options;
        options.patience_s = patience_s;
        const std::int64_t sum = solve_whole(system, two_threads, both, options, report, what);
        // Where the chunks of all did not meet, and nobody has failed, one device has solved it, and there are no shares.
        if (sum >= 0) {
            EXPECT_EQ(sum, report.devices.empty() && failing_driver().failed() == 0 ? 0 : system.problem().rhs.rows()) << what;
        }
    }

    std::string state() const {
        for (const DeviceShare& share : report.devices)
            if (share.name == "cuda:0") return share.state;
        return "not in the report";
    }
    std::int64_t rows_of_gpu() const {
        std::int64_t sum = 0;
        for (const DeviceShare& share : report.devices) sum += share.name == "cuda:0" ? share.rows : 0;
        return sum;
    }

    /// What a solve in which nothing fails asks of the driver, at most.
    long calls_of(SplitCase<double>& system, double& seconds) {
        long calls = 0;
        for (int k = 0; k < 4; ++k) {
            failing_driver().fail(-1, 0, unknown_error);
            seconds = seconds_of([&] { solve(system, "nothing fails"); });
            if (k == 0) continue;  // kernels are loaded
            calls = std::max(calls, failing_driver().calls());
            EXPECT_EQ(state(), "");
        }
        return calls;
    }

    void any_call_may_fail(Matrix matrix, bool in_place) {
        const FailingDriver& driver = failing_driver();
        SplitCase<double> system(matrix, rows, in_place, 5);
        double seconds = 0;
        const long calls = calls_of(system, seconds), step = step_of(calls, 2.2 * seconds, 6);
        ASSERT_GT(calls, 0);
        int reached = 0, retired = 0;
        for (const bool lasting : {false, true})
            for (long k = lasting ? step / 2 : 0; k < calls; k += step) {
                std::string what = "call " + std::to_string(k) + " of " + std::to_string(calls) + (lasting ? " and all after it" : "") + (in_place ? ", in place" : "");
                driver.fail(k, lasting, lasting ? launch_failed : unknown_error);
                solve(system, what);
                const bool failed = driver.failed() > 0;
                what += std::string(" (") + driver.failed_function() + ")";
                driver.fail(-1, 0, unknown_error);
                const std::string said = state();
                reached += failed, retired += said.starts_with("retired: ");
                EXPECT_TRUE(said.empty() || failed) << said << ", " << what;
                if (k / step % 10 == 9) {
                    solve(system, "after " + what);
                    EXPECT_EQ(state(), "") << "after " << what;
                }
                if (HasFailure()) return;
            }
        std::printf("%s%s: %ld calls, every %ld; %d failed, %d reported as retired\n", matrix == Matrix::poisson ? "coupled" : "dominant", in_place ? ", in place" : "", calls, step, reached, retired);
        EXPECT_GE(retired, 3);
    }

    Report report;
};

TEST_F(CudaBeside, AnyCallMayFail) { any_call_may_fail(Matrix::dominant, false); }
TEST_F(CudaBeside, AnyCallMayFailInPlace) { any_call_may_fail(Matrix::dominant, true); }
TEST_F(CudaBeside, AnyCallMayFailCoupled) { any_call_may_fail(Matrix::poisson, false); }
TEST_F(CudaBeside, AnyCallMayFailCoupledInPlace) { any_call_may_fail(Matrix::poisson, true); }

TEST_F(CudaBeside, AllCallsMayBeSlow) {
    for (const Matrix matrix : {Matrix::dominant, Matrix::poisson})
        for (const bool in_place : {false, true}) {
            SplitCase<double> system(matrix, rows, in_place, 5);
            solve(system, "as it is");
            failing_driver().slow(3);
            solve(system, "slow calls");
            failing_driver().slow(0);
            EXPECT_EQ(state(), "");
            EXPECT_LT(rows_of_gpu(), rows);
        }
}

// The last test: those that were left behind keep their threads.
TEST_F(CudaBeside, TheCallsThatDoNotReturn) {
    constexpr long asleep_ms = 2500;
    constexpr std::int64_t many = 4 * rows;  // so many that two threads have not taken all when the GPU comes to that call
    std::vector<std::unique_ptr<SplitCase<double>>> kept;
    std::vector<std::vector<double>> solved;
    for (const auto& [matrix, in_place] : {std::pair{Matrix::dominant, true}, {Matrix::poisson, false}}) {
        // Where the cpu has taken them all nevertheless, nobody waits for it.
        int behind = 0;
        for (int round = 0; round < 3 && behind == 0; ++round)
            for (const long call : {0, 8, 14, 20, 26, 60}) {
                kept.push_back(std::make_unique<SplitCase<double>>(matrix, many, in_place, 5));
                failing_driver().sleep(call, asleep_ms);
                solve(*kept.back(), "call " + std::to_string(call) + " sleeps", 0.4);
                failing_driver().sleep(-1, 0);
                behind += state().find("a call has not returned") != std::string::npos;
                solved.push_back(in_place ? kept.back()->rhs : kept.back()->x);
            }
        EXPECT_GT(behind, 0) << (in_place ? "in place" : "x apart");
        std::this_thread::sleep_for(std::chrono::milliseconds(asleep_ms));  // a lock of the runtime may be held meanwhile
    }
    for (std::size_t k = 0; k < kept.size(); ++k) EXPECT_EQ(kept[k]->in_place ? kept[k]->rhs : kept[k]->x, solved[k]) << k;
}

}  // namespace
}  // namespace trifold::tests
