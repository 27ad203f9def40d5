// SPDX-License-Identifier: BSD-3-Clause
// Thomas for systems that are plain views of doubles; everything else is refused, and the planner sends it elsewhere.
#include "backends/toy/cells.hpp"

namespace trifold::toy {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

const char* refuses(const System& system, Algorithm algorithm) {
    if (algorithm != Algorithm::thomas && algorithm != Algorithm::automatic) return "the toy has Thomas only";
    if (system.dtype != DType::f64) return "the toy has FP64 only";
    if (system.periodic || system.accumulate || system.offsets) return "the toy has plain systems only";
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper})
        if (operand->kind != Operand::Kind::view) return "the toy reads arrays only";
    return nullptr;
}

std::size_t workspace(const System& system, Algorithm, int) { return static_cast<std::size_t>(system.rows) * sizeof(double); }

double& at(const Operand& operand, std::int64_t row) { return static_cast<double*>(operand.data)[row * operand.row_stride]; }

// Row of the first zero pivot, or -1. ratio: rows doubles of scratch.
std::int64_t thomas(const System& line, double* ratio) {
    double pivot = at(line.diag, 0);
    for (std::int64_t i = 0;; ++i) {
        if (pivot == 0) return i;
        const double carried = i > 0 ? at(line.lower, i) * at(line.x, i - 1) : 0;
        at(line.x, i) = (at(line.rhs, i) - carried) / pivot;
        if (i + 1 == line.rows) break;
        ratio[i] = at(line.upper, i) / pivot;
        pivot = at(line.diag, i + 1) - at(line.lower, i + 1) * ratio[i];
    }
    for (std::int64_t i = line.rows - 2; i >= 0; --i) at(line.x, i) -= ratio[i] * at(line.x, i + 1);
    return -1;
}

void solve(const System& batch, Algorithm, const Launch& launch, Outcome& outcome) {
    outcome.device = "toy";
    outcome.branch = "thomas";
    outcome.reason = Reason::exact;
    for (std::int64_t k = 0; k < batch.systems(); ++k) {
        const System line = system_at(batch, k);
        const std::int64_t row = thomas(line, static_cast<double*>(launch.scratch));
        if (launch.status) launch.status[line.number] = static_cast<std::int8_t>(row < 0 ? Reason::exact : Reason::unstable);
        if (row < 0) continue;
        if (outcome.failures++ == 0) outcome.reason = Reason::unstable, outcome.system = line.number, outcome.row = row;
    }
}

}  // namespace

const tridiagonal::Ops& tridiagonal_ops() noexcept {
    static const tridiagonal::Ops ops = [] {
        tridiagonal::Ops table;
        table.device = "toy";
        table.refuses = refuses;
        table.workspace = workspace;
        table.solve = solve;
        return table;
    }();
    return ops;
}

}  // namespace trifold::toy
