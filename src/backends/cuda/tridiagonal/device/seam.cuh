// SPDX-License-Identifier: BSD-3-Clause
// A seam between windows of a long system: what either side sees, and the residual that it adds. For windows with halos, narrow and wide, and for coupled ones.
#pragma once

namespace trifold::cuda {

template <class T>
__device__ __forceinline__ T larger(T a, T b) {  // NaN wins
    return a > b || a != a ? a : b;
}

/// Where two windows meet, as one of them sees it.
template <class T>
struct Side {
    T own, seen;          ///< x of its row at the seam; x of the neighbour's row there as this side has it
    T coupling, allowed;  ///< of its row: |a| or |c| over |a| + |b| + |c|; the residual accepted, in the same measure
};

template <class T>
struct Seam {
    Side<T> above, below;  ///< of the window before it, of the window after it
};

/// The residual that a seam adds to its two rows, where it is more than is allowed there; else 0.
template <class T>
__device__ __forceinline__ T excess_of(const Side<T>& above, const Side<T>& below) {
    const T upper = above.coupling * fabs(below.own - above.seen), lower = below.coupling * fabs(above.own - below.seen);
    return larger(upper <= above.allowed ? T(0) : upper, lower <= below.allowed ? T(0) : lower);
}

}  // namespace trifold::cuda
