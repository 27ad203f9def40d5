// SPDX-License-Identifier: BSD-3-Clause
// In which order tiles of columns are taken: every one once, runs of a kilobyte in turns from places 8 KB apart.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/tridiagonal/block/tile_order.hpp"

namespace trifold::cuda {
namespace {

TEST(TileOrder, EveryTileOnce) {
    for (const int bytes : {32, 64, 128, 256, 512, 1024})
        for (const unsigned tiles : {0u, 1u, 31u, 32u, 255u, 256u, 257u, 1000u, 1024u, 2048u, 2500u, 8192u, 10001u}) {
            const TileOrder order = tile_order(1 << 18, bytes, tiles);
            std::vector<int> taken(tiles);
            for (unsigned n = 0; n < tiles; ++n) {
                ASSERT_LT(order(n), tiles) << bytes;
                ++taken[order(n)];
            }
            for (unsigned n = 0; n < tiles; ++n) ASSERT_EQ(taken[n], 1) << bytes << " bytes, tile " << n << " of " << tiles;
            EXPECT_EQ(order(tiles + 7), tiles + 7);
        }
}

TEST(TileOrder, RunsFarApart) {
    const TileOrder order = tile_order(3 << 17, 256, 1024);
    for (unsigned n = 0; n < 32; ++n) EXPECT_EQ(order(n), n % 4 + n / 4 * 32);
    EXPECT_EQ(order(32), 4u);
    EXPECT_EQ(order(256), 256u);
}

TEST(TileOrder, AsTheyComeElsewhere) {
    for (const std::int64_t row_bytes : {1 << 16, (1 << 18) - 256, 12 << 10})
        for (unsigned n = 0; n < 300; ++n) ASSERT_EQ(tile_order(row_bytes, 256, 1024)(n), n);
    for (const int bytes : {96, 2048})
        for (unsigned n = 0; n < 300; ++n) ASSERT_EQ(tile_order(1 << 18, bytes, 1024)(n), n);
}

}  // namespace
}  // namespace trifold::cuda
