// SPDX-License-Identifier: BSD-3-Clause
// What a Context owns. Threads may share one: every member either is constant or guards itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device_arena.hpp"
#include "devices/errands.hpp"
#include "devices/profile.hpp"
#include "devices/rates.hpp"
#include "devices/scratch.hpp"
#include "devices/standing.hpp"
#include "devices/stream_kit.hpp"
#include "devices/topology.hpp"
#include "trifold/context.hpp"

namespace trifold {

struct Context::State {
    explicit State(ContextOptions options);
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    const int threads;              ///< at least 1
    const std::string profile_path; ///< as in ContextOptions
    devices::ScratchArena scratch;
    devices::StreamKits kits;
    devices::Standings standings;
    devices::Errands errands;  ///< use what is above; the Context waits for them before all else

    /// What was learnt of devices side by side, read from the file of this machine on first use.
    devices::Rates& rates();

    /// As Rates::identify, and logged.
    void identify(const std::string& device, const std::string& what);

    /// Back to the file, where it has changed: after a second, two, four, … once a minute in the end, and when the Context ends.
    void keep_rates(bool at_once = false);

    /// Devices whose drivers have not returned from a call: this Context asks them for nothing any more.
    void leave_behind(const std::string& device);
    bool left_behind(const std::string& device) const;

    /// Memory kept on a device that has its own; `name` is unique to it.
    devices::DeviceArena& device_memory(const devices::Runtime& runtime, int device, const char* name);

    /// Read on first use.
    const devices::Topology& topology();

    /// The best that is known without measuring: what this Context measured, else the file kept for this machine, else
    /// defaults. The first call may read a file and the topology (milliseconds); the reference stays good.
    const devices::Profile& profile();

    /// As above, but reads nothing: for work that is over sooner than a file is read.
    const devices::Profile& profile_at_hand() noexcept { return *current_.load(std::memory_order_acquire); }

    /// Makes a new measurement current and keeps it on disk (unless profiles are off; a failure to write is logged).
    const devices::Profile& adopt_profile(devices::Profile profile);

    /// What was measured of a device with memory of its own, and kept (of the bandwidth only: threads of the host have no part in it). Nothing where it never was, and, logged, where its file
    /// is corrupt, of another version, or of another board or driver under that name. `identity`: what identity_of makes of its description.
    std::optional<devices::Profile> device_profile(const std::string& device, const std::string& identity);

    /// Keeps it on disk (unless profiles are off; a failure to write is logged).
    void keep_device_profile(const std::string& device, const std::string& identity, devices::Profile profile);

    /// Held while a profile is measured, so that two threads do not disturb each other's figures.
    std::mutex measuring;

    bool has_log() const noexcept { return static_cast<bool>(sink_); }

    /// One line to the user's sink, one thread at a time; a sink that throws does not disturb the solve.
    void log(std::string_view line) noexcept;

private:
    explicit State(ContextOptions& options, std::string note);

    std::function<void(std::string_view)> sink_;
    mutable std::mutex log_mutex_, devices_mutex_;
    std::set<std::string> left_behind_;  // under devices_mutex_
    std::map<std::string, devices::DeviceArena, std::less<>> devices_;
    std::once_flag profile_once_, rates_once_;
    devices::Rates rates_;
    std::string rates_file_, rates_machine_;  // empty: not kept
    std::atomic<std::int64_t> rates_kept_{0}, rates_pause_{0};  // ticks of the steady clock
    std::mutex profiles_mutex_;
    std::vector<std::unique_ptr<const devices::Profile>> profiles_;  // all ever current: references into them stay good
    std::atomic<const devices::Profile*> current_;

    const devices::Profile& make_current(devices::Profile profile);
};

}  // namespace trifold
