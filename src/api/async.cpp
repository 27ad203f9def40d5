// SPDX-License-Identifier: BSD-3-Clause
// solve_async and the outcome that it leaves on the device.
#include <array>
#include <string>

#include "api/check_options.hpp"
#include "api/device_solve.hpp"
#include "api/pending_outcome.hpp"
#include "planner/decision.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

PendingOutcome::PendingOutcome(const Queue& queue) : state_(std::make_unique<State>(queue)) {}
PendingOutcome::~PendingOutcome() = default;
PendingOutcome::PendingOutcome(PendingOutcome&&) noexcept = default;
PendingOutcome& PendingOutcome::operator=(PendingOutcome&&) noexcept = default;

Outcome PendingOutcome::read() const {
    if (!state_) throw Error(ErrorCode::usage, "PendingOutcome", "its contents were moved to another");
    const State& state = *state_;
    if (state.on_host) return state.outcome;
    std::array<std::byte, 512> kept;
    copy(state.queue, kept.data(), state.memory, state.ops.outcome_bytes);
    Outcome outcome;
    state.ops.read_outcome(kept.data(), outcome);
    outcome.device = state.ops.device;
    return outcome;
}

namespace {

[[noreturn]] void cannot(const std::string& what, const std::string& hint) { throw Error(ErrorCode::usage, "solve_async", what, hint); }

Algorithm branch_for(const Queue& queue, const System& system, const Options& options, const Ops& own) {
    const Decision decision = decide(queue, system, options.algorithm);
    if (decision.ops != &own)
        cannot(std::string("'") + own.device + "' leaves this to '" + decision.ops->device + "' because " +
                   (decision.delegated_because ? decision.delegated_because : "it is faster"),
               "use solve with host arrays, which waits");
    return decision.branch[0];
}

}  // namespace

void solve_async(Queue& queue, const Problem& problem, const Options& options, PendingOutcome& pending) {
    if (!pending.state_) cannot("a PendingOutcome whose contents were moved to another", "make one with this queue");
    PendingOutcome::State& state = *pending.state_;
    if (state.queue.device_index() != queue.device_index())
        cannot(std::string("an outcome of '") + state.queue.device() + "' for work on '" + queue.device() + "'", "make the PendingOutcome with this queue");
    state.queue = queue;
    const Device& device = device_at(queue.device_index());
    if (!device.runtime) {
        state.outcome = solve(queue, problem, options);
        return;
    }
    if (options.report) cannot("a report", "ask solve for it: a report needs times, and to wait for them");
    if (options.check_finite) cannot("check_finite", "use solve: whether to go on is decided on the host");
    check_options(options);
    const bool offsets_pinned = check_offsets_memory(queue, problem);
    const System system = normalise(problem, queue.memory());
    if (system.rows == 0 || system.systems() == 0) {
        state.on_host = true;
        state.outcome = Outcome{};
        state.outcome.device = queue.device();
        return;
    }
    const Placement placement = place(queue, problem, options, true);
    if (placement.first_here)
        throw Error(ErrorCode::usage, placement.first_here, "host memory where memory of '" + std::string(queue.device()) + "' is due",
                    "copy it there first (allocate and copy, or cudaMalloc), or use solve, which does");
    if (options.status && !placement.status_there)
        throw Error(ErrorCode::usage, "Options::status", "host memory where memory of '" + std::string(queue.device()) + "' is due", "allocate() it");
    const Algorithm branch = branch_for(queue, system, options, state.ops);
    if (!offsets_pinned)
        throw Error(ErrorCode::usage, "offsets", "ordinary host memory, which solve_async would have to wait for",
                    "give pinned memory (RegisteredMemory, cudaHostAlloc) that stays as it is until the work is done, or use solve, which waits");
    enqueue_on_device(queue, device, state.ops, system, branch, options, state.memory);
    state.on_host = false;
}

}  // namespace trifold::tridiagonal
