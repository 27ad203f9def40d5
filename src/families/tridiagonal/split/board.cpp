// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/board.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

namespace trifold::tridiagonal::split {
namespace {

// Of the rows that are left a lane takes its share, divided by this: what rates are wrong by is made good by the chunks that follow. Where everybody's are known from
// solves before, they are wrong by less. Who solves several side by side needs some rounds in which the faster ones take what the slower ones do not.
constexpr double caution_at_first = 2, caution_later = 1.2;

// Of those who solve side by side one may be slower than the others, since its core has something else to do: it takes less, and before that is seen nobody takes much.
constexpr double of_unknown = 0.25, least_of_pace = 1.0 / 8, most_of_pace = 1.5;

// A chunk is worth its overhead from here on.
constexpr double least_seconds = 5e-4;

// What was known before the solve counts like a chunk of so many seconds; of chunks every one counts half as much as the one after it.
constexpr double known_seconds = 4e-3, fading = 0.5;

// Who waits for the others' last chunks stays awake so long: a dozen threads that are woken at once end up two on a core at times, and one of them has none until the next tick, four milliseconds later, at every barrier.
constexpr auto awake = std::chrono::milliseconds(2);
constexpr int tries = 64;

}  // namespace

std::unique_lock<std::mutex> Board::locked() const {
    std::unique_lock lock(mutex_, std::defer_lock);
    for (int k = 0; k < tries; ++k) {
        if (lock.try_lock()) return lock;
        std::this_thread::yield();
    }
    lock.lock();
    return lock;
}

void Board::hear(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t seen = news_;
    lock.unlock();
    for (const auto start = std::chrono::steady_clock::now(); news_ == seen && std::chrono::steady_clock::now() - start < awake;) std::this_thread::yield();
    if (over_) return;
    lock.lock();
    changed_.wait(lock, [&] { return news_ != seen; });
}

// Under the lock: rows are there again, or nothing is left.
void Board::tell() {
    const bool over = stopped_ || solved_ == rows_;
    over_ = over;
    if (!over && held_ > 0 && returned_.empty()) return;
    ++news_;
    changed_.notify_all();
}

Board::Board(std::int64_t rows, std::int64_t least, std::int64_t unit, std::vector<Pace> paces, std::function<void(std::int64_t)> opened)
    : rows_(rows), least_(least), unit_(unit), paces_(std::move(paces)), opened_(std::move(opened)) {
    const bool known = std::all_of(paces_.begin(), paces_.end(), [](const Pace& pace) { return !pace.takes_part || (pace.rows_per_s > 0 && !pace.fixed); });
    caution_ = known ? caution_later : caution_at_first;
    late_.assign(paces_.size(), 0);
    for (const Pace& pace : paces_) seen_.push_back({pace.rows_per_s * known_seconds, pace.rows_per_s > 0 ? known_seconds : 0});
}

std::int64_t Board::wish(int lane, double rows_per_s) const {
    const Pace& own = paces_[static_cast<std::size_t>(lane)];
    const std::int64_t left = rows_ - next_;
    double all = 0, lanes = 0, known = 0;
    for (const Pace& pace : paces_) {
        if (!pace.takes_part) continue;
        lanes += 1;
        if (pace.rows_per_s > 0) all += pace.rows_per_s, known += 1;
    }
    if (lanes == 0) return left;
    std::int64_t rows;
    if (own.rows_per_s > 0) {
        // Who is not known yet is thought to be as fast as the others on average.
        const double share = own.rows_per_s / (all * lanes / known);
        const double caution = own.side_by_side > 1 ? caution_at_first : caution_;
        const double one = own.rows_per_s / own.side_by_side, of_pace = own.side_by_side == 1 ? 1 : rows_per_s > 0 ? std::clamp(rows_per_s / one, least_of_pace, most_of_pace) : of_unknown;
        rows = static_cast<std::int64_t>(static_cast<double>(left) * share / caution / own.ahead / own.side_by_side * of_pace);
        // Chunks under way one after the other are done one after the other.
        rows = std::max({rows, static_cast<std::int64_t>(one * of_pace / own.ahead * least_seconds), own.least});
    } else {
        // To be measured with: small enough that a slow device does not keep the others waiting.
        rows = std::max(rows_ / static_cast<std::int64_t>(32 * lanes) / own.side_by_side, own.least);
    }
    rows = std::max(std::min(rows, own.most) / unit_ * unit_, least_);
    // What would be left is no chunk: all of it, or less now.
    if (left - rows < least_) return left <= own.most ? left : (left - least_) / unit_ * unit_;
    return rows;
}

Board::Taken Board::take(int lane, bool wait, Chunk*& chunk, double rows_per_s) {
    std::unique_lock lock = locked();
    for (;;) {
        if (!lock) return Taken::finished;
        if (stopped_ || solved_ == rows_) return Taken::finished;
        for (auto at = returned_.begin(); at != returned_.end(); ++at) {
            if ((*at)->rows > paces_[static_cast<std::size_t>(lane)].most) continue;
            chunk = *at;
            returned_.erase(at);
            chunk->lane = lane;
            ++held_;
            return Taken::chunk;
        }
        if (next_ < rows_) {
            Chunk made;
            made.first = next_;
            made.rows = wish(lane, rows_per_s);
            made.lane = lane;
            chunk = &chunks_.emplace_back(made);
            next_ += made.rows;
            ++held_;
            if (next_ < rows_) opened_(next_);
            return Taken::chunk;
        }
        if (!wait) return Taken::none_now;
        if (held_ == 0) return Taken::finished;  // what is left is too large for this lane
        hear(lock);
    }
}

void Board::finish(Chunk& chunk, const Outcome& outcome, double seconds) {
    const std::unique_lock lock = locked();
    chunk.done = true;
    chunk.outcome = outcome;
    solved_ += chunk.rows;
    --held_;
    Pace& pace = paces_[static_cast<std::size_t>(chunk.lane)];
    if (seconds > 0 && !pace.fixed) {
        Seen& seen = seen_[static_cast<std::size_t>(chunk.lane)];
        const double fades = std::pow(fading, 1.0 / pace.side_by_side);
        seen.rows = fades * seen.rows + static_cast<double>(chunk.rows), seen.seconds = fades * seen.seconds + seconds / pace.side_by_side;
        pace.rows_per_s = seen.rows / seen.seconds;
    }
    tell();
}

void Board::give_back(Chunk& chunk) {
    const std::lock_guard lock(mutex_);
    chunk.lane = -1;
    --held_;
    returned_.push_back(&chunk);
    tell();
}

void Board::reopen(Chunk& chunk) {
    const std::lock_guard lock(mutex_);
    chunk.lane = -1, chunk.done = false;
    solved_ -= chunk.rows;
    returned_.push_back(&chunk);
    tell();
}

void Board::leave_behind(int lane, bool all) {
    const std::lock_guard lock(mutex_);
    paces_[static_cast<std::size_t>(lane)].takes_part = false;
    for (Chunk& chunk : chunks_) {
        if (chunk.lane != lane || (chunk.done && !all)) continue;
        if (chunk.done) solved_ -= chunk.rows;
        else --held_;
        chunk.lane = -1, chunk.done = false;
        returned_.push_back(&chunk);
    }
    tell();
}

void Board::retire(int lane) {
    const std::lock_guard lock(mutex_);
    paces_[static_cast<std::size_t>(lane)].takes_part = false;
    tell();
}

void Board::stop(const Outcome& why) {
    const std::lock_guard lock(mutex_);
    if (!stopped_) why_ = why;
    stopped_ = true;
    tell();
}

void Board::late(int lane, bool is) {
    const std::lock_guard lock(mutex_);
    late_[static_cast<std::size_t>(lane)] = is;
}

bool Board::waits_for_late() const {
    const std::lock_guard lock(mutex_);
    return stopped_ || (next_ == rows_ && std::all_of(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) { return chunk.done || (chunk.lane >= 0 && late_[static_cast<std::size_t>(chunk.lane)]); }));
}

bool Board::complete() const {
    const std::lock_guard lock(mutex_);
    return solved_ == rows_;
}

}  // namespace trifold::tridiagonal::split
