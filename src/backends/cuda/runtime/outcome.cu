// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/runtime/outcome.hpp"

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/reset.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {
namespace {

// A value of a launch, not a copy from the host: it is recorded into a graph with its contents.
__global__ void store_outcome(DeviceOutcome* outcome, DeviceOutcome value) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");  // they wait for it before they look
#endif
    *outcome = value;
}

}  // namespace

void reset_outcome(DeviceOutcome* outcome, std::int64_t rows, std::int64_t systems, int branch, cudaStream_t stream) {
    enqueue_kernel(store_outcome, 1, 1, 0, stream, outcome, fresh_outcome(rows, systems, branch));
}

void read_outcome(const DeviceOutcome& from, Outcome& to) {
    using tridiagonal::Algorithm;
    const auto failures = static_cast<std::int64_t>(from.failures), rescued = static_cast<std::int64_t>(from.rescued);
    auto asked = static_cast<Algorithm>(from.branch);
    if (asked == Algorithm::certified) {
        to.certified_share = from.certified ? 1 : 0;
        if (from.handed_over >= second_pass && failures == 0) asked = Algorithm::two_pass, to.tried_other = true;
    }
    to.failures = failures;
    to.rescued = rescued;
    // As on the cpu: where every system needed pivots, that is the branch.
    const bool all_pivoted = rescued > 0 && rescued + failures == from.systems;
    to.branch = name_of(all_pivoted ? Algorithm::lu : asked);
    to.tried_other = to.tried_other || (asked == Algorithm::two_pass && from.marked > 0) || (asked != Algorithm::lu && asked != Algorithm::certified && rescued + failures > 0);
    to.reason = static_cast<Reason>(from.reason);
    if (from.residual >= 0) to.residual = from.residual;
    if (from.certificate >= 0) to.certificate = from.certificate;
    if (failures == 0) return;
    const unsigned long long place = from.first / 8, width = static_cast<unsigned long long>(from.rows) + 1;
    to.system = static_cast<std::int64_t>(place / width);
    to.row = static_cast<std::int64_t>(place % width) - 1;
    to.reason = static_cast<Reason>(-static_cast<int>(from.first % 8));
}

}  // namespace trifold::cuda
