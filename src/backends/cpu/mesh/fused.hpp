// SPDX-License-Identifier: BSD-3-Clause
// Pieces of line solves with one factored matrix (factored.hpp: its formulas, its bits) that share a pass over their values with what
// comes before or after them, so that a value is loaded and stored once for two things.
//
// Per vector of points (512 bits; a store takes two cycles on Zen 4, a load one), the right-hand side apart: x, then y and z forwards, 3 loads, 3 stores, 7 multiply-adds and 6 to 8 shuffles;
// z and y backwards with a sum 4, 3, 3. docs/algorithms/cpu_sweeps.md counts them against ports and memory.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/mesh/factored.hpp"
#include "backends/cpu/mesh/turn.hpp"

namespace trifold::cpu {

/// Rows of a strip, for this processor's vectors.
template <class T>
std::int64_t strip_rows() noexcept;

/// Rows of a field that the strip after this one will read first. They are asked for while this one is computed, which needs nothing from memory.
template <class T>
struct Coming {
    const T* first = nullptr;
    std::int64_t row_stride = 0;
};

template <class T>
struct ComingRows {
    std::array<Coming<T>, 8> rows{};
    int count = 0;
    bool second_level = false;  ///< of caches; else the first
};

/// Lines along x of `rows` ≤ strip_rows() rows, the first of which is row `first` of the plane, then lines along y forwards: w in the plane, whose row
/// first - 1 holds its own already. Row pitches are whole multiples of 16 values, and ≥ the length of a line; strip_rows() rows of the strip are
/// overwritten, and finite values are due in all of them, zeros at the ends of rows. last_row: where not null, w goes past the caches, and that of the row before is found here, and on return
/// that of the last row. False: a line along x is not finite.
template <class T>
bool rows_then_forwards(const LineFactors<T>& along_x, const LineFactors<T>& along_y, T* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, T* plane,
                        std::int64_t pitch, T* last_row, const ComingRows<T>& coming, const Turn& turn);

/// Lines along y backwards, from the plane to another place. past_cache: rows of `to` are whole lines of the cache. False: a line is not finite.
template <class T>
bool backwards_to(const LineFactors<T>& along_y, std::int64_t columns, const T* plane, std::int64_t pitch, T* to, std::int64_t to_pitch, bool past_cache);

/// One row of lines along z.
template <class T>
struct AlongZ {
    T scale = 1, lower = 0;
    bool first = true;
};

/// As rows_then_forwards, and then a row of lines along z forwards, with w along y as right-hand sides. last_row: w along y of the row before, and on return of the last row;
/// not read where first is 0. front, to: of row `first`; w along z replaces that of the plane before in front (not read for the first plane) and goes to `to`.
template <class T>
bool rows_then_deep(const LineFactors<T>& along_x, const LineFactors<T>& along_y, const AlongZ<T>& along_z, T* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, T* last_row, T* front,
                    std::int64_t pitch, T* to, std::int64_t to_pitch, bool past_cache, const ComingRows<T>& coming);

/// A row of a plane back along z and then along y: t = w - upper_z t, v = t - upper_y v, and sum += v where sum is not null. t: of the plane after, not read in the last one;
/// v: of the row after.
template <class T>
void row_deep_backwards(T upper_z, T upper_y, bool last, std::int64_t count, const T* w, T* t, T* v, T* sum);

/// One row of many lines forwards: w = scale r - lower before.
template <class T>
void row_forwards(T scale, T lower, std::int64_t count, const T* r, const T* before, T* w);

/// One row of many lines backwards: v = w - upper after. v may be w or after.
template <class T>
void row_backwards(T upper, std::int64_t count, const T* w, const T* after, T* v);

/// The same, and added to sum.
template <class T>
void row_backwards_adding(T upper, std::int64_t count, const T* w, const T* after, T* v, T* sum);

template <class T>
bool all_finite(std::int64_t count, const T* values);

}  // namespace trifold::cpu
