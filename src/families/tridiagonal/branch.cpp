// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/branch.hpp"

#include <algorithm>

#include "families/tridiagonal/certified.hpp"
#include "families/tridiagonal/plain.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::tridiagonal {
namespace {

template <class Bytes>
std::size_t most_of_lines(const System& batch, const Bytes& bytes_of) {
    if (!batch.offsets) return bytes_of(system_at(batch, 0));
    std::size_t most = 0;
    for (std::int64_t k = 0; k < batch.ragged_systems; ++k)
        if (batch.offsets[k + 1] > batch.offsets[k]) most = std::max(most, bytes_of(system_at(batch, k)));
    return most;
}

}  // namespace

bool solves_small(const Ops& ops, const System& system) noexcept {
    return ops.solve_small && system.rows <= ops.small_rows && system.levels == 0 && !why_not_plain(system);
}

bool solves_from_ends(const Ops& ops, const System& system) noexcept {
    return ops.solve_small && system.rows <= 8 * ops.small_rows && system.levels == 0 && !why_not_plain(system);
}

bool solves_few_small(const Ops& ops, const System& batch) noexcept {
    if (!ops.solve_small || batch.rows > ops.small_rows || batch.levels == 0 || why_not_plain(batch)) return false;
    // In units of 4 ns: a row of one, what else each costs; the plan, and a row of a vector's.
    constexpr std::int64_t own = 20, plan = 325, vector_row = 5;
    const std::int64_t systems = batch.systems();
    return systems <= plan && systems * (own + batch.rows) <= plan + vector_row * batch.rows;
}

const char* branch_refuses(const Ops& ops, const System& system, Algorithm algorithm) {
    if (ops.enqueue) return ops.refuses(system, algorithm);  // couples its own chunks, in its own memory
    switch (algorithm) {
        case Algorithm::certified: return certified_refuses(ops, system);
        case Algorithm::two_pass: return two_pass_refuses(ops, system);
        default: return ops.refuses(system, algorithm);
    }
}

std::size_t branch_workspace(const Ops& ops, const System& system, Algorithm algorithm, int threads) {
    if (ops.enqueue) return ops.workspace(system, algorithm, threads);
    switch (algorithm) {
        case Algorithm::certified: return certified_workspace(ops, system, threads);
        case Algorithm::two_pass: return two_pass_workspace(ops, system, threads);
        default: return ops.workspace(system, algorithm, threads);
    }
}

std::size_t branch_least_workspace(const Ops& ops, const System& system, Algorithm algorithm, int threads) {
    if (!ops.enqueue && algorithm == Algorithm::two_pass) return two_pass_least_workspace(ops, system, threads);
    return branch_workspace(ops, system, algorithm, threads);
}

std::size_t lines_workspace(const Ops& ops, const System& batch, Algorithm algorithm, int threads) {
    return most_of_lines(batch, [&](const System& line) { return branch_workspace(ops, line, algorithm, threads); });
}

std::size_t least_lines_workspace(const Ops& ops, const System& batch, Algorithm algorithm, int threads) {
    return most_of_lines(batch, [&](const System& line) { return branch_least_workspace(ops, line, algorithm, threads); });
}

bool run_branch(const Ops& ops, const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome) {
    switch (algorithm) {
        case Algorithm::certified: return solve_certified(ops, system, launch, outcome);
        case Algorithm::two_pass: outcome = solve_two_pass(ops, system, launch); return true;
        default: ops.solve(system, algorithm, launch, outcome); return true;
    }
}

}  // namespace trifold::tridiagonal
