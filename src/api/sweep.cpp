// SPDX-License-Identifier: BSD-3-Clause
#include "trifold/sweep.hpp"

#include <string>

#include "api/device_sweep.hpp"
#include "backends/registry.hpp"
#include "devices/context_state.hpp"
#include "planner/decision.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold {

SweepOutcome sweep(Queue& queue, const MeshProblem& problem, std::int64_t steps, const SweepOptions& options) {
    if (steps < 0) throw Error(ErrorCode::usage, "steps", "a negative number, " + std::to_string(steps));
    const mesh::Checked checked = mesh::check(problem, queue.memory());
    const tridiagonal::Ops& ops = tridiagonal::ops_of(queue);
    SweepOutcome outcome;
    outcome.device = queue.device();
    if (problem.sweeps.empty() || problem.shape.points() == 0) return outcome;
    // Without steps, a device gets its kernels ready.
    if (ops.mesh_run) {
        const SweepOutcome done = sweep_on_device(queue, device_at(queue.device_index()), ops, checked, options.first_step, steps);
        return steps > 0 ? done : outcome;
    }
    if (steps == 0) return outcome;
    if (!ops.mesh_sweep)
        throw Error(ErrorCode::device_unavailable, std::string("device '") + queue.device() + "'", "has no kernels for sweeps over meshes",
                    "use the cpu or the reference");
    Context::State& state = queue.context().state();
    const devices::Scratch scratch = state.scratch.take(ops.mesh_bytes(checked, state.threads));
    ops.mesh_sweep(checked, options.first_step, steps, {.threads = state.threads, .scratch = scratch.data(), .scratch_bytes = scratch.bytes()}, outcome);
    return outcome;
}

}  // namespace trifold
