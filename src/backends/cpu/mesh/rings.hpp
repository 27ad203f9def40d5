// SPDX-License-Identifier: BSD-3-Clause
// Rings of which every row is dominated by its diagonal, strictly: opened and closed by a rank-one change of their matrices (lines.hpp) without a look at what comes out.
//
//   A = B + u v^T,  u = (g, 0 … 0, upper[n-1]),  v = (1, 0 … 0, lower[0] / g),  g of the diagonal's size and opposite sign
//   B q = u,  B y = r,  x = y - q (v . y) / (1 + v . q)
//
// Numerics: B is dominated as A is, so its solves are stable without pivots. Where A is nearly singular x is nearly along q, and an error e of the factor (v . y) / (1 + v . q), relative
// to it, leaves A q e = u (1 + v . q) e: no more than roundoffs of |A| |x|. So the backward error is that of B's solves, however large the factor is.
#pragma once

#include "backends/cpu/mesh/lines.hpp"

namespace trifold::cpu {

/// Before they are opened.
template <class T>
bool rings_dominated(const LineShape& lines, const LineMatrices<T>& matrices);

/// Sets gamma, the right-hand sides of the spikes, and the ends of the diagonals.
template <class T>
void open_rings(const LineShape& lines, LineMatrices<T>& matrices);

/// values: y on entry, x on return. status, per line: not_finite where that is so, else as it was. Returns how many lines became so that were not.
template <class T>
std::int64_t close_rings(const LineShape& shape, const LineMatrices<T>& matrices, T* values, std::int8_t* status);

}  // namespace trifold::cpu
