// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/watch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

namespace trifold::tridiagonal::split {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count(); }

std::atomic<int> behind_in_calls{0};

[[noreturn]] void sleep_for_good() {
    --behind_in_calls;
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

void Pulse::enter() noexcept { since_.store(now(), std::memory_order_release); }

void Pulse::leave() noexcept {
    std::int64_t since = since_.load(std::memory_order_relaxed);
    if (since == behind || !since_.compare_exchange_strong(since, outside, std::memory_order_acq_rel)) sleep_for_good();
}

bool Pulse::give_up_after(double seconds) noexcept {
    std::int64_t since = since_.load(std::memory_order_acquire);
    if (since <= outside || static_cast<double>(now() - since) < 1e9 * seconds) return false;
    ++behind_in_calls;
    if (since_.compare_exchange_strong(since, behind, std::memory_order_acq_rel)) return true;
    --behind_in_calls;
    return false;
}

int calls_left_behind() noexcept { return behind_in_calls; }

LaneThreads::LaneThreads(double patience_s, std::function<void(std::size_t)> left) { shared_->patience_s = patience_s, shared_->left = std::move(left); }

LaneThreads::~LaneThreads() { wait(); }

void LaneThreads::start(std::size_t lane, std::shared_ptr<Pulse> pulse, std::function<void()> work) {
    auto over = std::make_shared<std::atomic<bool>>(false);
    std::thread thread([work = std::move(work), over, shared = shared_] {
        work();
        const std::lock_guard lock(shared->mutex);
        *over = true;
        shared->rings.notify_all();
    });
    const std::lock_guard lock(shared_->mutex);
    shared_->lanes.push_back({lane, std::move(pulse), std::move(thread), false, std::move(over)});
    // To wait for it would take a thread's waking up, milliseconds where the cores are busy.
    if (!std::exchange(shared_->watched, true)) std::thread([shared = shared_] { watch(*shared); }).detach();
}

void LaneThreads::watch(Shared& shared) {
    const auto pause = std::chrono::duration<double>(std::clamp(shared.patience_s / 8, 1e-3, 0.25));
    std::unique_lock lock(shared.mutex);
    for (std::int64_t before = now(); !shared.stop;) {
        shared.rings.wait_for(lock, pause);
        if (shared.stop) return;
        // A process that was stopped (Ctrl-Z), or a machine that was, has not let anybody return either: what the watch slept too long is not the call's.
        const std::int64_t woke = now();
        const double late = std::max(0.0, 1e-9 * static_cast<double>(woke - std::exchange(before, woke)) - 2 * pause.count());
        for (Lane& lane : shared.lanes) {
            const std::int64_t call = lane.pulse->since();
            if (call != std::exchange(lane.call, call)) lane.slept_s = 0;
            if (call > 0) lane.slept_s += std::min(late, 1e-9 * static_cast<double>(std::max<std::int64_t>(woke - call, 0)));
            if (*lane.over || lane.left || !lane.pulse->give_up_after(shared.patience_s + lane.slept_s)) continue;
            shared.left(lane.number);
            lane.left = true;
            shared.rings.notify_all();
        }
    }
}

void LaneThreads::wait() {
    std::vector<Lane> lanes;
    {
        std::unique_lock lock(shared_->mutex);
        shared_->rings.wait(lock, [&] { return std::all_of(shared_->lanes.begin(), shared_->lanes.end(), [](const Lane& lane) { return lane.left || *lane.over; }); });
        shared_->stop = true;
        lanes.swap(shared_->lanes);
    }
    shared_->rings.notify_all();
    for (Lane& lane : lanes) {
        if (lane.left) lane.thread.detach();
        else lane.thread.join();
    }
}

}  // namespace trifold::tridiagonal::split
