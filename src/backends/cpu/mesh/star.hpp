// SPDX-License-Identifier: BSD-3-Clause
// Right-hand sides that are made in registers: a point's six neighbours, each less the point itself, times a number, and the point and another field's value there times numbers. So are
// heat's with one conductivity, and others' whose text says so (problems/mesh/linear.hpp); any other function is called row by row.
//
//   r = west (f(x-1) - f) + east (f(x+1) - f) + south (f(y-1) - f) + north (f(y+1) - f) + below (f(z-1) - f) + above (f(z+1) - f) + own f + other g
//
// Numerics: a point less its neighbour is rounded by the point's size too, so the point must have a part in the text that is not small beside its neighbours'.
// Per vector, four rows at once: 3.5 loads, 2 shuffles along x, 6 subtractions, 7 multiply-adds; with another field one load and multiply-add more.
#pragma once

#include <cstdint>
#include <vector>

#include "problems/mesh/checked.hpp"

namespace trifold::cpu {

template <class T>
struct Star {
    int field = -1;  ///< none: the function is something else
    T west = 0, east = 0, south = 0, north = 0, below = 0, above = 0, own = 0;
    int other_field = -1;  ///< where there is another one
    T other = 0;
    T low_sign = 1, low_offset = 0, high_sign = 1, high_offset = 0;  ///< f(-1) = low_sign f(0) + low_offset, f(n) likewise of f(n-1)

    explicit operator bool() const noexcept { return field >= 0; }
};

/// The right-hand side of a sweep, over rows of at least two vectors.
template <class T>
Star<T> star_of(const mesh::CheckedSweep& one, const MeshProblem& problem);

/// Some rows of a plane: the first of them, the one before it and the one behind the last; and the first of the same rows in the planes before and behind.
template <class T>
struct StarRows {
    const T *here = nullptr, *south = nullptr, *north = nullptr, *below = nullptr, *above = nullptr, *other = nullptr;
    std::int64_t pitch = 0, below_pitch = 0, above_pitch = 0, other_pitch = 0;
};

/// Where they lie. Those beyond a side that changes them are put into `copies`.
template <class T>
StarRows<T> star_rows(const Star<T>& star, const MeshProblem& problem, std::int64_t mesh, std::int64_t z, std::int64_t y, std::int64_t rows, std::vector<T>& copies);

/// r of `rows` rows of n points, which have room for whole vectors; zeros behind the last point.
template <class T>
void star_right_hand_sides(const Star<T>& star, const StarRows<T>& from, std::int64_t rows, std::int64_t n, T* to, std::int64_t pitch);

}  // namespace trifold::cpu
