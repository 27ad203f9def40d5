// SPDX-License-Identifier: BSD-3-Clause
// Rings that need pivots, in the lanes of a group: T, all but the last row and column, by the kernels of batches for the right-hand side and for the last column, joined by the last row (general_long.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

/// Bytes of scratch for rings of so many rows, aligned to 64.
template <class T>
std::size_t ring_lanes_bytes(std::int64_t rows);

/// Of the group's first `count` lanes, rings of `longest` rows ≥ 3, those in `wanted`: x is stored, or added, where every row of it holds to some roundoffs. Returns the lanes that are left as they were: T may be singular where
/// the ring is not. All of them where an operand is generated, or lanes are not evenly apart.
template <class T>
std::uint32_t solve_ring_lanes(const LaneGroup<T>& group, int count, std::uint32_t wanted, bool accumulate, void* scratch);

}  // namespace trifold::cpu
