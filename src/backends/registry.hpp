// SPDX-License-Identifier: BSD-3-Clause
// The only place that walks the list of devices (backends.def).
#pragma once

#include <span>
#include <string_view>

#include "families/device.hpp"
#include "families/list.hpp"

namespace trifold {

/// All of them; asks the drivers of those that need one.
std::span<const Device* const> registered_devices();

/// Those that need no driver: nothing is loaded or asked.
std::span<const Device* const> host_devices() noexcept;

/// For device_at. Several devices are named with commas between them, or by `all`: the cpu and every device here with memory of its own (those of
/// OpenCL only where there is no other: they are the same boards). Throws Error(usage) with the nearest name where there is none of that name and Error(device_unavailable)
/// where it cannot be used here. Asks no driver but that device's.
int find_device(std::string_view name);

const Device& device_at(int index);

/// Its kernels are compiled when they are first needed, which may take many times as long as a solve.
bool compiles_when_needed(std::string_view device) noexcept;

/// The cell of a family, following delegation (at most one step); a cell that the device does not list is absent.
const Cell& find_cell(const Device& device, std::string_view family) noexcept;

}  // namespace trifold
