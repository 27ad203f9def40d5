// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/pivot_check.hpp"

#include <cmath>

#include "backends/reference/tridiagonal/gather.hpp"
#include "backends/reference/tridiagonal/line.hpp"
#include "backends/reference/tridiagonal/ring_lu.hpp"
#include "base/aligned_buffer.hpp"
#include "backends/cpu/tridiagonal/values.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

using namespace tridiagonal::reference;

// The scheme of gtsv, of which only the row that waits for its pivot is kept.
template <class T>
std::int64_t first_zero_pivot(const Bands<T>& a) {
    const std::int64_t n = a.rows();
    T diag = a.diag[0], upper = n > 1 ? a.upper[0] : T(0);
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        const T below = a.lower[i + 1], next_diag = a.diag[i + 1], next_upper = i + 2 < n ? a.upper[i + 1] : T(0);
        if (std::abs(diag) >= std::abs(below)) {
            if (diag == T(0)) return i;
            const T m = below / diag;
            diag = next_diag - m * upper, upper = next_upper;
        } else {
            const T m = diag / below;
            diag = upper - m * next_diag, upper = -m * next_upper;
        }
    }
    return diag == T(0) ? n - 1 : -1;
}

}  // namespace

template <class T>
PivotCheck check_pivots(const System& system) {
    const std::int64_t n = system.rows;
    const auto rows = static_cast<std::size_t>(n);
    const std::size_t ring_words = system.periodic && n > 2 ? static_cast<std::size_t>(n) * Banded<T>::width : 0;
    AlignedBuffer memory((4 * rows + ring_words) * sizeof(T));
    T* const at = static_cast<T*>(memory.data());
    Ring<T> ring{{{at, rows}, {at + rows, rows}, {at + 2 * rows, rows}, {at + 3 * rows, rows}}};
    System matrix = system;
    matrix.rhs = Operand{};
    const bool periodic = gather(matrix, ring);
    if (const std::int64_t row = first_not_finite(ring); row >= 0) return {Reason::not_finite, row};
    std::int64_t bad;
    if (periodic) {
        const Banded<T> A{{at + 4 * rows, ring_words}};
        std::ranges::fill(A.entries, T{0});
        fold(ring, A);
        bad = tridiagonal::reference::factor(A);
        if (bad >= 0) bad = fold_row(bad, n);
    } else {
        bad = first_zero_pivot(ring.bands);
    }
    return bad < 0 ? PivotCheck{} : PivotCheck{Reason::singular, bad};
}

std::size_t pivoted_bytes(const System& system) { return (line_bytes(system, Algorithm::lu) + 63) / 64 * 64; }

template <class T>
Outcome solve_pivoted(const System& system, void* scratch) {
    const std::size_t bytes = pivoted_bytes(system);
    const AlignedBuffer own = scratch ? AlignedBuffer() : AlignedBuffer(bytes);
    const LineResult result = solve_line<T>(system, Algorithm::lu, unit_roundoff(dtype_of<T>), {scratch ? scratch : own.data(), bytes});
    Outcome outcome;
    outcome.reason = result.verdict.reason, outcome.row = result.verdict.row;
    return outcome;
}

template PivotCheck check_pivots<float>(const System&);
template PivotCheck check_pivots<double>(const System&);
template Outcome solve_pivoted<float>(const System&, void*);
template Outcome solve_pivoted<double>(const System&, void*);

}  // namespace trifold::cpu
