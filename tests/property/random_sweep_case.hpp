// SPDX-License-Identifier: BSD-3-Clause
// A problem of sweeps over meshes, drawn from one number: shape, layout and sides of fields, right-hand sides, matrices, updates and steps. Matrices are dominated by
// their diagonals, so that every device has to solve them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trifold/trifold.hpp"

namespace trifold::tests {

/// Fields: 0 = u, the target; 1 = k, positive; 2 = source; 3 = the solution.
struct SweepCase {
    std::uint64_t seed = 0;
    MeshShape shape;
    DType dtype = DType::f64;
    std::array<Sides, 3> sides{}, mirrored{};     ///< of u, and of k: periodic where u is, else even
    std::array<std::int64_t, 4> strides{};        ///< of u
    std::int64_t elements = 0;                    ///< of u, gaps included
    bool one_k = false, one_source = false;       ///< for all meshes
    std::vector<Sweep> sweeps;
    std::vector<double> parameters;
    std::int64_t steps = 1, first_step = 0;
    bool asks_mesh = false;                       ///< a function knows the number of its mesh
    bool bad = false;                             ///< one value of u is to be NaN
    std::vector<std::string> names;               ///< of what sweeps are made of

    std::string text() const;
};

/// `most`: points.
SweepCase draw_sweeps(std::uint64_t seed, std::int64_t most);

}  // namespace trifold::tests
