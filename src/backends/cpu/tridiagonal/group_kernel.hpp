// SPDX-License-Identifier: BSD-3-Clause
// Entry to the kernels for groups of systems, dispatched at run time to the widest vectors that this machine has.
#pragma once

#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

/// Eliminates the matrices of a group without pivoting. kept: kept_words(ring) rows of group_lanes words for each of `longest` rows,
/// aligned to 64. Returns a bit per lane: set where the elimination must not be used. gives_up: where that is so of half of the lanes within few rows, it ends, and is so of all.
std::uint32_t factor_group(const LaneGroup<float>& group, bool ring, float* kept, bool gives_up = false);
std::uint32_t factor_group(const LaneGroup<double>& group, bool ring, double* kept, bool gives_up = false);

/// Rows 0 … rows-1 of an operand of a group, a line of lanes each, aligned to 64: rows before `low`, and of lane j from its rows less `cut` on, are `outside`.
void gather_lanes(const LaneGroup<float>& group, const LaneOperand<float>& from, std::int64_t rows, std::int64_t low, std::int64_t cut, float outside, float* to);
void gather_lanes(const LaneGroup<double>& group, const LaneOperand<double>& from, std::int64_t rows, std::int64_t low, std::int64_t cut, double outside, double* to);

/// And back: lines become x, or are added to it, but for lanes in `skip`. Behind the last one as many may be read as a line has lanes.
void scatter_lanes(const LaneGroup<float>& group, const float* from, std::uint32_t skip, bool accumulate);
void scatter_lanes(const LaneGroup<double>& group, const double* from, std::uint32_t skip, bool accumulate);

/// Lines of lanes: row i at data + i step; without data, a number.
template <class T>
struct LaneLines {
    const T* data = nullptr;
    T value = 0;
    std::int64_t step = 0;
};

/// Rings whose last unknown is known: y becomes x, y + z last. Of the rows between the first and the last of the `own` rows that a lane's tridiagonal part has, which are not looked at, what is left, the entries and x, the largest of
/// each; what is left is NaN where some of it is not finite. Maxima are raised.
template <class T>
struct RingLines {
    LaneLines<T> lower, diag, upper, rhs;
    const T* z;
    T* y;
    std::int64_t rows;
    const T *last, *own;
    T *left, *matrix, *largest;
};
void close_rings(const RingLines<float>& rings);
void close_rings(const RingLines<double>& rings);

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
