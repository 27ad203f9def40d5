// SPDX-License-Identifier: BSD-3-Clause
// What a solve consists of: on chip where systems fit there; longer ones window by window, in one pass or two; else two pivoted passes, else one thread per
// system. Rings and what is added to x are solved around such a path (general/).
#pragma once

#include <cstddef>

#include "backends/cuda/tridiagonal/batch.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {

struct Path {
    tridiagonal::Algorithm branch;
    std::size_t (*scratch)(const tridiagonal::System& system);
    void (*enqueue)(const tridiagonal::System& system, const BatchLaunch& launch);
    bool (*in_one_launch)(const tridiagonal::System& system, const BatchLaunch& launch) = nullptr;  ///< all of it, the reset too, in one launch; false: it does not take this one
    bool resets = false;     ///< its first kernel resets the outcome
    bool needs_all = false;  ///< of the scratch: without, it would be left undone
};

/// The system has neither generators nor pieces of different length; where it is periodic or adds to x, the algorithm is `automatic`.
Path path_for(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

/// All of it, reset of outcome and status included. Errors stay in the runtime's last error.
void enqueue_path(const Path& path, const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
