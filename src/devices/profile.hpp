// SPDX-License-Identifier: BSD-3-Clause
// What was measured on this machine: bandwidth by footprint and threads, and the time of algorithms by rows and threads. A profile is a
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

/// One algorithm, on `rows` rows in all and `threads` threads: five arrays, x apart from rhs, a dominant matrix.
struct Timing {
    int threads = 1;
    double rows = 0;
    double seconds = 0;
};

struct Profile {
    std::string date;     ///< "2025-01-31"; empty = built-in defaults
    std::string machine;  ///< fingerprint(topology)
    bool now = false;     ///< measured by this process, not read from a file
    std::vector<Bandwidth> bandwidth;
    std::map<std::string, std::vector<Timing>, std::less<>> timings;  ///< by "device.algorithm.dtype", and more for batches

    bool measured() const noexcept { return !date.empty(); }

    /// "measured now", "profile DATE" or "defaults".
    std::string source() const { return now ? "measured now" : measured() ? "profile " + date : "defaults"; }

    /// Bytes per second: interpolated between measured footprints on a logarithmic scale; between thread counts linearly.
    /// Never 0.
    double bandwidth_at(std::size_t footprint, int threads, Store store) const noexcept;

    /// Null where `key` was not measured.
    const std::vector<Timing>* timings_of(std::string_view key) const noexcept;
};

/// Seconds for `rows` rows on `threads` threads: interpolated between the rows and the thread counts that were measured, all on
/// logarithmic scales, and in proportion to the rows beyond the most. `timings` has one element at least.
double seconds_for(const std::vector<Timing>& timings, double rows, int threads) noexcept;

/// The fewest and the most rows that were measured.
double least_rows(const std::vector<Timing>& timings) noexcept;
double most_rows(const std::vector<Timing>& timings) noexcept;

/// The fewest seconds per row on `threads` threads, or on the next fewer that were measured.
double least_per_row(const std::vector<Timing>& timings, int threads) noexcept;

/// Cautious figures for a machine that nobody has measured, from the sizes that sysconf knows.
Profile default_profile();

/// Bandwidth on 1 and `threads` threads, at half of the private cache and at half, all, 4 and 16 times the last level; the
/// points that matter most come first, and no new one is begun when `budget_s` is over. 16 times is left out where the machine
/// is slow to hand out fresh memory.
std::vector<Bandwidth> measure_bandwidth(const Topology& topology, int threads, double budget_s);

}  // namespace trifold::devices
