// SPDX-License-Identifier: BSD-3-Clause
#include "devices/context_state.hpp"

#include <cstdlib>
#include <utility>

#include "devices/threads.hpp"

namespace trifold {

Context::State::State(ContextOptions options) : State(options, std::string()) {}

// `note` is filled while `threads`, a constant, is initialised, and logged when the sink is there.
Context::State::State(ContextOptions& options, std::string note)
    : threads(devices::resolve_threads(options.threads, std::getenv("OMP_NUM_THREADS"), note))
    , profile_path(std::move(options.profile_path))
    , sink_(std::move(options.log)) {
    if (!note.empty()) log(note);
}

const devices::Topology& Context::State::topology() {
    std::call_once(topology_once_, [this] { topology_ = devices::read_topology(); });
    return topology_;
}

void Context::State::log(std::string_view line) noexcept {
    if (!sink_) return;
    const std::lock_guard lock(log_mutex_);
    try {
        sink_(line);
    } catch (...) {
    }
}

}  // namespace trifold
