// SPDX-License-Identifier: BSD-3-Clause
// Groups of chunks for the threads of a team. Of a long system each thread asks for some when it has done those before, fewer the fewer are left: of fifteen threads two are slow at times, since something else runs on
// their cores, and an even share of some groups is one more for every second thread. Where each thread's share fits its cache, it gets the same one in both passes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace trifold::cpu {

class GroupSlices {
public:
    struct Slice {
        std::int64_t first = 0, end = 0;  ///< groups
        bool last = false;                ///< and the last chunk, which is in no group
    };

    /// bytes: of all operands.
    GroupSlices(std::int64_t groups, int threads, std::size_t bytes)
        : groups_(groups), threads_(threads), even_(threads == 1 || groups < 2 * threads || bytes < static_cast<std::size_t>(threads) * private_cache) {}

    /// work(slice), for all that come to the thread with this number. from_end: the last ones first.
    template <class Work>
    void run(int thread, bool from_end, const Work& work) {
        if (even_) return work(Slice{groups_ * thread / threads_, groups_ * (thread + 1) / threads_, thread + 1 == threads_});
        for (;;) {
            std::int64_t first = next_.load(std::memory_order_relaxed), end = 0;
            do {
                if (first == groups_) return;
                end = first + std::min(std::max((groups_ - first) / (2 * threads_), least), groups_ - first);
            } while (!next_.compare_exchange_weak(first, end, std::memory_order_relaxed));
            if (from_end) work(Slice{groups_ - end, groups_ - first, first == 0});
            else work(Slice{first, end, end == groups_});
        }
    }

private:
    static constexpr std::size_t private_cache = std::size_t{2} << 20;
    static constexpr std::int64_t least = 2;  // their rows are asked for one group ahead

    const std::int64_t groups_;
    const int threads_;
    const bool even_;
    std::atomic<std::int64_t> next_{0};
};

}  // namespace trifold::cpu
