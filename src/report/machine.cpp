// SPDX-License-Identifier: BSD-3-Clause
#include "report/machine.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "devices/threads.hpp"
#include "trifold/version.hpp"

namespace trifold::report {

static std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("model name") && !line.starts_with("Model")) continue;
        const std::size_t colon = line.find(": ");
        if (colon != std::string::npos) return line.substr(colon + 2);
    }
    return "unknown";
}

static std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "g++ " __VERSION__;
#else
    return "unknown";
#endif
}

Machine this_machine(const std::string& commit) {
    Machine machine;
    machine.cpu = cpu_model();
    machine.cores = devices::usable_cores();
    machine.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    utsname system{};
    if (uname(&system) == 0) machine.system = std::string(system.sysname) + " " + system.release + " " + system.machine;
    machine.compiler = compiler();
    machine.version = TRIFOLD_VERSION;
    machine.commit = commit;
    return machine;
}

std::int64_t peak_bytes() {
    rusage usage{};
    return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::int64_t>(usage.ru_maxrss) * 1024 : 0;
}

}  // namespace trifold::report
