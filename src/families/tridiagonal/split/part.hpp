// SPDX-License-Identifier: BSD-3-Clause
// What takes part in a split solve, and how a test makes it fail.
#pragma once

#include <cstdint>
#include <string>

#include "base/failure.hpp"
#include "devices/runtime.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal::split {

/// One device. `runtime` null: it works in the host's memory.
struct Part {
    std::string name;
    const Ops* ops = nullptr;
    const devices::Runtime* runtime = nullptr;
    int number = 0;
};

/// Trouble on purpose, for tests: the call with this number (counted from 1 over all that a lane asks of its device) fails; every chunk
/// takes `slower` times as long.
struct Trouble {
    std::int64_t fail_at = 0;
    double slower = 1;
};

/// Counts the calls of one lane and lets one fail.
class Calls {
public:
    explicit Calls(const Trouble& trouble) : trouble_(trouble) {}
    std::int64_t made() const noexcept { return made_; }

    template <class Call>
    bool operator()(Failure& failure, Call call) {
        if (++made_ == trouble_.fail_at) return failure.say(ErrorCode::device_unavailable, "a call that was made to fail");
        return call();
    }

private:
    Trouble trouble_;
    std::int64_t made_ = 0;
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
