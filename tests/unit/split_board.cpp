// SPDX-License-Identifier: BSD-3-Clause
// How rows are handed out, on a clock of our own (and how those wait who have nothing to do): threads that each take chunks for one device, some of them slow, beside a link with chunks under way.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "families/tridiagonal/split/board.hpp"

namespace trifold::tests {
namespace {

using namespace tridiagonal::split;

constexpr std::int64_t rows = 256'000'000;
constexpr double cores = 5.5e9, link = 2.7e9;
constexpr int threads = 15, under_way = 3;

/// When all is done over when it would be if everybody were busy to the end. slow: so many threads, at `pace` of the others'.
double beyond(int slow, double pace) {
    Board board(rows, 1 << 14, 1024, {{.rows_per_s = cores, .least = 1 << 14, .side_by_side = threads}, {.rows_per_s = link, .least = 1 << 14, .most = 1 << 23, .ahead = under_way}}, [](std::int64_t) {});
    struct Taken {
        Chunk* chunk = nullptr;
        double begin = 0, end = 0;
    };
    std::vector<Taken> all(threads + under_way);
    std::vector<double> each(threads, cores / threads), seen_rows(threads), seen_s(threads);
    for (int k = 0; k < slow; ++k) each[static_cast<std::size_t>(k)] *= pace;
    double capacity = link, link_free = 0, now = 0;
    for (const double one : each) capacity += one;
    std::int64_t done = 0;
    const auto take = [&](std::size_t k) {
        const bool thread = k < threads;
        Taken& one = all[k];
        if (board.take(thread ? 0 : 1, false, one.chunk, thread && seen_s[k] > 0 ? seen_rows[k] / seen_s[k] : 0) != Board::Taken::chunk) return void(one.chunk = nullptr);
        one.begin = thread ? now : std::max(now, link_free);
        one.end = one.begin + static_cast<double>(one.chunk->rows) / (thread ? each[k] : link);
        if (!thread) link_free = one.end;
    };
    for (std::size_t k = 0; k < all.size(); ++k) take(k);
    for (;;) {
        std::size_t next = all.size();
        for (std::size_t k = 0; k < all.size(); ++k)
            if (all[k].chunk && (next == all.size() || all[k].end < all[next].end)) next = k;
        if (next == all.size()) break;
        const Taken one = all[next];
        now = one.end, done += one.chunk->rows;
        if (next < threads) seen_rows[next] = seen_rows[next] / 2 + static_cast<double>(one.chunk->rows), seen_s[next] = seen_s[next] / 2 + (one.end - one.begin);
        board.finish(*one.chunk, Outcome{}, one.end - one.begin);
        take(next);
    }
    EXPECT_EQ(done, rows);
    return now * capacity / rows - 1;
}

TEST(SplitBoard, EverybodyEndsTogether) { EXPECT_LE(beyond(0, 1), 0.015); }

// One core has something else to do besides, or two; a chunk as for the others would be what all wait for.
TEST(SplitBoard, SlowThreadsTakeLess) {
    for (const int slow : {1, 2, 4})
        for (const double pace : {0.5, 0.35, 0.2}) EXPECT_LE(beyond(slow, pace), 0.025) << slow << " at " << pace;
}

// Who has nothing to do waits for chunks that come back, awake or asleep by then, and goes when nothing is left: what is too large for it is not its own, nor does it spin over that.
TEST(SplitBoard, WaitsForWhatComesBack) {
    for (const auto late : {std::chrono::microseconds(200), std::chrono::microseconds(20'000)})
        for (const bool fits : {true, false}) {
            Board board(1 << 20, 1 << 14, 1024, {{.rows_per_s = 1e9, .side_by_side = 4}, {.rows_per_s = 1e9}, {.rows_per_s = 1, .most = fits ? 1 << 20 : 1 << 14}}, [](std::int64_t) {});
            Chunk* held = nullptr;
            ASSERT_EQ(board.take(1, false, held), Board::Taken::chunk);
            std::atomic<std::int64_t> solved{0}, others{0};
            std::vector<std::thread> waiting;
            const auto lane = [&](int number, std::atomic<std::int64_t>& count) {
                Chunk* chunk = nullptr;
                while (board.take(number, true, chunk) == Board::Taken::chunk) count += chunk->rows, board.finish(*chunk, Outcome{}, 1e-3);
            };
            if (fits)
                for (int k = 0; k < 4; ++k) waiting.emplace_back([&] { lane(0, solved); });
            waiting.emplace_back([&] { lane(2, others); });
            std::this_thread::sleep_for(late);
            const std::int64_t rows_held = held->rows;
            board.give_back(*held);
            for (std::thread& one : waiting) one.join();
            EXPECT_EQ(board.complete(), fits);
            EXPECT_EQ(solved + others, (1 << 20) - (fits ? 0 : rows_held));
        }
}

}  // namespace
}  // namespace trifold::tests
