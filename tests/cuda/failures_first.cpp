// SPDX-License-Identifier: BSD-3-Clause
// Calls of CUDA's driver that fail when a process first uses the GPU: contexts are made then, and kernels loaded. A process each, some beside each other.
#include "cuda/failures.hpp"

#include <cstdlib>
#include <thread>
#include <vector>

namespace trifold::tests {
namespace {

constexpr std::int64_t rows = 1 << 18;

// What TRIFOLD_TEST_FIRST says: devices, the call that fails, whether all after it do.
TEST(CudaFirstUse, OfThisProcess) {
    const char* const asked = std::getenv("TRIFOLD_TEST_FIRST");
    if (!asked) GTEST_SKIP() << "what CudaFirstUse.AnyCallMayFail runs";
    char devices[64] = "";
    long fail_at = -1;
    int lasting = 0;
    ASSERT_EQ(std::sscanf(asked, "%63s %ld %d", devices, &fail_at, &lasting), 3) << asked;
    const FailingDriver& driver = failing_driver();
    ASSERT_EQ(driver.why_not, "");
    must_end(asked);
    SplitCase<double> system(Matrix::dominant, rows, false, 5);
    driver.fail(fail_at, lasting, lasting ? launch_failed : unknown_error);
    int said = 0;
    for (int turn = 0; turn < 2; ++turn) {
        system.renew();
        try {
            Context context(two_threads);
            Queue queue(context, devices);
            EXPECT_TRUE(tridiagonal::solve(queue, system.problem(), {}).ok()) << asked;
            EXPECT_LE(system.residual(), 32) << "a wrong answer: " << asked;
        } catch (const Error& error) {
            ++said;
            EXPECT_EQ(error.code(), ErrorCode::device_unavailable) << error.what() << ", " << asked;
            EXPECT_NE(std::string(error.what()).find("cuda:0"), std::string::npos) << error.what() << ", " << asked;
        }
        if (turn == 0) std::printf("calls %ld failed %d %s\n", driver.calls(), driver.failed(), driver.failed_function());
        driver.fail(-1, 0, unknown_error);
    }
    EXPECT_TRUE(said == 0 || fail_at >= 0) << asked;
    alarm(0);
}

struct Child {
    std::string what;
    FILE* output = nullptr;

    explicit Child(const std::string& asked) : what(asked) {
        char self[4096];
        const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
        const std::string program(self, static_cast<std::size_t>(length > 0 ? length : 0));
        output = popen(("env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX TRIFOLD_TEST_FIRST='" + asked + "' '" + program + "' --gtest_brief=1 --gtest_output= --gtest_filter=CudaFirstUse.OfThisProcess 2>&1").c_str(), "r");
    }
    std::string end(int& status) {
        std::string text;
        char some[512];
        while (output && std::fgets(some, sizeof some, output)) text += some;
        status = output ? pclose(output) : -1;
        return text;
    }
};

TEST(CudaFirstUse, AnyCallMayFail) {
    if (std::getenv("TRIFOLD_TEST_FIRST")) GTEST_SKIP();
    if (const std::string why = no_failing_gpu(); !why.empty()) GTEST_SKIP() << why;
    must_end("the first use", 300);
    const std::size_t at_once = std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, 8);
    for (const std::string devices : {"cuda:0", "cpu,cuda:0"}) {
        int status = 0;
        const std::string text = Child(devices + " -1 0").end(status);
        ASSERT_EQ(status, 0) << text;
        const std::size_t at = text.find("calls ");
        ASSERT_NE(at, text.npos) << text;
        const long calls = std::atol(text.c_str() + at + 6), step = step_of(calls, 2 * 0.1, 5);
        ASSERT_GT(calls, 0);
        std::vector<Child> children;
        int failed = 0;
        const auto end_all = [&] {
            for (Child& child : children) {
                const std::string said = child.end(status);
                EXPECT_EQ(status, 0) << child.what << ": " << said;
                failed += said.find("failed 0") == said.npos;
            }
            children.clear();
        };
        for (const int lasting : {0, 1})
            for (long k = lasting ? step / 2 : 0; k < calls; k += step) {
                children.emplace_back(devices + " " + std::to_string(k) + " " + std::to_string(lasting));
                if (children.size() == at_once) end_all();
            }
        end_all();
        std::printf("first use of %s: %ld calls, every %ld; %d failed\n", devices.c_str(), calls, step, failed);
        EXPECT_GT(failed, 0);
    }
    alarm(0);
}

}  // namespace
}  // namespace trifold::tests
