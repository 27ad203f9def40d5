// SPDX-License-Identifier: BSD-3-Clause
// A matrix that fails without pivots takes the place of its factors, and is eliminated again by each solve.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/tridiagonal/lane_order.hpp"
#include "backends/cpu/tridiagonal/seen.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// lower, diag, upper at [0], [band_step], [2 band_step] of each row; of rings the corners where they would be in arrays.
template <class T>
struct KeptBands {
    T* data;
    std::int64_t row_step, band_step;
    std::int64_t lane_step = 0;  ///< between the matrices of a group's lanes; 0: they have one

    KeptBands lane(int j) const { return {data + j * lane_step, row_step, band_step}; }
};

/// Lanes with rows of the group's first `lanes`.
template <class T>
void keep_matrix(const LaneGroup<T>& group, bool ring, std::int64_t rows, const KeptBands<T>& kept, int lanes);

template <class T>
void set_bands(tridiagonal::System& system, const KeptBands<T>& kept);

/// One system. decays: certified is tried first.
template <class T>
void solve_kept_matrix(tridiagonal::System line, bool ring, const KeptBands<T>& kept, const tridiagonal::Launch& launch, Seen& seen, bool decays = false);

/// The `count` systems of a group from `place` on, a lane each. Returns the lanes that are left as they were: all of them where there is one, or more than 8192 rows. scratch: kept_lanes_bytes, aligned to 64.
template <class T>
std::uint32_t solve_kept_lanes(const tridiagonal::System& system, const LaneOrder& order, std::int64_t place, int count, bool ring, const KeptBands<T>& kept, void* scratch);
template <class T>
std::size_t kept_lanes_bytes(const tridiagonal::System& system);

}  // namespace trifold::cpu
