// SPDX-License-Identifier: BSD-3-Clause
// A lane's rows once their unknowns are known: substitution, and the residual of every row against what is still in shared memory.
#pragma once

#include <type_traits>

#include "backends/cuda/tridiagonal/block/rows_copy.cuh"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#include "backends/cuda/tridiagonal/thread/largest.cuh"

namespace trifold::cuda {

/// What accept × max|diag| × max|x| must be below to count as a number.
template <class T>
inline constexpr T largest_allowed = sizeof(T) == 8 ? T(1e290) : T(1e30);

/// A bit for each of R - 1 rows.
template <int R>
using RowBits = std::conditional_t<(R > 33), unsigned long long, unsigned>;

__device__ __forceinline__ unsigned of_all_lanes(unsigned bits) { return __reduce_or_sync(~0u, bits); }
__device__ __forceinline__ unsigned long long of_all_lanes(unsigned long long bits) {
    return static_cast<unsigned long long>(of_all_lanes(static_cast<unsigned>(bits >> 32))) << 32 | of_all_lanes(static_cast<unsigned>(bits));
}

/// Of R rows from `start` on: bit i < R - 1 where row i is the last of its system, or of the padding up to the next one.
template <int R>
__device__ __forceinline__ RowBits<R> ends_of_systems(int start, int pitch, int rows, unsigned long long pitch_inverse) {
    static_assert(R <= 65);
    RowBits<R> ends = 0;
    const int p = start - static_cast<int>(start * pitch_inverse >> 32) * pitch;
#pragma unroll 1
    for (int i = pitch - 1 - p; i < R - 1; i += pitch) ends |= RowBits<R>(1) << i;
    if (pitch != rows)
#pragma unroll 1
        for (int i = rows - 1 - p; i < R - 1; i += pitch)
            if (i >= 0) ends |= RowBits<R>(1) << i;
    return ends;
}

/// Which of a lane's systems are not good, by the last row of each.
template <int R>
struct RowsVerdict {
    RowBits<R> within = 0;  ///< bit i: the rows up to i that belong to the same system
    int last = -1;        ///< R - 1 where those that end with the lane's last row are not good

    __device__ __forceinline__ bool failed() const { return within != 0 || last >= 0; }
    template <class Visit>
    __device__ __forceinline__ void each(Visit visit) const {
        for (RowBits<R> rest = within; rest; rest &= rest - 1) visit(__ffsll(static_cast<long long>(rest)) - 1);
        if (last >= 0) visit(last);
    }
};

/// left, mine, after: unknowns before the lane's first row, of its last row, and after it. x replaces d. all_ends: of all lanes; Ends: there are some.
template <bool Ends, class T, int R>
__device__ __forceinline__ RowsVerdict<R> check_rows(Chunk<T, R>& rows, const RowsTile<T>& at, T left, T mine, T after, T accept,
                                                  RowBits<R> ends, RowBits<R> all_ends, bool broken) {
    RowsVerdict<R> verdict;
    Largest<T> defect, diag, largest;
    const auto judge = [&] {
        const T allowed = accept * diag.value() * largest.value();
        const bool good = defect.value() <= allowed && allowed < largest_allowed<T>;
        defect = {}, diag = {}, largest = {};
        return good;
    };
#pragma unroll
    for (int i = 0; i < R; ++i) rows.d[i] = rows.x(i, left, mine);
    if (at.a[0] != T(0)) largest.add(left);
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const T own = rows.d[i], next = i + 1 < R ? rows.d[i + 1] : after, b_i = at.b[i], c_i = at.c[i];
        if (i == R - 1 && c_i != T(0)) largest.add(next);
        defect.add(fused(-c_i, next, fused(-at.a[i], i ? rows.d[i - 1] : left, fused(-b_i, own, at.d[i]))));
        diag.add(b_i);
        largest.add(own);
        if (Ends && i < R - 1 && (all_ends >> i & 1))
            if (ends >> i & 1)
                if (!judge()) verdict.within |= RowBits<R>(1) << i;
    }
    if (!judge()) verdict.last = R - 1;
    if (broken) verdict.within |= ends, verdict.last = R - 1;
#pragma unroll
    for (int i = 0; i < R; ++i) at.d[i] = rows.d[i];
    return verdict;
}

}  // namespace trifold::cuda
