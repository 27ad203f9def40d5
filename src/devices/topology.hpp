// SPDX-License-Identifier: BSD-3-Clause
// What the processor is made of, as hwloc sees it. Looking takes milliseconds: it is done on first use, and once.
#pragma once

#include <cstddef>
#include <string>

namespace trifold::devices {

struct Topology {
    std::string model;          ///< "AMD EPYC 9755 128-Core Processor"; "processor" where unknown
    std::string stepping;       ///< family, model and stepping as the system prints them; may be empty
    int packages = 1;
    int cores = 1;              ///< physical
    int hardware_threads = 1;   ///< logical processors that this process may use
    int numa_nodes = 1;
    std::size_t l1d = 0;        ///< bytes of one instance, data or unified; 0 = absent
    std::size_t l2 = 0;
    std::size_t l3 = 0;
    int l2_instances = 0;
    int l3_instances = 0;
    std::size_t memory = 0;     ///< bytes of the machine

    /// Bytes of the last level, all instances together.
    std::size_t last_level() const noexcept {
        if (l3) return l3 * static_cast<std::size_t>(l3_instances);
        if (l2) return l2 * static_cast<std::size_t>(l2_instances);
        return l1d * static_cast<std::size_t>(cores);
    }
};

const Topology& read_topology();

/// One line that tells this machine from another where measured rates are kept.
std::string fingerprint(const Topology& topology);

}  // namespace trifold::devices
