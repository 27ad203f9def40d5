// SPDX-License-Identifier: BSD-3-Clause
// Where solve_async leaves its outcome: in the device's memory, or here where the host knows it already.
#pragma once

#include "families/tridiagonal/ops.hpp"
#include "planner/decision.hpp"
#include "trifold/device_memory.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

struct PendingOutcome::State {
    explicit State(const Queue& queue) : queue(queue), ops(ops_of(queue)) {
        if (ops.enqueue) memory = allocate(this->queue, ops.outcome_bytes);
    }
    ~State() {
        if (memory) release(queue, memory);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    Queue queue;
    const Ops& ops;
    void* memory = nullptr;
    bool on_host = true;  ///< `outcome` holds it: a host device, or nothing to solve
    Outcome outcome;
};

}  // namespace trifold::tridiagonal
