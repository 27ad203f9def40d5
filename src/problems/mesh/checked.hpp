// SPDX-License-Identifier: BSD-3-Clause
// A mesh problem that has been looked at: shapes, types, sides and memory fit, and what every function reads is known.
#pragma once

#include <vector>

#include "problems/mesh/access.hpp"
#include "trifold/sweep.hpp"

namespace trifold::mesh {

struct CheckedSweep {
    const Sweep* sweep = nullptr;
    Access rhs, update;                ///< of the functions that are there
    std::vector<Access> coefficients;  ///< per line
    bool adds = false;                 ///< the update is the sum of the target and the solution
};

struct Checked {
    const MeshProblem* problem = nullptr;
    DType dtype = DType::f64;
    std::vector<CheckedSweep> sweeps;

    int solution_field() const noexcept { return static_cast<int>(problem->fields.size()); }
};

/// Throws Error(usage) that names the field, sweep or function, what is wrong with it and what it should be. The problem must outlive
/// what is returned. Reads no field. `device`: where fields may lie besides the host.
Checked check(const MeshProblem& problem, Memory device = {});

}  // namespace trifold::mesh
