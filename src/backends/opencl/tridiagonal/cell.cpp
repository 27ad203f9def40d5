// SPDX-License-Identifier: BSD-3-Clause
// A device that works in the host's memory has `solve`, and the family's drivers couple its chunks; one with memory of its own has
// `enqueue` (docs/decisions/0050).
#include "backends/opencl/tridiagonal/cell.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/opencl/tridiagonal/batch.hpp"
#include "backends/opencl/tridiagonal/chunks.hpp"
#include "backends/opencl/tridiagonal/coupled.hpp"
#include "backends/opencl/tridiagonal/gpu_batch.hpp"
#include "backends/opencl/tridiagonal/runs.hpp"
#include "backends/opencl/tridiagonal/short.hpp"
#include "backends/opencl/tridiagonal/spike.hpp"
#include "backends/opencl/tridiagonal/strips.hpp"
#include "backends/opencl/tridiagonal/trusted.hpp"
#include "backends/opencl/tridiagonal/windows.hpp"
#include "families/tridiagonal/plain.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Ops;
using tridiagonal::System;
using tridiagonal::two_pass_chunk_rows;

const char* refuses(const System& system, Algorithm algorithm) {
    if (const char* why = tridiagonal::why_not_plain(system)) return why;
    if (system.systems() >= 0xffffffff) return "this device's kernels number fewer than 2^32 systems";
    switch (algorithm) {
        case Algorithm::automatic:
        case Algorithm::lu: return nullptr;
        case Algorithm::two_pass: return system.levels > 0 ? "this device's two_pass takes one system at a time" : nullptr;
        case Algorithm::thomas:
        case Algorithm::truncated_spike: return spike_refuses(system);
        default: return "the OpenCL backend has no kernel for this algorithm";
    }
}

bool is_spike(Algorithm algorithm) { return algorithm == Algorithm::thomas || algorithm == Algorithm::truncated_spike; }

/// One system that is solved in chunks, coupled on the host.
bool cut_up(const System& system, Algorithm algorithm) {
    return system.levels == 0 && (algorithm == Algorithm::two_pass || (algorithm == Algorithm::automatic && system.rows >= least_cut_rows));
}

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

template <class Work>
bool enqueued(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, const Work& work) {
    return guarded("enqueueing a solve", failure, [&] {
        Call call(open_device(device), system, launch, outcome);
        call.make();
        work(call);
        call.on.queue.flush();
    });
}

// Puts an outcome that the host knows into the device's memory, where it is looked for.
bool tell(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, const Outcome& said) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) {
        Found value{};
        value.first = said.failures ? static_cast<unsigned>(system.number) : ~0u;
        value.failures = static_cast<unsigned>(said.failures), value.rescued = 0;
        value.reason = static_cast<int>(said.reason), value.row = said.row, value.rows = system.rows, value.systems = 1;
        value.branch = static_cast<word>(tridiagonal::algorithm_from(said.branch));
        value.tried_other = said.tried_other;
        value.residual = said.residual == said.residual ? std::bit_cast<word>(said.residual) : 0;
        call.store(value);
        if (!launch.status) return;
        const Place place = place_of(launch.status + system.number);
        const auto reason = static_cast<std::int8_t>(said.reason);
        call.on.queue.enqueueWriteBuffer(place.buffer, CL_TRUE, place.offset, 1, &reason);
    });
}

bool by_windows(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, Verdict verdict, bool& done) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { done = solve_in_windows(call, verdict); });
}

// The family's driver on a device with memory of its own: interface rows, ends and residuals (1 % of the system) go through the host.
bool couple_on_host(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    OwnMemory memory{launch.scratch, launch.scratch_bytes, outcome, launch.stream};
    Ops verbs;
    verbs.device = found(device).name.c_str();
    verbs.number = device;
    verbs.refuses = refuses;
    verbs.workspace = [](const System&, Algorithm, int) { return std::size_t{0}; };  // the host has nothing of it
    verbs.solve = [](const System& one, Algorithm algorithm, const Launch& how, Outcome& said) {
        const auto& own = *static_cast<const OwnMemory*>(how.stream);
        Launch there = how;
        there.scratch = own.scratch, there.scratch_bytes = own.bytes, there.stream = own.queue;
        Found what{};
        guarded("solving", *how.failure, [&] {
            Call call(open_device(how.device), one, there, own.outcome);
            call.make();
            enqueue_batch(call, algorithm);
            call.read_outcome(what);
        });
        said = Outcome{};
        read_found(what, said);
    };
    verbs.reduce = reduce, verbs.finish = finish, verbs.restore = restore, verbs.corrects = true;
    Launch driver = launch;
    std::vector<std::byte> host(two_pass_workspace(verbs, system, 1, own_chunk_rows) + 64);
    void* aligned = host.data();
    std::size_t room = host.size();
    std::align(64, room - 64, aligned, room);
    driver.scratch = aligned, driver.scratch_bytes = room;
    driver.stream = &memory, driver.device = device, driver.failure = &failure, driver.status = nullptr;
    const Outcome said = solve_two_pass(verbs, system, driver, own_chunk_rows);
    return !failure.code && tell(device, system, launch, outcome, failure, said);
}

bool by_spike(int device, const System& system, Algorithm algorithm, const Launch& launch, void* outcome, Failure& failure) {
    Outcome said;
    const bool good = enqueued(device, system, launch, outcome, failure,
                               [&](Call& call) { solve_spike(call, algorithm, mapping_of(call.device.info.wide ? Kind::gpu : call.device.info.kind), said); });
    return good && tell(device, system, launch, outcome, failure, said);
}

