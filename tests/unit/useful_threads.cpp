// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/useful_threads.hpp"

#include <gtest/gtest.h>

namespace trifold::cpu {
namespace {

TEST(UsefulThreads, AsManyAsHaveTheirShare) {
    EXPECT_EQ(useful_threads(0, 100, 4), 1);
    EXPECT_EQ(useful_threads(199, 100, 4), 1);
    EXPECT_EQ(useful_threads(200, 100, 4), 2);
    EXPECT_EQ(useful_threads(1000, 100, 4), 4);
    EXPECT_EQ(useful_threads(1000, 100, 0), 1);
}

TEST(UsefulThreads, SmallMeshesAreOneThreads) {
    EXPECT_EQ(useful_threads(64, points_per_thread, 16), 1);
    EXPECT_EQ(useful_threads(256 * 256, points_per_thread, 2), 1);
    EXPECT_EQ(useful_threads(512 * 512, points_per_thread, 2), 2);
    EXPECT_EQ(useful_threads(std::int64_t{400} * 400 * 400, points_per_thread, 64), 64);
}

}  // namespace
}  // namespace trifold::cpu
