// SPDX-License-Identifier: BSD-3-Clause
// From a checked problem to passes (pass.cuh), and the text of their program.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "backends/cuda/mesh/plan.hpp"

namespace trifold::cuda::fused {

/// A pass: one line solve, a block having `columns` lines of `segments` times up to `rows` rows.
struct Cut {
    int rows = 0, segments = 0, columns = 0;  ///< R, S, W
    int threads = 0, blocks = 0;
    std::size_t shared = 0;

    bool fits() const noexcept { return threads > 0; }
};

/// What a block has to hold.
struct LinesOfMesh {
    int axis = 0, rows = 0;
    std::int64_t lines = 1;      ///< of a mesh
    bool ring = false;
};

Cut cut_lines(const Chip& chip, std::size_t value_bytes, const LinesOfMesh& lines);

struct Pass {
    Cut cut;
    bool ring = false, alike = false, one = false;  ///< all meshes have the same matrices; all lines have one
    bool made = false;                             ///< matrices by a function of the point, to be looked at on the device
};

struct SweepPlan {
    std::vector<Pass> passes;
    bool exchanges = false;  ///< the target's next values are written to where values are
};

struct Plan {
    std::vector<SweepPlan> sweeps;
    int exchanged = -1;  ///< the target of sweeps that exchange
    const char* refuses = nullptr;
};

/// How far a function looks along the axes.
std::array<int, 3> reach_of(const mesh::Access& access);

Plan plan_of(const mesh::Checked& checked, const Chip& chip);

std::string program(const mesh::Checked& checked, const Plan& plan);

std::string name_of_pass(std::size_t sweep, std::size_t line);
std::string name_of_check(std::size_t sweep, std::size_t line);
std::size_t parameter_count(const mesh::Checked& checked);

}  // namespace trifold::cuda::fused
