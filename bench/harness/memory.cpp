// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/memory.hpp"

#include <cstdio>
#include <cstring>

namespace trifold::bench {

static std::size_t status_field(const char* name) {
    std::FILE* file = std::fopen("/proc/self/status", "re");
    if (!file) return 0;
    char line[256];
    unsigned long long kilobytes = 0;
    while (std::fgets(line, sizeof line, file))
        if (std::strncmp(line, name, std::strlen(name)) == 0 && std::sscanf(line + std::strlen(name), ": %llu", &kilobytes) == 1) break;
    std::fclose(file);
    return static_cast<std::size_t>(kilobytes) * 1024;
}

std::size_t resident_bytes() { return status_field("VmRSS"); }
std::size_t peak_bytes() { return status_field("VmHWM"); }

bool reset_peak() {
    std::FILE* file = std::fopen("/proc/self/clear_refs", "we");
    if (!file) return false;
    const bool written = std::fputs("5", file) >= 0;
    return std::fclose(file) == 0 && written;
}

}  // namespace trifold::bench
