// SPDX-License-Identifier: BSD-3-Clause
// What was measured on this machine: bandwidth by footprint and threads, and the pace of algorithms in cache. A profile is a
// value; predictions read it, nothing in a solve waits for one.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "devices/stream.hpp"
#include "devices/topology.hpp"

namespace trifold::devices {

/// Same-mix bandwidth (4 words read, 1 written, or 4 in place) of `threads` threads over `footprint` bytes.
struct Bandwidth {
    std::size_t footprint = 0;
    int threads = 1;
    Store store = Store::past_cache;
    double bytes_per_s = 0;
};

/// Pace of one algorithm. In cache a call of n rows on t threads works overhead_s + n (serial + (1 - serial) / t) / rows_per_s,
/// and team_s more where t > 1. Where moving the words takes m seconds and working on them w, both take
/// (m^overlap + w^overlap)^(1/overlap).
struct CellRate {
    double rows_per_s = 0;
    double overhead_s = 0;
    double team_s = 0;
    double serial = 0;   ///< share of the work that more threads do not shorten, 0 to 1
    double overlap = 4;  ///< 1 = one after the other; large = the longer hides the shorter; below 1 = they disturb each other
};

struct Profile {
    std::string date;     ///< "2025-01-31"; empty = built-in defaults
    std::string machine;  ///< fingerprint(topology)
    bool now = false;     ///< measured by this process, not read from a file
    std::vector<Bandwidth> bandwidth;
    std::map<std::string, CellRate, std::less<>> rates;  ///< by "family.algorithm.dtype"

    bool measured() const noexcept { return !date.empty(); }

    /// "measured now", "profile DATE" or "defaults".
    std::string source() const { return now ? "measured now" : measured() ? "profile " + date : "defaults"; }

    /// Bytes per second: interpolated between measured footprints on a logarithmic scale; between thread counts linearly.
    /// Never 0.
    double bandwidth_at(std::size_t footprint, int threads, Store store) const noexcept;

    /// Null where `key` was not measured.
    const CellRate* rate(std::string_view key) const noexcept;
};

/// Cautious figures for a machine that nobody has measured, from the sizes that sysconf knows.
Profile default_profile();

/// Bandwidth on 1 and `threads` threads, at half of the private cache and at half, all, 4 and 16 times the last level; the
/// points that matter most come first, and no new one is begun when `budget_s` is over. 16 times is left out where the machine
/// is slow to hand out fresh memory.
std::vector<Bandwidth> measure_bandwidth(const Topology& topology, int threads, double budget_s);

}  // namespace trifold::devices
