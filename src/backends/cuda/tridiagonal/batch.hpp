// SPDX-License-Identifier: BSD-3-Clause
// Batches on the device: unpivoted where a pass over the system shows it to be safe, pivoted for the systems where it does not.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

/// What one solve may use. Every pointer is the device's, and so are those of the system.
struct BatchLaunch {
    cudaStream_t stream = nullptr;
    void* scratch = nullptr;          ///< aligned to 256; at least what the solve asked for, contents undefined
    std::size_t scratch_bytes = 0;
    std::int8_t* status = nullptr;    ///< per system, by its number: 1 (exact) on entry; failures are written by report_failure. May be null
    double tolerance = 0;             ///< relative truncation error accepted
    DeviceOutcome* outcome = nullptr; ///< reset on entry, `rows` and `systems` filled, unless the solve says that it does so itself
};

/// nullptr where solve_batch runs this system (levels ≥ 0, any layout; neither periodic nor ragged, and accumulating where batch_adds says so), else why not, as a phrase that follows "because"; it is then solved by solve_pivoted.
const char* batch_refuses(const tridiagonal::System& system);

/// Bytes of scratch for solve_batch, the rescue of every system included.
std::size_t batch_scratch(const tridiagonal::System& system);

/// Whether x that is added to is so by the kernels that solve: not in place, where rhs would be lost, nor of few systems, whose launches take longer.
bool batch_adds(const tridiagonal::System& system);

/// Enqueues; neither synchronises nor allocates, nor reads anything back: it is captured in CUDA graphs. Its first kernel resets the outcome. Launch errors
/// are kept (runtime/launch_error.hpp). In place, a failed system's right-hand side is left as it was.
void solve_batch(const tridiagonal::System& system, const BatchLaunch& launch);

/// Systems that solve_batch takes and that are tried in windows with halos first (device/certified.hpp): all together, by
/// solve_halos_and_batch, whose first kernel resets the outcome.
bool halos_before_batch(const tridiagonal::System& system);
void solve_halos_and_batch(const tridiagonal::System& system, const BatchLaunch& launch);

/// As solve_batch where *wanted, in the device's memory, is not zero; else only systems that are marked in the scratch, a byte per system from its begin on. The outcome has been reset. For systems
/// with one matrix that solve_march is tried on first.
void solve_batch_where(const tridiagonal::System& system, const BatchLaunch& launch, const unsigned long long* wanted);

/// As solve_batch in a single launch, reset of outcome and status included, where all systems are on one block or cluster: there, launches are
/// most of the time. False: nothing was enqueued.
bool solve_in_one_launch(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
