// SPDX-License-Identifier: BSD-3-Clause
// Groups of chunks for the threads of a team: each once, the last chunk once, whoever comes when.
#include "backends/cpu/tridiagonal/group_slices.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace trifold::tests {
namespace {

using cpu::GroupSlices;

constexpr std::size_t short_one = std::size_t{1} << 20, long_one = std::size_t{1} << 33;

TEST(GroupSlices, EveryGroupOnce) {
    for (const std::size_t bytes : {short_one, long_one})
        for (const bool from_end : {false, true})
            for (const std::int64_t groups : {0, 1, 2, 7, 15, 31, 64, 1000, 5003})
                for (const int threads : {1, 2, 5}) {
                    GroupSlices slices(groups, threads, bytes);
                    std::vector<int> taken(static_cast<std::size_t>(groups), 0);
                    int last = 0;
                    std::mutex mutex;
                    std::vector<std::thread> team;
                    for (int thread = 0; thread < threads; ++thread)
                        team.emplace_back([&, thread] {
                            slices.run(thread, from_end, [&](const GroupSlices::Slice& slice) {
                                const std::lock_guard lock(mutex);
                                for (std::int64_t k = slice.first; k < slice.end; ++k) ++taken[static_cast<std::size_t>(k)];
                                if (!slice.last) return;
                                ++last;
                                EXPECT_EQ(slice.end, groups) << "the last chunk lies behind them";
                            });
                        });
                    for (std::thread& one : team) one.join();
                    EXPECT_EQ(last, 1) << groups << " groups";
                    EXPECT_EQ(taken, std::vector<int>(static_cast<std::size_t>(groups), 1));
                }
}

// A thread that comes late finds little to do, so that nobody waits for it; of a short system it has its share all the same.
TEST(GroupSlices, ASlowThreadTakesLess) {
    for (const std::size_t bytes : {short_one, long_one}) {
        GroupSlices slices(1000, 4, bytes);
        std::int64_t late = 0;
        for (const int thread : {0, 1, 2}) slices.run(thread, false, [](const GroupSlices::Slice&) {});
        slices.run(3, false, [&](const GroupSlices::Slice& slice) { late += slice.end - slice.first; });
        EXPECT_EQ(late, bytes == long_one ? 0 : 250);
    }
}

// Shorter and shorter, and never one alone while there are two.
TEST(GroupSlices, TheLastOnesAreShort) {
    GroupSlices slices(5003, 15, long_one);
    std::vector<std::int64_t> lengths;
    slices.run(0, true, [&](const GroupSlices::Slice& slice) { lengths.push_back(slice.end - slice.first); });
    for (std::size_t k = 1; k < lengths.size(); ++k) EXPECT_LE(lengths[k], lengths[k - 1]);
    EXPECT_EQ(lengths.front(), 5003 / 30);
    EXPECT_LE(lengths.back(), 2);
}

}  // namespace
}  // namespace trifold::tests
