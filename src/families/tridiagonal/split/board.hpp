// SPDX-License-Identifier: BSD-3-Clause
// The rows of one system, handed out in chunks while it is being solved. A chunk that is asked for later is smaller (guided
// self-scheduling), so that all who solve are done at about the same time; one that could not be solved is handed out again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "trifold/outcome.hpp"

namespace trifold::tridiagonal::split {

struct Chunk {
    std::int64_t first = 0, rows = 0;
    int lane = -1;               ///< who has it, or finished it
    bool done = false;
    Outcome outcome;
    std::int64_t last() const noexcept { return first + rows - 1; }
};

/// What a lane can take, and how fast it is thought to be.
struct Pace {
    double rows_per_s = 0;        ///< 0 = not known yet
    std::int64_t least = 1;       ///< rows below which a chunk costs more than it brings
    std::int64_t most = INT64_MAX;
    int ahead = 1;                ///< chunks that it has under way at a time, one after the other
    int side_by_side = 1;         ///< chunks that it solves at the same time, each at a part of its pace
    bool takes_part = true;
    bool fixed = false;           ///< rows_per_s says more than these chunks will
};

class Board {
public:
    /// Every chunk but the last begins and ends at a multiple of `unit` rows, and has `least` rows, a multiple of it, or more. `opened` is called under the lock when a chunk has been cut off, before anybody solves it or
    /// anything beyond it: with the row where the next one begins.
    Board(std::int64_t rows, std::int64_t least, std::int64_t unit, std::vector<Pace> paces, std::function<void(std::int64_t)> opened);

    enum class Taken { chunk, none_now, finished };

    /// `finished`: nothing is left that this lane could do. Where others may still fail it waits for that, if `wait`. rows_per_s: of who asks, one of several that solve for this lane side by side; 0 = not known yet.
    Taken take(int lane, bool wait, Chunk*& chunk, double rows_per_s = 0);

    /// It is in x. `seconds`: what it took while the lane was busy with nothing else, or with as many as it solves side by side (0 = not known).
    void finish(Chunk& chunk, const Outcome& outcome, double seconds);

    /// It is not, and x, where it is not the right-hand side, may hold anything there.
    void give_back(Chunk& chunk);

    /// What was finished is lost.
    void reopen(Chunk& chunk);

    /// A lane whose call does not return: what it had under way is handed out again, and where `all` what it had finished too. It must not come back.
    void leave_behind(int lane, bool all);

    /// The lane will not ask again.
    void retire(int lane);

    /// No one shall go on: a chunk cannot be solved as a system of its own.
    void stop(const Outcome& why);

    /// A lane that holds what it has until its device is ready.
    void late(int lane, bool is);

    /// Nothing is left to be solved but what such lanes have.
    bool waits_for_late() const;

    bool stopped() const noexcept { return stopped_; }
    bool complete() const;
    const Outcome& why() const noexcept { return why_; }
    const std::deque<Chunk>& chunks() const noexcept { return chunks_; }  ///< in the order of rows; when nobody solves any more

private:
    std::int64_t wish(int lane, double rows_per_s) const;
    std::unique_lock<std::mutex> locked() const;
    void hear(std::unique_lock<std::mutex>& lock);
    void tell();

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<std::uint64_t> news_{0};  // what those wait for who have nothing to do, seen without the lock
    std::atomic<bool> over_{false};
    const std::int64_t rows_, least_, unit_;
    std::int64_t next_ = 0, solved_ = 0, held_ = 0;  // held: chunks that somebody has
    std::vector<Pace> paces_;
    double caution_ = 1;
    struct Seen {
        double rows = 0, seconds = 0;
    };
    std::vector<char> late_;  // lanes
    std::vector<Seen> seen_;  // of every lane, older chunks counting less
    std::vector<Chunk*> returned_;
    std::deque<Chunk> chunks_;
    std::function<void(std::int64_t)> opened_;
    bool stopped_ = false;
    Outcome why_;
};

}  // namespace trifold::tridiagonal::split
