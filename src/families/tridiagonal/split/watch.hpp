// SPDX-License-Identifier: BSD-3-Clause
// Threads of lanes, and a watch over the calls that they make of their devices' drivers. A thread that waits for a driver cannot be ended: one whose call
// takes too long is left behind. What it had goes to others; when its call returns after all, it touches nothing any more and sleeps until the process
// ends, so that what lies on its stack, and what that owns, stays where the driver knows it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace trifold::tridiagonal::split {

/// Whether a lane is inside a call, and since when.
class Pulse {
public:
    void enter() noexcept;

    /// Does not return where the lane was left behind meanwhile.
    void leave() noexcept;

    /// When the call began that it is inside of: nanoseconds of the steady clock, 0 outside.
    std::int64_t since() const noexcept { return since_.load(std::memory_order_acquire); }

    /// It is inside a call that has taken longer: from now on it is left behind.
    bool give_up_after(double seconds) noexcept;
    bool left_behind() const noexcept { return since_.load(std::memory_order_acquire) == behind; }

private:
    static constexpr std::int64_t outside = 0, behind = -1;
    std::atomic<std::int64_t> since_{outside};  // nanoseconds of the steady clock
};

/// Lanes of this process that were left behind and whose call has not returned yet. While there are any, a driver that is taken down (exit) may crash, or wait for them.
int calls_left_behind() noexcept;

class LaneThreads {
public:
    /// `left`: called once for a lane that is left behind, on the watch's thread, before anybody is told that it is over.
    LaneThreads(double patience_s, std::function<void(std::size_t)> left);
    ~LaneThreads();
    LaneThreads(const LaneThreads&) = delete;
    LaneThreads& operator=(const LaneThreads&) = delete;

    /// work() on a thread of its own. What it calls while `pulse` says that it is inside a call must not refer to anything that ends with the solve.
    void start(std::size_t lane, std::shared_ptr<Pulse> pulse, std::function<void()> work);

    /// Until every lane is over, or left behind.
    void wait();

private:
    struct Lane {
        std::size_t number = 0;
        std::shared_ptr<Pulse> pulse;
        std::thread thread;
        bool left = false;
        std::shared_ptr<std::atomic<bool>> over;
        std::int64_t call = 0;  // when it began
        double slept_s = 0;     // of that call's time, while nobody ran here
    };

    /// What lanes and the watch share; the watch, which nobody waits for, may be the last to let go of it.
    struct Shared {
        std::mutex mutex;
        std::condition_variable rings;  // a lane is over, or was left behind; or all are, and the watch may go
        std::function<void(std::size_t)> left;
        double patience_s = 0;
        std::vector<Lane> lanes;
        bool watched = false, stop = false;
    };

    static void watch(Shared& shared);

    const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace trifold::tridiagonal::split
