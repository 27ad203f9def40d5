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
};

}  // namespace trifold
