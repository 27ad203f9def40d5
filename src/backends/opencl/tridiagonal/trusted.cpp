// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/trusted.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

/// What is solved again where one of them did not hold.
constexpr std::size_t most_trusted = 64;

struct Span {
    const char *first, *last;  // bytes, both included
    bool meets(const Span& other) const { return first <= other.last && other.first <= last; }
};

struct Trusted {
    System system;
    Launch launch;
    void* outcome;
    Solves waits;
    std::vector<Span> reads, writes;

    Trusted(const System& s, const Launch& how, void* told, Solves else_by) : system(s), launch(how), outcome(told), waits(else_by) {
        launch.failure = nullptr;
        const Operand* const operands[] = {&s.lower, &s.diag, &s.upper, &s.rhs};
        for (const Operand* operand : operands)
            if (operand->kind == Operand::Kind::view) reads.push_back(span(*operand));
        writes.push_back(span(s.x));
        const auto bytes = [](const void* at, std::size_t count) { return Span{static_cast<const char*>(at), static_cast<const char*>(at) + count - 1}; };
        writes.push_back(bytes(outcome, sizeof(Found)));
        if (launch.scratch_bytes) writes.push_back(bytes(launch.scratch, launch.scratch_bytes));
        if (launch.status) writes.push_back(bytes(launch.status + s.number, static_cast<std::size_t>(s.systems())));
    }

    Span span(const Operand& operand) const {
        const Reach reach = reach_of(operand, system, 0, system.rows - 1);
        return {reach.first, reach.last};
    }

    bool writes_into(const Trusted& other) const {
        return std::ranges::any_of(writes, [&](const Span& w) { return std::ranges::any_of(other.reads, [&](const Span& r) { return w.meets(r); }); });
    }
};

/// By device, under its `order`.
std::vector<Trusted>& trusted_on(int device) {
    static std::mutex mutex;
    static auto* const all = new std::map<int, std::vector<Trusted>>;
    const std::lock_guard lock(mutex);
    return (*all)[device];
}

/// A workload of which some batch needs pivots mostly has more of them: all would be solved twice.
constexpr int wary_batches = 1000;

bool look_back(int device, Failure& failure) {
    const std::vector<Trusted> list = std::exchange(trusted_on(device), {});
    OpenDevice& open = open_device(device);
    constexpr std::size_t at = offsetof(QueueState, broken);
    unsigned broken = 0;
    const bool seen = guarded("waiting for the device", failure, [&] {
        open.main.queue.enqueueReadBuffer(open.main.state, CL_TRUE, at, sizeof broken, &broken);
        const unsigned none = 0;
        if (broken) open.main.queue.enqueueWriteBuffer(open.main.state, CL_TRUE, at, sizeof none, &none);
    });
    if (!seen || !broken) return seen;
    if (std::ranges::any_of(list, [](const Trusted& one) { return one.system.levels > 0; })) open.wary = wary_batches;
    return std::ranges::all_of(list, [&](const Trusted& one) {
        Launch launch = one.launch;
        launch.failure = &failure;
        return one.waits(device, one.system, launch, one.outcome, failure);
    });
}

}  // namespace

bool enqueue_trusted(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, Solves trusts, Solves waits) {
    OpenDevice& open = open_device(device);
    const std::lock_guard lock(open.order);
    Trusted next(system, launch, outcome, waits);
    if (next.writes_into(next)) return open.settle(failure) && waits(device, system, launch, outcome, failure);
    const std::vector<Trusted>& before = trusted_on(device);
    if ((before.size() == most_trusted || std::ranges::any_of(before, [&](const Trusted& one) { return next.writes_into(one); })) && !open.settle(failure)) return false;
    if (!trusts(device, system, launch, outcome, failure)) return false;
    trusted_on(device).push_back(std::move(next));
    open.look_back = [device](Failure& why) { return look_back(device, why); };
    open.in_a_row = true;
    return true;
}

}  // namespace trifold::opencl
