// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/factored_matrix.hpp"

#include "backends/cpu/tridiagonal/cell.hpp"
#include "backends/cpu/tridiagonal/pivot_check.hpp"
#include "backends/cpu/tridiagonal/pivoted_lanes.hpp"
#include "backends/cpu/tridiagonal/single.hpp"
#include "families/tridiagonal/certified.hpp"
#include "families/tridiagonal/two_pass.hpp"
#include "problems/tridiagonal/array_operand.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr std::int64_t most_pivoted_rows = 8192;  // lanes take 5 MiB of scratch for so many, which is asked for before it is known whether a matrix needs them

// Kept bands are read only.
template <class T>
Operand band(const T* data, std::int64_t row_step) {
    return tridiagonal::array_operand(const_cast<T*>(data), row_step);
}

}  // namespace

template <class T>
void keep_matrix(const LaneGroup<T>& group, bool ring, std::int64_t rows, const KeptBands<T>& kept, int lanes) {
    for (int j = 0; j < lanes; ++j)
        for (std::int64_t i = 0; i < group.rows[j]; ++i) {
            T* const to = kept.data + i * kept.row_step + j;
            to[0] = i > 0 ? group.lower.at(i, j) : ring ? group.top_right.at(0, j) : T(0);
            to[kept.band_step] = group.diag.at(i, j);
            to[2 * kept.band_step] = i + 1 < rows ? group.upper.at(i, j) : ring ? group.bottom_left.at(0, j) : T(0);
        }
}

template <class T>
void set_bands(System& system, const KeptBands<T>& kept) {
    system.lower = band(kept.data, kept.row_step), system.diag = band(kept.data + kept.band_step, kept.row_step), system.upper = band(kept.data + 2 * kept.band_step, kept.row_step);
}

template <class T>
void solve_kept_matrix(System line, bool ring, const KeptBands<T>& kept, const Launch& launch, Seen& seen, bool decays) {
    set_bands(line, kept);
    line.periodic = ring;
    line.top_right = line.lower, line.bottom_left = band(kept.data + 2 * kept.band_step + (line.rows - 1) * kept.row_step, kept.row_step);
    Outcome outcome;
    Launch own = launch;
    own.status = nullptr;
    // A lane's scratch is LU's alone.
    const auto has_room = [&] { return launch.scratch_bytes >= tridiagonal::two_pass_least_workspace(cpu_ops(), line, launch.threads); };
    const auto certifies = [&] {
        return kept.row_step == 1 && !tridiagonal::certified_refuses(cpu_ops(), line) && launch.scratch_bytes >= tridiagonal::certified_workspace(cpu_ops(), line, launch.threads);
    };
    if (ring) outcome = solve_pivoted<T>(line);
    else if (decays && certifies() && tridiagonal::solve_certified(cpu_ops(), line, own, outcome)) return;
    else if (kept.row_step == 1 && two_pass_refuses(cpu_ops(), line) == nullptr && has_room()) outcome = tridiagonal::solve_two_pass(cpu_ops(), line, own);
    else solve_single(line, Algorithm::lu, own, outcome);
    if (!outcome.ok()) seen.failed(line.number, outcome.reason, outcome.row);
}

template <class T>
std::uint32_t solve_kept_lanes(const System& system, const LaneOrder& order, std::int64_t place, int count, bool ring, const KeptBands<T>& kept, void* scratch) {
    const std::uint32_t all = (1u << count) - 1;
    if (count == 1 || system.rows > most_pivoted_rows) return all;
    LaneGroup<T> group;
    const auto set = [&](LaneOperand<T>& to, std::int64_t at) {
        to.how = LaneOperand<T>::How::gathered, to.data = kept.data + at, to.row_step = kept.row_step;
        for (int j = 0; j < count; ++j) to.offset[j] = j * kept.lane_step;
    };
    set(group.lower, 0), set(group.diag, kept.band_step), set(group.upper, 2 * kept.band_step);
    set(group.top_right, 0), set(group.bottom_left, 2 * kept.band_step + (system.rows - 1) * kept.row_step);
    order.set(group.rhs, system.rhs, place, count), order.set(group.x, system.x, place, count);
    for (int j = 0; j < count; ++j) group.rows[j] = system.rows;
    group.measure();
    return solve_pivoted_lanes(group, ring, count, all, system.accumulate, scratch);
}

template <class T>
std::size_t kept_lanes_bytes(const System& system) {
    return system.levels > 0 && system.rows <= most_pivoted_rows ? pivoted_lanes_bytes<T>(system.rows) : 0;
}

template void keep_matrix<float>(const LaneGroup<float>&, bool, std::int64_t, const KeptBands<float>&, int);
template void keep_matrix<double>(const LaneGroup<double>&, bool, std::int64_t, const KeptBands<double>&, int);
template void set_bands<float>(System&, const KeptBands<float>&);
template void set_bands<double>(System&, const KeptBands<double>&);
template void solve_kept_matrix<float>(System, bool, const KeptBands<float>&, const Launch&, Seen&, bool);
template void solve_kept_matrix<double>(System, bool, const KeptBands<double>&, const Launch&, Seen&, bool);
template std::uint32_t solve_kept_lanes<float>(const System&, const LaneOrder&, std::int64_t, int, bool, const KeptBands<float>&, void*);
template std::uint32_t solve_kept_lanes<double>(const System&, const LaneOrder&, std::int64_t, int, bool, const KeptBands<double>&, void*);
template std::size_t kept_lanes_bytes<float>(const System&);
template std::size_t kept_lanes_bytes<double>(const System&);

}  // namespace trifold::cpu
