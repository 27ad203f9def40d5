// SPDX-License-Identifier: BSD-3-Clause
// Rings in the lanes of a warp: every row is one lane's, no lane reads beyond its run by more than there is room for, and lanes read from different banks where that can be.
#include <gtest/gtest.h>

#include <set>

#include "backends/cuda/tridiagonal/shared/ring_share.hpp"

namespace trifold::tests {
namespace {

using namespace cuda;

template <class T>
void shared(int rows, int R, int pitch, int groups) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << R << " a lane, " << pitch << " apart, " << groups << " rings, " << sizeof(T) << " bytes");
    const RingShare share = share_ring<T>(rows, R, pitch, groups);
    ASSERT_GE(share.rings, 1);
    EXPECT_LE(share.rings, groups);
    EXPECT_LE(share.rings * share.lanes, 32);
    EXPECT_LE(share.lane_rows, R);
    EXPECT_GE(share.pitch, pitch);
    EXPECT_EQ((share.pitch - pitch) * static_cast<int>(sizeof(T)) % 16, 0) << "pieces stay aligned";
    EXPECT_LE((share.rings - 1) * share.pitch + rows, 32 * R) << "a buffer has no room for more";
    int covered = 0;
    for (int lane = 0; lane < share.lanes; ++lane) {
        const int begin = lane * share.lane_rows, own = std::min(rows - begin, share.lane_rows);
        ASSERT_GE(own, 1) << "lane " << lane;
        ASSERT_EQ(begin, covered);
        EXPECT_GE(begin + own - R, -R + 1) << "what lies before a run";
        covered += own;
    }
    EXPECT_EQ(covered, rows);
}

TEST(RingShare, IsWhole) {
    for (const int R : {10, 17, 25, 33, 66})
        for (int rows = 3; rows <= 32 * R; rows += rows < 80 ? 1 : 13)
            for (const int groups : {1, 2, 5, 32}) {
                const int room = (32 * R - rows) / rows + 1;
                shared<double>(rows, R, rows, std::min(groups, room));
                shared<float>(rows, R, rows, std::min(groups, room));
            }
}

TEST(RingShare, KeepsLanesInDifferentBanks) {
    // Without a lane's odd number of rows, and gaps, these would meet sixteen or thirty-two at a time.
    for (const int rows : {64, 128, 256, 512}) {
        const RingShare share = share_ring<double>(rows, 17, rows, 32);
        std::multiset<int> banks;
        for (int lane = 0; lane < 16; ++lane) banks.insert((lane / share.lanes * share.pitch + std::min((lane % share.lanes + 1) * share.lane_rows, rows)) % 16);
        for (const int bank : banks) EXPECT_LE(banks.count(bank), 2u) << rows << " rows";
    }
}

}  // namespace
}  // namespace trifold::tests
