// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/machine.hpp"

#include <sys/utsname.h>

#include <cctype>
#include <cstdlib>

#include "base/available_memory.hpp"
#include "base/utc.hpp"
#include "devices/stream.hpp"
#include "devices/threads.hpp"
#include "devices/topology.hpp"
#include "trifold/version.hpp"
#include "trifold_commit.hpp"

// Weak: a bundle for another machine may have the reference BLAS instead.
extern "C" __attribute__((weak)) char* openblas_get_corename();
extern "C" __attribute__((weak)) char* openblas_get_config();

namespace trifold::bench {
namespace {

/// Of the sources this program was built from, wherever it runs.
std::string commit() { return *TRIFOLD_COMMIT ? TRIFOLD_COMMIT : "unknown"; }

std::string bytes(std::size_t count) { return bytes_text(static_cast<double>(count)); }

}  // namespace

std::string machine_slug() {
    const devices::Topology topology = devices::read_topology();
    std::string slug;
    for (const char c : topology.model) {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u)) slug += static_cast<char>(std::tolower(u));
        else if (!slug.empty() && slug.back() != '-') slug += '-';
        if (slug.size() > 40) break;
    }
    while (!slug.empty() && slug.back() == '-') slug.pop_back();
    return slug + "-" + std::to_string(topology.cores) + "c";
}

std::vector<std::pair<std::string, std::string>> machine_facts() {
    const devices::Topology t = devices::read_topology();
    utsname system{};
    uname(&system);
    return {{"cpu", t.model},
            {"family_model_stepping", t.stepping},
            {"cores", std::to_string(t.cores)},
            {"usable_threads", std::to_string(devices::usable_cores())},
            {"numa_nodes", std::to_string(t.numa_nodes)},
            {"l1d", bytes(t.l1d)},
            {"l2", bytes(t.l2)},
            {"l3", bytes(t.l3) + " x " + std::to_string(t.l3_instances)},
            {"memory", bytes(t.memory)},
            {"simd", devices::simd_target()},
            {"kernel", std::string(system.sysname) + " " + system.release},
            {"compiler", TRIFOLD_BENCH_COMPILER},
            {"blas", openblas_get_config ? std::string(openblas_get_config()) + ", core " + openblas_get_corename() : "reference BLAS"},
            {"version", TRIFOLD_VERSION},
            {"commit", commit()},
            {"date", utc_now("%Y-%m-%dT%H:%M:%SZ")}};
}

double load_average() {
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace trifold::bench
