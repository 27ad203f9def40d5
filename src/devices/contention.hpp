// SPDX-License-Identifier: BSD-3-Clause
// How fast devices are that work side by side on one problem in the host's memory: a model of what they share. Values in,
// values out; who measures them, or reads them from a paper, is not its business. docs/algorithms/split_model.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trifold/plan.hpp"

namespace trifold::devices {

/// One device. Rows of a second, bytes of a row.
struct SideBySide {
    std::string name;
    double rows_per_s = 0;                             ///< its kernels alone, data where they compute
    double to_bytes_per_s = 0, from_bytes_per_s = 0;   ///< its link alone; 0 = it works in the host's memory
    bool both_ways = true;                             ///< the link's directions at the same time
    double bytes_to = 0, bytes_from = 0;               ///< over the link
    double host_bytes = 0;                             ///< through the host's memory
    int turn = 0;                                      ///< where that is short: smaller ones are served first, equal ones in proportion
    double start_s = 0;                                ///< before its first rows are under way
    double watts = 0, idle_watts = 0;                  ///< kernels running, and not

    /// Rows per second with nobody else: the slowest of kernels, link and its bytes through memory of `host_bytes_per_s`.
    double alone(double host_bytes_per_s) const noexcept;
};

struct Machine {
    double host_bytes_per_s = 0;  ///< of its memory, whoever asks
    double base_watts = 0;        ///< whatever works
    std::vector<SideBySide> devices;
};

inline constexpr int most_devices = 16;  ///< of a machine: subsets are tried one by one

struct Combination {
    std::uint32_t members = 0;        ///< bit k: devices[k] takes part
    std::vector<double> rows_per_s;   ///< of every device, others running; 0 = not a member
    std::vector<double> rows;         ///< that each gets, so that all end at once
    double total_rows_per_s = 0;      ///< sum of rows_per_s
    double seconds = 0, joules = 0;   ///< for all rows

    double cost(Objective objective) const noexcept;
};

/// The members on `rows` rows. Throws Error(usage) where the machine makes no sense: no member, no rate, more than most_devices.
Combination together(const Machine& machine, std::uint32_t members, double rows);

/// The subset of least cost. Of those within one per cent of the least, the one with the fewest devices: who does not help is left out.
Combination best(const Machine& machine, double rows, Objective objective);

}  // namespace trifold::devices
