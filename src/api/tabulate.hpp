// SPDX-License-Identifier: BSD-3-Clause
// Coefficient functions evaluated into arrays, for devices whose kernels read memory only.
#pragma once

#include <cstddef>
#include <span>

#include "problems/tridiagonal/system.hpp"
#include "trifold/view.hpp"

namespace trifold::tridiagonal {

bool has_generators(const System& system) noexcept;

/// The system that tabulate() makes, without its values: what is planned for it holds for the tables.
System with_tables(System system) noexcept;

/// Bytes for tabulate().
std::size_t tabulate_bytes(const System& system) noexcept;

/// Evaluates every generator of a system that is neither periodic nor ragged into `memory` (tabulate_bytes of it) and points
/// the operands there: rows × systems where the right-hand side has its systems side by side, else systems × rows.
void tabulate(System& system, void* memory, int threads);

/// A generator's values in every row of every system of the batch, systems × rows, as a view of `memory` (rows × systems numbers of that type).
AnyView tabulated(const Generator& generator, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype, void* memory, int threads);

}  // namespace trifold::tridiagonal
