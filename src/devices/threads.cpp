// SPDX-License-Identifier: BSD-3-Clause
#include "devices/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "devices/cgroup.hpp"
#include "trifold/error.hpp"

namespace trifold::devices {

inline constexpr int most_threads = 4096;

static int affinity_cores() {
    // The mask must be as large as the kernel's, which may know of more processors than cpu_set_t holds.
    for (int bits = CPU_SETSIZE; bits <= CPU_SETSIZE * 64; bits *= 2) {
        cpu_set_t* set = CPU_ALLOC(bits);
        if (!set) break;
        const std::size_t bytes = CPU_ALLOC_SIZE(bits);
        const int failed = sched_getaffinity(0, bytes, set);
        const int count = failed ? 0 : CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (count > 0) return count;
        if (failed && errno != EINVAL) break;
    }
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int usable_cores() {
    const int cores = affinity_cores(), quota = cgroup_quota_cores();
    return quota > 0 ? std::min(cores, quota) : cores;
}

int threads_from_text(const char* text) noexcept {
    if (!text) return 0;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || value < 1 || value > most_threads) return 0;
    while (std::isspace(static_cast<unsigned char>(*end))) ++end;
    return *end == '\0' || *end == ',' ? static_cast<int>(value) : 0;
}

int resolve_threads(int asked, const char* environment, std::string& note) {
    if (asked < 0 || asked > most_threads)
        throw Error(ErrorCode::usage, "ContextOptions::threads", std::to_string(asked) + " threads",
                    "give 1 to " + std::to_string(most_threads) + ", or 0 for all usable cores");
    if (asked > 0) return asked;
    if (environment && *environment) {
        if (const int threads = threads_from_text(environment)) return threads;
        note = "OMP_NUM_THREADS='" + std::string(environment).substr(0, 64) + "' is no number of threads: ignored";
    }
    return usable_cores();
}

}  // namespace trifold::devices
