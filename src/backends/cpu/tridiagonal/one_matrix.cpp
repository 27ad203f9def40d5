// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/one_matrix.hpp"

#include <algorithm>

#include "backends/cpu/tridiagonal/batch.hpp"
#include "backends/cpu/tridiagonal/batch_added.hpp"
#include "backends/cpu/tridiagonal/factored.hpp"
#include "backends/cpu/tridiagonal/factored_long.hpp"
#include "base/round_up.hpp"

namespace trifold::cpu {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::System;

namespace {

System first_of(const System& system) { return system_at(system, 0); }

std::size_t factors_bytes(const System& system) { return whole_lines(factor_bytes(first_of(system))); }

}  // namespace

bool takes_one_matrix(const System& system, Algorithm algorithm) {
    // The elimination is one chain of divisions: as long as sixteen lines of lanes take. Longer matrices leave the nearest caches.
    constexpr std::int64_t least_systems = 256, most_rows = least_long_rows - 1, least_side_by_side = 16;
    if (system.periodic || system.offsets || (system.accumulate && !batch_adds(system))) return false;
    if (algorithm != Algorithm::automatic || system.rows < 2 || system.rows > most_rows || system.systems() < least_systems || !have_one_matrix(system)) return false;
    const auto side_by_side = [&](int level) { return system.rhs.level_stride[level] == 1 && system.x.level_stride[level] == 1 && system.extent[level] >= least_side_by_side; };
    for (int level = 0; level < system.levels; ++level)
        if (side_by_side(level)) return true;
    return system.rhs.row_stride == 1 && system.x.row_stride == 1;
}

std::size_t one_matrix_bytes(const System& system, Algorithm algorithm, int threads) {
    return factors_bytes(system) + std::max({factor_scratch(first_of(system), threads), factor_scratch(system, threads), system.accumulate ? batch_added_bytes(system, threads) : batch_bytes(system, algorithm, threads)});
}

void solve_one_matrix(const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome) {
    Launch rest = launch;
    const std::size_t kept = factors_bytes(system);
    rest.scratch = static_cast<char*>(launch.scratch) + kept, rest.scratch_bytes = launch.scratch_bytes - kept;
    Launch quiet = rest;
    quiet.status = nullptr;
    Outcome eliminated;
    factor(first_of(system), quiet, launch.scratch, eliminated);
    if (!eliminated.ok() || eliminated.rescued > 0) return system.accumulate ? solve_batch_added(system, rest, outcome) : solve_batch(system, algorithm, rest, outcome);
    outcome = Outcome{};
    if (launch.status) mark_all_exact(system, launch.status);
    solve_factored(system, false, 1, launch.scratch, rest, outcome);
}

}  // namespace trifold::cpu
