// SPDX-License-Identifier: BSD-3-Clause
// How the certified one-pass solve cuts one system, and what its sweep reports back. Theory: docs/algorithms/certified.md.
#pragma once

#include <cstdint>

namespace trifold::tridiagonal {

/// Rows first … are cut into groups of `lanes` stretches, which a device sweeps side by side; inside a stretch the
/// elimination runs through, and x is finished in blocks of about `block` rows that end `halo` rows ahead of it. `first`
/// (≥ 1) rows before and at least one row after the stretches go with the first and the last of them. length,
/// last_length, block, left and right are multiples of `lanes`; right < block, left < block, 2 block ≤ length.
struct Stretches {
    std::int64_t rows = 0;
    std::int64_t first = 1;
    int lanes = 8;
    std::int64_t groups = 1;
    std::int64_t length = 0;       ///< rows of a stretch
    std::int64_t last_length = 0;  ///< rows of each stretch of the last group, length ≤ last_length
    std::int64_t block = 0;        ///< least rows of a block
    std::int64_t left = 0;         ///< rows before a stretch from which its elimination is started
    std::int64_t right = 0;        ///< most rows by which elimination may be ahead of a block's end
    double close = 0;              ///< a block is finished where the product of |c'| over the rows ahead is at most this
    double growth = 4;             ///< largest |c'| accepted
    bool stream = false;           ///< x is stored past the caches (it must be aligned to 64 bytes at row `first`)

    std::int64_t stretches() const noexcept { return groups * lanes; }
    std::int64_t length_in(std::int64_t group) const noexcept { return group + 1 == groups ? last_length : length; }
    std::int64_t group_start(std::int64_t group) const noexcept { return first + group * lanes * length; }
    std::int64_t start(std::int64_t stretch) const noexcept {
        return group_start(stretch / lanes) + stretch % lanes * length_in(stretch / lanes);
    }
    std::int64_t tail() const noexcept { return group_start(groups - 1) + lanes * last_length; }
    std::int64_t blocks_in(std::int64_t group) const noexcept { return length_in(group) / block; }
    /// First row of a block, counted from the start of its stretch; of block blocks_in(group) too.
    std::int64_t block_start(std::int64_t group, std::int64_t number) const noexcept {
        return length_in(group) / lanes * number / blocks_in(group) * lanes;
    }
};

/// What bounds the error in one stretch. Every number is linear in what other stretches know:
///   error of a block ≤ error + per_unit w + from_left z + from_right |x after the stretch|
/// where z is the defect of the elimination at its start, w ≥ 0 is added to every block's bound on |x|, and "relative" is
/// over a block's own largest |x| (docs/algorithms/certified.md).
struct StretchBound {
    double error = 0, per_unit = 0, from_left = 0, from_right = 0;
    double excess = 0;              ///< largest error - |x|/2 of a block
    double halo_product = 0;        ///< z ≤ (halo_product + halo_rounding) × |x before the stretch|
    double halo_rounding = 0;
    double end_defect = 0, end_per_unit = 0, end_from_left = 0;  ///< defect at its end from all but its last block, likewise
    double end_sum = 0;             ///< sum 1 + t_i (1 + t_{i-1} (…)) at its end, t = |a/p|
    double last_rounding = 0, last_per_unit = 0;  ///< rounding of the rows of the last block, likewise
    double truncation = 0;          ///< largest product over the rows ahead of a block
    double relative = 0;            ///< truncation error relative to the block, all but the last one; as from_left; as from_right
    double relative_from_left = 0, relative_from_right = 0;
    double first_max = 0, last_max = 0, max = 0;  ///< largest |x| of the first block, of the last one, of all
    double jump = 0;                              ///< largest difference at a seam of two blocks / the largest |x| of both
    double first_x = 0, before_x = 0;             ///< x of the first row; x of the row before it as that row saw it
    double beyond_x = 0, last_x = 0;              ///< x of the row after the last one as that one saw it; x of the last row
};

/// The rows before the first stretch, or those after the last one.
struct EndBound {
    double largest_c = 0;  ///< largest |c'|
    double sum = 0;        ///< largest s_i = T_i + |c'_i| s_{i+1}, where T_i = 1 + t_i T_{i-1} goes on from the stretch before
    double product = 1;    ///< largest product of |c'| from a row to the last one
    double max = 0;        ///< largest |x|
    double near = 0;       ///< x of the row next to the stretches
};

enum class SweepStop : std::int8_t { none, not_decaying, growth, not_finite };

/// What stopped a sweep and where; none = x is stored in every row.
struct SweepResult {
    SweepStop stop = SweepStop::none;
    std::int64_t row = -1;   ///< first row of the block (of the stretch that was met first) where it was seen
    EndBound head, tail;
};

}  // namespace trifold::tridiagonal
