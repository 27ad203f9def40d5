// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/one_system.hpp"

#include "backends/opencl/tridiagonal/by_host.hpp"
#include "backends/opencl/tridiagonal/coupled.hpp"
#include "backends/opencl/tridiagonal/enqueued.hpp"
#include "backends/opencl/tridiagonal/runs.hpp"
#include "backends/opencl/tridiagonal/short.hpp"
#include "backends/opencl/tridiagonal/trusted.hpp"
#include "backends/opencl/tridiagonal/windows.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Launch;
using tridiagonal::System;

bool by_windows(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, Verdict verdict, bool& done) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { done = solve_in_windows(call, verdict); });
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

bool short_in_turn(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) { enqueue_short(call, IN_TURN + place_in_turn(device)); });
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

bool enqueue_in_stream(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, bool brief, bool windows) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) {
        if (brief) return enqueue_short(call, NEVER), enqueue_coupled(call, PIVOT_CHUNKS);
        const bool couples = found(device).wide, runs = couples && takes_runs(device, system);
        if (windows) solve_in_windows(call, couples ? Verdict::hands_on : Verdict::told);
        const cl_uint left = windows ? COUPLE_CHUNKS : 0;
        if (runs) enqueue_runs(call, left);
        if (couples) enqueue_coupled(call, runs ? PIVOT_CHUNKS : left);
    });
}

}  // namespace

bool couple_chunks(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    if (takes_runs(device, system)) {
        bool done = false;
        if (!enqueued(device, system, launch, outcome, failure, [&](Call& call) { done = solve_in_runs(call); })) return false;
        if (done) return true;
        if (OpenDevice& open = open_device(device); known_not_to_forget(open, system)) open.remembers.wants_pivots = true;
    }
    return couple_pivoted(device, system, launch, outcome, failure);
}

bool enqueue_one(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    const bool brief = is_short(found(device), system), windows = !brief && windows_fit(found(device), system.dtype) && windows_scratch(system);
    if ((brief || windows || found(device).wide) && launch.stream && !system.in_place) return enqueue_in_stream(device, system, launch, outcome, failure, brief, windows);
    OpenDevice& open = open_device(device);
    const std::lock_guard lock(open.order);
    const bool known = known_not_to_forget(open, system);
    const bool wants_pivots = known && open.remembers.wants_pivots;
    if (brief && !launch.stream && system.in_place && !wants_pivots) return enqueue_in_turn(device, system, launch, outcome, failure, short_in_turn, short_that_waits);
    if (brief && !launch.stream)
        return enqueue_trusted(device, system, launch, outcome, failure, wants_pivots ? short_and_pivots_on_trust : short_on_trust, short_that_waits);
    if (windows && !launch.stream) {
        const bool both = known && takes_runs(device, system);
        return enqueue_trusted(device, system, launch, outcome, failure, !both ? windows_on_trust : wants_pivots ? all_on_trust : both_on_trust, windows_that_wait);
    }
    if (!open.settle(failure)) return false;
    return (brief ? short_that_waits : windows ? windows_that_wait : couple_chunks)(device, system, launch, outcome, failure);
}

}  // namespace trifold::opencl
