// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/finishing.hpp"

#include <algorithm>

namespace trifold::tridiagonal::split {
namespace {

// Tasks in all: the last ones decide how long one waits for the other.
constexpr std::int64_t wanted = 96;

// So many are the host's own: what a link takes is back when it has solved about as much.
constexpr std::size_t kept = 3;

}  // namespace

bool Finishing::Task::finished() const {
    return !part.pieces.empty() && std::all_of(part.pieces.begin(), part.pieces.end(), [](const Piece& piece) { return piece.stored; });
}

void Finishing::add(const Reduced& one, const double* ends) { wholes_.push_back({&one, ends}); }

void Finishing::unfold(Task& task) {
    const auto& pieces = task.whole->pieces;
    task.part.pieces.assign(pieces.begin() + static_cast<std::ptrdiff_t>(task.from), pieces.begin() + static_cast<std::ptrdiff_t>(task.to));
    const Piece &first = pieces[task.from], &last = pieces[task.to - 1];
    task.chunk.first = first.first, task.chunk.rows = last.first + last.rows - first.first;
    task.part.chunk = &task.chunk;
}

void Finishing::open() {
    std::int64_t all = 0;
    for (const Whole& whole : wholes_) all += static_cast<std::int64_t>(whole.one->pieces.size());
    const auto each = static_cast<std::size_t>(std::clamp(all / wanted, least_, most_));
    for (const Whole& whole : wholes_) {
        const std::size_t pieces = whole.one->pieces.size(), parts = std::max<std::size_t>((pieces + each - 1) / each, 1);
        for (std::size_t k = 0; k < parts; ++k)
            if (const std::size_t from = k * pieces / parts, to = (k + 1) * pieces / parts; from < to)
                tasks_.push_back({.whole = whole.one, .from = from, .to = to, .ends = whole.ends + 2 * from, .equal = whole.one->pieces[to - 1].rows == piece_, .chunk = {}, .part = {}});
    }
    // The system's last piece may be longer: no batch has it.
    std::stable_partition(tasks_.begin(), tasks_.end(), [](const Task& task) { return !task.equal; });
    end_ = tasks_.size();
}

Finishing::Task* Finishing::front() {
    Task* task = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (next_ == end_) return nullptr;
        task = &tasks_[next_++];
    }
    return unfold(*task), task;
}

Finishing::Task* Finishing::back() {
    Task* task = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (next_ + kept >= end_ || !tasks_[end_ - 1].equal) return nullptr;
        task = &tasks_[--end_];
    }
    return unfold(*task), task;
}

}  // namespace trifold::tridiagonal::split
