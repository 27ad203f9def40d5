// SPDX-License-Identifier: BSD-3-Clause
// What elimination leaves of a row, x = d - a before - c next, may weigh so much: |a| + |c|. Weakly dominant rows have 1 at most, and what is bounded by it at every step is backward stable, row by row,
// without exchanges and without a look at residuals (docs/decisions/0053-dominant-rows-first.md).
#pragma once

#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda {

template <class T>
inline constexpr T row_weight = T(1.0625);

/// Of d and x: beyond it an infinity could arise in a part of a system only.
template <class T>
inline constexpr T join_limit = sizeof(T) == 8 ? T(1e290) : T(1e30);

/// The same within a lane's R rows, of which what more than 8 weigh beyond 1 would add up: weakly dominant ones have that by rounding.
template <class T, int R>
inline constexpr T lane_weight = R <= 8 ? row_weight<T> : T(1 + 0x1p-10);

/// False for what is not a number, too.
template <class T>
__device__ __forceinline__ bool is_light(const Relation<T>& row, T most = row_weight<T>) {
    return fabs(row.a) + fabs(row.c) <= most && fabs(row.d) <= join_limit<T>;
}

}  // namespace trifold::cuda
