// SPDX-License-Identifier: BSD-3-Clause
#include "api/making_ready.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "backends/registry.hpp"
#include "base/aligned_buffer.hpp"
#include "base/keep_for_good.hpp"
#include "devices/context_state.hpp"

namespace trifold::tridiagonal {
namespace {

// Enough for the kernels of long systems.
constexpr std::int64_t most_rows = 1 << 17;

// Programs belong to the process, as drivers have them. Never given back: errands of Contexts that are static use it while a process ends.
class Ready {
public:
    bool is(const std::string& what) {
        const std::lock_guard lock(mutex_);
        return all_.count(what) > 0;
    }
    void now(const std::string& what) {
        const std::lock_guard lock(mutex_);
        all_.insert(what);
    }

private:
    std::mutex mutex_;
    std::set<std::string> all_;
};

Ready& ready() {
    static auto* const all = new Ready;
    return *all;
}

/// The first rows of a system in memory of their own.
struct Copy {
    System system;
    AlignedBuffer memory;

    Copy(const System& of, std::int64_t rows) : system(split::slice(of, 0, rows)) {
        const std::size_t size = size_of(of.dtype), array = (static_cast<std::size_t>(rows) * size + 255) / 256 * 256;
        memory = AlignedBuffer(5 * array);
        char* to = static_cast<char*>(memory.data());
        for (Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs}) {
            if (operand->kind == Operand::Kind::view) {
                const std::size_t skip = operand == &system.lower ? size : 0;  // of row 0 there may be none
                std::memset(to, 0, skip);
                std::memcpy(to + skip, static_cast<const char*>(operand->data) + skip, static_cast<std::size_t>(rows) * size - skip);
                operand->data = to;
            }
            to += array;
        }
        system.x.data = system.in_place ? system.rhs.data : to;
    }
};

}  // namespace

bool is_being_made_ready(const Context::State& state, const split::Part& part) { return state.errands.runs(part.name); }

split::Readiness::Answer readiness(const Context::State& state, const split::Part& part, double seconds) {
    using Answer = split::Readiness::Answer;
    if (!state.errands.wait_for(part.name, std::chrono::duration<double>(seconds))) return Answer::not_yet;
    return state.left_behind(part.name) ? Answer::never : Answer::yes;
}

bool make_ready(Context::State& state, const split::Part& part, const System& system, const split::Reach& reach, const Options& options) {
    const std::string what = part.name + (system.dtype == DType::f32 ? " f32" : " f64") + (reach.width == 0 ? " coupled" : "") + (system.in_place ? " in place" : "");
    if (!compiles_when_needed(part.name) || ready().is(what)) return true;
    const auto copy = std::make_shared<std::unique_ptr<Copy>>(std::make_unique<Copy>(system, std::min(most_rows, system.rows / 2)));
    const auto errand = [&state, part, what, copy, reach, patience_s = options.patience_s] {
        try {
            split::Setting setting;
            setting.parts = {&part, 1}, setting.host = &split_host_ops();
            setting.tolerance = unit_roundoff((*copy)->system.dtype);
            setting.reach = reach;
            setting.scratch = &state.scratch, setting.kits = &state.kits;
            if (patience_s > 0) setting.patience_s = patience_s;
            const split::Result result = split::solve((*copy)->system, setting);
            if (!result.left_behind.empty()) {
                keep_for_good(std::move(*copy));  // the driver may still read it
                state.leave_behind(part.name);
                if (part.runtime) state.kits.leave_behind(*part.runtime, part.number);
                return;
            }
        } catch (...) {
            // What it cannot do the solve itself meets, and says.
        }
        ready().now(what);
    };
    try {
        state.errands.start(part.name, errand);
    } catch (const std::system_error&) {
        return true;  // no thread: as if it were ready
    }
    return false;
}

}  // namespace trifold::tridiagonal
