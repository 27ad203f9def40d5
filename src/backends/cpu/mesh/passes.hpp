// SPDX-License-Identifier: BSD-3-Clause
// A sweep cut into passes over memory. A pass over planes may make the right-hand side, solve lines along x and y and update the
// target while a few planes lie in cache; a pass over columns solves lines along z and updates while a few columns do.
#pragma once

#include <vector>

#include "problems/mesh/checked.hpp"

namespace trifold::cpu {

struct Pass {
    bool columns = false;                 ///< lines along z; else along x and y
    std::size_t first_line = 0, end_line = 0;
    bool rhs = false, update = false;
};

/// In order. The update is part of the last pass unless that would change what the same pass still reads elsewhere.
std::vector<Pass> passes_of(const mesh::CheckedSweep& sweep, const MeshProblem& problem);

}  // namespace trifold::cpu
