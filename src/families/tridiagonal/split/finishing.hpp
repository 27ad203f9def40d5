// SPDX-License-Identifier: BSD-3-Clause
// What is left of chunks that were reduced in the host's memory, when all ends are known: pieces of it in any order, by any lane. The host's lanes take them from the front; devices with memory of their own,
// whose links have nothing to bring in the second pass, from the back, as long as the host would not be done with the rest before they are.
#pragma once

#include <deque>
#include <mutex>

#include "families/tridiagonal/split/coupled.hpp"

namespace trifold::tridiagonal::split {

class Finishing {
public:
    struct Task {
        const Reduced* whole = nullptr;
        std::size_t from = 0, to = 0;    ///< pieces of it
        const double* ends = nullptr;    ///< as of Reducer::finish
        bool equal = true;               ///< all its pieces have the same length
        Chunk chunk;
        Reduced part;                    ///< the pieces, when somebody has taken it; no rows
        bool finished() const;
    };

    /// Tasks of `least` pieces or more and `most` or fewer.
    Finishing(std::int64_t piece_rows, std::int64_t least, std::int64_t most) : piece_(piece_rows), least_(least), most_(most) {}

    /// What a lane has reduced. ends: x of its first piece's first row and so on.
    void add(const Reduced& one, const double* ends);

    /// Cuts what was added, when all is.
    void open();

    /// Its pieces: copied by who takes it, since all of them are some thousands for a million rows.
    static void unfold(Task& task);

    /// null: nothing is left.
    Task* front();
    Task* back();

    std::deque<Task>& tasks() noexcept { return tasks_; }

private:
    struct Whole {
        const Reduced* one;
        const double* ends;
    };

    const std::int64_t piece_, least_, most_;
    std::vector<Whole> wholes_;
    std::deque<Task> tasks_;
    std::mutex mutex_;
    std::size_t next_ = 0, end_ = 0;
};

}  // namespace trifold::tridiagonal::split
