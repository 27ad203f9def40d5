// SPDX-License-Identifier: BSD-3-Clause
// The energy counter behind a device: RAPL for those that compute on the host's processors, NVML for NVIDIA's boards.
#pragma once

#include <optional>
#include <string>

#include "backends/registry.hpp"
#include "devices/rapl.hpp"

namespace trifold {

class EnergyCounter {
public:
    explicit EnergyCounter(const Device& device);

    const std::string& device() const noexcept { return name_; }
    bool host() const noexcept { return rapl_.has_value(); }  ///< one counter for all devices that compute there
    const std::string& source() const noexcept { return source_; }
    const std::string& why_not() const noexcept { return why_not_; }  ///< empty where it can be read

    /// Since some moment; NaN where it cannot be read.
    double joules();

private:
    std::string name_, source_, why_not_;
    std::optional<devices::Rapl> rapl_;
    std::string bus_;  // of a board that NVML counts for
};

}  // namespace trifold
