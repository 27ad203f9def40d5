// SPDX-License-Identifier: BSD-3-Clause
// A device that works in the host's memory has `solve`, and the family's drivers couple its chunks; one with memory of its own has
// `enqueue` (docs/decisions/0050).
#include "backends/opencl/tridiagonal/cell.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "backends/opencl/tridiagonal/accepts.hpp"
#include "backends/opencl/tridiagonal/batch.hpp"
#include "backends/opencl/tridiagonal/by_host.hpp"
#include "backends/opencl/tridiagonal/chunks.hpp"
#include "backends/opencl/tridiagonal/coupled.hpp"
#include "backends/opencl/tridiagonal/enqueued.hpp"
#include "backends/opencl/tridiagonal/gpu_batch.hpp"
#include "backends/opencl/tridiagonal/one_system.hpp"
#include "backends/opencl/tridiagonal/runs.hpp"
#include "backends/opencl/tridiagonal/spike.hpp"
#include "backends/opencl/tridiagonal/strips.hpp"
#include "backends/opencl/tridiagonal/trusted.hpp"
#include "backends/opencl/tridiagonal/windows.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Ops;
using tridiagonal::System;
using tridiagonal::two_pass_chunk_rows;

/// own: the device's memory is its own.
template <bool wide, bool own>
std::size_t workspace(const System& system, Algorithm algorithm, int) {
    if (is_spike(algorithm)) return spike_scratch(system);
    // What the family's driver hands over to LU it finds scratch for itself.
    if (!own && algorithm == Algorithm::two_pass) return chunk_scratch(wide, system, two_pass_chunk_rows(system.rows, system.dtype));
    const std::size_t whole = batch_scratch(wide, system, algorithm == Algorithm::two_pass ? Algorithm::lu : algorithm);
    return own && cut_up(system, algorithm) ? std::max({whole, chunk_scratch(wide, system, own_chunk_rows), wide ? coupled_scratch(system) : 0, wide ? runs_scratch(system) : 0, windows_scratch(system)}) : whole;
}

void solve(const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome) {
    if (launch.failure->code) return;  // a driver's verb has failed before
    const bool good = guarded("solving", *launch.failure, [&] {
        Call call(open_device(launch.device), system, launch, nullptr);
        call.make();
        if (is_spike(algorithm)) {
            solve_spike(call, algorithm, mapping_of(call.device.info.kind), outcome);
            if (launch.status) launch.status[system.number] = static_cast<std::int8_t>(outcome.reason);
            return;
        }
        solve_batch(call, algorithm);
        read_found(call.found(), outcome);
    });
    if (!good) outcome = Outcome{};
    outcome.device = found(launch.device).name.c_str();
}

bool batch_in_two(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { enqueue_batch(call, Algorithm::automatic); });
}

bool batch_on_trust(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    return enqueued(device, system, launch, outcome, failure, enqueue_batch_on_trust);
}

/// A batch behind others at which nobody has looked: one launch instead of two. The first one is not: who waits for each would wait for the verdict apart.
bool on_trust(OpenDevice& open, const System& system, Algorithm algorithm, const Launch& launch) {
    if (algorithm != Algorithm::automatic || system.levels == 0 || launch.stream || !open.info.wide || !may_be_alone(open.info, system)) return false;
    if (open.wary > 0) return --open.wary, false;
    return open.in_a_row;
}

bool enqueue(int device, const System& system, Algorithm algorithm, const Launch& launch, void* outcome, Failure& failure) {
    const bool cut = cut_up(system, algorithm);
    if (cut && algorithm == Algorithm::automatic) return enqueue_one(device, system, launch, outcome, failure);
    OpenDevice& open = open_device(device);
    const std::lock_guard lock(open.order);
    if (on_trust(open, system, algorithm, launch)) return enqueue_trusted(device, system, launch, outcome, failure, batch_on_trust, batch_in_two);
    if (!open.settle(failure)) return false;
    if (is_spike(algorithm)) return by_spike(device, system, algorithm, launch, outcome, failure);
    if (cut) return couple_chunks(device, system, launch, outcome, failure);
    open.in_a_row = true;
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { enqueue_batch(call, algorithm); });
}

bool enqueue_look(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    OpenDevice& open = open_device(device);
    const std::lock_guard lock(open.order);
    if (!open.settle(failure)) return false;
    return enqueued(device, system, launch, outcome, failure, enqueue_finite);
}

void read(const void* copy, Outcome& outcome) { read_found(*static_cast<const Found*>(copy), outcome); }

Ops table_of(int device) {
    const FoundDevice& info = found(device);
    Ops table;
    table.device = info.name.c_str();
    table.number = device;
    table.refuses = refuses;
    if (info.in_host_memory) {
        table.workspace = info.wide ? workspace<true, false> : workspace<false, false>;
        table.solve = solve;
        table.reduce = reduce, table.finish = finish, table.restore = restore, table.corrects = true;
        if (!info.wide) table.sweep_pivoted = sweep_strips, table.sweep_pivoted_scratch = strips_scratch;
        return table;
    }
    table.workspace = info.wide ? workspace<true, true> : workspace<false, true>;
    table.outcome_bytes = sizeof(Found);
    table.enqueue = enqueue;
    table.enqueue_finite = enqueue_look;
    table.read_outcome = read;
    return table;
}

}  // namespace

const tridiagonal::Ops* tridiagonal_ops(int device) {
    static std::mutex mutex;
    static auto* const tables = new std::map<int, tridiagonal::Ops>;  // never given back: lanes that were left behind use them while a process ends
    const std::lock_guard lock(mutex);
    const auto known = tables->find(device);
    return &(known != tables->end() ? known : tables->emplace(device, table_of(device)).first)->second;
}

}  // namespace trifold::opencl