/// A matrix that does not forget mostly comes again, and next time does not either: what comes after windows is enqueued behind them then, and does nothing where these did. It is known by where it lies.
bool known_not_to_forget(const OpenDevice& open, const System& system) { return open.remembers.rows == system.rows && open.remembers.diag == system.diag.data; }

bool takes_runs(int device, const System& system) { return runs_fit(found(device), system.dtype) && runs_scratch(system) > 0; }

/// On the device, where it is a GPU and x is not rhs, else, and what that does not solve, on the host.
bool couple_pivoted(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    if (found(device).wide && !system.in_place && system.rows >= least_cut_rows) {
        Found what{};
        if (!enqueued(device, system, launch, outcome, failure, [&](Call& call) { enqueue_coupled(call, 0), call.read_outcome(what); })) return false;
        if (OpenDevice& open = open_device(device); known_not_to_forget(open, system)) open.remembers.wants_correction = what.reason == static_cast<int>(Reason::refined);
        if (what.failures == 0) return true;
    }
    return couple_on_host(device, system, launch, outcome, failure);
}

/// Without pivots on a GPU, and where that does not hold with them.
bool couple_chunks(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    if (takes_runs(device, system)) {
        bool done = false;
        if (!enqueued(device, system, launch, outcome, failure, [&](Call& call) { done = solve_in_runs(call); })) return false;
        if (done) return true;
        if (OpenDevice& open = open_device(device); known_not_to_forget(open, system)) open.remembers.wants_pivots = true;
    }
    return couple_pivoted(device, system, launch, outcome, failure);
}

bool short_that_waits(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    Found what{};
    if (!enqueued(device, system, launch, outcome, failure, [&](Call& call) { enqueue_short(call, NEVER), call.read_outcome(what); })) return false;
    if (what.failures == 0) return true;
    if (OpenDevice& open = open_device(device); !known_not_to_forget(open, system)) open.remembers = {system.diag.data, system.rows, true, false};
    return couple_pivoted(device, system, launch, outcome, failure);
}

bool short_on_trust(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { enqueue_short(call, ALWAYS); });
}

bool short_and_pivots_on_trust(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { enqueue_short(call, NEVER), enqueue_coupled(call, PIVOT_CHUNKS, true, open_device(device).remembers.wants_correction); });
}

bool windows_that_wait(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    bool done = false;
    if (!by_windows(device, system, launch, outcome, failure, Verdict::waits, done)) return false;
    if (OpenDevice& open = open_device(device); !done && !known_not_to_forget(open, system)) open.remembers = {system.diag.data, system.rows, false, false};
    return done || couple_chunks(device, system, launch, outcome, failure);
}

bool both_on_trust(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { solve_in_windows(call, Verdict::hands_on, true), enqueue_runs(call, COUPLE_CHUNKS, true); });
}

bool windows_on_trust(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    bool done = false;
    return by_windows(device, system, launch, outcome, failure, Verdict::trusted, done);
}

bool all_on_trust(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { solve_in_windows(call, Verdict::hands_on, true), enqueue_runs(call, COUPLE_CHUNKS), enqueue_coupled(call, PIVOT_CHUNKS, true, open_device(device).remembers.wants_correction); });
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
    const bool brief = algorithm == Algorithm::automatic && cut_up(system, algorithm) && is_short(found(device), system);
    const bool windows = !brief && algorithm == Algorithm::automatic && cut_up(system, algorithm) && windows_fit(found(device), system.dtype) && windows_scratch(system);
    const bool couples = algorithm == Algorithm::automatic && cut_up(system, algorithm) && found(device).wide;
    if ((brief || windows || couples) && launch.stream && !system.in_place) {
        // In a stream nothing waits: who collects an `unstable` one enqueues it once more without a stream.
        return enqueued(device, system, launch, outcome, failure, [&](Call& call) {
            if (brief) return enqueue_short(call, NEVER), enqueue_coupled(call, PIVOT_CHUNKS);
            if (windows) solve_in_windows(call, couples ? Verdict::hands_on : Verdict::told);
            const cl_uint left = windows ? COUPLE_CHUNKS : 0;
            const bool runs = couples && takes_runs(device, system);
            if (runs) enqueue_runs(call, left);
            if (couples) enqueue_coupled(call, runs ? PIVOT_CHUNKS : left);
        });
    }
    OpenDevice& open = open_device(device);
    const std::lock_guard lock(open.order);
    if (brief && !launch.stream)
        return enqueue_trusted(device, system, launch, outcome, failure, known_not_to_forget(open, system) && open.remembers.wants_pivots ? short_and_pivots_on_trust : short_on_trust, short_that_waits);
    if (windows && !launch.stream) {
        const bool both = known_not_to_forget(open, system) && takes_runs(device, system);
        return enqueue_trusted(device, system, launch, outcome, failure, !both ? windows_on_trust : open.remembers.wants_pivots ? all_on_trust : both_on_trust, windows_that_wait);
    }
    if (on_trust(open, system, algorithm, launch)) return enqueue_trusted(device, system, launch, outcome, failure, batch_on_trust, batch_in_two);
    if (!open.settle(failure)) return false;
    if (is_spike(algorithm)) return by_spike(device, system, algorithm, launch, outcome, failure);
    if (brief) return short_that_waits(device, system, launch, outcome, failure);
    if (windows) return windows_that_wait(device, system, launch, outcome, failure);
    if (cut_up(system, algorithm)) return couple_chunks(device, system, launch, outcome, failure);
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
