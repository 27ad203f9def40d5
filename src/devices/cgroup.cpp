// SPDX-License-Identifier: BSD-3-Clause
#include "devices/cgroup.hpp"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string_view>
#include <vector>

namespace trifold::devices {
namespace {

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Folders of this process's group and of those above it, for version 2 (controller empty) or a version 1 controller.
/// Inside a container the path of the host's group may not exist below the mount: its root then is the group.
std::vector<std::string> folders(const std::string& self, const std::string& root, std::string_view controller) {
    std::vector<std::string> found;
    std::istringstream lines(self);
    for (std::string line; std::getline(lines, line);) {
        const auto first = line.find(':');
        const auto second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::istringstream names(line.substr(first + 1, second - first - 1));
        bool listed = controller.empty() && second == first + 1;
        for (std::string name; std::getline(names, name, ',');) listed |= name == controller;
        if (!listed) continue;
        const std::string base = controller.empty() ? root : root + "/" + std::string(controller);
        for (std::string path = line.substr(second + 1); path.size() > 1; path.resize(path.rfind('/'))) {
            if (path.front() != '/') break;
            found.push_back(base + path);
        }
        found.push_back(base);
    }
    return found;
}

bool number(const std::string& text, std::int64_t& value) {
    char* end = nullptr;
    value = std::strtoll(text.c_str(), &end, 10);
    return end != text.c_str();
}

}  // namespace

int cgroup_quota_cores(const std::string& self, const std::string& root) {
    std::int64_t least = 0;
    auto tighten = [&](std::int64_t quota, std::int64_t period) {
        if (quota <= 0 || period <= 0) return;
        const std::int64_t cores = quota / period + (quota % period != 0);
        if (least == 0 || cores < least) least = cores;
    };
    std::int64_t quota = 0, period = 0;
    for (const auto& folder : folders(self, root, "")) {
        std::istringstream text(text_of(folder + "/cpu.max"));
        std::string first, second;
        if (text >> first >> second && number(first, quota) && number(second, period)) tighten(quota, period);
    }
    for (const auto& folder : folders(self, root, "cpu"))
        if (number(text_of(folder + "/cpu.cfs_quota_us"), quota) && number(text_of(folder + "/cpu.cfs_period_us"), period))
            tighten(quota, period);
    return least > std::numeric_limits<int>::max() ? 0 : static_cast<int>(least);
}

int cgroup_quota_cores() {
    return cgroup_quota_cores(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
}

}  // namespace trifold::devices
