// SPDX-License-Identifier: BSD-3-Clause
// Lanes of a group that need pivots, by the kernels of batches. Pieces of different length are copied to scratch and ended by rows of the identity, and so is what is generated. Of rings, T (all but the last row and column) is solved
// for the right-hand side and for the last column, joined by the last row (general_long.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

/// Bytes of scratch for lanes of so many rows, aligned to 64.
template <class T>
std::size_t pivoted_lanes_bytes(std::int64_t rows);

/// Of the group's first `count` lanes those in `wanted`: x is stored, or added, where all of it is finite, and of rings where every row of it holds to some roundoffs. Returns the lanes that are left as they were: singular ones,
/// rings whose T is worse than they are, and rings of fewer than three rows.
template <class T>
std::uint32_t solve_pivoted_lanes(const LaneGroup<T>& group, bool ring, int count, std::uint32_t wanted, bool accumulate, void* scratch);

}  // namespace trifold::cpu
