// SPDX-License-Identifier: BSD-3-Clause
// From a checked problem to a plan, the factors of its matrices, and the text of its program.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/mesh/resident/cut.hpp"
#include "backends/cuda/mesh/resident/numbers.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda::resident {

/// Plan, and blocks per multiprocessor. nullptr, or why the problem cannot stay on chip, after "because".
const char* prepare(const mesh::Checked& checked, const OnChip& chip, Plan& plan, int& blocks);

/// Factors of all line solves, as the plan has them, and what their ends lose. nullptr, or why not.
template <class T>
const char* factor(const mesh::Checked& checked, const Plan& plan, std::vector<T>& table, Numbers<T>& numbers);

/// The kernels `steps` and `put_back`.
std::string program(const mesh::Checked& checked, const Plan& plan, int blocks);

}  // namespace trifold::cuda::resident
