// SPDX-License-Identifier: BSD-3-Clause
// All lines of a block along one axis, in place, by one thread or several: what trifold/sweep.hpp calls a line solve.
//
//   lower[i] v[i-1] + diag[i] v[i] + upper[i] v[i+1] = r[i],  i = 0 … n-1;  in a ring v[-1] = v[n-1] and v[n] = v[0]
//
// Lines are solved as batches (tridiagonal/batch.hpp), or with the factors of their one matrix (factored.hpp). Rings by a rank-one change of the matrix (Sherman and Morrison 1950; Golub and
// Van Loan, 4th ed., 2.1.4), whose result, unless all rows are dominated by their diagonals, is checked row by row; where it does not hold, by LU with partial pivoting of the ring.
#pragma once

#include <cstdint>

#include "backends/cpu/mesh/factored.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// Lines of n values: line (o, j) begins at o outer_stride + j inner_stride, its values are row_stride apart.
struct LineShape {
    std::int64_t n = 0, row_stride = 1, outer = 1, outer_stride = 0, inner = 1, inner_stride = 1;

    std::int64_t lines() const noexcept { return outer * inner; }
    std::int64_t values() const noexcept { return lines() * n; }
    friend bool operator==(const LineShape&, const LineShape&) = default;
};

/// The matrices: as lines, or one for all (strides of lines 0). Ends are folded in (problems/mesh/line_ends.hpp). Of a ring the first
/// and last diagonal entries have been changed by make_ring.
template <class T>
struct LineMatrices {
    T *lower = nullptr, *diag = nullptr, *upper = nullptr;
    std::int64_t row_stride = 1, outer_stride = 0, inner_stride = 0;
    bool ring = false;
    bool dominated = false;  ///< ring: by the diagonal, in every row (rings.hpp)
    T* gamma = nullptr;  ///< ring: per line (inner fastest), or one for all
    T* spike = nullptr;  ///< ring: with the strides of the matrices, solved
    const LineFactors<T>* factors = nullptr;  ///< one for all, and usable; null: each line is eliminated on its own

    bool one_for_all() const noexcept { return outer_stride == 0 && inner_stride == 0; }
    std::int64_t at(std::int64_t o, std::int64_t i, std::int64_t j) const noexcept { return o * outer_stride + i * row_stride + j * inner_stride; }
};

struct LineTeam {
    int threads = 1;
    void* scratch = nullptr;     ///< line_scratch bytes
    std::size_t bytes = 0;
};

/// What went wrong: line numbers count o first, then j.
struct LineFailure {
    Reason reason = Reason::exact;
    std::int64_t failures = 0, rescued = 0, first = -1, row = -1;
};

template <class T>
std::size_t line_scratch(const LineShape& shape, const LineMatrices<T>& matrices, int threads);

/// n ≥ 3. Changes the ends of the diagonals and sets gamma and spike; `lines`: of the matrices themselves (1 where one is for all).
template <class T>
void make_ring(LineMatrices<T>& matrices, const LineShape& lines, const LineTeam& team);

/// values: right-hand sides on entry, solutions on return. status: per line its Reason, written where anything failed.
template <class T>
LineFailure solve_lines(const LineShape& shape, const LineMatrices<T>& matrices, T* values, std::int8_t* status, const LineTeam& team);

}  // namespace trifold::cpu
