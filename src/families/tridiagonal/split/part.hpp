// SPDX-License-Identifier: BSD-3-Clause
// What takes part in a split solve, and how a test makes it fail.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/failure.hpp"
#include "devices/runtime.hpp"
#include "families/tridiagonal/ops.hpp"
#include "families/tridiagonal/split/board.hpp"
#include "families/tridiagonal/split/watch.hpp"

namespace trifold::tridiagonal::split {

/// One device. `runtime` null: it works in the host's memory.
struct Part {
    std::string name;
    const Ops* ops = nullptr;
    const devices::Runtime* runtime = nullptr;
    int number = 0;
};

/// Trouble on purpose, for tests: the call with this number (counted from 1 over all that a lane asks of its device) fails, and where
/// `lasting` all after it; every chunk takes `slower` times as long; before the call with that number the driver sleeps.
struct Trouble {
    std::int64_t fail_at = 0;
    double slower = 1;
    std::int64_t sleep_at = 0;
    double sleep_s = 0;
    bool lasting = false;
    std::shared_ptr<std::atomic<int>> failed = nullptr;  ///< counts the calls that were made to fail
};

/// Whether a device is ready: asked so many seconds before it answers that it is not yet, and how long others wait for it who have nothing else to do; null: it is.
struct Readiness {
    enum class Answer { yes, not_yet, never };
    std::function<Answer(double)> now;
    double most_wait_s = 0;
};

inline constexpr const char *not_ready = "its programs are being compiled", *not_returned = "a call to it has not returned";

/// The calls of one lane: counted, watched, and made to fail by tests.
class Calls {
public:
    /// pulse: null where nobody watches. ready: null where the device is.
    Calls(const Trouble& trouble, std::shared_ptr<Pulse> pulse, Readiness ready = {}) : trouble_(trouble), pulse_(std::move(pulse)), ready_(std::move(ready)) {}

    /// Before the first call, and with rows that nobody else takes meanwhile, so that a solve of some milliseconds is not over before a device is ready that soon will be. False: it is not, others have nothing else
    /// to do but to wait for it, and that took a while; or it never will be, and there may be nobody else.
    bool begin(Failure& failure, Board& board, int lane) const {
        if (!ready_.now) return true;
        constexpr double slice_s = 0.01;
        const auto start = std::chrono::steady_clock::now();
        const std::chrono::duration<double> most(ready_.most_wait_s);
        board.late(lane, true);
        auto answer = ready_.now(slice_s);
        while (answer == Readiness::Answer::not_yet && (std::chrono::steady_clock::now() - start < most || !board.waits_for_late())) answer = ready_.now(slice_s);
        board.late(lane, false);
        return answer == Readiness::Answer::yes || failure.say(ErrorCode::device_unavailable, answer == Readiness::Answer::never ? not_returned : not_ready);
    }
    bool may_be_late() const noexcept { return static_cast<bool>(ready_.now); }

    template <class Call>
    bool operator()(Failure& failure, Call call) {
        const std::int64_t number = ++*made_;
        if (number == trouble_.fail_at || (trouble_.lasting && number > trouble_.fail_at)) {
            if (trouble_.failed) ++*trouble_.failed;
            return failure.say(ErrorCode::device_unavailable, "a call that was made to fail");
        }
        bool good = false;
        watched([&] {
            if (number == trouble_.sleep_at) std::this_thread::sleep_for(std::chrono::duration<double>(trouble_.sleep_s));
            good = call();
        });
        return good;
    }

    /// Not counted. On the lane's own thread only.
    template <class Call>
    void watched(Call call) {
        if (pulse_) pulse_->enter();
        try {
            call();
        } catch (...) {
            if (pulse_) pulse_->leave();
            throw;
        }
        if (pulse_) pulse_->leave();
    }

private:
    Trouble trouble_;
    std::shared_ptr<Pulse> pulse_;
    Readiness ready_;
    std::shared_ptr<std::atomic<std::int64_t>> made_ = std::make_shared<std::atomic<std::int64_t>>(0);  // by all threads of the host's own lane
};

/// Rows first … first+rows-1 of one system (levels == 0) as a system of their own: what couples them to others is not read.
inline System slice(const System& system, std::int64_t first, std::int64_t rows) {
    System out = system;
    out.rows = rows;
    const auto size = static_cast<std::int64_t>(size_of(system.dtype));
    for (Operand* operand : {&out.lower, &out.diag, &out.upper, &out.rhs, &out.x})
        if (operand->kind == Operand::Kind::view) operand->data = static_cast<char*>(operand->data) + first * operand->row_stride * size;
    return out;
}

}  // namespace trifold::tridiagonal::split
