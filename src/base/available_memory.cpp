// SPDX-License-Identifier: BSD-3-Clause
#include "base/available_memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <sstream>

#include "trifold/error.hpp"

namespace trifold {

static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

// The number in a file that holds one, or `unlimited` ("max", absent, unreadable).
static std::int64_t number_in(const std::string& path) {
    std::ifstream file(path);
    std::int64_t value = 0;
    return file >> value ? value : unlimited;
}

static std::int64_t field_of(const std::string& path, const std::string& field) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string name;
        std::int64_t value = 0;
        if (words >> name >> value && name == field) return value;
    }
    return unlimited;
}

static std::int64_t left_in(const std::string& folder, const char* limit_file, const char* usage_file,
                            const char* cache_field) {
    const std::int64_t limit = number_in(folder + limit_file), usage = number_in(folder + usage_file);
    if (limit == unlimited || usage == unlimited) return unlimited;
    // Usage counts the page cache, which gives way.
    std::int64_t cache = field_of(folder + "/memory.stat", cache_field);
    if (cache == unlimited) cache = 0;
    return std::max<std::int64_t>(0, limit - std::max<std::int64_t>(0, usage - cache));
}

// Limits hold for a group and for all groups around it.
static std::int64_t left_in_groups(const std::string& mount, std::string group, const char* limit_file,
                                   const char* usage_file, const char* cache_field) {
    std::int64_t least = unlimited;
    for (;;) {
        least = std::min(least, left_in(mount + group, limit_file, usage_file, cache_field));
        const std::size_t slash = group.rfind('/');
        if (group.empty() || slash == std::string::npos) return least;
        group.erase(slash);
    }
}

static std::int64_t left_in_control_group() {
    std::int64_t least = unlimited;
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        std::string group = line.substr(second + 1);
        if (group == "/") group.clear();
        if (controllers.empty())
            least = std::min(
                least, left_in_groups("/sys/fs/cgroup", group, "/memory.max", "/memory.current", "inactive_file"));
        else if (controllers.find("memory") != std::string::npos)
            least = std::min(least, left_in_groups("/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes",
                                                   "/memory.usage_in_bytes", "total_inactive_file"));
    }
    return least;
}

static std::int64_t left_in_address_space() {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
    std::int64_t pages = number_in("/proc/self/statm");
    if (pages == unlimited) pages = 0;
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE));
}

std::int64_t available_memory() {
    const std::int64_t kib = field_of("/proc/meminfo", "MemAvailable:");
    const std::int64_t machine = kib == unlimited ? unlimited : kib * 1024;
    return std::min({machine, left_in_control_group(), left_in_address_space()});
}

std::string bytes_text(double bytes) {
    static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 6) bytes /= 1024, ++unit;
    char text[64];
    std::snprintf(text, sizeof text, unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

void require_memory(const std::string& where, double bytes, const std::string& hint) {
    const std::int64_t available = available_memory();
    if (bytes <= static_cast<double>(available)) return;
    throw Error(ErrorCode::bad_input, where,
                "needs " + bytes_text(bytes) + " of memory, " + bytes_text(static_cast<double>(available)) +
                    " available",
                hint);
}

}  // namespace trifold
