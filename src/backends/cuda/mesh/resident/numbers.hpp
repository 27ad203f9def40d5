// SPDX-License-Identifier: BSD-3-Clause
// What the host gives to a run of meshes on chip.
#pragma once

#include "backends/cuda/mesh/resident/layout.cuh"
#include "backends/cuda/mesh/views.hpp"

namespace trifold::cuda::resident {

template <class real>
struct Numbers {
    real parameters[most_parameters];
    real ends[most_lines][2];      ///< what the first and the last right-hand side of every line lose
};

template <class real>
struct Arguments {
    FieldView<real> field[most_kept];
    Numbers<real> numbers;
    const real* table;             ///< factors, see Plan
    real* before[most_kept];       ///< targets as they were, [mesh][z][y][x]
    MeshState* state;
    std::int64_t first_step, steps;
    unsigned long long from;       ///< number of the first sweep
};

}  // namespace trifold::cuda::resident
