// SPDX-License-Identifier: BSD-3-Clause
#include "backends/reference/tridiagonal/ops.hpp"
#include "families/device.hpp"

namespace trifold {

const Device& reference_device() {
    static const Cell cells[] = {{"tridiagonal", CellKind::native, &tridiagonal::reference_ops(), ""}};
    static const Device device{"reference", [](const Device&) { return std::string("scalar oracle: the textbook, one thread"); }, false, nullptr, cells};
    return device;
}

}  // namespace trifold
