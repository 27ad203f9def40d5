// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/finishing.hpp"

#include <algorithm>

namespace trifold::tridiagonal::split {
namespace {

// Tasks in all, as they are cut: the last ones decide how long one waits for the other.
constexpr std::int64_t wanted = 384, least = 8;

// Of what is left the host takes so much of it at a time, and a link.
constexpr std::size_t host_share = 4, link_share = 24;

// A team of threads has something to share then.
constexpr std::size_t host_least = 2;

// What a link is sent at first, until some of it has come back.
constexpr std::int64_t at_first = 2;

}  // namespace

void Finishing::unfold(Task& task) {
    const Reduced& whole = *task.whole;
    const Piece first = whole.piece(task.from), last = whole.piece(task.to - 1);
    task.chunk.first = first.first, task.chunk.rows = last.first + last.rows - first.first;
    task.part = {};
    task.part.chunk = &task.chunk, task.part.each = whole.each, task.part.count = task.to - task.from, task.part.ends = whole.ends + 2 * task.from;
}

void Finishing::open() {
    std::int64_t all = 0;
    for (const Reduced* whole : wholes_) all += whole->count;
    each_ = std::max<std::int64_t>(std::min(std::max(all / wanted, least), most_), 1);
    for (const Reduced* whole : wholes_) {
        // Of equal length, but the last of a chunk: a device plans a batch for each length.
        for (std::int64_t from = 0; from < whole->count; from += each_) {
            const std::int64_t to = std::min(from + each_, whole->count);
            tasks_.push_back({.whole = whole, .from = from, .to = to, .equal = whole->piece(to - 1).rows == piece_, .chunk = {}, .part = {}});
        }
    }
    // The system's last piece may be longer: no batch has it.
    std::stable_partition(tasks_.begin(), tasks_.end(), [](const Task& task) { return !task.equal; });
    end_ = tasks_.size();
}

// Whether that task goes on where the one before it ends.
bool Finishing::beside(std::size_t k) const { return tasks_[k].whole == tasks_[k - 1].whole && tasks_[k].from == tasks_[k - 1].to; }

// Tasks that go on where the one before ends become one of them.
Finishing::Task& Finishing::join(std::size_t first, std::size_t end, std::size_t into) {
    const std::int64_t from = tasks_[first].from, to = tasks_[end - 1].to;
    for (std::size_t k = first; k < end; ++k) tasks_[k].to = tasks_[k].from;
    tasks_[into].from = from, tasks_[into].to = to;
    return tasks_[into];
}

Finishing::Task* Finishing::front(bool many) {
    Task* task = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (next_ == end_) return nullptr;
        const std::size_t first = next_++, end = std::min(first + std::max<std::size_t>((end_ - first) / host_share, many ? host_least : 1), end_);
        while (next_ < end && beside(next_) && (many || tasks_[next_].to - tasks_[first].from <= most_)) ++next_;
        task = &join(first, next_, first);
    }
    return unfold(*task), task;
}

Finishing::Task* Finishing::back(const Sent& sent) {
    Task* task = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const auto left = static_cast<std::int64_t>(end_ - next_) * each_;
        const std::int64_t pieces = std::min({left / static_cast<std::int64_t>(link_share), std::max(at_first * each_, 2 * sent.back), most_});
        // The host is thought to be as fast: what goes there now is back when that has been done which is under way already.
        if (next_ == end_ || left <= sent.under_way + 2 * std::max(pieces, each_) || !tasks_[end_ - 1].equal) return nullptr;
        const std::size_t end = end_--;
        while (end_ > next_ && beside(end_) && tasks_[end_ - 1].equal && tasks_[end - 1].to - tasks_[end_ - 1].from <= pieces) --end_;
        task = &join(end_, end, end_);
    }
    return unfold(*task), task;
}

}  // namespace trifold::tridiagonal::split
