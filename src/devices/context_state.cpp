// SPDX-License-Identifier: BSD-3-Clause
#include "devices/context_state.hpp"

#include <cstdlib>
#include <tuple>
#include <utility>

#include "devices/profile_file.hpp"
#include "devices/threads.hpp"

namespace trifold {

Context::State::State(ContextOptions options) : State(options, std::string()) {}

// `note` is filled while `threads`, a constant, is initialised, and logged when the sink is there.
Context::State::State(ContextOptions& options, std::string note)
    : threads(devices::resolve_threads(options.threads, std::getenv("OMP_NUM_THREADS"), note))
    , profile_path(std::move(options.profile_path))
    , sink_(std::move(options.log)) {
    make_current(devices::default_profile());
    if (!note.empty()) log(note);
}

const devices::Topology& Context::State::topology() {
    std::call_once(topology_once_, [this] { topology_ = devices::read_topology(); });
    return topology_;
}

devices::DeviceArena& Context::State::device_memory(const devices::Runtime& runtime, int device, const char* name) {
    const std::lock_guard lock(devices_mutex_);
    const auto found = devices_.find(std::string_view(name));
    if (found != devices_.end()) return found->second;
    return devices_.emplace(std::piecewise_construct, std::forward_as_tuple(name), std::forward_as_tuple(runtime, device, name)).first->second;
}

const devices::Profile& Context::State::make_current(devices::Profile profile) {
    const std::lock_guard lock(profiles_mutex_);
    profiles_.push_back(std::make_unique<const devices::Profile>(std::move(profile)));
    current_.store(profiles_.back().get(), std::memory_order_release);
    return *profiles_.back();
}

const devices::Profile& Context::State::profile() {
    std::call_once(profile_once_, [this] {
        const std::string folder = devices::profile_folder(profile_path);
        if (folder.empty() || profile_at_hand().measured()) return;
        const std::string machine = devices::fingerprint(topology()), file = devices::profile_file(folder, machine);
        std::string why;
        if (auto kept = devices::load_profile(file, machine, why)) make_current(std::move(*kept));
        else if (!why.empty()) log("profile " + file + " ignored: " + why);
    });
    return profile_at_hand();
}

const devices::Profile& Context::State::adopt_profile(devices::Profile profile) {
    const devices::Profile& adopted = make_current(std::move(profile));
    const std::string folder = devices::profile_folder(profile_path);
    if (folder.empty()) return adopted;
    const std::string file = devices::profile_file(folder, adopted.machine);
    std::string why;
    if (devices::save_profile(adopted, file, why)) log("profile measured and kept in " + file);
    else log("profile " + file + " cannot be written: " + why);
    return adopted;
}

void Context::State::leave_behind(const std::string& device) {
    const std::lock_guard lock(devices_mutex_);
    left_behind_.insert(device);
}

bool Context::State::left_behind(const std::string& device) const {
    const std::lock_guard lock(devices_mutex_);
    return left_behind_.count(device) > 0;
}

devices::Rates& Context::State::rates() {
    std::call_once(rates_once_, [this] {
        const std::string folder = devices::profile_folder(profile_path);
        if (folder.empty()) return;
        const std::string machine = devices::fingerprint(topology());
        rates_.load(devices::profile_file(folder, machine, "rates"), machine);
    });
    return rates_;
}

void Context::State::keep_rates() {
    const std::string folder = devices::profile_folder(profile_path);
    if (folder.empty() || !rates_.changed()) return;
    const std::string machine = devices::fingerprint(topology()), file = devices::profile_file(folder, machine, "rates");
    if (std::string why; !rates_.save(file, machine, why)) log("rates " + file + " cannot be written: " + why);
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
