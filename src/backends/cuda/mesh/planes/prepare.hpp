// SPDX-License-Identifier: BSD-3-Clause
// From a checked problem to one pass a step, its factors, and the text of its program.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/mesh/chip.hpp"
#include "backends/cuda/mesh/planes/layout.hpp"
#include "backends/cuda/mesh/planes/segments.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda::planes {

struct Plan {
    Segments segments;
    int blocks = 1;                ///< of a cluster, which share a plane
    int groups = 1;                ///< of a batch's meshes, on a stream each (streaming/beside.hpp)
    bool early = false;            ///< kernels may begin while the ones before them end
    int each = 1;                  ///< lines of a thread of ends.cuh
    bool moves_alone = false;      ///< mesh/run.hpp
    const char* refuses = nullptr;
};

Plan plan_of(const mesh::Checked& checked, const Chip& chip);

template <class T>
Layout<T> layout_of(const mesh::Checked& checked, const Plan& plan) {
    const Segments& own = plan.segments;
    const MeshShape& shape = checked.problem->shape;
    return {static_cast<int>(shape.x), static_cast<int>(shape.y), own.count, own.rows, own.rows_y, own.rows_z, static_cast<int>(shape.z) / own.rows_z, plan.blocks};
}

/// As layout.hpp has them. false: they are not safe.
template <class T>
bool tables_of(const mesh::Checked& checked, const Plan& plan, std::vector<T>& tables);

/// What the field and the ends of segments take behind the values of a run, in elements.
std::int64_t scratch_values(const mesh::Checked& checked, const Segments& segments);

std::string program(const mesh::Checked& checked, const Plan& plan);

}  // namespace trifold::cuda::planes
