// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/machine.hpp"

#include <sys/utsname.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "base/available_memory.hpp"
#include "base/utc.hpp"
#include "devices/stream.hpp"
#include "devices/threads.hpp"
#include "devices/topology.hpp"
#include "trifold/version.hpp"

extern "C" char* openblas_get_corename();
extern "C" char* openblas_get_config();

namespace trifold::bench {
namespace {

/// First line that a command prints; empty where it fails.
std::string output_of(const char* command) {
    std::FILE* pipe = popen(command, "r");
    if (!pipe) return {};
    char line[256] = "";
    if (!std::fgets(line, sizeof line, pipe)) line[0] = '\0';
    std::string out(pclose(pipe) == 0 ? line : "");
    while (!out.empty() && std::isspace(static_cast<unsigned char>(out.back()))) out.pop_back();
    return out;
}

std::string commit() {
    const std::string hash = output_of("git rev-parse --short=12 HEAD 2>/dev/null");
    if (hash.empty()) return "unknown";
    return hash + (output_of("git status --porcelain --untracked-files=no 2>/dev/null").empty() ? "" : " with changes");
}

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
            {"blas", std::string(openblas_get_config()) + ", core " + openblas_get_corename()},
            {"version", TRIFOLD_VERSION},
            {"commit", commit()},
            {"date", utc_now("%Y-%m-%dT%H:%M:%SZ")}};
}

double load_average() {
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace trifold::bench
