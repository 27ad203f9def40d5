// SPDX-License-Identifier: BSD-3-Clause
#include "devices/context_state.hpp"

#include <algorithm>
#include <chrono>
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

Context::State::~State() {
    if (errands.any_runs()) log("waiting for devices that are being made ready");
    errands.wait();
    try {
        keep_rates(true);
    } catch (...) {  // learnt again
    }
}

const devices::Topology& Context::State::topology() {
    return devices::read_topology();
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
        else if (!why.empty()) log("profile " + file + " ignored: " + why + " (trifold devices --measure writes it anew)");
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

std::optional<devices::Profile> Context::State::device_profile(const std::string& device, const std::string& identity) {
    const std::string folder = devices::profile_folder(profile_path);
    if (folder.empty()) return std::nullopt;
    const std::string machine = devices::fingerprint(topology()), file = devices::profile_file(folder, machine + ", " + device, "device");
    std::string why;
    std::optional<devices::Profile> kept = devices::load_profile(file, machine + ", " + device + ": " + identity, why, "board or driver");
    if (!why.empty()) log("profile of '" + device + "', " + file + ", ignored: " + why + " (trifold devices --measure writes it anew)");
    return kept;
}

void Context::State::keep_device_profile(const std::string& device, const std::string& identity, devices::Profile profile) {
    const std::string folder = devices::profile_folder(profile_path);
    if (folder.empty()) return;
    const std::string machine = devices::fingerprint(topology()), file = devices::profile_file(folder, machine + ", " + device, "device");
    profile.machine = machine + ", " + device + ": " + identity;
    std::string why;
    if (devices::save_profile(profile, file, why)) log("profile of '" + device + "' measured and kept in " + file);
    else log("profile of '" + device + "', " + file + ", cannot be written: " + why);
}

void Context::State::leave_behind(const std::string& device) {
    {
        const std::lock_guard lock(devices_mutex_);
        left_behind_.insert(device);
    }
    standings.clear();
}

bool Context::State::left_behind(const std::string& device) const {
    const std::lock_guard lock(devices_mutex_);
    return left_behind_.count(device) > 0;
}

devices::Rates& Context::State::rates() {
    std::call_once(rates_once_, [this] {
        const std::string folder = devices::profile_folder(profile_path);
        if (folder.empty()) return;
        rates_machine_ = devices::fingerprint(topology());
        rates_file_ = devices::profile_file(folder, rates_machine_, "rates");
        if (const std::string why = rates_.load(rates_file_, rates_machine_); !why.empty()) log("what was learnt of devices, " + rates_file_ + ", ignored: " + why);
    });
    return rates_;
}

void Context::State::identify(const std::string& device, const std::string& what) {
    const std::string was = rates().identify(device, what);
    if (!was.empty()) log("what was learnt of '" + device + "' is forgotten: it was " + was + ", and is " + what);
}

void Context::State::keep_rates(bool at_once) {
    if (rates_file_.empty()) return;
    using Ticks = std::chrono::steady_clock::duration;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count(), least = Ticks(std::chrono::seconds(1)).count(), most = Ticks(std::chrono::minutes(1)).count();
    auto last = rates_kept_.load();
    if (!at_once && last != 0 && now - last < rates_pause_.load()) return;
    if (!rates_.changed() || !rates_kept_.compare_exchange_strong(last, now)) return;
    rates_pause_.store(std::clamp(2 * rates_pause_.load(), least, most));
    if (std::string why; !rates_.save(rates_file_, rates_machine_, why)) log("what was learnt of devices cannot be kept in " + rates_file_ + ": " + why);
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
