// SPDX-License-Identifier: BSD-3-Clause
// How threads that work on what follows from one another wait: by counters of what is done.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace trifold::cpu {

/// A counter that one thread writes and others wait for, on a line of the cache of its own.
struct alignas(64) Count {
    std::atomic<std::int64_t> done = 0;
};

/// Waits until so many are done. False: `good` has become false before.
inline bool until(const std::atomic<std::int64_t>& done, std::int64_t count, const std::atomic<bool>* good = nullptr) {
    using Clock = std::chrono::steady_clock;
    constexpr auto patience = std::chrono::microseconds(200);  // longer than a strip takes
    Clock::time_point since;
    for (int spins = 0; done.load(std::memory_order_acquire) < count; ++spins) {
        if (good && !*good) return false;
        if (spins < 4000) continue;
        if (spins == 4000) since = Clock::now();
        // Two that a system has put on one processor may stay there as long as neither sleeps.
        if (Clock::now() - since < patience) std::this_thread::yield();
        else std::this_thread::sleep_for(std::chrono::microseconds(5));
    }
    return true;
}

/// Strips that threads take in turns. Each goes back over its columns behind the one before: it begins a piece of them when that has done as many. Counters: columns of the strips before,
/// and of this one. Null: one thread, or nothing to wait for.
struct Turn {
    static constexpr std::int64_t columns = 128;  ///< that are waited for and told at once

    const std::atomic<std::int64_t>* before = nullptr;
    std::atomic<std::int64_t>* own = nullptr;
    std::int64_t number = 0;  ///< of the strip

    /// Before column n - done, n of them in all. True: so many more of the strip before are there.
    bool wait(std::int64_t done, std::int64_t n) const {
        if (!before || done % columns != 0) return false;
        return until(*before, (number - 1) * n + (done + columns < n ? done + columns : n));
    }

    void tell(std::int64_t done, std::int64_t n) const {
        if (own && (done % columns == 0 || done == n)) own->store(number * n + done, std::memory_order_release);
    }
};

}  // namespace trifold::cpu
