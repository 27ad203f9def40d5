// SPDX-License-Identifier: BSD-3-Clause
// One matrix eliminated from both ends and kept, for one right-hand side or a few: ends_kernel.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "problems/tridiagonal/system.hpp"

namespace trifold::cpu {

/// Words that are kept of `rows` rows.
constexpr std::int64_t ends_words(std::int64_t rows) { return 3 * rows; }

/// Eliminates; false where the elimination must not be used. system: one (levels == 0), neither periodic nor ragged; its rhs is not read.
template <class T>
bool factor_ends(const tridiagonal::System& system, T* kept);

/// One right-hand side. w: room for as many numbers as rows, so that nothing is stored where x is not finite; or null: x takes them, on two threads where
/// there are. False where x is not finite.
template <class T>
bool solve_ends(const tridiagonal::System& system, const T* kept, int threads, T* w = nullptr);

}  // namespace trifold::cpu
