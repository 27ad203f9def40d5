// SPDX-License-Identifier: BSD-3-Clause
// From a checked problem to passes (pass.cuh), and the text of their program.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/mesh/fused/cut.hpp"
#include "backends/cuda/mesh/resident/invariants.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda::fused {

struct Pass {
    Cut cut;
    bool in_registers = false;                     ///< its matrices are made anew, and solved for in registers (columns.cuh)
    bool kept = false;                             ///< its matrices are eliminated before the first sweep (kept.cuh)
    std::int64_t kept_sets = 0, kept_words = 0;    ///< sets of lines, and words of each
    std::size_t shared_symmetric = 0;              ///< less shared memory where matrices are found to be symmetric
    bool ring = false, alike = false, one = false;  ///< all meshes have the same matrices; all lines have one
    bool made = false;                             ///< matrices by a function of the point, to be looked at on the device
};

/// What a right-hand side keeps through the run of fields that never change.
struct KeptValues {
    struct Value {
        std::int64_t at, beyond;  ///< its array; where its axis' last points are
        int axis;                 ///< -1, or that of which the next point's value in the array is this one
    };
    resident::Split split;
    std::vector<Value> values;
    std::int64_t words = 0;       ///< of a mesh
    std::int64_t meshes = 1;      ///< 1 where all have the same
    bool held = false;            ///< not in memory: each thread makes its own and holds them from mesh to mesh

    explicit operator bool() const noexcept { return !values.empty(); }
    int count() const noexcept { return held ? split.kept : static_cast<int>(values.size()); }
};

/// The right-hand side and the lines along x in one pass (rows.cuh, held.cuh).
struct RowsPlan {
    int lanes = 0, rows = 0;  ///< of a line, and of each of its lanes
    int warps = 0, blocks = 0, deep = 0;
    int beside = 0;       ///< held.cuh: warps of a block side by side along y; 0: rows.cuh
    int stages = 0;       ///< of held.cuh: meshes whose rows are in shared memory or on their way there, and
    unsigned tiled = 0;   ///< fields whose rows these are
    std::size_t shared = 0;
    bool alike = false;   ///< of held.cuh: a block goes from mesh to mesh

    explicit operator bool() const noexcept { return lanes > 0; }
    std::int64_t pieces(const MeshShape& shape) const;
};

struct SweepPlan {
    std::vector<Pass> passes;
    RowsPlan rows;           ///< in place of the first of `passes`
    KeptValues kept;
    bool apart = false;      ///< the right-hand side is a pass of its own (right_hand_side.cuh)
    int rhs_points = 1, rhs_groups = 1, rhs_blocks = 4;  ///< of it: points of a thread at the same time, and how often, blocks on a multiprocessor
    bool rhs_alike = false;  ///< a thread of it goes from mesh to mesh
    bool exchanges = false;  ///< the target's next values are written to where values are
};

struct Plan {
    std::vector<SweepPlan> sweeps;
    int exchanged = -1;  ///< the target of sweeps that exchange
    const char* refuses = nullptr;
};

/// Pieces of a mesh that blocks of the right-hand side's pass have (right_hand_side.cuh).
std::int64_t rhs_pieces(const SweepPlan& sweep, const MeshShape& shape);

/// How far a function looks along the axes.
std::array<int, 3> reach_of(const mesh::Access& access);

/// Of the matrices and values that are kept.
std::size_t kept_bytes(const Plan& plan, std::size_t value_bytes);

Plan plan_of(const mesh::Checked& checked, const Chip& chip);

std::string program(const mesh::Checked& checked, const Plan& plan);

std::string name_of_pass(std::size_t sweep, std::size_t line);
std::string name_of_check(std::size_t sweep, std::size_t line);
std::string name_of_keep(std::size_t sweep, std::size_t line);
std::string name_of_rhs(std::size_t sweep);
std::string name_of_rows(std::size_t sweep);
std::string name_of_keep_rhs(std::size_t sweep);
std::size_t parameter_count(const mesh::Checked& checked);

}  // namespace trifold::cuda::fused
