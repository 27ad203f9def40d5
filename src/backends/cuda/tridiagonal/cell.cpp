// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/cell.hpp"

#include <deque>
#include <string>

#include "backends/cuda/mesh/run.hpp"
#include "backends/cuda/runtime/discovery.hpp"
#include "backends/cuda/runtime/launch_error.hpp"
#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/runtime/runtime.hpp"
#include "backends/cuda/tridiagonal/device/certified.hpp"
#include "backends/cuda/tridiagonal/device/two_pass.hpp"
#include "backends/cuda/tridiagonal/finite.hpp"
#include "backends/cuda/tridiagonal/general/ragged.hpp"
#include "backends/cuda/tridiagonal/general/rings.hpp"
#include "backends/cuda/tridiagonal/path.hpp"
#include "backends/cuda/tridiagonal/remembered.hpp"
#include "families/tridiagonal/plain.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::System;

const char* refuses(const System& system, Algorithm algorithm) {
    if (system.offsets) return ragged_refuses(system, algorithm);
    if (algorithm == Algorithm::automatic && (system.periodic || system.accumulate)) {
        System plain = system;
        plain.periodic = plain.accumulate = false;
        if (const char* why = tridiagonal::why_not_plain(plain)) return why;
        return system.periodic ? rings_refuse(system) : nullptr;
    }
    if (const char* why = tridiagonal::why_not_plain(system)) return why;
    switch (algorithm) {
        case Algorithm::automatic:
        case Algorithm::lu: return nullptr;
        case Algorithm::two_pass: return two_pass_refuses(system);
        case Algorithm::certified: return certified_refuses(system);
        default: return "the GPU has no kernel for this algorithm";
    }
}

// Asked for by every solve_async: the last answer is remembered.
std::size_t workspace(const System& system, Algorithm algorithm, int) {
    struct Answer {
        System system;
        Algorithm algorithm = Algorithm::automatic;
        std::size_t bytes = 0;
        bool known = false;
    };
    if (system.offsets) return ragged_scratch(system, algorithm);  // what they point to may have changed
    static thread_local Answer last;
    if (!last.known || last.algorithm != algorithm || !same(last.system, system)) {
        last.known = false;
        last.bytes = scratch_for(system, algorithm);
        last.system = system, last.algorithm = algorithm, last.known = true;
    }
    return last.bytes;
}

bool launched(Failure& failure) { return good(launch_error(), "launching a kernel", failure); }

// One call as kernels see it.
BatchLaunch of_call(const Launch& launch, void* outcome) {
    BatchLaunch to;
    to.stream = static_cast<cudaStream_t>(launch.stream);
    to.scratch = launch.scratch;
    to.scratch_bytes = launch.scratch_bytes;
    to.status = launch.status;
    to.tolerance = launch.tolerance;
    to.outcome = static_cast<DeviceOutcome*>(outcome);
    return to;
}

constexpr const char* too_small = "the workspace is smaller than what tridiagonal::workspace asks for";

// Planned anew by every call: what offsets point to may have changed.
bool enqueue_ragged(int device, const System& system, Algorithm algorithm, const Launch& launch, void* outcome, Failure& failure) {
    const OnDevice on(device);
    if (!solve_ragged(system, algorithm, of_call(launch, outcome))) return failure.say(ErrorCode::bad_input, too_small, "");
    return launched(failure);
}

bool enqueue(int device, const System& system, Algorithm algorithm, const Launch& launch, void* outcome, Failure& failure) {
    if (system.offsets) return enqueue_ragged(device, system, algorithm, launch, outcome, failure);
    Launches& launches = launches_of(Call(device, system, algorithm, launch, outcome));
    if (!launches.empty()) {
        const OnDevice on(device);
        launches.enqueue(static_cast<cudaStream_t>(launch.stream));
        return launched(failure);
    }
    const Path path = path_within(system, algorithm, launch.scratch_bytes);
    if (path.needs_all && launch.scratch_bytes < path.least_scratch(system))
        return failure.say(ErrorCode::bad_input, too_small, "");
    const OnDevice on(device);
    const Noting noting(launches);
    enqueue_path(path, system, of_call(launch, outcome));
    const bool fine = launched(failure);
    if (!fine) launches.clear();
    return fine;
}

bool enqueue_finite(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    const OnDevice on(device);
    const BatchLaunch to = of_call(launch, outcome);
    reset_outcome(to.outcome, system.rows, system.systems(), static_cast<int>(Algorithm::automatic), to.stream);
    if (system.offsets) check_finite_ragged(system, to);
    else check_finite(system, to.outcome, to.stream);
    return launched(failure);
}

void read(const void* copy, Outcome& outcome) { read_outcome(*static_cast<const DeviceOutcome*>(copy), outcome); }

struct Tables {
    std::deque<std::string> names;
    std::deque<tridiagonal::Ops> ops;

    Tables() {
        for (int device = 0; device < device_count(); ++device) {
            tridiagonal::Ops table;
            table.device = names.emplace_back("cuda:" + std::to_string(device)).c_str();
            table.number = device;
            table.bytes_per_s = bytes_per_s(device);
            table.refuses = refuses;
            table.workspace = workspace;
            table.least_workspace = [](const System& system, Algorithm algorithm) { return system.offsets ? ragged_least_scratch(system, algorithm) : least_scratch(system, algorithm); };
            table.outcome_bytes = sizeof(DeviceOutcome);
            table.enqueue = enqueue;
            table.enqueue_finite = enqueue_finite;
            table.read_outcome = read;
            table.mesh_scratch = mesh_bytes;
            table.mesh_run = mesh_run;
            ops.push_back(table);
        }
    }
};

}  // namespace

const tridiagonal::Ops* tridiagonal_ops(int device) {
    static const Tables tables;
    return &tables.ops[static_cast<std::size_t>(device)];
}

}  // namespace trifold::cuda
