// SPDX-License-Identifier: BSD-3-Clause
// The report of one solve, asked for through Options::report. Text and JSON forms: `trifold solve --json`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trifold/dtype.hpp"
#include "trifold/outcome.hpp"
#include "trifold/plan.hpp"

namespace trifold {

struct Roof {
    double bytes_per_s = 0;      ///< bandwidth of a stream with the same mix of reads and writes; 0 = not measured
    std::string source;          ///< "measured now", "profile DATE", or empty
    double needed_bytes = 0;     ///< each input read once, each output written once
    double fraction = 0;         ///< needed_bytes / solve_s / bytes_per_s
};

/// One thing that one device of a split solve did; seconds since the split began.
struct TraceEvent {
    int device = -1;             ///< index into Report::devices; -1 = the host
    int slot = 0;                ///< a device with memory of its own has several chunks under way: 0, 1, 2 …
    const char* phase = "";      ///< "stage", "to device", "kernel", "from device", "store", "join"
    std::int64_t first = 0, rows = 0;  ///< of the chunk
    double begin_s = 0, end_s = 0;
    double bytes = 0;            ///< over the link, or copied by the host; "kernel": those that the chunk needs
};

/// What one device did for a solve that was split over several, or streamed through one.
struct DeviceShare {
    std::string name;
    std::int64_t rows = 0;       ///< that it finished
    int chunks = 0;
    double busy_s = 0;           ///< seconds in which it had a chunk
    double bytes_to = 0, bytes_from = 0;  ///< over its link; 0 where it works in the host's memory
    double rows_per_s = 0;       ///< while it was busy and the others ran
    std::string state;           ///< empty: it took part; "left out: …"; "retired: …" (its chunks went to others)
};

struct Report {
    std::int64_t rows = 0, systems = 0;
    std::string layout;          ///< "contiguous", "interleaved", "strided", "ragged"
    DType dtype = DType::f64;
    Plan plan;
    Outcome outcome;
    double total_s = 0;          ///< wall seconds of the call
    double solve_s = 0;          ///< wall seconds of the kernels that gave the answer and of those tried before
    std::vector<std::pair<std::string, double>> phases;  ///< wall seconds, in the order in which they ran
    Roof roof;
    std::size_t workspace_bytes = 0;
    std::vector<DeviceShare> devices;  ///< of a solve that was split or streamed
    std::vector<TraceEvent> trace;     ///< the same, everything that was done, by device
};

}  // namespace trifold
