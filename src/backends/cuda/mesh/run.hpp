// SPDX-License-Identifier: BSD-3-Clause
// Sweeps on a GPU as the contract has them (families/tridiagonal/ops.hpp).
#pragma once

#include "families/tridiagonal/ops.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda {

bool mesh_bytes(int device, const mesh::Checked& checked, std::size_t* bytes, Failure& failure);
bool mesh_run(int device, const mesh::Checked& checked, std::int64_t first_step, std::int64_t steps, const tridiagonal::Launch& launch, SweepOutcome& outcome, Failure& failure);

/// Compiles what a run would, kind by kind, for an architecture (90 for sm_90) and without a GPU, into the files where runs find it. kind: counts
/// from 0; `name` null: there are no more; `refuses` null, or why that kind does not take the problem, and then nothing is compiled. `moves_alone`: what mesh_moves runs.
bool mesh_compile(const mesh::Checked& checked, int architecture, bool moves_alone, int kind, const char** name, const char** refuses, Failure& failure);

/// For benchmarks: kernels of the planes kind, where it takes the problem, or else of the streaming kind, with all their copies, loads, stores and launches, and nothing computed. What no run in this order can beat; targets hold nothing of use.
bool mesh_moves(int device, const mesh::Checked& checked, std::int64_t steps, const tridiagonal::Launch& launch, Failure& failure);

}  // namespace trifold::cuda
