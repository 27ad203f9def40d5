// SPDX-License-Identifier: BSD-3-Clause
// Names of OpenCL devices and of their parts, kinds of devices, and what is said of those that are not there.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "backends/opencl/kernel_times.hpp"
#include "backends/opencl/runtime/kinds.hpp"
#include "backends/registry.hpp"
#include "opencl/loaded.hpp"
#include "planner/decision.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

using opencl::Kind;
using opencl::kind_of;

Error refusal(const std::string& device) {
    try {
        find_device(device);
    } catch (const Error& error) {
        return error;
    }
    return Error(ErrorCode::internal, "nothing", "was refused");
}

Outcome solve_ten(Context& context, const std::string& device, std::vector<double>& x) {
    Queue queue(context, device);
    const std::vector<double> rhs(10 * 40, 1.0);
    x.assign(rhs.size(), 0);
    tridiagonal::Problem problem;
    problem.matrix = {-1.0, 4.0, -1.0};
    problem.rhs = View<const double>::contiguous(rhs.data(), 10, 40);
    problem.x = View<double>::contiguous(x.data(), 10, 40);
    return tridiagonal::solve(queue, problem);
}

TEST(Kinds, AreRecognisedByTheVendorsStrings) {
    EXPECT_EQ(kind_of("Portable Computing Language", "GenuineIntel", true, false, false), Kind::cpu);
    EXPECT_EQ(kind_of("NVIDIA CUDA", "NVIDIA Corporation", false, true, false), Kind::gpu);
    EXPECT_EQ(kind_of("Intel(R) FPGA Emulation Platform for OpenCL(TM)", "Intel(R) Corporation", false, false, false), Kind::emulator);
    EXPECT_EQ(kind_of("Intel(R) FPGA SDK for OpenCL(TM)", "Intel(R) Corporation", false, false, false), Kind::fpga);
    EXPECT_EQ(kind_of("Xilinx", "Xilinx", false, false, false), Kind::fpga);
    EXPECT_EQ(kind_of("Xilinx", "Xilinx", false, false, true), Kind::emulator);
    EXPECT_EQ(kind_of("Some platform", "Some vendor", false, false, false), Kind::accelerator);
    EXPECT_STREQ(opencl::offline_compiler("Xilinx"), "v++ (Vitis)");
    EXPECT_STREQ(opencl::offline_compiler("Intel(R) Corporation"), "aoc");
}

TEST(Names, OfWhatIsNotThereAreAnswered) {
    EXPECT_EQ(refusal("opencl").code(), ErrorCode::usage);
    EXPECT_NE(std::string(refusal("openc:0.0").what()).find("opencl:0.0"), std::string::npos);
    EXPECT_EQ(refusal("opencl:99.0").code(), ErrorCode::device_unavailable);
    EXPECT_EQ(refusal("opencl:x").code(), ErrorCode::usage);
}

TEST(Names, OfPartsMakeThem) {
    const std::string whole = opencl_device_name();
    if (whole.empty()) GTEST_SKIP() << "no OpenCL device on this machine";
    const Error none = refusal(whole + "/7/7777777");
    EXPECT_EQ(none.code(), ErrorCode::device_unavailable);
    EXPECT_NE(std::string(none.what()).find("compute unit"), std::string::npos) << none.what();
    if (refusal(whole + "/1/2").code() != ErrorCode::internal) GTEST_SKIP() << "this device cannot be divided by two";
    EXPECT_EQ(find_device(whole + "/1/2"), find_device(whole + "/1/2"));
    EXPECT_NE(find_device(whole + "/1/2"), find_device(whole + "/0/2"));
    EXPECT_NE(find_device(whole + "/1/2"), find_device(whole));
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    std::vector<double> x, part;
    ASSERT_TRUE(solve_ten(context, whole, x).ok());
    const Outcome outcome = solve_ten(context, whole + "/1/2", part);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.device, whole + "/1/2");
    EXPECT_EQ(part, x);
}

// A program in the cache that is damaged is compiled anew, and one of another source is not taken.
TEST(ProgramCache, SurvivesDamage) {
    const std::string whole = opencl_device_name();
    if (whole.empty()) GTEST_SKIP() << "no OpenCL device on this machine";
    const std::filesystem::path folder = std::filesystem::path(std::getenv("XDG_CACHE_HOME") ? std::getenv("XDG_CACHE_HOME") : "") / "trifold/opencl";
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    std::vector<double> x, again;
    ASSERT_TRUE(solve_ten(context, whole, x).ok());
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no cache folder is set";
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".bin") continue;
        ++files;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(100);
        file.put('x');
    }
    EXPECT_GT(files, 0);
    // A part has programs of its own, which are looked for in the cache.
    if (refusal(whole + "/0/2").code() != ErrorCode::internal) GTEST_SKIP() << "this device cannot be divided by two";
    ASSERT_TRUE(solve_ten(context, whole + "/0/2", again).ok());
    EXPECT_EQ(again, x);
}

