// SPDX-License-Identifier: BSD-3-Clause
// Sweeps over meshes on the cpu, fused as far as the cache reaches.
//
// Words per point that move, increments of a field u with matrices that are the same on every line (ADI heat): 2-D, planes in
// cache: u read and written, 2 in all, however many lines. 3-D: u read and the increment written, past the caches; then that and u
// read, and u written: 5. Without fusing it would be 11.
#pragma once

#include "families/tridiagonal/ops.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cpu {

std::size_t mesh_bytes(const mesh::Checked& checked, int threads);
void mesh_sweep(const mesh::Checked& checked, std::int64_t first_step, std::int64_t steps, const tridiagonal::Launch& launch, SweepOutcome& outcome);

}  // namespace trifold::cpu
