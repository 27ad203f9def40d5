// SPDX-License-Identifier: BSD-3-Clause
// How long columns are cut for the GPU: every row is stored by one window or segment, halos lie between it and a window's end; and how warps that walk down a system
// take chunks: every chunk is read before it is looked at, stored once with so many below it known, and its slot is not taken before.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backends/cuda/tridiagonal/block/column_rows.hpp"
#include "backends/cuda/tridiagonal/shared/march_cut.hpp"
#include "backends/cuda/tridiagonal/shared/march_path.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

using namespace cuda;

void cover(const ColumnRows& cut, int rows, int tile) {
    SCOPED_TRACE(testing::Message() << rows << " rows, tiles of " << tile << ", halo " << cut.halo);
    int stored = 0;
    for (unsigned k = 0; k < cut.count; ++k) {
        const int begin = cut.begin(k), end = std::min(begin + tile, rows);
        const auto [from, to] = ColumnRows::stored(k, cut.step, cut.halo, cut.count, rows);
        ASSERT_EQ(from, stored) << k;
        ASSERT_LT(from, to) << k;
        ASSERT_LE(begin, k ? from - cut.halo : 0) << k;
        ASSERT_GE(end, k + 1 < cut.count ? to + cut.halo : rows) << k;
        ASSERT_EQ((from - begin) % ColumnRows::chunk, 0) << k;
        if (k + 1 < cut.count) { ASSERT_EQ((to - begin) % ColumnRows::chunk, 0) << k; }
        ASSERT_EQ(begin % 4, 0) << "rows that begin anywhere come by fours";
        stored = to;
    }
    ASSERT_EQ(stored, rows);
}

TEST(LongColumns, EveryRowIsStoredOnce) {
    for (int rows = 1025; rows < 9000; rows += rows < 2200 ? 1 : 37)
        for (const int halo : {32, 64}) cover(ColumnRows::windows(rows, 1024, halo), rows, 1024);
    for (const int rows : {1, 255, 256, 257, 4097, 20000, 1 << 20}) cover(ColumnRows::segments(rows, 256), rows, 256);
    cover(ColumnRows::windows((1 << 30) - 1, 1024, 64), (1 << 30) - 1, 1024);
}

void walk(int chunks, int segment_chunks, int ahead) {
    SCOPED_TRACE(testing::Message() << chunks << " chunks, segments of " << segment_chunks << ", " << ahead << " ahead");
    MarchPath path{ahead, ahead + 2, 0};
    std::vector<int> stored(static_cast<std::size_t>(chunks)), in_slot(static_cast<std::size_t>(path.ring), -1), uses(static_cast<std::size_t>(path.ring));
    for (int first = 0; first < chunks; first += segment_chunks) {
        path.begin(first, segment_chunks, chunks);
        const auto ask = [&](int k) {
            if (k >= path.to) return;
            in_slot[static_cast<std::size_t>(path.slot(k))] = k;
            ASSERT_EQ(path.phase(k), static_cast<unsigned>(uses[static_cast<std::size_t>(path.slot(k))]++) % 2);
        };
        const auto there = [&](int k) { ASSERT_EQ(in_slot[static_cast<std::size_t>(path.slot(k))], k); };
        std::fill(in_slot.begin(), in_slot.end(), -1);
        for (int k = path.from; k < path.from + path.ring; ++k) ask(k);
        EXPECT_TRUE(path.from == 0 || path.k0 - path.from == ahead);
        for (int k = path.from; k < path.to; ++k) {
            there(k);
            const int lowest = path.lowest(k + 1 == path.to && path.to == chunks ? k : k - ahead);
            if (path.highest(k) <= lowest) {
                ASSERT_TRUE(k - lowest >= ahead || k + 1 == chunks) << "so many are known below it";
                for (int j = k; j >= path.highest(k); --j) there(j);
            }
            for (int j = lowest; j >= path.highest(k); --j) ++stored[static_cast<std::size_t>(j)];
            if (path.frees(k)) ask(k + 2);
            if (testing::Test::HasFatalFailure()) return;
        }
        path.end();
    }
    ASSERT_TRUE(std::all_of(stored.begin(), stored.end(), [](int n) { return n == 1; }));
}

