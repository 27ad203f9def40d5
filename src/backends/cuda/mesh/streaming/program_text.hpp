// SPDX-License-Identifier: BSD-3-Clause
// What programs of the streaming kernels and of those of planes (mesh/planes) begin with.
#pragma once

#include <initializer_list>
#include <string>

#include "backends/cuda/mesh/functions.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda::streaming {

/// Kernels have as many parameters as arguments; one, where there are none.
std::size_t parameter_count(const mesh::Checked& checked);

/// Compiler's orders, functions, headers, `real` and struct Common: the problem's shape, fields, sides and parameters.
std::string program_head(const mesh::Checked& checked, bool moves_alone, const std::string& functions, std::initializer_list<const char*> headers);

/// A member function of that name that calls it; nothing happens in it where there is none.
std::string function_text(FunctionTexts& functions, const char* name, const PointFunction& called);

/// Whether sides of the solution have values, which are to be subtracted from right-hand sides.
bool subtracts(const mesh::Checked& checked, std::size_t sweep, int line);

}  // namespace trifold::cuda::streaming