// Of the published mappings, marshalling apart; where none is wanted, none are taken.
TEST(PublishedMappings, AreTimedKernelByKernel) {
    const std::string name = opencl_device_name();
    if (name.empty()) GTEST_SKIP() << "no OpenCL device";
    const Device& device = device_at(find_device(name));
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    Queue queue(context, name);
    if (queue.memory().kind != MemoryKind::host) GTEST_SKIP() << "arrays of the host are given";
    const std::vector<float> rhs(40000, 1.0f), lower(40000, -1.0f), diag(40000, 4.0f);
    std::vector<float> x(40000);
    tridiagonal::Problem problem;
    problem.matrix = {View<const float>::rows(lower), View<const float>::rows(diag), View<const float>::rows(lower)};
    problem.rhs = View<const float>::rows(rhs), problem.x = View<float>::rows(std::span<float>(x));
    tridiagonal::Options options;
    options.algorithm = tridiagonal::Algorithm::truncated_spike;
    for (const char* mapping : {"gpu", "fpga"}) {
        setenv("TRIFOLD_OPENCL_MAPPING", mapping, 1);
        opencl::kernel_times(device, true);
        const auto start = std::chrono::steady_clock::now();
        ASSERT_TRUE(tridiagonal::solve(queue, problem, options).ok());
        const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const opencl::KernelTimes times = opencl::kernel_times(device, false);
        EXPECT_GT(times.solving, 0) << mapping;
        EXPECT_EQ(times.marshalling > 0, std::string_view(mapping) == "gpu") << mapping;
        EXPECT_LT(times.solving + times.marshalling, all) << mapping;
        ASSERT_TRUE(tridiagonal::solve(queue, problem, options).ok());
        EXPECT_EQ(opencl::kernel_times(device, false).solving, 0) << mapping;
    }
    unsetenv("TRIFOLD_OPENCL_MAPPING");
}

// A system of a batch that is solved by itself keeps its number: the status of those before it is not this call's.
TEST(Status, IsThatOfTheSystemsNumber) {
    const std::string name = opencl_device_name();
    if (name.empty()) GTEST_SKIP() << no_device;
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    const Queue queue(context, name);
    const tridiagonal::Ops& ops = tridiagonal::ops_of(queue);
    if (!ops.solve) GTEST_SKIP() << "memory of its own: nothing is solved one by one";
    const std::vector<double> rhs(300, 1.0);
    std::vector<double> x(300);
    tridiagonal::Problem problem;
    problem.matrix = {-1.0, 4.0, -1.0};
    problem.rhs = View<const double>::rows(rhs), problem.x = View<double>::rows(std::span<double>(x));
    tridiagonal::System system = tridiagonal::normalise(problem);
    system.number = 3;
    std::vector<std::byte> scratch(ops.workspace(system, tridiagonal::Algorithm::lu, 1) + 64);
    void* aligned = scratch.data();
    std::size_t room = scratch.size();
    std::align(64, room - 64, aligned, room);
    std::vector<std::int8_t> status(5, 55);
    Failure failure;
    Outcome outcome;
    ops.solve(system, tridiagonal::Algorithm::lu, {.scratch = aligned, .scratch_bytes = room, .status = status.data(), .device = ops.number, .failure = &failure}, outcome);
    ASSERT_EQ(failure.code, 0) << failure.message;
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(status, (std::vector<std::int8_t>{55, 55, 55, static_cast<std::int8_t>(Reason::exact), 55}));
}

// The host couples chunks between two kernels of the device: a team of ours would spin on while the second one runs.
TEST(Threads, OneOfOursBesideADriversOwn) {
    const std::string name = opencl_device_name();
    if (name.empty()) GTEST_SKIP() << no_device;
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    tridiagonal::Problem problem;
    std::vector<double> rhs(1 << 20, 1.0), x(1 << 20);
    problem.matrix = {-1.0, 2.0, -1.0};
    problem.rhs = View<const double>::rows(std::span<const double>(rhs)), problem.x = View<double>::rows(std::span<double>(x));
    const tridiagonal::System system = tridiagonal::normalise(problem);
    const tridiagonal::Decision there = decide(Queue(context, name), system, tridiagonal::Algorithm::two_pass), here = decide(Queue(context, "cpu"), system, tridiagonal::Algorithm::two_pass);
    EXPECT_EQ(there.team, 1);
    EXPECT_EQ(here.threads, 2);
    EXPECT_EQ(here.team, 2);
}

}  // namespace
}  // namespace trifold::tests
