// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/cell.hpp"

#include <deque>
#include <string>

#include "backends/cuda/mesh/run.hpp"
#include "backends/cuda/runtime/discovery.hpp"
#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/runtime/runtime.hpp"
#include "backends/cuda/tridiagonal/batch.hpp"
#include "backends/cuda/tridiagonal/device/certified.hpp"
#include "backends/cuda/tridiagonal/device/two_pass.hpp"
#include "backends/cuda/tridiagonal/device/windows.hpp"
#include "backends/cuda/tridiagonal/finite.hpp"
#include "backends/cuda/tridiagonal/pivoted.hpp"
#include "backends/cuda/tridiagonal/remembered.hpp"
#include "families/tridiagonal/plain.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::System;

const char* refuses(const System& system, Algorithm algorithm) {
    if (const char* why = tridiagonal::why_not_plain(system)) return why;
    switch (algorithm) {
        case Algorithm::automatic:
        case Algorithm::lu: return nullptr;
        case Algorithm::two_pass: return two_pass_refuses(system);
        case Algorithm::certified: return certified_refuses(system);
        default: return "the GPU has no kernel for this algorithm";
    }
}

/// What `automatic` stands for here: on chip where systems fit there; longer ones window by window, in one pass or two; else two pivoted passes, else one
/// thread per system.
struct Path {
    Algorithm branch;
    std::size_t (*scratch)(const System& system);
    void (*enqueue)(const System& system, const BatchLaunch& launch);
    bool (*in_one_launch)(const System& system, const BatchLaunch& launch) = nullptr;  ///< all of it, the reset too, in one launch; false: it does not take this one
    bool resets = false;  ///< its first kernel resets the outcome
    bool needs_all = false;  ///< of the scratch: without, it would be left undone
};

Path path_for(const System& system, Algorithm algorithm) {
    if (algorithm == Algorithm::automatic && !batch_refuses(system)) {
        if (halos_before_batch(system)) return {Algorithm::thomas, batch_scratch, solve_halos_and_batch, nullptr, true, true};
        return {Algorithm::thomas, batch_scratch, solve_batch, solve_in_one_launch, true};
    }
    if (algorithm == Algorithm::certified)
        return {Algorithm::certified, certified_scratch, [](const System& one, const BatchLaunch& launch) { solve_certified(one, launch, false); }, nullptr, true, true};
    if (algorithm == Algorithm::automatic && (!certified_refuses(system) || several_in_halos(system)))
        return {Algorithm::certified, certified_scratch, [](const System& one, const BatchLaunch& launch) { solve_certified(one, launch, true); }, nullptr, true, true};
    if (algorithm == Algorithm::automatic && !windows_refuse(system))
        // Arrays that are copied to the device lose their gaps: what is asked for here has to do for solve_certified as well.
        return {Algorithm::certified, certified_scratch, [](const System& all, const BatchLaunch& launch) { solve_windows(all, launch); }, nullptr, false, true};
    if (algorithm != Algorithm::lu && !two_pass_refuses(system))
        return {Algorithm::two_pass, two_pass_scratch, [](const System& all, const BatchLaunch& launch) { solve_two_pass(all, launch); }};
    return {Algorithm::lu, pivoted_scratch, [](const System& all, const BatchLaunch& launch) { solve_pivoted(all, launch); }};
}

// Asked for by every solve_async: the last answer is remembered.
std::size_t workspace(const System& system, Algorithm algorithm, int) {
    struct Answer {
        System system;
        Algorithm algorithm = Algorithm::automatic;
        std::size_t bytes = 0;
        bool known = false;
    };
    static thread_local Answer last;
    if (!last.known || last.algorithm != algorithm || !same(last.system, system)) {
        last.known = false;
        last.bytes = path_for(system, algorithm).scratch(system);
        last.system = system, last.algorithm = algorithm, last.known = true;
    }
    return last.bytes;
}

bool launched(Failure& failure) { return good(cudaGetLastError(), "launching a kernel", failure); }

// System, status and outcome of one call, and what every kernel of it starts from.
template <class Kernels>
bool run(int device, const System& system, Algorithm branch, const Launch& launch, void* outcome, Failure& failure, Kernels kernels,
         bool (*in_one_launch)(const System& system, const BatchLaunch& launch) = nullptr, bool resets = false) {
    const OnDevice on(device);
    BatchLaunch to;
    to.stream = static_cast<cudaStream_t>(launch.stream);
    to.scratch = launch.scratch;
    to.scratch_bytes = launch.scratch_bytes;
    to.status = launch.status;
    to.tolerance = launch.tolerance;
    to.outcome = static_cast<DeviceOutcome*>(outcome);
    if (in_one_launch && in_one_launch(system, to)) return launched(failure);
    const std::int64_t systems = system.systems();
    if (!resets) {
        reset_outcome(to.outcome, system.rows, systems, static_cast<int>(branch), to.stream);
        if (!launched(failure)) return false;
    }
    if (to.status && !good(enqueue_fill(to.status + system.number, static_cast<int>(Reason::exact), static_cast<std::size_t>(systems), to.stream), "setting the status", failure))
        return false;
    kernels(to);
    return launched(failure);
}

bool enqueue(int device, const System& system, Algorithm algorithm, const Launch& launch, void* outcome, Failure& failure) {
    Launches& launches = launches_of(Call(device, system, algorithm, launch, outcome));
    if (!launches.empty()) {
        const OnDevice on(device);
        launches.enqueue(static_cast<cudaStream_t>(launch.stream));
        return launched(failure);
    }
    const Path path = path_for(system, algorithm);
    if (path.needs_all && launch.scratch_bytes < path.scratch(system))
        return failure.say(ErrorCode::bad_input, "the workspace is smaller than what tridiagonal::workspace asks for", "");
    const Noting noting(launches);
    const bool fine = run(device, system, path.branch, launch, outcome, failure, [&](const BatchLaunch& to) { path.enqueue(system, to); }, path.in_one_launch, path.resets);
    if (!fine) launches.clear();
    return fine;
}

bool enqueue_finite(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    return run(device, system, Algorithm::automatic, launch, outcome, failure,
               [&](const BatchLaunch& to) { check_finite(system, to.outcome, to.stream); });
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
