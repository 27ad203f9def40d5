// SPDX-License-Identifier: BSD-3-Clause
// Who finishes what of chunks that were reduced in the host's memory: every piece once, whoever asks in which order.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "families/tridiagonal/split/finishing.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

using namespace tridiagonal::split;

constexpr std::int64_t piece = 496;

// Chunks with gaps between them, which are a device's; the last one takes what is left of the system.
struct Cut {
    std::deque<Chunk> chunks;
    std::vector<Reduced> reduced;
    std::vector<double> ends;
    std::int64_t pieces = 0;

    Cut(const std::vector<std::int64_t>& counts, std::int64_t more) {
        std::int64_t first = 0;
        for (const std::int64_t count : counts) {
            const bool last = &count == &counts.back();
            chunks.emplace_back();
            chunks.back().first = first, chunks.back().rows = count * piece + (last ? more : 0);
            reduced.emplace_back();
            reduced.back().chunk = &chunks.back(), reduced.back().each = piece, reduced.back().count = count;
            first += chunks.back().rows + 3 * piece, pieces += count;
        }
        ends.assign(static_cast<std::size_t>(2 * pieces + 2), 0);
        const double* at = ends.data() + 1;
        for (Reduced& one : reduced) one.ends = at, at += 2 * one.count;
    }
};

TEST(Finishing, EveryPieceOnce) {
    Random random(3);
    for (const std::vector<std::int64_t>& counts : {std::vector<std::int64_t>{4}, {9, 5}, {70000, 3000, 12, 8}, {4000, 4000, 4000, 4000}, {500, 20000}})
        for (const std::int64_t more : {0, 100})
            for (const std::int64_t most : {std::int64_t{2}, std::int64_t{2000}, INT64_MAX})
                for (const double of_links : {0.0, 0.5, 0.9}) {
                    Cut cut(counts, more);
                    Finishing finishing(piece, most);
                    for (const Reduced& one : cut.reduced) finishing.add(one);
                    finishing.open();
                    std::vector<Finishing::Task*> taken;
                    Sent sent;
                    for (bool empty = false; !empty;) {
                        Finishing::Task* task = nullptr;
                        if (random.chance(of_links)) {
                            task = finishing.back(sent);
                            if (task) {
                                EXPECT_LE(task->part.count, most);
                                for (std::int64_t k = 0; k < task->part.count; ++k) EXPECT_EQ(task->part.piece(k).rows, piece) << "no batch has it";
                                sent.under_way += task->part.count;
                            }
                            if (sent.under_way > 0 && random.chance(0.7)) sent.back += sent.under_way, sent.under_way = 0;
                        } else {
                            const bool many = random.chance(0.5);
                            task = finishing.front(many), empty = !task;
                            if (task && !many) {
                                EXPECT_LE(task->part.count, most);
                            }
                        }
                        if (task) taken.push_back(task);
                    }
                    std::vector<Piece> seen, all;
                    for (Finishing::Task* task : taken) {
                        EXPECT_EQ(task->chunk.first, task->part.piece(0).first);
                        EXPECT_EQ(task->part.ends, task->whole->ends + 2 * task->from);
                        for (std::int64_t k = 0; k < task->part.count; ++k) seen.push_back(task->part.piece(k));
                        EXPECT_FALSE(task->finished());
                        task->part.stored.assign(static_cast<std::size_t>(task->part.count), 1);
                        EXPECT_TRUE(task->finished());
                    }
                    for (const Reduced& one : cut.reduced)
                        for (std::int64_t k = 0; k < one.count; ++k) all.push_back(one.piece(k));
                    std::sort(seen.begin(), seen.end(), [](const Piece& a, const Piece& b) { return a.first < b.first; });
                    ASSERT_EQ(seen.size(), all.size());
                    for (std::size_t k = 0; k < all.size(); ++k) ASSERT_TRUE(seen[k].first == all[k].first && seen[k].rows == all[k].rows) << "piece " << k;
                    for (const Finishing::Task& task : finishing.tasks()) EXPECT_TRUE(task.finished()) << "what went to the task beside it";
                }
}

// A link that is not known yet has little under way; one that has brought much back gets much; and at the end nobody waits long for it.
TEST(Finishing, ALinkGetsWhatItBringsBack) {
    Cut cut({142000}, 0);
    Finishing finishing(piece, 2100);
    finishing.add(cut.reduced[0]);
    finishing.open();
    const Finishing::Task* const first = finishing.back({});
    ASSERT_TRUE(first);
    EXPECT_LE(first->part.count, cut.pieces / 150);
    const Finishing::Task* const second = finishing.back({.under_way = first->part.count, .back = 0});
    ASSERT_TRUE(second);
    EXPECT_LE(second->part.count, cut.pieces / 150);
    const Finishing::Task* const later = finishing.back({.under_way = 2000, .back = 4000});
    ASSERT_TRUE(later);
    EXPECT_GT(later->part.count, 1500);
    EXPECT_FALSE(finishing.back({.under_way = cut.pieces, .back = 4000})) << "the host is done with the rest before";
    const Finishing::Task* const host = finishing.front(true);
    ASSERT_TRUE(host);
    EXPECT_GT(host->part.count, cut.pieces / 5);
    EXPECT_LT(host->part.count, cut.pieces / 3);
    std::int64_t last = host->part.count;
    for (const Finishing::Task* task; (task = finishing.front(true)); last = task->part.count) EXPECT_LE(task->part.count, last);
    EXPECT_LE(last, cut.pieces / 100);
}

}  // namespace
}  // namespace trifold::tests
