// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace trifold::tridiagonal::split {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count(); }

[[noreturn]] void sleep_for_good() {
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
    return since_.compare_exchange_strong(since, behind, std::memory_order_acq_rel);
}

LaneThreads::LaneThreads(double patience_s, std::function<void(std::size_t)> left) : patience_s_(patience_s), left_(std::move(left)) {}

LaneThreads::~LaneThreads() { wait(); }

void LaneThreads::start(std::size_t lane, std::shared_ptr<Pulse> pulse, std::function<void()> work) {
    auto over = std::make_shared<std::atomic<bool>>(false);
    std::thread thread([work = std::move(work), over, bell = bell_] {
        work();
        const std::lock_guard lock(bell->mutex);
        *over = true;
        bell->rings.notify_all();
    });
    const std::lock_guard lock(bell_->mutex);
    lanes_.push_back({lane, std::move(pulse), std::move(thread), false, std::move(over)});
    if (!watch_.joinable()) watch_ = std::thread([this] { watch(); });
}

void LaneThreads::watch() {
    const auto pause = std::chrono::duration<double>(std::clamp(patience_s_ / 8, 1e-3, 0.25));
    std::unique_lock lock(bell_->mutex);
    while (!stop_) {
        bell_->rings.wait_for(lock, pause);
        for (Lane& lane : lanes_) {
            if (*lane.over || lane.left || !lane.pulse->give_up_after(patience_s_)) continue;
            left_(lane.number);
            lane.left = true;
            bell_->rings.notify_all();
        }
    }
}

void LaneThreads::wait() {
    {
        std::unique_lock lock(bell_->mutex);
        bell_->rings.wait(lock, [&] { return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.left || *lane.over; }); });
        stop_ = true;
        bell_->rings.notify_all();
    }
    if (watch_.joinable()) watch_.join();
    for (Lane& lane : lanes_) {
        if (lane.left) lane.thread.detach();
        else lane.thread.join();
    }
    lanes_.clear();
}

}  // namespace trifold::tridiagonal::split
