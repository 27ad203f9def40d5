// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/cell.hpp"

#include <algorithm>

#include "backends/cpu/mesh/sweep.hpp"
#include "backends/cpu/tridiagonal/batch.hpp"
#include "backends/cpu/tridiagonal/factored.hpp"
#include "backends/cpu/tridiagonal/finish.hpp"
#include "backends/cpu/tridiagonal/general.hpp"
#include "backends/cpu/tridiagonal/one_matrix.hpp"
#include "backends/cpu/tridiagonal/pivoted.hpp"
#include "backends/cpu/tridiagonal/reduce.hpp"
#include "backends/cpu/tridiagonal/single.hpp"
#include "backends/cpu/tridiagonal/small.hpp"
#include "backends/cpu/tridiagonal/sweep.hpp"
#include "families/tridiagonal/plain.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::System;

bool has_generators(const System& system) {
    using Kind = tridiagonal::Operand::Kind;
    return system.lower.kind == Kind::generator || system.diag.kind == Kind::generator || system.upper.kind == Kind::generator;
}

const char* refuses(const System& system, Algorithm algorithm) {
    if (const char* why = tridiagonal::why_not_plain(system)) {
        // Generators of systems that are plain otherwise are tabulated, for kernels that do more with arrays.
        const bool tabulated = has_generators(system) && !system.periodic && !system.offsets;
        return algorithm == Algorithm::automatic && !tabulated ? general_refuses(system) : why;
    }
    switch (algorithm) {
        case Algorithm::automatic:
        case Algorithm::thomas:
        case Algorithm::lu: return nullptr;
        default: break;
    }
    if (system.levels > 0) return "the cpu's kernels take batches by thomas and lu only";
    switch (algorithm) {
        case Algorithm::certified: return sweep_refuses(system);
        case Algorithm::two_pass: return two_pass_refuses(system);
        default: return "the cpu has no kernel for this algorithm";
    }
}

// Asked for by way of a plan, since a report was wanted: the same as without.
bool is_small(const System& system, Algorithm algorithm) {
    return algorithm == Algorithm::automatic && system.levels == 0 && system.rows <= small_rows && !tridiagonal::why_not_plain(system);
}

// Often too short for the certified pass, and sooner done from both ends than in two passes. What needs pivots takes these, or LU where rows are apart.
bool is_short(const System& system, Algorithm algorithm) {
    return algorithm == Algorithm::automatic && system.levels == 0 && system.rows <= from_ends_rows && !tridiagonal::why_not_plain(system);
}

std::size_t workspace(const System& system, Algorithm algorithm, int threads) {
    if (is_small(system, algorithm)) return 0;
    if (is_short(system, algorithm)) return std::max(from_ends_bytes(system), two_pass_refuses(system) ? single_bytes(system) : tridiagonal::two_pass_workspace(cpu_ops(), system, threads));
    if (takes_one_matrix(system, algorithm)) return one_matrix_bytes(system, algorithm, threads);
    if (tridiagonal::why_not_plain(system)) return general_bytes(system, threads);
    if (algorithm == Algorithm::two_pass) return two_pass_scratch(system, tridiagonal::two_pass_chunk_rows(system.rows, system.dtype), threads);
    return system.levels > 0 ? batch_bytes(system, algorithm, threads) : single_bytes(system);
}

void solve(const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome) {
    if (is_small(system, algorithm)) {
        solve_small(system, outcome);
        if (launch.status) launch.status[system.number] = static_cast<std::int8_t>(outcome.reason);
        return;
    }
    if (is_short(system, algorithm)) {
        if (solve_from_ends(system, launch.scratch, outcome)) {
            if (launch.status) launch.status[system.number] = static_cast<std::int8_t>(outcome.reason);
            return;
        }
        if (two_pass_refuses(system)) solve_single(system, Algorithm::lu, launch, outcome);
        else outcome = tridiagonal::solve_two_pass(cpu_ops(), system, launch);
        outcome.tried_other = true;
        return;
    }
    if (takes_one_matrix(system, algorithm)) solve_one_matrix(system, algorithm, launch, outcome);
    else if (tridiagonal::why_not_plain(system)) solve_general(system, launch, outcome);
    else if (system.levels > 0) solve_batch(system, algorithm, launch, outcome);
    else solve_single(system, algorithm, launch, outcome);
}

}  // namespace

const tridiagonal::Ops& cpu_ops() noexcept {
    static const tridiagonal::Ops ops = [] {
        tridiagonal::Ops table;
        table.device = "cpu";
        table.refuses = refuses;
        table.workspace = workspace;
        table.solve = solve;
        table.factor_bytes = factor_bytes;
        table.factor_scratch = factor_scratch;
        table.factor = factor;
        table.solve_factored = solve_factored;
        table.mesh_bytes = mesh_bytes;
        table.mesh_sweep = mesh_sweep;
        table.small_rows = small_rows;
        table.solve_small = solve_small;
        table.reduce = reduce;
        table.finish = finish;
        table.corrects = true;
        table.restore = restore;
        table.sweep_pivoted = sweep_pivoted;
        table.sweep_pivoted_scratch = pivoted_scratch;
        table.decay = decay;
        table.sweep_scratch = sweep_scratch;
        table.sweep = sweep;
        table.unsweep = unsweep;
        return table;
    }();
    return ops;
}

}  // namespace trifold::cpu
