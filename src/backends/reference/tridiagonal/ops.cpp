// SPDX-License-Identifier: BSD-3-Clause
#include "backends/reference/tridiagonal/ops.hpp"

#include <algorithm>

#include "backends/reference/mesh/sweep.hpp"
#include "backends/reference/tridiagonal/factored.hpp"
#include "backends/reference/tridiagonal/line.hpp"
#include "backends/reference/tridiagonal/verbs.hpp"

namespace trifold::tridiagonal {
namespace {

using namespace reference;

bool coupled_by_the_family(Algorithm algorithm) { return algorithm == Algorithm::certified || algorithm == Algorithm::two_pass; }

const char* refuses(const System& system, Algorithm algorithm) {
    if (algorithm == Algorithm::certified) return "the reference has no chunked sweep";
    if (algorithm != Algorithm::two_pass) return nullptr;
    if (system.levels > 0 || system.offsets) return "two_pass solves one system, this is a batch";
    if (system.periodic) return "the coupling of two_pass does not close a ring";
    if (system.accumulate) return "two_pass may store x twice, and so cannot add to it";
    return nullptr;
}

std::size_t workspace(const System& system, Algorithm algorithm, int) {
    return coupled_by_the_family(algorithm) ? verb_bytes(system) : line_bytes(system, algorithm);
}

// NaN means "not computed".
double larger(double a, double b) { return !(a >= b) && b == b ? b : a; }

void solve(const System& batch, Algorithm algorithm, const Launch& launch, Outcome& outcome) {
    const bool automatic = algorithm == Algorithm::automatic;
    outcome.device = "reference";
    outcome.branch = name_of(automatic ? Algorithm::lu : algorithm);
    const Scratch scratch(launch.scratch, launch.scratch_bytes);
    const std::int64_t systems = batch.systems();
    std::int64_t first_failed = -1;
    Reason good = Reason::none, bad = Reason::none;
    for (std::int64_t k = 0; k < systems; ++k) {
        const System system = system_at(batch, k);
        LineResult line{{Reason::none}};
        if (system.rows > 0)
            line = system.dtype == DType::f32 ? solve_line<float>(system, algorithm, launch.tolerance, scratch)
                                              : solve_line<double>(system, algorithm, launch.tolerance, scratch);
        if (launch.status) launch.status[system.number] = static_cast<std::int8_t>(line.verdict.reason);
        if (line.verdict.good()) {
            outcome.residual = larger(outcome.residual, line.residual);
            outcome.certificate = larger(outcome.certificate, line.verdict.certificate);
            good = std::max(good, line.verdict.reason);  // the weakest word
            outcome.rescued += line.verdict.reason == Reason::refined;
            continue;
        }
        ++outcome.failures;
        if (first_failed < 0 || system.number < first_failed) {
            first_failed = system.number;
            bad = line.verdict.reason;
            outcome.row = line.verdict.row;
        }
    }
    outcome.system = first_failed;
    outcome.reason = outcome.failures ? bad : good;
}

}  // namespace

const Ops& reference_ops() noexcept {
    static const Ops ops = [] {
        Ops table;
        table.device = "reference";
        table.refuses = refuses;
        table.workspace = workspace;
        table.solve = solve;
        table.mesh_bytes = mesh::reference::sweep_bytes;
        table.mesh_sweep = mesh::reference::sweep;
        table.factor_bytes = factor_bytes;
        table.factor_scratch = factor_scratch;
        table.factor = factor_all;
        table.solve_factored = solve_factored;
        table.reduce = reference::reduce;
        table.finish = reference::finish;
        table.corrects = true;
        table.restore = reference::restore;
        return table;
    }();
    return ops;
}

}  // namespace trifold::tridiagonal
