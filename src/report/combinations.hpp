// SPDX-License-Identifier: BSD-3-Clause
// Devices of a machine side by side, by the contention model, beside what is known of them: for people and as JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/record.hpp"

namespace trifold::report {

struct CombinationLine {
    std::vector<std::string> devices;
    std::vector<double> shares;  ///< of the rows, by device
    double rows_per_s = unknown, rows_per_joule = unknown;
    double known_rows_per_s = unknown, known_rows_per_joule = unknown;  ///< published or measured
};

struct MachineModel {
    std::string name, why;
    std::vector<std::pair<std::string, double>> kernel_ratio;  ///< seconds of a row in the device's own memory, the fastest 1
    std::vector<CombinationLine> lines;
    std::vector<std::pair<Objective, std::vector<std::string>>> best;
};

/// Of a partition of m rows: at(m) = per_row m + more.
struct Operations {
    std::string kernel, operation;
    double published[2] = {}, counted[2] = {};  ///< per row, more
};

struct MachineTable {
    std::string title;
    double rows = 0;
    std::vector<Operations> operations;
    std::vector<MachineModel> models;
};

/// A model explains what it is not further from.
inline constexpr double explained_within = 0.1;

/// Predicted over known, less one; NaN where nothing is known.
double deviation(double predicted, double known);

std::string text(const MachineTable& table);
std::string json(const MachineTable& table);  ///< schema trifold.machine_plan/1

}  // namespace trifold::report
