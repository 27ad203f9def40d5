// SPDX-License-Identifier: BSD-3-Clause
// A device and its cells of the grid device × family, declared as data.
#pragma once

#include <span>
#include <string>

#include "devices/runtime.hpp"

namespace trifold {

enum class CellKind : unsigned char { native, delegated, absent };

struct Cell {
    const char* family;             ///< a name of families.def
    CellKind kind = CellKind::absent;
    const void* ops = nullptr;      ///< native: the family's table, e.g. tridiagonal::Ops
    const char* note = "";          ///< delegated: the device that computes; absent: why; native: what it leaves to others
};

struct Device {
    const char* name;
    std::string (*description)(const Device& device);   ///< what there is on this machine, one line
    bool modelled = false;
    /// nullptr where the device can be used on this machine; else why not, and how to get it.
    const char* (*unavailable)(const Device& device) = nullptr;
    std::span<const Cell> cells;
    int number = 0;                            ///< of several of a kind: name:number
    const devices::Runtime* runtime = nullptr; ///< of a device with memory of its own; nullptr = it works in the host's
    std::span<const Device* const> parts = {}; ///< of several named at once; its own cells then say who computes what is not split
};

inline const char* why_unavailable(const Device& device) { return device.unavailable ? device.unavailable(device) : nullptr; }

}  // namespace trifold
