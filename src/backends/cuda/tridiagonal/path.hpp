// SPDX-License-Identifier: BSD-3-Clause
// What a solve consists of: on chip where systems fit there; longer ones window by window, in one pass or two; else two pivoted passes, else one thread per
// system. Rings and what is added to x are solved around such a path (general/).
#pragma once

#include <cstddef>

#include "backends/cuda/tridiagonal/batch.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {

struct Path {
    tridiagonal::Algorithm branch = tridiagonal::Algorithm::automatic;
    std::size_t (*scratch)(const tridiagonal::System& system) = nullptr;
    void (*enqueue)(const tridiagonal::System& system, const BatchLaunch& launch) = nullptr;
    bool (*in_one_launch)(const tridiagonal::System& system, const BatchLaunch& launch) = nullptr;  ///< all of it, the reset too, in one launch; false: it does not take this one
    bool resets = false;     ///< its first kernel resets the outcome
    bool needs_all = false;  ///< of the scratch: without, it would be left undone
    bool dispensable = false;  ///< with less scratch another one does
    std::size_t (*least)(const tridiagonal::System& system) = nullptr;  ///< where less than `scratch` does: so much

    std::size_t least_scratch(const tridiagonal::System& system) const { return least ? least(system) : scratch(system); }
};

/// The system has neither generators nor pieces of different length; where it is periodic or adds to x, the algorithm is `automatic`.
Path path_for(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

/// The one for so much scratch: that of a system whose arrays are copied to the device was asked for when they had gaps.
Path path_within(const tridiagonal::System& system, tridiagonal::Algorithm algorithm, std::size_t scratch_bytes);

/// Bytes to ask for: enough for path_for's, and for whatever path_within takes once gaps are gone. And bytes that do in any case.
std::size_t scratch_for(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);
std::size_t least_scratch(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

/// All of it, reset of outcome and status included. Errors are kept (runtime/launch_error.hpp).
void enqueue_path(const Path& path, const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
