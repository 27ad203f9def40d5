// SPDX-License-Identifier: BSD-3-Clause
// What is left of chunks that were reduced in the host's memory, when all ends are known: pieces of it in any order, by any lane. The host's lanes take them from the front; devices with memory of their own,
// whose links have nothing to bring in the second pass, from the back, as long as the host would not be done with the rest before they are. Who asks while much is left gets much: a task has its own beginning and end, at
// which threads wait for each other, and queues have to be filled. The last ones are short, so that nobody waits long for the other.
#pragma once

#include <deque>
#include <mutex>

#include "families/tridiagonal/split/coupled.hpp"

namespace trifold::tridiagonal::split {

class Finishing {
public:
    struct Task {
        const Reduced* whole = nullptr;
        std::int64_t from = 0, to = 0;  ///< pieces of it; none: they went to the task beside it
        bool equal = true;              ///< all its pieces have the same length
        Chunk chunk;
        Pieces part;                    ///< when somebody has taken it
        bool finished() const { return from == to || part.finished(); }
    };

    /// most: pieces that one may have that does not take as many as it likes.
    Finishing(std::int64_t piece_rows, std::int64_t most) : piece_(piece_rows), most_(most) {}

    /// What a lane has reduced, whose ends are known.
    void add(const Reduced& one) { wholes_.push_back(&one); }

    /// Cuts what was added, when all is.
    void open();

    /// Its pieces.
    static void unfold(Task& task);

    /// null: nothing is left. many: more than `most` too.
    Task* front(bool many);
    Task* back(const Sent& sent);

    std::deque<Task>& tasks() noexcept { return tasks_; }

private:
    Task& join(std::size_t first, std::size_t end, std::size_t into);
    bool beside(std::size_t k) const;

    const std::int64_t piece_, most_;
    std::vector<const Reduced*> wholes_;
    std::deque<Task> tasks_;
    std::int64_t each_ = 1;  // pieces of a task as it was cut
    std::mutex mutex_;
    std::size_t next_ = 0, end_ = 0;
};

}  // namespace trifold::tridiagonal::split
