// SPDX-License-Identifier: BSD-3-Clause
// What a Context owns. Threads may share one: every member either is constant or guards itself.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "devices/scratch.hpp"
#include "devices/topology.hpp"
#include "trifold/context.hpp"

namespace trifold {

struct Context::State {
    explicit State(ContextOptions options);
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    const int threads;              ///< at least 1
    const std::string profile_path; ///< as in ContextOptions
    devices::ScratchArena scratch;

    /// Read on first use.
    const devices::Topology& topology();

    bool has_log() const noexcept { return static_cast<bool>(sink_); }

    /// One line to the user's sink, one thread at a time; a sink that throws does not disturb the solve.
    void log(std::string_view line) noexcept;

private:
    explicit State(ContextOptions& options, std::string note);

    std::function<void(std::string_view)> sink_;
    std::mutex log_mutex_;
    std::once_flag topology_once_;
    devices::Topology topology_;
};

}  // namespace trifold
