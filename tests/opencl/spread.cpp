// SPDX-License-Identifier: BSD-3-Clause
// PoCL's threads have a processor each, where there are as many of both and nobody has said otherwise (TRIFOLD_OPENCL_AFFINITY, POCL_AFFINITY); else they stay as they are.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

/// Processors that the calling thread may run on; of the process's threads that are bound to one, how many to which.
std::vector<int> processors_of(pid_t thread) {
    cpu_set_t set;
    std::vector<int> out;
    if (sched_getaffinity(thread, sizeof set, &set) != 0) return out;
    for (int p = 0; p < CPU_SETSIZE; ++p)
        if (CPU_ISSET(p, &set)) out.push_back(p);
    return out;
}

std::map<int, int> bound_threads() {
    std::map<int, int> out;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
        if (const std::vector<int> there = processors_of(std::stoi(entry.path().filename().string())); there.size() == 1) ++out[there.front()];
    return out;
}

bool solves(const std::string& device) {
    Context context({.threads = 1, .profile_path = "none", .log = {}});
    Queue queue(context, device);
    std::vector<double> rhs(400, 1.0), x(400);
    tridiagonal::Problem problem;
    problem.matrix = {-1.0, 4.0, -1.0};
    problem.rhs = View<const double>::contiguous(rhs.data(), 10, 40), problem.x = View<double>::contiguous(x.data(), 10, 40);
    return tridiagonal::solve(queue, problem).ok();
}

bool left_alone() {
    const char* const own = std::getenv("TRIFOLD_OPENCL_AFFINITY");
    return own && std::string(own) == "0";
}

TEST(Spread, AProcessorForEveryThread) {
    const std::vector<int> mine = processors_of(0);
    const Device* const device = opencl_device();
    if (!device) GTEST_SKIP() << no_device;
    const std::string said = device->description(*device);
    if (said.find("Portable Computing Language") == std::string::npos || mine.size() < 2) GTEST_SKIP() << "not PoCL, or one processor";
    if (said.find(std::to_string(mine.size()) + " compute units") == std::string::npos) GTEST_SKIP() << "PoCL has more or fewer threads than there are processors";
    ASSERT_TRUE(solves(device->name + std::string("/0/") + std::to_string(mine.size())));
    EXPECT_TRUE(bound_threads().empty()) << "a part of the device leaves them alone";
    ASSERT_TRUE(solves(device->name));
    const std::map<int, int> bound = bound_threads();
    if (left_alone()) {
        EXPECT_TRUE(bound.empty());
    } else {
        for (const int p : mine) EXPECT_TRUE(bound.contains(p) && bound.at(p) == 1) << "processor " << p;
    }
    EXPECT_EQ(processors_of(0), mine) << "the caller's thread keeps its own";
}

// The process is allowed one processor before PoCL starts.
TEST(Spread, NotWhereProcessorsAreFew) {
    const std::vector<int> mine = processors_of(0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(mine.front(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const std::string device = opencl_device_name();
    if (device.empty()) GTEST_SKIP() << no_device;
    EXPECT_TRUE(solves(device));
    for (const auto& [processor, threads] : bound_threads()) EXPECT_EQ(processor, mine.front());
}

}  // namespace
}  // namespace trifold::tests
