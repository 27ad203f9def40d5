// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rates.hpp"

namespace trifold::devices {

double Rates::of(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const auto found = rates_.find(key);
    return found == rates_.end() ? 0 : found->second;
}

void Rates::saw(std::string_view key, double per_s) {
    if (!(per_s > 0)) return;
    const std::lock_guard lock(mutex_);
    const auto found = rates_.find(key);
    if (found == rates_.end()) rates_.emplace(key, per_s);
    else found->second = 2 / (1 / found->second + 1 / per_s);
}

}  // namespace trifold::devices
