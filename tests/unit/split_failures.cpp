// SPDX-License-Identifier: BSD-3-Clause
// One system on several devices of which one fails: in any call, alone and while others solve, and in calls that do not return.
#include "unit/split_solves.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

namespace trifold::tests {
namespace {

TEST_F(Split, AnyCallOfTwoPassesMayFail) {
    for (const bool in_place : {false, true}) {
        std::int64_t failed = 0;
        for (std::int64_t fail_at = 1; fail_at < 100000; ++fail_at) {
            SplitCase<double> c(Matrix::poisson, 65536, in_place, 5);
            const split::Result result = solve(c.system(), {fake()}, {{fail_at, 1}});
            if (result.solved) {
                ASSERT_LE(c.residual(), 48) << "call " << fail_at << (in_place ? ", in place" : "");
            } else if (in_place) {
                for (std::size_t i = 0; i < c.rhs.size(); ++i) ASSERT_NEAR(c.rhs[i], c.given[i], 1e-6) << "call " << fail_at << ", row " << i << ", " << result.why;
            }
            if (result.devices[0].state.empty()) break;
            ++failed;
        }
        EXPECT_GT(failed, 60);
    }
}

// Whatever call of the device fails, another does what it had: here the cpu, which comes when nobody else is left.
TEST_F(Split, AnyCallMayFail) {
    for (const bool in_place : {false, true}) {
        std::int64_t failed = 0;
        for (std::int64_t fail_at = 1; fail_at < 100000; ++fail_at) {
            SplitCase<double> c(Matrix::dominant, 100003, in_place, 5);
            const split::Result result = solve(c.system(), {fake()}, {{fail_at, 1}});
            ASSERT_TRUE(result.solved) << result.why << " at call " << fail_at;
            ASSERT_LE(c.residual(), 32) << "call " << fail_at << (in_place ? ", in place" : "");
            if (result.devices[0].state.empty()) break;  // it made fewer calls than that
            EXPECT_TRUE(result.devices[0].state.starts_with("retired: ")) << result.devices[0].state;
            ASSERT_EQ(result.devices.size(), 2u);
            EXPECT_EQ(result.devices[0].rows + result.devices[1].rows, 100003);
            ++failed;
        }
        EXPECT_GT(failed, 60);
    }
}

TEST_F(Split, AnyCallMayFailWhileOthersSolve) {
    for (const bool lasting : {false, true})
        for (const bool in_place : {false, true}) {
            const int failed = at_every_call([&](std::int64_t call) {
                SplitCase<float> c(Matrix::dominant, 131072, in_place, 5);
                const split::Trouble first = fails(call, lasting), second = fails(2 * call, lasting);
                const split::Result result = solve(c.system(), {fake("fake:0"), cpu(), fake("fake:1")}, {first, {}, second});
                EXPECT_TRUE(result.solved) << result.why << " at call " << call;
                EXPECT_LE(c.residual(), 32) << "call " << call;
                return is_reported(result, 0, first) + is_reported(result, 2, second) > 0;
            });
            EXPECT_GE(failed, 2) << lasting;
        }
}

TEST_F(Split, AllMayFail) {
    for (const bool in_place : {false, true})
        at_every_call([&](std::int64_t call) {
            SplitCase<float> c(Matrix::diffusion, 100003, in_place, 6);
            const split::Trouble first = fails(call), second = fails(call);
            const split::Result result = solve(c.system(), {cpu(), fake()}, {first, second});
            EXPECT_TRUE(result.solved) << result.why << " at call " << call;
            EXPECT_LE(c.residual(), 32) << "call " << call;
            return is_reported(result, 0, first) + is_reported(result, 1, second) > 0;
        });
}

// A call that does not return: the others finish without what it had, and say so; when it returns after all, nothing is stored any more.
TEST_F(Split, ACallMayNotReturn) {
    constexpr double patience = 0.15, asleep = 1.2;
    for (const bool alone : {false, true}) {
        std::vector<std::unique_ptr<SplitCase<double>>> cases;
        std::vector<std::vector<double>> solved;
        for (const Matrix kind : {Matrix::dominant, Matrix::poisson})
            for (const bool in_place : {false, true}) {
                // Where the cpu has taken all rows before it comes to that call, or chunks were so long that there was no 37th one, nobody waits for it: then once more.
                int behind = 0;
                for (int round = 0; round < 4 && behind < (alone ? 4 : 2); ++round)
                    for (const std::int64_t sleep_at : {1, 2, 6, 14, 37}) {
                        cases.push_back(std::make_unique<SplitCase<double>>(kind, 100003, in_place, 5));
                        SplitCase<double>& c = *cases.back();
                        std::vector<split::Part> parts{fake()};
                        std::vector<split::Trouble> trouble{{0, 1, sleep_at, asleep}};
                        if (!alone) parts.insert(parts.begin(), cpu()), trouble.insert(trouble.begin(), split::Trouble{});
                        const split::Result result = solve(c.system(), parts, trouble, {}, patience);
                        ASSERT_TRUE(result.solved) << result.why << " at call " << sleep_at;
                        EXPECT_LE(c.residual(), 48) << "call " << sleep_at << (in_place ? ", in place" : "");
                        std::int64_t rows = 0;
                        for (const DeviceShare& share : result.devices) {
                            if (share.name != "fake:0") continue;
                            rows += share.rows;
                            if (share.state.empty()) continue;  // it made fewer calls than that
                            EXPECT_EQ(share.state, "retired: a call has not returned for 0.15 s");
                            EXPECT_EQ(result.left_behind, std::vector<std::string>{"fake:0"});
                            ++behind;
                        }
                        EXPECT_LE(rows, 100003);
                        solved.push_back(in_place ? c.rhs : c.x);
                    }
                EXPECT_GE(behind, alone ? 4 : 2);
            }
        std::this_thread::sleep_for(std::chrono::duration<double>(asleep));
        for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(cases[k]->in_place ? cases[k]->rhs : cases[k]->x, solved[k]) << k;
    }
}

// Nor may what gives back what a device had that has failed.
TEST_F(Split, WhoHasFailedMayNotReturn) {
    constexpr int asleep_ms = 1000;
    for (const Matrix kind : {Matrix::dominant, Matrix::poisson})
        for (const bool in_place : {false, true})
            for (const std::int64_t fail_at : {7, 20, 60}) {
                SplitCase<double> c(kind, 100003, in_place, 5);
                FakeDevice::closing_ms() = asleep_ms;
                const split::Result result = solve(c.system(), {fake()}, {{fail_at, 1}}, {}, 0.15);
                FakeDevice::closing_ms() = 0;
                ASSERT_TRUE(result.solved) << result.why << " at call " << fail_at;
                EXPECT_LE(c.residual(), 48) << "call " << fail_at << (in_place ? ", in place" : "");
                EXPECT_EQ(result.devices[0].state, "retired: a call that was made to fail; then a call has not returned for 0.15 s") << "call " << fail_at;
                EXPECT_EQ(result.left_behind, std::vector<std::string>{"fake:0"});
            }
}

// What an opencl part has not done the cpu does, and the other way round.
TEST_F(Split, AnyCallOfAPartMayFail) {
    std::vector<split::Part> parts = opencl_parts();
    if (parts.empty()) GTEST_SKIP() << "no OpenCL device in the host's memory";
    parts.insert(parts.begin(), cpu());
    for (const Matrix kind : {Matrix::dominant, Matrix::poisson})
        for (std::size_t failing = 0; failing < 3; ++failing) {
            int failed = 0, calls = 0, given_up = 0;
            for (const bool lasting : {false, true})
                for (const bool in_place : {false, true})
                    failed += at_every_call([&](std::int64_t call) {
                        std::vector<split::Trouble> trouble(3);
                        trouble[failing] = fails(call, lasting);
                        SplitCase<double> c(kind, 65536, in_place, 5);
                        const split::Result result = solve(c.system(), parts, trouble);
                        const std::string what = "call " + std::to_string(call) + " of " + parts[failing].name + (lasting ? " and all after it" : "") + (in_place ? ", in place" : "");
                        ++calls, given_up += is_right_or_given_up(result, c, what);
                        std::int64_t rows = 0;
                        for (const DeviceShare& share : result.devices) rows += share.rows;
                        EXPECT_EQ(rows, result.solved ? 65536 : rows) << what;
                        return is_reported(result, failing, trouble[failing]);
                    });
            EXPECT_GE(failed, 2) << parts[failing].name;
            EXPECT_LE(given_up, kind == Matrix::poisson ? calls / 12 : 0) << parts[failing].name;
        }
}

}  // namespace
}  // namespace trifold::tests
