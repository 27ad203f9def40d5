// SPDX-License-Identifier: BSD-3-Clause
// A solve on several devices at a time, or streamed through one: which parts there are, which of them are worth it, and what is learnt.
#pragma once

#include <vector>

#include "families/device.hpp"
#include "families/tridiagonal/split/executor.hpp"
#include "trifold/context.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

inline constexpr const char* left_out = "left out: the others are faster without it";

/// The devices among which this system can be split; empty where it cannot. Throws Error(usage) where an array does not lie in the host's memory, though
/// several devices were named.
std::vector<split::Part> split_parts(const Device& device, const System& system, const Options& options);

/// How far the matrix remembers: what is learnt of those that do not forget, which take two passes, is kept apart.
split::Reach look_before(const System& system, const Options& options);

/// Who of them shall solve: everybody until that is known, then the fastest of what was tried for systems of about this size: everybody, everybody but the
/// slowest, the fastest alone.
std::vector<split::Part> choose_parts(Context::State& state, const std::vector<split::Part>& all, const System& system, const split::Reach& reach);

/// That is the host's own device alone: it needs no chunks.
bool host_alone(const std::vector<split::Part>& parts);

split::Result solve_split(Context::State& state, const std::vector<split::Part>& all, const std::vector<split::Part>& chosen, const System& system, const split::Reach& reach, const Options& options);

/// These have solved it in so many seconds, one way or another.
void learn(Context::State& state, const std::vector<split::Part>& parts, const System& system, const split::Reach& reach, double seconds);

}  // namespace trifold::tridiagonal
