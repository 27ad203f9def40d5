// SPDX-License-Identifier: BSD-3-Clause
// A solve on several devices at a time, or streamed through one: which parts there are, and what is known of them.
#pragma once

#include <vector>

#include "families/device.hpp"
#include "families/tridiagonal/split/executor.hpp"
#include "trifold/context.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

/// The devices among which this system is split; empty where it is not. Throws Error(usage) where an array does not lie in the host's memory, though
/// several devices were named.
std::vector<split::Part> split_parts(const Device& device, const System& system, const Options& options);

split::Result solve_split(Context::State& state, const std::vector<split::Part>& parts, const System& system, const Options& options);

}  // namespace trifold::tridiagonal
