// SPDX-License-Identifier: BSD-3-Clause
// Which devices of this machine, and which sets of them, a suite goes through.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/registry.hpp"

namespace trifold::bench {

/// "cpu,cuda:0" as its names.
inline std::vector<std::string> names_in(const std::string& list) {
    std::vector<std::string> names;
    for (std::size_t at = 0; at < list.size();) {
        const std::size_t comma = std::min(list.find(',', at), list.size());
        names.push_back(list.substr(at, comma - at));
        at = comma + 1;
    }
    return names;
}

struct Sets {
    std::vector<std::string> names;  ///< as a Queue takes them; single ones first
    std::size_t singles = 0;
};

/// Those that were asked for, and every set of them; else the cpu, every other device that can be used, and the sets of them with the cpu: two drivers of one
/// board do not count as two devices then.
inline Sets sets_here(const std::string& wanted) {
    Sets sets;
    std::vector<std::string> boards;
    if (!wanted.empty()) {
        sets.names = names_in(wanted), sets.singles = sets.names.size();
        for (std::uint32_t members = 1; members < 1u << sets.singles; ++members) {
            std::string name;
            for (std::size_t k = 0; k < sets.singles; ++k)
                if (members >> k & 1) name += (name.empty() ? "" : ",") + sets.names[k];
            if (std::popcount(members) > 1) sets.names.push_back(name);
        }
        return sets;
    }
    sets.names = {"cpu"};
    bool cuda = false;
    for (const Device* device : registered_devices()) {
        const std::string name = device->name;
        if (name == "cpu" || name == "reference" || device->modelled || why_unavailable(*device)) continue;
        cuda = cuda || name.starts_with("cuda:");
        sets.names.push_back(name);
        if (device->runtime && !(cuda && name.starts_with("opencl:"))) boards.push_back(name);
    }
    // OpenCL shows boards that CUDA has, and the processors once more: there its record is another.
    if (cuda) std::erase_if(sets.names, [](const std::string& name) { return name.starts_with("opencl:"); });
    sets.singles = sets.names.size();
    for (std::size_t k = 1; k < sets.singles; ++k) sets.names.push_back("cpu," + sets.names[k]);
    for (std::uint32_t members = 1; members < 1u << boards.size(); ++members) {
        std::string name;
        int count = 0;
        for (std::size_t k = 0; k < boards.size(); ++k)
            if (members >> k & 1) name += (name.empty() ? "" : ",") + boards[k], ++count;
        if (count > 1) sets.names.push_back(name), sets.names.push_back("cpu," + name);
    }
    return sets;
}

}  // namespace trifold::bench
