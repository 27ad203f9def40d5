// SPDX-License-Identifier: BSD-3-Clause
// What takes part in a split solve, and how a test makes it fail.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/failure.hpp"
#include "devices/runtime.hpp"
#include "families/tridiagonal/ops.hpp"
#include "families/tridiagonal/split/watch.hpp"

namespace trifold::tridiagonal::split {

/// One device. `runtime` null: it works in the host's memory.
struct Part {
    std::string name;
    const Ops* ops = nullptr;
    const devices::Runtime* runtime = nullptr;
    int number = 0;
};

/// Trouble on purpose, for tests: the call with this number (counted from 1 over all that a lane asks of its device) fails; every chunk
/// takes `slower` times as long; before the call with that number the driver sleeps.
struct Trouble {
    std::int64_t fail_at = 0;
    double slower = 1;
    std::int64_t sleep_at = 0;
    double sleep_s = 0;
};

/// The calls of one lane: counted, watched, and made to fail by tests.
class Calls {
public:
    /// pulse: null where nobody watches.
    Calls(const Trouble& trouble, std::shared_ptr<Pulse> pulse) : trouble_(trouble), pulse_(std::move(pulse)) {}

    template <class Call>
    bool operator()(Failure& failure, Call call) {
        const std::int64_t number = ++*made_;
        if (number == trouble_.fail_at) return failure.say(ErrorCode::device_unavailable, "a call that was made to fail");
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
