// SPDX-License-Identifier: BSD-3-Clause
// Lanes of a warp join the segments of rings, `each` lanes a ring (lanes.cuh, segment.cuh). The last rows of a ring's lanes are a ring themselves, A x[lane before] + B x[lane] + C x[lane after] = r:
// all but the last one's are a chain, which is solved as if that were zero (g), and it is found from the chain's ends.
//
//   X = inverse (r - A g[lane before] - C g[first])                 in the last lane
//   x = g - fill X                                                  in the others
//
// Numerics: where |fill| ≤ 4, which is looked at, g is no larger than 5 max|x|, so that the residuals of the chain's rows and of the last one are those of their own roundings (J. W. Demmel, N. J. Higham,
// R. S. Schreiber, Stability of block LU factorization, 1995). Dominant rows have 1.
#pragma once

#include "backends/cuda/tridiagonal/shared/lanes.cuh"

namespace trifold::cuda {

template <class T>
struct RingLanes {
    LaneJoin<T> chain;
    T coupling;                     ///< to the first row of the lane that comes after
    T fill, before_last, after_last, inverse;  ///< last lane: A, C and one over what is left of B
    int next, previous, first, last;  ///< lanes of the ring
    bool in_chain;

    /// `ends`: of the lane's segment; each: lanes of a ring. `real`: the lane has rows. False, in some lane, where it is not safe.
    __device__ __forceinline__ bool factor(const SegmentEnds<T>& ends, int each, bool real, int lane) {
        first = lane / each * each, last = min(first + each - 1, 31);
        next = lane == last ? first : lane + 1, previous = lane == first ? last : lane - 1;
        in_chain = lane != last;
        coupling = real ? ends.c : T(0);
        const T alpha = __shfl_sync(~0u, ends.alpha, next), beta = __shfl_sync(~0u, ends.beta, next), growth = __shfl_sync(~0u, ends.first_growth, next);
        const T a = ends.e, b = fused(-coupling, alpha, ends.p), c = -coupling * beta, u = fabs(a) + fabs(b) + fabs(c), allowed = T(accepted_growth) * ends.scale;
        bool fine = !real || max(max(ends.last, fabs(coupling) * growth), u) <= allowed;
        const bool ends_chain = lane + 1 == last;
        T left = in_chain && lane != first ? a : T(0), middle = in_chain && real ? b : T(1), right = in_chain && !ends_chain ? c : T(0), weight = fabs(left) + fabs(middle) + fabs(right);
        chain.eliminate(left, middle, right, weight, real && in_chain, allowed, lane, fine);
        fine = fine && fabs(chain.inverse) <= shared_limit<T>;
        fill = solve(in_chain && real ? (lane == first ? a : T(0)) + (ends_chain ? c : T(0)) : T(0), lane);
        fine = fine && fabs(fill) <= T(4);
        const T fill_before = __shfl_sync(~0u, fill, previous), fill_first = __shfl_sync(~0u, fill, first);
        const bool alone = first == last;
        before_last = alone || in_chain ? T(0) : a, after_last = alone || in_chain ? T(0) : c;
        inverse = reciprocal(in_chain || !real ? T(1) : alone ? a + b + c : fused(-a, fill_before, fused(-c, fill_first, b)));
        return fine && fabs(inverse) <= shared_limit<T>;
    }

    /// y, z: as of LaneJoin::reduce. Returns the unknown of the lane's last row, `before` the one before its first row.
    __device__ __forceinline__ T join(T y, T z, int lane, T& before) const {
        const T r = fused(-coupling, __shfl_sync(~0u, z, next), y), g = solve(in_chain ? r : T(0), lane);
        const T beside = __shfl_sync(~0u, g, previous), begin = __shfl_sync(~0u, g, first);
        const T closing = __shfl_sync(~0u, fused(-before_last, beside, fused(-after_last, begin, r)) * inverse, last);
        const T x = in_chain ? fused(-fill, closing, g) : closing;
        before = __shfl_sync(~0u, x, previous);
        return x;
    }

private:
    __device__ __forceinline__ T solve(T r, int lane) const {
        const T g = chain.reduce(r);
        return chain.substitute(g, g * chain.inverse, T(0), lane);
    }
};

}  // namespace trifold::cuda
