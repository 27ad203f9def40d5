// SPDX-License-Identifier: BSD-3-Clause
// The canonical form of a tridiagonal problem: validated, packed and transposed arguments folded into pointers and
// strides, batch dimensions merged. Plain data, so that it can cross a shared object's edge.
#pragma once

#include <cstdint>

#include "trifold/coefficient.hpp"
#include "trifold/dtype.hpp"

namespace trifold::tridiagonal {

/// Where the value of (row i, level indices j[]) of one operand comes from.
struct Operand {
    enum class Kind : std::uint8_t { view, scalar, generator };

    Kind kind = Kind::scalar;
    double value = 0;                       ///< scalar
    void* data = nullptr;                   ///< view: element (0, 0…); lower's may point before its first entry, which is then never read
    std::int64_t row_stride = 0;            ///< elements; view only, as the next
    std::int64_t level_stride[4] = {};
    const Generator* generator = nullptr;   ///< generator: row argument is i + generator_shift
    std::int64_t generator_shift = 0;
};

/// n rows in each of extent[0] × … × extent[levels-1] systems; levels are ordered from the largest to the smallest stride
/// of rhs, merged where every operand allows it. levels == 0 is one system.
///
///   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i]
///
/// lower is not read at row 0 nor upper at row n-1. In periodic systems `top_right` (row 0, x[n-1]) and `bottom_left`
/// (row n-1, x[0]) are read at their row 0. A transposed problem has been turned into a plain one here.
struct System {
    DType dtype = DType::f64;
    std::int64_t rows = 0;
    int levels = 0;
    std::int64_t extent[4] = {1, 1, 1, 1};
    std::int64_t number = 0;                ///< the user's number of the system at index 0 …
    std::int64_t number_stride[4] = {};     ///< … to which index × number_stride is added per level
    Operand lower, diag, upper, rhs, x;
    Operand top_right, bottom_left;
    bool periodic = false;
    bool accumulate = false;
    bool in_place = false;                  ///< x is rhs
    const std::int64_t* offsets = nullptr;  ///< ragged: rows offsets[k] … offsets[k+1]-1 belong to system k; rows is the longest
    std::int64_t ragged_systems = 0;

    std::int64_t systems() const noexcept {
        if (offsets) return ragged_systems;
        std::int64_t count = 1;
        for (int d = 0; d < levels; ++d) count *= extent[d];
        return count;
    }
};

/// Orders the levels by the stride of rhs and joins neighbours that are one array for every operand.
void order_levels(System& system) noexcept;

/// Whether a corner (`top_right`, `bottom_left`) is that row of `band`, in every system.
bool is_row_of(const System& system, const Operand& corner, const Operand& band, std::int64_t row) noexcept;

/// Whether all systems of a batch have the same matrix, by numbers or strides of 0; corners are not looked at.
bool have_one_matrix(const System& system) noexcept;

/// System k of a batch (levels counted with the last one fastest; ragged: the k-th piece) as a system with levels == 0.
System system_at(const System& batch, std::int64_t k) noexcept;

/// The same problem without its first `levels - keep` levels: those indices are folded into the pointers. 0 ≤ keep ≤ levels;
/// `index` counts over the folded levels, the last of them fastest.
System fold_outer(const System& batch, int keep, std::int64_t index) noexcept;

}  // namespace trifold::tridiagonal
