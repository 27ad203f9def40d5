// SPDX-License-Identifier: BSD-3-Clause
#include "families/device.hpp"

#include "backends/cpu/tridiagonal/cell.hpp"
#include "devices/stream.hpp"
#include "devices/topology.hpp"

namespace trifold {

static std::string describe(const Device&) {
    const devices::Topology& topology = devices::read_topology();
    return topology.model + ", " + std::to_string(topology.hardware_threads) + " hardware threads, vectors: " + devices::simd_target();
}

const Device& cpu_device() {
    static const Cell cells[] = {{"tridiagonal", CellKind::native, &cpu::cpu_ops(), "of periodic, ragged and accumulating systems those that need pivots are left to the reference, one by one; generators of others are tabulated"}};
    static const Device device{"cpu", describe, false, nullptr, cells};
    return device;
}

}  // namespace trifold
