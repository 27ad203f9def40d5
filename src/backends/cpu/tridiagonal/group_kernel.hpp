// SPDX-License-Identifier: BSD-3-Clause
// Entry to the kernels for groups of systems, dispatched at run time to the widest vectors that this machine has.
#pragma once

#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

/// Eliminates the matrices of a group without pivoting. kept: kept_words(ring) rows of group_lanes words for each of `longest` rows,
/// aligned to 64. Returns a bit per lane: set where the elimination must not be used.
std::uint32_t factor_group(const LaneGroup<float>& group, bool ring, float* kept);
std::uint32_t factor_group(const LaneGroup<double>& group, bool ring, double* kept);

/// How x is left.
struct GroupStore {
    bool accumulate = false;
    bool late = false;    ///< nothing is stored of a lane until all its x are known to be finite; else until the right-hand side is
    bool stream = false;  ///< past the caches: lines of x must be aligned
};

/// Groups first … last-1 with the factors that are kept. place(of, k, group, kept): sets rhs, x, rows, and the kept rows of group k.
/// failed(sink, k, lane, stored): x is not finite; `stored`: it has been. skip: lanes of a group that are not to be stored.
template <class T>
struct GroupSolve {
    bool ring = false;
    bool shared = false;  ///< one matrix: kept_words numbers per row instead of as many lines
    GroupStore store;
    std::int64_t rows = 0;  ///< longest of all
    void (*place)(const void* of, std::int64_t k, LaneGroup<T>& group, const T*& kept, std::uint32_t& skip) = nullptr;
    const void* of = nullptr;
    void (*failed)(void* sink, std::int64_t k, int lane, bool stored) = nullptr;
    void* sink = nullptr;

    /// Elements of scratch, aligned to 64.
    std::int64_t scratch_elements() const noexcept { return (rows + 2 * group_lanes<T>) * group_lanes<T>; }
};

void solve_groups(const GroupSolve<float>& job, std::int64_t first, std::int64_t last, float* scratch);
void solve_groups(const GroupSolve<double>& job, std::int64_t first, std::int64_t last, double* scratch);

}  // namespace trifold::cpu