TEST(MarchPath, EveryChunkIsStoredOnceBehindWhatMustBeKnown) {
    for (const int chunks : {1, 2, 3, 4, 7, 12, 33, 64, 71, 200})
        for (const int segment : {1, 2, 3, 5, 8, 20, 64, 200})
            for (int ahead = 1; ahead <= 10; ++ahead) walk(chunks, segment, ahead);
}

// Two warps that take chunks in turns, each ahead of the other by any number: a place is asked for when nobody needs what is there, and whoever waits for a chunk waits for the phase behind the last one that it has seen there.
TEST(MarchPath, WarpsOfAPairTakeTurns) {
    Random random(5);
    MarchPath path{0, 4, 0};
    std::vector<int> uses(4), seen(4), busy(4);
    for (int unit = 0; unit < 300; ++unit) {
        const int chunks = 1 + static_cast<int>(random.uniform(0, 9)), first = static_cast<int>(random.uniform(0, 50));
        path.begin(first, chunks, 1000);
        const auto ask = [&](int k) {
            if (k >= path.to) return;
            const auto slot = static_cast<std::size_t>(path.slot(k));
            ASSERT_EQ(busy[slot]++, 0) << "chunk " << k << " of unit " << unit;
            ASSERT_EQ(path.phase(k), static_cast<unsigned>(uses[slot]++) % 2);
        };
        int next[2] = {path.from, path.from + 1};
        for (const int own : next)
            for (int k = own; k < path.from + path.ring; k += 2) ask(k);
        while (next[0] < path.to || next[1] < path.to) {
            int& k = next[next[0] >= path.to || (next[1] < path.to && random.uniform(0, 1) < 0.5)];
            const auto slot = static_cast<std::size_t>(path.slot(k));
            ASSERT_EQ(busy[slot], 1);
            ASSERT_EQ(path.phase(k), static_cast<unsigned>(seen[slot]++) % 2) << "a phase is told from the one before it only";
            ASSERT_EQ(seen[slot], uses[slot]);
            --busy[slot];
            ask(k + path.ring);
            if (testing::Test::HasFatalFailure()) return;
            k += 2;
        }
        path.end();
    }
}

TEST(MarchCut, EveryChunkOfEveryTileIsOneUnits) {
    for (const unsigned tiles : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 31u, 100u})
        for (const int chunks : {1, 3, 4, 8, 17, 20, 33, 400}) {
            SCOPED_TRACE(testing::Message() << tiles << " tiles of " << chunks << " chunks");
            const MarchCut cut = MarchCut::of(tiles, chunks, 8);
            std::vector<int> taken(static_cast<std::size_t>(tiles) * chunks);
            for (unsigned u = 0; u < cut.units(); ++u) {
                const MarchCut::Unit unit = cut.unit(u);
                ASSERT_LT(unit.tile, tiles);
                ASSERT_LT(unit.first, chunks);
                for (int k = unit.first; k < std::min(unit.first + unit.chunks, chunks); ++k) ++taken[static_cast<std::size_t>(unit.tile) * chunks + k];
            }
            ASSERT_TRUE(std::all_of(taken.begin(), taken.end(), [](int n) { return n == 1; }));
            EXPECT_EQ(cut.whole.tiles % 8, 0u) << "full turns";
        }
}

TEST(MarchCut, WhatIsLeftTakesTheTimeOfItsShare) {
    const auto turns = [](unsigned tiles, int chunks) {
        const MarchCut cut = MarchCut::of(tiles, chunks, 528);
        return MarchCut::time(cut.whole.tiles, 1, chunks, 528) + MarchCut::time(cut.rest.tiles, cut.rest.segments, chunks, 528);
    };
    EXPECT_EQ(turns(528, 64), 66);
    EXPECT_EQ(turns(2 * 528, 64), 132);
    EXPECT_LE(turns(528 + 97, 64), 66 + 17) << "in five segments; 132 whole";
    EXPECT_LE(turns(6 * 528 + 109, 20), 6 * 22 + 9) << "in four";
}

}  // namespace
}  // namespace trifold::tests
