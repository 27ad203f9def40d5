// SPDX-License-Identifier: BSD-3-Clause
// How rings are cut for the GPU: every row is somebody's, what is left of chunks has room where diagonals were, and divisions by multiplication are exact.
#include <gtest/gtest.h>

#include <cstdint>

#include "backends/cuda/tridiagonal/general/ring_tiles.hpp"

namespace trifold::tests {
namespace {

using namespace cuda;

template <class T>
void whole(int rows, bool along_rows) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << sizeof(T) << " bytes, along " << along_rows);
    RingTiles cut;
    if (!cut_ring_tiles<T>(rows, along_rows, cut)) {
        EXPECT_TRUE(!along_rows && rows > 1200);
        return;
    }
    EXPECT_GE(cut.chunk * cut.chunks, rows);
    EXPECT_LT(cut.chunk * (cut.chunks - 1), rows);
    if (cut.chunks > 1) { EXPECT_EQ(cut.chunk % 2, 1) << "threads would meet in banks"; }
    EXPECT_GE(cut.group * cut.groups, cut.chunks);
    EXPECT_LT(cut.group * (cut.groups - 1), cut.chunks);
    if (cut.chunks > 1) { EXPECT_LE(6 * cut.chunks + (cut.groups > 1 ? 6 * cut.groups : 0), rows) << "relations of chunks and of groups"; }
    EXPECT_GE(cut.threads, cut.rings * cut.chunks);
    EXPECT_LE(cut.threads, most_tile_threads);
    EXPECT_EQ(cut.threads % 32, 0);
    EXPECT_GE(cut.shared_bytes, cut.rings * (4 * rows * static_cast<int>(sizeof(T)) + static_cast<int>(sizeof(TileArrays<T>))));
    EXPECT_LE(cut.shared_bytes, 227 * 1024);
    const auto divided = [](int e, unsigned inverse) { return static_cast<int>(static_cast<std::uint64_t>(e) * inverse >> 32); };
    for (int e = 0; e < cut.rings * rows; e += rows > 100 ? 7 : 1) {
        ASSERT_EQ(divided(e, cut.row_inverse), e / rows);
        if (cut.rings > 1) { ASSERT_EQ(divided(e, cut.ring_inverse), e / cut.rings); }
    }
}

TEST(RingTiles, AreWhole) {
    for (int rows = 3; rows <= 4096; rows += rows < 600 ? 1 : 37)
        for (const bool along_rows : {true, false}) whole<float>(rows, along_rows), whole<double>(rows, along_rows);
    whole<float>(4096, false), whole<double>(4096, false);
}

TEST(RingTiles, NeighboursFillSectorsWhereTheyFit) {
    for (const int rows : {3, 64, 256, 1000}) {
        RingTiles cut;
        ASSERT_TRUE(cut_ring_tiles<double>(rows, false, cut));
        EXPECT_GE(cut.rings, 4);
        ASSERT_TRUE(cut_ring_tiles<float>(rows, false, cut));
        EXPECT_GE(cut.rings, 8);
    }
}

TEST(RingTiles, WhatIsTooFewOrTooManyRows) {
    RingTiles cut;
    EXPECT_FALSE(cut_ring_tiles<double>(2, true, cut));
    EXPECT_FALSE(cut_ring_tiles<double>(8000, true, cut));
    EXPECT_FALSE(cut_ring_tiles<float>(20000, false, cut));
}

}  // namespace
}  // namespace trifold::tests
