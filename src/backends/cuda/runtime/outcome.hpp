// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of one solve find out, in the device's memory. Reset by the first kernel (opening.hpp) or by reset_outcome before it, changed by
// atomics whose order does not matter, read back when the work is done.
#pragma once

#include <cstdint>

#include "trifold/outcome.hpp"

namespace trifold::cuda {

/// The first failure is the least of its keys: system and row are one number, so that one atomic minimum finds all three.
///   key = (system × (rows + 1) + row + 1) × 8 - reason,   row = -1 where it is not known
/// Elements of an array in device memory are fewer than 2^40, so this never overflows.
struct DeviceOutcome {
    static constexpr unsigned long long nothing = ~0ull;

    unsigned long long first = nothing;   ///< least key of a failure
    unsigned long long failures = 0;      ///< systems that failed
    unsigned long long rescued = 0;       ///< systems that took the pivoted path and are good
    unsigned long long marked = 0;        ///< systems of a batch that its first kernel left to the pivoted path
    std::int64_t rows = 0;                ///< of the longest system: what `first` was made with
    std::int64_t systems = 0;
    int branch = 0;                       ///< tridiagonal::Algorithm that computes where nothing is rescued
    int reason = 1;                       ///< Reason where nothing fails
    double residual = -1, certificate = -1;  ///< as in Outcome; negative = not computed
    unsigned long long handed_over = 0;   ///< long systems: what gave up, see below
    unsigned long long seams = 0;         ///< one long system: bits of the largest disagreement between windows with wide halos; all ones: given up
    unsigned judged = 0;                  ///< one long system: blocks of its judge that have finished
    unsigned undecayed = 0;               ///< long systems: a second pass is wanted
    unsigned forgets = ~0u;               ///< one long system: where windows with halos gave up, by how much the least of their half warps forgets, in powers of two / 32
    unsigned unstable = 0;                ///< one long system: blocks that have a row whose residual is far too large, of their first window with halos or of all that they hold
    unsigned unsettled = 0;               ///< long columns: windows with halos do not do
    unsigned arrived = 0, done = 0;       ///< long systems: arrivals of blocks where they wait for each other, blocks that have finished
    bool certified = false;               ///< the certificate covers every row
    unsigned tickets = 0;                 ///< batches: how often a warp has asked for its next tile
    unsigned entered = 0;                 ///< blocks of the kernel that resets it which know that it has
    unsigned long long opened = 0;        ///< see opening.hpp
};

/// Before anything has failed. `branch` is a tridiagonal::Algorithm.
constexpr DeviceOutcome fresh_outcome(std::int64_t rows, std::int64_t systems, int branch) {
    DeviceOutcome value;
    value.rows = rows, value.systems = systems, value.branch = branch;
    return value;
}

constexpr unsigned long long failure_key(std::int64_t system, std::int64_t rows, std::int64_t row, Reason reason) {
    return static_cast<unsigned long long>(system * (rows + 1) + row + 1) * 8 + static_cast<unsigned long long>(-static_cast<int>(reason));
}

/// DeviceOutcome::handed_over: windows with halos, or all multiprocessors that hold it, have given one system up; one pass does not do for one of several; one is left to pivots.
inline constexpr unsigned long long windows_turn = 1, second_pass = 2, left_to_pivots = 3;

/// What the kernels wrote, as the user's Outcome; the device's name is the caller's to fill.
void read_outcome(const DeviceOutcome& from, Outcome& to);

#ifdef __CUDACC__
/// One system failed, counted once per system. `status` as in BatchLaunch; `system` is its number.
__device__ inline void report_failure(DeviceOutcome* outcome, std::int8_t* status, std::int64_t system, std::int64_t row, Reason reason) {
    atomicMin(&outcome->first, failure_key(system, outcome->rows, row, reason));
    atomicAdd(&outcome->failures, 1ull);
    if (status) status[system] = static_cast<std::int8_t>(reason);
}

__device__ inline void report_rescued(DeviceOutcome* outcome, unsigned long long count = 1) { atomicAdd(&outcome->rescued, count); }
#endif

}  // namespace trifold::cuda
