// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/passes.hpp"

namespace trifold::cpu {
namespace {

constexpr unsigned row_bit(int dz, int dy) { return 1u << ((dz + max_reach) * rows_across + dy + max_reach); }

constexpr unsigned rows_in_plane() {
    unsigned rows = 0;
    for (int dy = -max_reach; dy <= max_reach; ++dy) rows |= row_bit(0, dy);
    return rows;
}

constexpr unsigned rows_in_column() {
    unsigned rows = 0;
    for (int dz = -max_reach; dz <= max_reach; ++dz) rows |= row_bit(dz, 0);
    return rows;
}

// Does the function read the target where another thread may have updated it in the same pass?
bool reads_elsewhere(const mesh::Access& access, const mesh::CheckedSweep& one, const MeshProblem& problem, bool columns) {
    const void* const target = problem.fields[static_cast<std::size_t>(one.sweep->target)].data;
    for (std::size_t f = 0; f < problem.fields.size(); ++f) {
        if (problem.fields[f].data != target) continue;
        const mesh::FieldAccess& read = access.field[f];
        if (columns && ((read.rows & ~rows_in_column()) || read.looks_along_x())) return true;
        if (!columns && problem.shape.z > 1 && (read.rows & ~rows_in_plane())) return true;
    }
    return false;
}

}  // namespace

std::vector<Pass> passes_of(const mesh::CheckedSweep& one, const MeshProblem& problem) {
    const std::vector<LineSolve>& lines = one.sweep->lines;
    std::vector<Pass> passes;
    if (lines.empty() || lines.front().axis == 2) passes.push_back({});
    for (std::size_t k = 0; k < lines.size(); ++k) {
        const bool columns = lines[k].axis == 2;
        if (passes.empty() || passes.back().columns != columns) passes.push_back({columns, k, k, false, false});
        passes.back().end_line = k + 1;
    }
    passes.front().rhs = true;
    const Pass last = passes.back();
    bool apart = last.rhs && one.sweep->rhs && reads_elsewhere(one.rhs, one, problem, last.columns);
    for (std::size_t k = last.first_line; k < last.end_line; ++k) apart = apart || reads_elsewhere(one.coefficients[k], one, problem, last.columns);
    if (apart) passes.push_back({false, lines.size(), lines.size(), false, false});
    passes.back().update = true;
    return passes;
}

}  // namespace trifold::cpu
