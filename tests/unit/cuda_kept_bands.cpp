// SPDX-License-Identifier: BSD-3-Clause
// Which bands of a batch are the same in all systems, and whether warps keep them from tile to tile.
#include <gtest/gtest.h>

#include "backends/cuda/tridiagonal/block/tiles.hpp"

namespace trifold::cuda {
namespace {

enum class Band { own, shared, number, along_a_part };

/// 100 000 systems of `rows` rows, one after the other; with `outer`, so many times over.
TileJob<double> batch(int rows, Band lower, Band diag, Band upper, unsigned outer = 1) {
    static double memory;
    TileJob<double> job;
    job.rows = rows, job.columns = 100000, job.column_weight = 1;
    job.outer_extent[2] = outer;
    const Band bands[5] = {lower, diag, upper, Band::own, Band::own};
    for (int k = 0; k < 5; ++k) {
        TileOperand<double>& operand = job.operand[k];
        operand.data = bands[k] == Band::number ? nullptr : &memory;
        operand.row_stride = 1;
        operand.column_stride = bands[k] == Band::own ? rows : 0;
        operand.outer_stride[2] = bands[k] == Band::own || bands[k] == Band::along_a_part ? rows * 100000 : 0;
    }
    return job;
}

constexpr Band own = Band::own, shared = Band::shared, number = Band::number, part = Band::along_a_part;

TEST(KeptBands, TheSameInAllSystems) {
    EXPECT_EQ(same_in_all(batch(10, own, own, own)), 0u);
    EXPECT_EQ(same_in_all(batch(10, shared, own, number)), 5u);
    EXPECT_EQ(same_in_all(batch(10, own, number, own)), 2u);
    EXPECT_EQ(same_in_all(batch(10, shared, number, shared)), 7u);
    EXPECT_EQ(same_in_all(batch(10, part, own, part)), 5u) << "one run of systems only";
    EXPECT_EQ(same_in_all(batch(10, part, own, part, 4)), 0u);
    EXPECT_EQ(same_in_all(batch(10, shared, own, part, 4)), 1u);
}

TEST(KeptBands, WarpsKeepThem) {
    for (const int rows : {3, 100, 500, 1500, 4000})
        for (const bool coupled : {false, true}) {
            const TileKernel<double> kernel{17, 1, coupled, coupled ? 6 : 4, coupled ? 2 : 3, nullptr, nullptr};
            TileJob<double> job = batch(rows, shared, own, number);
            if (cut_rows(job, kernel) == 0) continue;
            EXPECT_EQ(job.kept, 5u) << rows;
            EXPECT_TRUE(job.even) << rows << ": tiles are asked for by spans of the rest";
            EXPECT_FALSE(job.spans) << rows;
            TileJob<double> all = batch(rows, own, own, own);
            ASSERT_GT(cut_rows(all, kernel), 0);
            EXPECT_EQ(all.kept, 0u);
            EXPECT_TRUE(all.even && all.spans);
            // What systems have of their own but leave gaps in comes run by run, whatever is kept.
            TileJob<double> apart = batch(rows, shared, own, number);
            apart.operand[1].column_stride = 3 * rows;
            ASSERT_GT(cut_rows(apart, kernel), 0);
            if (apart.groups > 1) { EXPECT_FALSE(apart.even) << rows; }
        }
}

}  // namespace
}  // namespace trifold::cuda
