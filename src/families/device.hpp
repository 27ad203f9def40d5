// SPDX-License-Identifier: BSD-3-Clause
// A device and its cells of the grid device × family, declared as data.
#pragma once

#include <span>
#include <string>

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
    std::string (*description)();   ///< what there is on this machine, one line
    bool modelled = false;
    /// nullptr where the device can be used on this machine; else why not.
    const char* (*unavailable)() = nullptr;
    std::span<const Cell> cells;
};

}  // namespace trifold
