// SPDX-License-Identifier: BSD-3-Clause
#include "api/host_solve.hpp"

#include <algorithm>
#include <utility>

namespace trifold::tridiagonal {

namespace {

// The weakest word that is true for all systems of a batch, and the first failure.
void merge(Outcome& all, const Outcome& one) {
    if (one.reason == Reason::none) return;
    auto larger = [](double a, double b) { return a >= b || b != b ? a : b; };
    all.residual = all.residual != all.residual ? one.residual : larger(all.residual, one.residual);
    all.certificate = all.certificate != all.certificate ? one.certificate : larger(all.certificate, one.certificate);
    all.tried_other = all.tried_other || one.tried_other;
    all.rescued += one.rescued;
    if (!one.ok()) {
        if (all.failures == 0 || one.system < all.system) all.reason = one.reason, all.system = one.system, all.row = one.row;
        all.failures += 1;
    } else if (all.failures == 0 && all.reason <= one.reason) {
        all.reason = one.reason;
        all.branch = one.branch;
    }
    all.device = one.device;
    if (all.branch[0] == '\0') all.branch = one.branch;
}

}  // namespace

Outcome solve_few(const Ops& ops, const System& batch, const Options& options) {
    Outcome all;
    for (std::int64_t k = 0; k < batch.systems(); ++k) {
        const System line = system_at(batch, k);
        Outcome one;
        ops.solve_small(line, one);
        if (options.status) options.status[line.number] = static_cast<std::int8_t>(one.reason);
        merge(all, one);
    }
    return all;
}

HostSolve::HostSolve(Context::State& state, const System& system, const Decision& decision, const Options& options, Phases& phases)
    : state_(state), system_(system), decision_(decision), options_(options), phases_(phases) {}

Outcome HostSolve::run() { return decision_.one_by_one ? solve_each() : solve_one(system_); }

// Taken when a branch is about to run, once for all systems: what only a fall-back needs is seldom needed, and LU's is as large as the system.
void HostSolve::take_scratch(int k) {
    if (std::exchange(scratch_taken_[k], true)) return;
    const auto bytes = [&](auto of_one, auto of_lines) { return (decision_.one_by_one ? of_lines : of_one)(*decision_.ops, system_, decision_.branch[k], decision_.threads); };
    const std::size_t wanted = bytes(branch_workspace, lines_workspace);
    if (wanted <= scratch_.bytes()) return;
    scratch_ = {};
    scratch_ = state_.scratch.take(wanted, bytes(branch_least_workspace, least_lines_workspace), options_.workspace);
    workspace_bytes_ = std::max(workspace_bytes_, std::min(wanted, scratch_.bytes()));
}

Outcome HostSolve::solve_one(const System& system) {
    Outcome outcome;
    const double tolerance = options_.tolerance > 0 ? options_.tolerance : unit_roundoff(system.dtype);
    bool handed_over = false;
    for (int k = 0; k < decision_.branches; ++k) {
        take_scratch(k);
        Failure failure;
        const Launch launch{.threads = decision_.team, .scratch = scratch_.data(), .scratch_bytes = scratch_.bytes(), .tolerance = tolerance,
                            .status = options_.status, .device = decision_.ops->number, .failure = &failure};
        const auto start = Clock::now();
        outcome = Outcome{};
        const bool final = run_branch(*decision_.ops, system, decision_.branch[k], launch, outcome);
        if (failure.code) failure.raise(std::string("device '") + decision_.ops->device + "'");
        seconds_ += phases_.end(name_of(decision_.branch[k]), start);
        if (final) break;
        at_once_ = first_ && decision_.at_once_instead && outcome.reason != Reason::unstable;
        if (at_once_) return outcome;
        handed_over = k + 1 < decision_.branches;
        if (handed_over && state_.has_log()) log_hand_over(k, outcome);
    }
    outcome.tried_other = outcome.tried_other || handed_over;
    if (!outcome.ok() && outcome.failures == 0) outcome.failures = 1;
    const bool alone = system.levels == 0 && !system.offsets;
    if (!outcome.ok() && (alone || outcome.system < 0)) outcome.system = system.number;
    if (options_.status && alone) options_.status[system.number] = static_cast<std::int8_t>(outcome.reason);
    return outcome;
}

Outcome HostSolve::solve_each() {
    Outcome all;
    const std::int64_t systems = system_.systems();
    for (std::int64_t k = 0; k < systems; ++k) {
        const System line = system_at(system_, k);
        if (line.rows > 0) {
            first_ = all.reason == Reason::none;
            const Outcome one = solve_one(line);
            if (at_once_) return solve_at_once();
            merge(all, one);
        } else if (options_.status) {
            options_.status[line.number] = static_cast<std::int8_t>(Reason::none);
        }
    }
    return all;
}

// Nothing is solved yet. The first system stands for the others: where it does not decay they seldom do, and a batch takes what decays too. Not where pivots were seen to be
// needed: eliminated without them first, a batch is no faster.
Outcome HostSolve::solve_at_once() {
    if (state_.has_log()) state_.log(std::string(name_of(decision_.branch[0])) + " hands over to all systems at once");
    Decision at_once = decision_;
    at_once.one_by_one = at_once.at_once_instead = false;
    at_once.branch[0] = Algorithm::automatic, at_once.branches = 1;
    at_once.threads = decision_.at_once_threads, at_once.team = decision_.at_once_team;
    scratch_ = {};  // it may be the caller's
    HostSolve batch(state_, system_, at_once, options_, phases_);
    Outcome outcome = batch.run();
    outcome.tried_other = true;
    seconds_ += batch.seconds();
    workspace_bytes_ = std::max(workspace_bytes_, batch.workspace_bytes());
    return outcome;
}

void HostSolve::log_hand_over(int k, const Outcome& outcome) {
    state_.log(std::string(name_of(decision_.branch[k])) + " hands over to " + name_of(decision_.branch[k + 1]) + ": " +
               trifold::name_of(outcome.reason) + (outcome.row >= 0 ? " at row " + std::to_string(outcome.row) : ""));
}

}  // namespace trifold::tridiagonal
