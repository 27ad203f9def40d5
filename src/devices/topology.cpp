// SPDX-License-Identifier: BSD-3-Clause
#include "devices/topology.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>

namespace trifold::devices {
namespace {

struct Destroy {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

int count(hwloc_topology_t topology, hwloc_obj_type_t type) { return std::max(0, hwloc_get_nbobjs_by_type(topology, type)); }

void cache(hwloc_topology_t topology, hwloc_obj_type_t type, std::size_t& bytes, int& instances) {
    instances = count(topology, type);
    if (instances > 0) bytes = hwloc_get_obj_by_type(topology, type, 0)->attr->cache.size;
}

/// Value of the first line "key : value" of /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line) && !line.empty();) {
        const auto colon = line.find(':');
        if (colon == std::string::npos) continue;
        const auto end = line.find_last_not_of(" \t", colon - 1);
        if (line.substr(0, end + 1) == key && colon + 2 < line.size()) return line.substr(colon + 2);
    }
    return {};
}

Topology look(bool ask_processors) {
    Topology out;
    out.model = cpuinfo("model name");
    const std::string family = cpuinfo("cpu family");
    if (!family.empty()) out.stepping = family + "/" + cpuinfo("model") + "/" + cpuinfo("stepping");

    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) out.memory = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);

    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return out;
    const Handle topology(raw);
    hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
    // hwloc asks every processor by moving this thread there, which waits where others work; the system knows the same.
    if (!ask_processors) hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    if (hwloc_topology_load(raw) != 0) return out;

    out.packages = std::max(1, count(raw, HWLOC_OBJ_PACKAGE));
    out.hardware_threads = std::max(1, count(raw, HWLOC_OBJ_PU));
    const int cores = count(raw, HWLOC_OBJ_CORE);
    out.cores = cores > 0 ? cores : out.hardware_threads;
    out.numa_nodes = std::max(1, count(raw, HWLOC_OBJ_NUMANODE));
    int l1_instances = 0;
    cache(raw, HWLOC_OBJ_L1CACHE, out.l1d, l1_instances);
    cache(raw, HWLOC_OBJ_L2CACHE, out.l2, out.l2_instances);
    cache(raw, HWLOC_OBJ_L3CACHE, out.l3, out.l3_instances);
    if (out.model.empty()) {
        const hwloc_obj_t package = hwloc_get_obj_by_type(raw, HWLOC_OBJ_PACKAGE, 0);
        const char* model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : nullptr;
        out.model = model ? model : "processor";
    }
    return out;
}

}  // namespace

const Topology& read_topology() {
    static const Topology topology = [] {
        const Topology told = look(false);
        return told.l2 > 0 ? told : look(true);
    }();
    return topology;
}

std::string fingerprint(const Topology& t) {
    return t.model + " " + t.stepping + ", " + std::to_string(t.cores) + " cores, " + std::to_string(t.hardware_threads) +
           " threads, " + std::to_string(t.numa_nodes) + " NUMA, L2 " + std::to_string(t.l2) + ", L3 " + std::to_string(t.l3) + "x" +
           std::to_string(t.l3_instances);
}

}  // namespace trifold::devices
