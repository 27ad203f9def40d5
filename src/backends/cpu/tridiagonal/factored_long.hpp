// SPDX-License-Identifier: BSD-3-Clause
// One long system with kept factors, on all threads and lanes.
//
//   w_i = r_i/p_i - l_i w_{i-1},   x_i = w_i - c'_i x_{i+1}
//
// Two recurrences that run from end to end. They are cut, and how is known from the factors alone, once for all right-hand sides:
//   local     the product of l over `left` rows before every cut, and of c' over `right` rows behind it, is at most 2^-42 u, and nothing that
//             is left out grows again: w starts `left` rows early from 0, x starts `right` rows late from 0. Five words per row: rhs, x, and three kept.
//   coupled   else, where products within a chunk stay below 16 (so that no sum of two parts cancels): every chunk is swept from zeros, for the w that it
//             ends with and the x that it begins with; these are joined from chunk to chunk by what the matrix does to a unit at either end,
//             which is kept; then every chunk is swept from what its neighbours have, and what it misses of what they have taken is spread over
//             its rows (chunk_spread-inl.h). Nine words.
//   ends      on a machine of few cores, and of few rows, instead of `coupled` and `none`: two chains of multiply-adds (ends_kernel.hpp) take less time than
//             two passes of vectors. Eight words.
//   matrix    where it is local and in memory, the matrix in place of its factors: the certified pass moves as few words, faster
//   none      else, nothing: the caller sweeps from end to end.
#pragma once

#include <cstddef>

#include "backends/cpu/tridiagonal/long_job.hpp"

namespace trifold::cpu {

/// Shorter ones are swept from end to end in less time than threads and halos take.
inline constexpr std::int64_t least_long_rows = 4096;

template <class T>
std::size_t long_factor_bytes(std::int64_t rows);

/// numbers: 1/p, l, c' of every row, side by side. memory: aligned to 64.
template <class T>
void long_factor(std::int64_t rows, const T* numbers, void* memory, int threads);

/// Another mode for a matrix whose mode is known, with 3 numbers per row at long_numbers.
inline void set_long_mode(void* memory, LongMode mode) { static_cast<LongHead*>(memory)->mode = mode; }
template <class T>
T* long_numbers(const void* memory) { return reinterpret_cast<T*>(static_cast<char*>(const_cast<void*>(memory)) + 64); }

template <class T>
LongMode long_mode(const void* memory) { return static_cast<const LongHead*>(memory)->mode; }

template <class T>
std::size_t long_scratch(std::int64_t rows, int threads);

/// Local or coupled. system: one (levels == 0), whose rhs and x are read and written; scratch aligned to 64. False where x is not finite; it may have been stored then.
template <class T>
bool long_solve(const tridiagonal::System& system, const void* memory, int threads, void* scratch);

}  // namespace trifold::cpu
