// SPDX-License-Identifier: BSD-3-Clause
#include "backends/toy/cells.hpp"
#include "families/device.hpp"

namespace trifold {

const Device& toy_device() {
    static const Cell cells[] = {{"tridiagonal", CellKind::native, &toy::tridiagonal_ops(), "Thomas only"},
                                 {"diagonal", CellKind::native, &toy::diagonal_ops(), ""}};
    static const Device device{"toy", [](const Device&) { return std::string("one thread, to prove that a device is a folder"); }, false, nullptr, cells};
    return device;
}

}  // namespace trifold
