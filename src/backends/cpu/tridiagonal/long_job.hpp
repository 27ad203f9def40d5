// SPDX-License-Identifier: BSD-3-Clause
// One long system with kept factors, cut into groups of as many stretches as a cache line has lanes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

/// Which rows are where: groups of W stretches, stretch j of group g at first(g) + j length(g). The last group but one takes what the others leave,
/// less than W·W rows; these are a group of W stretches of at most W rows. Depends on rows and length alone.
template <class T>
struct LongCut {
    static constexpr std::int64_t W = group_lanes<T>;

    std::int64_t rows, usual;  ///< usual: length of a stretch, a multiple of W; rows ≥ W·W

    LongCut(std::int64_t rows_, std::int64_t wanted) : rows(rows_), usual(std::clamp<std::int64_t>(wanted / W * W, W, rows_ / W / W * W)) {}

    std::int64_t full() const noexcept { return rows / (W * usual); }
    std::int64_t longer() const noexcept { return (rows - (full() - 1) * W * usual) / W / W * W; }
    std::int64_t tail() const noexcept { return (full() - 1) * W * usual + W * longer(); }  ///< where the group of short stretches begins
    std::int64_t groups() const noexcept { return full() + (tail() < rows); }
    std::int64_t first(std::int64_t g) const noexcept { return g < full() ? g * W * usual : tail(); }
    std::int64_t length(std::int64_t g) const noexcept { return g + 1 < full() ? usual : g + 1 == full() ? longer() : W; }
    std::int64_t start(std::int64_t g, std::int64_t j) const noexcept { return std::min(first(g) + j * length(g), rows); }
    std::int64_t longest() const noexcept { return std::max(longer(), W); }
};

enum class LongMode : std::int32_t {
    none,    ///< neither of the following: the sweeps run through from end to end
    local,   ///< what is beyond a halo does not matter: one pass
    coupled, ///< chunks are solved twice, with what their neighbours leave to them
    ends,    ///< from both ends, on the few cores of this machine: factored_ends.hpp
    matrix   ///< from memory, and it decays: the matrix itself, for the certified pass
};

/// What is known of a matrix from its factors; at the head of its memory.
struct LongHead {
    LongMode mode = LongMode::none;
    std::int32_t left = 0, right = 0;  ///< rows of halo, multiples of the lanes; local
};

/// One call of the kernel: a group.
template <class T>
struct LongSweep {
    std::int64_t length = 0, block = 0, right = 0;  ///< multiples of W
    LaneGroup<T> group;                    ///< rhs and x: lane j from the first row of its stretch on
    const T* kept = nullptr;               ///< of that row
    const T* beyond = nullptr;             ///< `right` lines of right-hand sides behind the stretches
    const T *before = nullptr, *after = nullptr;  ///< a line each: w of the row before, x of the row behind (where right is 0)
    const T *leaving = nullptr, *first = nullptr;  ///< a line each, or neither: w of the last row and x of the first one as those on the other side take them to be; one block
    const T *down_share = nullptr, *up_share = nullptr;  ///< a line each, with them: chunk_spread-inl.h; 0 where nobody is on the other side
    bool stores = true, stream = false;
    T *last_w = nullptr, *first_x = nullptr;      ///< a line each, for those who want them

    static constexpr std::int64_t ring_tiles(std::int64_t block, std::int64_t right) { return (2 * block + right) / group_lanes<T> + 2; }
};

/// Returns false where some w is not finite; x may then have been stored in part. scratch: ring_tiles squares.
bool sweep_long(const LongSweep<float>& job, float* scratch);
bool sweep_long(const LongSweep<double>& job, double* scratch);

/// Lines of an operand: rows first … first+count-1 of every lane, nothing (0) beyond its rows.
void gather_lines(const LaneGroup<float>& group, const LaneOperand<float>& from, std::int64_t first, std::int64_t count, float* lines);
void gather_lines(const LaneGroup<double>& group, const LaneOperand<double>& from, std::int64_t first, std::int64_t count, double* lines);

/// w from `before` on through `rows` lines of right-hand sides.
void halo_long(const float* lines, const float* kept, std::int64_t rows, float* w);
void halo_long(const double* lines, const double* kept, std::int64_t rows, double* w);

}  // namespace trifold::cpu
