// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/tile_order.hpp"

#include <bit>

namespace trifold::cuda {

TileOrder tile_order(std::int64_t row_bytes, int tile_bytes, unsigned tiles) {
    // Measured on an H200, as all of this: of runs of 512 bytes to 2 KB, 8 to 256 KB apart, these do best or nearly so; rows 64 KB apart gain nothing, others lose by it.
    constexpr int run_bytes = 1 << 10, apart_bytes = 1 << 13;
    constexpr std::int64_t evenly = 1 << 17;
    const auto tile = static_cast<unsigned>(tile_bytes);
    if (row_bytes % evenly != 0 || tile_bytes > run_bytes || tile_bytes * (1 << TileOrder::in_turns) < run_bytes || !std::has_single_bit(tile)) return {};
    TileOrder order;
    order.run = static_cast<unsigned>(std::countr_zero(run_bytes / tile)), order.apart = static_cast<unsigned>(std::countr_zero(apart_bytes / tile));
    const unsigned window = order.apart + TileOrder::in_turns - order.run;
    order.tiles = tiles >> window << window;
    return order;
}

}  // namespace trifold::cuda
