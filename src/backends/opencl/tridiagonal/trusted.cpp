// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/trusted.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Launch;
using tridiagonal::System;

/// What is solved again where one of them did not hold.
constexpr std::size_t most_trusted = 64;

struct Span {
    const char *first, *last;  // bytes, both included
    bool operator==(const Span&) const = default;
    bool meets(const Span& other) const { return first <= other.last && other.first <= last; }
};

struct Trusted {
    System system;
    Launch launch;
    void* outcome;
    Solves waits;

    Trusted(const System& s, const Launch& how, void* told, Solves else_by) : system(s), launch(how), outcome(told), waits(else_by) { launch.failure = nullptr; }
};

/// What a solve reads and what it writes, four runs of memory each at most.
struct Touches {
    static constexpr int x = operands - 1;  // all before it are read
    Span reads[x], writes[4];
    std::size_t reads_there = 0, writes_there = 0;

    Touches(const System& system, const Launch& launch, void* outcome) {
        for (int k = 0; k < x; ++k)
            if (const std::optional<Reach> read = reach_of(system, k)) reads[reads_there++] = {read->first, read->last};
        const auto adds = [&](Span span) { writes[writes_there++] = span; };
        const auto bytes = [](const void* at, std::size_t count) { return Span{static_cast<const char*>(at), static_cast<const char*>(at) + count - 1}; };
        if (const std::optional<Reach> written = reach_of(system, x)) adds({written->first, written->last});
        adds(bytes(outcome, sizeof(Found)));
        if (launch.scratch_bytes) adds(bytes(launch.scratch, launch.scratch_bytes));
        if (launch.status) adds(bytes(launch.status + system.number, static_cast<std::size_t>(system.systems())));
    }

    template <class Spans>
    bool write_into(const Spans& read) const {
        return std::any_of(writes, writes + writes_there, [&](const Span& w) { return std::ranges::any_of(read, [&](const Span& r) { return w.meets(r); }); });
    }
};

/// Solves in order, either kind, and what any of them reads: what several read is there once, of those in turn nothing.
struct List {
    std::vector<Trusted> solves;
    std::vector<Span> reads;
    bool in_turn = false;
};

/// By device, under its `order`.
List& trusted_on(int device) {
    static std::mutex mutex;
    static auto* const all = new std::map<int, List>;
    const std::lock_guard lock(mutex);
    return (*all)[device];
}

/// A workload of which some batch needs pivots mostly has more of them: all would be solved twice.
constexpr int wary_batches = 1000;

bool look_back(int device, Failure& failure) {
    const List list = std::exchange(trusted_on(device), {});
    std::span<const Trusted> again = list.solves;
    OpenDevice& open = open_device(device);
    constexpr std::size_t at = offsetof(QueueState, broken);
    unsigned broken = 0;
    const bool seen = guarded("waiting for the device", failure, [&] {
        open.main.queue.enqueueReadBuffer(open.main.state, CL_TRUE, at, sizeof broken, &broken);
        const unsigned none = 0;
        if (broken) open.main.queue.enqueueWriteBuffer(open.main.state, CL_TRUE, at, sizeof none, &none);
    });
    if (!seen || !broken) return seen;
    if (list.in_turn) again = again.subspan(std::min<std::size_t>(broken - 1, again.size()));
    if (std::ranges::any_of(again, [](const Trusted& one) { return one.system.levels > 0; })) open.wary = wary_batches;
    return std::ranges::all_of(again, [&](const Trusted& one) {
        Launch launch = one.launch;
        launch.failure = &failure;
        return one.waits(device, one.system, launch, one.outcome, failure);
    });
}

/// One more.
void keep(int device, const System& system, const Launch& launch, void* outcome, Solves waits) {
    OpenDevice& open = open_device(device);
    List& list = trusted_on(device);
    list.solves.reserve(most_trusted);
    list.solves.emplace_back(system, launch, outcome, waits);
    open.look_back = [device](Failure& why) { return look_back(device, why); };
    open.in_a_row = true;
}

}  // namespace

bool enqueue_trusted(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, Solves trusts, Solves waits) {
    OpenDevice& open = open_device(device);
    const std::lock_guard lock(open.order);
    const Touches next(system, launch, outcome);
    const std::span reads(next.reads, next.reads_there);
    if (next.write_into(reads)) return open.settle(failure) && waits(device, system, launch, outcome, failure);
    List& before = trusted_on(device);
    if ((before.in_turn || before.solves.size() == most_trusted || next.write_into(before.reads)) && !open.settle(failure)) return false;
    before.in_turn = false;
    if (!trusts(device, system, launch, outcome, failure)) return false;
    keep(device, system, launch, outcome, waits);
    for (const Span& read : reads)
        if (std::ranges::find(before.reads, read) == before.reads.end()) before.reads.push_back(read);
    return true;
}

bool enqueue_in_turn(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, Solves trusts, Solves waits) {
    OpenDevice& open = open_device(device);
    const std::lock_guard lock(open.order);
    List& before = trusted_on(device);
    const bool others = !before.in_turn && !before.solves.empty();
    if ((others || before.solves.size() == most_trusted) && !open.settle(failure)) return false;
    before.in_turn = true;  // a launch that fails may have run all the same: whoever comes next has its place
    if (!trusts(device, system, launch, outcome, failure)) return false;
    keep(device, system, launch, outcome, waits);
    return true;
}

cl_int place_in_turn(int device) { return static_cast<cl_int>(trusted_on(device).solves.size()); }

}  // namespace trifold::opencl
