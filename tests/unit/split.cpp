// SPDX-License-Identifier: BSD-3-Clause
// One system on several devices at a time: cpu, parts of an OpenCL device, one with memory of its own.
#include "unit/split_solves.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace trifold::tests {
namespace {

TEST_F(Split, OneDeviceInChunks) {
    attempt_all({cpu()});
    attempt_all({fake()});
}

TEST_F(Split, TwoDevices) { attempt_all({cpu(), fake()}); }

TEST_F(Split, TwoWithMemoryOfTheirOwn) { attempt_all({fake("fake:0"), fake("fake:1")}); }

TEST_F(Split, CpuAndPartsOfAnOpenclDevice) {
    std::vector<split::Part> parts = opencl_parts();
    if (parts.empty()) GTEST_SKIP() << "no OpenCL device in the host's memory";
    parts.insert(parts.begin(), cpu());
    // On a busy machine the cpu may have all rows before a part's thread comes.
    const auto all_came = [&] { return std::ranges::all_of(parts, [&](const split::Part& part) { return rows_of[part.name] > 0; }); };
    for (int round = 0; round < 4 && !all_came(); ++round) attempt_all(parts);
    for (const split::Part& part : parts) EXPECT_GT(rows_of[part.name], 0) << part.name;
}

// Through three queues; windows do not hold for random matrices, whose chunks are coupled in the same queue.
TEST_F(Split, OpenclDeviceWithMemoryOfItsOwn) {
    std::vector<split::Part> parts = opencl_with_memory();
    if (parts.empty()) GTEST_SKIP() << "no OpenCL device with memory of its own";
    for (const Matrix kind : {Matrix::dominant, Matrix::diffusion, Matrix::random})
        for (const bool in_place : {false, true}) {
            attempt<float>(kind, 100003, in_place, parts);
            attempt<double>(kind, 65536, in_place, parts);
        }
    parts.insert(parts.begin(), cpu());
    attempt<float>(Matrix::dominant, 262144, true, parts);
}

// What is registered is not staged.
TEST_F(Split, RegisteredMemoryOfAnOpenclDevice) {
    const std::vector<split::Part> parts = opencl_with_memory();
    if (parts.empty()) GTEST_SKIP() << "no OpenCL device with memory of its own";
    SplitCase<float> c(Matrix::dominant, 262144, false);
    const devices::Runtime& runtime = *parts[0].runtime;
    const int number = parts[0].number;
    std::vector<float>* const arrays[] = {&c.lower, &c.diag, &c.upper, &c.rhs, &c.x};
    Failure failure;
    const auto kind_of = [&](const float* address) {
        Memory found;
        EXPECT_TRUE(runtime.where(number, address, &found, failure));
        return found.kind;
    };
    for (std::vector<float>* array : arrays) {
        ASSERT_EQ(kind_of(array->data()), MemoryKind::host);
        ASSERT_TRUE(runtime.register_host(number, array->data(), array->size() * sizeof(float), failure)) << failure.message;
        ASSERT_EQ(kind_of(&array->back()), MemoryKind::registered);
    }
    const split::Result result = solve(c.system(), parts);
    for (std::vector<float>* array : arrays) {
        runtime.unregister_host(number, array->data());
        EXPECT_EQ(kind_of(array->data()), MemoryKind::host);
    }
    ASSERT_TRUE(result.solved) << result.why;
    EXPECT_LE(c.residual(), 32);
    EXPECT_TRUE(std::ranges::none_of(result.trace, [](const TraceEvent& event) { return std::string_view(event.phase) == "stage" || std::string_view(event.phase) == "store"; }));
    EXPECT_TRUE(std::ranges::any_of(result.trace, [](const TraceEvent& event) { return std::string_view(event.phase) == "from device"; }));
}

TEST_F(Split, AnyCallOfAnOpenclDeviceMayFail) {
    const std::vector<split::Part> parts = opencl_with_memory();
    if (parts.empty()) GTEST_SKIP() << "no OpenCL device with memory of its own";
    std::int64_t failed = 0;
    for (std::int64_t fail_at = 1; fail_at < 100000; ++fail_at) {
        SplitCase<double> c(fail_at % 3 ? Matrix::dominant : Matrix::random, 65536, fail_at % 2 == 0, 5);
        const split::Result result = solve(c.system(), parts, {{fail_at, 1}});
        ASSERT_TRUE(result.solved) << result.why << " at call " << fail_at;
        ASSERT_LE(c.residual(), 32) << "call " << fail_at;
        if (result.devices[0].state.empty()) break;
        ++failed;
    }
    EXPECT_GT(failed, 40);
}

// What does not forget is coupled.
TEST_F(Split, TwoPasses) {
    for (const std::vector<split::Part>& parts : {std::vector{cpu()}, std::vector{fake()}, std::vector{cpu(), fake()}, std::vector{fake("fake:0"), fake("fake:1")}})
        for (const std::int64_t rows : {65536, 100003})
            for (const bool in_place : {false, true}) {
                attempt<float>(Matrix::poisson, rows, in_place, parts);
                attempt<double>(Matrix::poisson, rows, in_place, parts);
            }
}

// A chunk whose spikes cancel, as near a zero of x, is the host's: not all of the solve is given up for it.
TEST_F(Split, ASumThatLosesItsDigits) {
    for (const std::vector<split::Part>& parts : {std::vector{fake()}, std::vector{cpu(), fake()}})
        for (const bool in_place : {false, true})
            for (const int spoiled : {1, 3}) {
                FakeDevice::spoiled_sums() = spoiled;
                SplitCase<double> c(Matrix::poisson, 100003, in_place, 5);
                const split::Result result = solve(c.system(), parts);
                FakeDevice::spoiled_sums() = 0;
                ASSERT_TRUE(result.solved) << result.why;
                EXPECT_LE(c.residual(), 48);
                std::int64_t rows = 0;
                for (const DeviceShare& share : result.devices) rows += share.rows;
                EXPECT_EQ(rows, 100003);
                if (parts.size() == 1) {
                    EXPECT_EQ(result.devices.back().state, "took what was left");
                }
            }
}

// In the second pass a device's link has nothing to bring: it takes pieces that the cpu has reduced, where neither operands nor x are staged.
TEST_F(Split, ADeviceFinishesWhatTheCpuHasReduced) {
    FakeDevice::registered() = true;
    const auto pieces = [&]<class T>(T, std::int64_t rows, int spoiled) {
        // How far the cpu is when the device begins nobody says.
        const int before = FakeDevice::closed_chunks();
        for (int k = 0; k < 40 && FakeDevice::closed_chunks() == before; ++k) {
            SplitCase<T> c(Matrix::poisson, rows, false, static_cast<std::uint64_t>(rows));
            FakeDevice::spoiled_pieces() = spoiled;
            const split::Result result = solve(c.system(), {cpu(), fake()}, {}, {1e9, 1e7});
            FakeDevice::spoiled_pieces() = 0;
            ASSERT_TRUE(result.solved && result.coupled) << result.why;
            EXPECT_LE(c.residual(), 32) << rows << " rows, f" << 8 * sizeof(T);
            std::int64_t solved = 0;
            for (const DeviceShare& share : result.devices) {
                EXPECT_TRUE(share.state.empty() || share.state == "took what was left") << share.state;
                solved += share.rows;
            }
            EXPECT_EQ(solved, rows);
        }
        EXPECT_GT(FakeDevice::closed_chunks(), before);
    };
    for (const std::int64_t rows : {496 * 1024, 500009})
        for (const int spoiled : {0, 1, 100}) pieces(0.f, rows, spoiled), pieces(0., rows, spoiled);
    FakeDevice::registered() = false;
}

TEST_F(Split, AnyCallOfTwoPassesMayFailBesideTheCpu) {
    const int before = FakeDevice::closed_chunks();
    int failed = 0, calls = 0, given_up = 0;
    for (const bool lasting : {false, true})
        for (const bool in_place : {false, true})
            failed += at_every_call([&](std::int64_t call) {
                FakeDevice::registered() = !in_place;
                SplitCase<double> c(Matrix::poisson, 131072, in_place, 5);
                const split::Trouble trouble = fails(call, lasting);
                const split::Result result = solve(c.system(), {cpu(), fake()}, {{}, trouble}, {1e9, 1e7});
                FakeDevice::registered() = false;
                ++calls, given_up += is_right_or_given_up(result, c, "call " + std::to_string(call) + (in_place ? ", in place" : ""));
                return is_reported(result, 1, trouble);
            });
    EXPECT_LE(given_up, calls / 12);
    EXPECT_GT(failed, 5);
    EXPECT_GT(FakeDevice::closed_chunks(), before);
}

// Longer chunks than their error lets them be are cut into equal systems, which one call solves.
TEST_F(Split, LongChunksInParts) {
    slot_rows = 1 << 20;
    FakeDevice::largest_batch() = 0;
    for (const bool in_place : {false, true}) {
        SplitCase<float> c(Matrix::poisson, 1200007, in_place, 9);
        const split::Result result = solve(c.system(), {fake()});
        ASSERT_TRUE(result.solved && result.coupled) << result.why;
        EXPECT_LE(c.residual(), 32);
        EXPECT_EQ(result.devices[0].state, "");
        EXPECT_EQ(result.devices[0].rows, 1200007);
        EXPECT_GT(FakeDevice::largest_batch(), 1);
    }
}

TEST_F(Split, TwoPassesOnPartsOfAnOpenclDevice) {
    std::vector<split::Part> parts = opencl_parts();
    if (parts.empty()) GTEST_SKIP() << "no OpenCL device in the host's memory";
    parts.insert(parts.begin(), cpu());
    for (const bool in_place : {false, true}) {
        attempt<float>(Matrix::poisson, 100003, in_place, parts);
        attempt<double>(Matrix::poisson, 262144, in_place, parts);
    }
}

// Its chunks stay there between the two passes; of the oscillating ones elimination without pivots finds none.
TEST_F(Split, TwoPassesOnAnOpenclDeviceWithMemoryOfItsOwn) {
    std::vector<split::Part> parts = opencl_with_memory();
    if (parts.empty()) GTEST_SKIP() << "no OpenCL device with memory of its own";
    for (const bool in_place : {false, true}) {
        attempt<float>(Matrix::poisson, 100003, in_place, parts);
        attempt<double>(Matrix::poisson, 262144, in_place, parts);
        attempt<double>(Matrix::wave, 65536, in_place, parts);
    }
    parts.insert(parts.begin(), cpu());
    for (const bool in_place : {false, true}) {
        // On a busy machine the cpu may have taken everything before the device's first chunk.
        std::int64_t taken = 0;
        for (int attempt = 0; attempt < 8 && taken == 0; ++attempt) {
            SplitCase<double> c(Matrix::poisson, 1 << 20, in_place, 3);
            const split::Result result = solve(c.system(), parts);
            ASSERT_TRUE(result.solved && result.coupled) << result.why;
            EXPECT_LE(c.residual(), 32);
            EXPECT_EQ(result.devices[0].rows + result.devices[1].rows, 1 << 20);
            taken = result.devices[1].rows;
        }
        EXPECT_GT(taken, 0);
    }
    // Pieces that the cpu has reduced.
    const auto pieces = [&]<class T>(T) {
        std::size_t sent = 0;
        SplitCase<T> c(Matrix::poisson, 1 << 20, false, 3);
        std::vector<T>* const arrays[] = {&c.lower, &c.diag, &c.upper, &c.rhs, &c.x};
        Failure failure;
        for (std::vector<T>* array : arrays) ASSERT_TRUE(parts[1].runtime->register_host(parts[1].number, array->data(), array->size() * sizeof(T), failure)) << failure.message;
        for (int k = 0; k < 40 && sent == 0; ++k) {
            const split::Result result = solve(c.system(), parts, {}, {1e9, 1e7});
            ASSERT_TRUE(result.solved && result.coupled) << result.why;
            EXPECT_LE(c.residual(), 32);
            EXPECT_EQ(result.devices.size(), 2u) << "what was sent was not good";
            double joined = 0;
            for (const TraceEvent& event : result.trace)
                if (event.device < 0) joined = event.end_s;
            for (const TraceEvent& event : result.trace) sent += std::string_view(event.phase) == "to device" && event.begin_s > joined;
        }
        for (std::vector<T>* array : arrays) parts[1].runtime->unregister_host(parts[1].number, array->data());
        EXPECT_GT(sent, 0u);
    };
    pieces(0.f), pieces(0.);
}

TEST_F(Split, AnyCallOfTwoPassesOnAnOpenclDeviceMayFail) {
    const std::vector<split::Part> parts = opencl_with_memory();
    if (parts.empty()) GTEST_SKIP() << "no OpenCL device with memory of its own";
    for (const bool beside : {false, true}) {
        std::vector<split::Part> all = parts;
        if (beside) all.insert(all.begin(), cpu());
        int failed = 0;
        for (const bool in_place : {false, true})
            failed += at_every_call([&](std::int64_t call) {
                SplitCase<double> c(Matrix::poisson, 65536, in_place, 5);
                std::vector<split::Trouble> trouble(all.size());
                trouble.back() = fails(call);
                const split::Result result = solve(c.system(), all, trouble);
                is_right_or_given_up(result, c, "call " + std::to_string(call));
                return is_reported(result, all.size() - 1, trouble.back());
            });
        EXPECT_GT(failed, beside ? 5 : 40);
    }
}

// A device that has become slow gets less: what it did is carried from one solve to the next, as a Context does.
TEST_F(Split, ASlowDeviceGetsLess) {
    const std::vector<split::Part> parts{cpu(), fake()};
    std::vector<double> rates;
    constexpr std::int64_t rows = 1 << 20;
    double share[4];
    // On a busy machine its thread may come when all is done: then once more. The cpu sleeps four fifths of its time, so that the other one has a core.
    for (int k = 0, more = 20; k < 4; ++k) {
        SplitCase<double> c(Matrix::dominant, rows, false, 8);
        const split::Result result = solve(c.system(), parts, {{0, 5.0}, {0, k == 0 ? 1.0 : 150.0}}, rates);
        ASSERT_TRUE(result.solved);
        EXPECT_LE(c.residual(), 32);
        share[k] = static_cast<double>(result.devices[1].rows) / static_cast<double>(rows);
        rates = result.rows_per_s;
        if (k == 0 && share[0] < 0.1 && more-- > 0) k = -1;
    }
    EXPECT_GT(share[0], 0.02);
    EXPECT_LT(share[3], share[0] / 3) << share[0] << ' ' << share[1] << ' ' << share[2] << ' ' << share[3];
}

// A chunk that is singular although the whole is not: nobody's answer is taken, and the right-hand side is as it was.
TEST_F(Split, SingularChunksAreLeftToOthers) {
    SplitCase<double> c(Matrix::antidiagonal, 65536, true, 9);
    const split::Result result = solve(c.system(), {cpu(), fake()});
    if (result.solved) EXPECT_LE(c.residual(), 32);
    else
        for (std::size_t i = 0; i < c.rhs.size(); ++i) ASSERT_NEAR(c.rhs[i], c.given[i], 1e-9) << i;
}

TEST_F(Split, NothingIsSharedInTheTrace) {
    SplitCase<float> c(Matrix::dominant, 262144, true);
    const split::Result result = solve(c.system(), {cpu(), fake()});
    ASSERT_TRUE(result.solved);
    double copied = 0;
    for (const TraceEvent& event : result.trace) {
        EXPECT_LE(event.begin_s, event.end_s) << event.phase;
        if (std::string_view(event.phase) == "to device") copied += event.bytes;
    }
    EXPECT_EQ(copied, result.devices[1].bytes_to);
    EXPECT_EQ(copied, 16.0 * static_cast<double>(result.devices[1].rows));
}

}  // namespace
}  // namespace trifold::tests
