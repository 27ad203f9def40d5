// SPDX-License-Identifier: BSD-3-Clause
// A warp joins its lanes' segments by cyclic reduction, of which the matrix's part is done once (R. W. Hockney 1965; here it is
// Gaussian elimination in another order and as stable, unlike parallel cyclic reduction).
//
//   e x[l-1] + p x[l] + c x[first of l+1] = y[l],   l = 0 … 31: the last rows of the lanes' segments (segment.cuh)
//
// On level h = 1, 2, 4, 8, 16 every second of the lanes that are left is eliminated; lane 31 remains, and the unknown before the warp.
// A right-hand side costs two shuffles per level and direction.
#pragma once

#include "backends/cuda/tridiagonal/shared/segment.cuh"

namespace trifold::cuda {

template <class T>
struct LaneJoin {
    T coupling;            ///< to the next lane's first row; 0 in lane 31
    T above[5], below[5];  ///< multipliers of the neighbours eliminated on a level
    T inverse, left, right;
    T first;               ///< of this lane in the unknown of the warp's first row

    /// `ends`: of the lane's segment; becomes those of the whole warp, in lane 31 (alpha, beta, first_growth in all lanes). `real`: the
    /// segment's last row is no padding. False, in some lane, where it is not safe.
    __device__ __forceinline__ bool factor(SegmentEnds<T>& ends, bool real, int lane) {
        const T alpha = __shfl_down_sync(~0u, ends.alpha, 1), beta = __shfl_down_sync(~0u, ends.beta, 1);
        const T growth = __shfl_down_sync(~0u, ends.first_growth, 1);
        const T allowed = T(accepted_growth) * ends.scale;
        coupling = lane < 31 ? ends.c : T(0);
        T a = ends.e, b = fused(-coupling, alpha, ends.p), c = -coupling * beta;
        T u = fabs(a) + fabs(b) + fabs(c);
        bool fine = !real || max(max(ends.last, fabs(coupling) * growth), u) <= allowed;
        eliminate(a, b, c, u, real, allowed, lane, fine);
        // The first row's unknown, once lane 0, 1, 3, 7, 15 are eliminated from it.
        T al = __shfl_sync(~0u, ends.alpha, 0), be = __shfl_sync(~0u, ends.beta, 0), grown = __shfl_sync(~0u, ends.first_growth, 0);
#pragma unroll
        for (int l = 0; l < 16; l = 2 * l + 1) {
            const T r = __shfl_sync(~0u, inverse, l), le = __shfl_sync(~0u, left, l), ri = __shfl_sync(~0u, right, l);
            grown = max(grown, fabs(be) * fabs(r) * __shfl_sync(~0u, u, l));
            if (lane == l) first = -be * r;
            al = fused(-be, le, al), be = -be * ri;
        }
        ends.e = a, ends.p = b, ends.alpha = al, ends.beta = be, ends.last = u, ends.first_growth = grown;
        return fine;
    }

    /// a x[l-1] + b x[l] + c x[l+1] = g, u the sum of their sizes: by levels. What is left of lane 31's row stays in a, b, c, u. fine: false, in some lane, where it is not safe.
    __device__ __forceinline__ void eliminate(T& a, T& b, T& c, T& u, bool real, T allowed, int lane, bool& fine) {
        inverse = left = right = first = 0;
#pragma unroll
        for (int level = 0; level < 5; ++level) {
            const int h = 1 << level, place = (lane + 1) & (2 * h - 1);
            const T r = reciprocal(b);
            if (place == h) inverse = r, left = a * r, right = c * r;
            const T ra = __shfl_up_sync(~0u, r, h), aa = __shfl_up_sync(~0u, a, h), ca = __shfl_up_sync(~0u, c, h), ua = __shfl_up_sync(~0u, u, h);
            const T rb = __shfl_down_sync(~0u, r, h), ab = __shfl_down_sync(~0u, a, h), cb = __shfl_down_sync(~0u, c, h), ub = __shfl_down_sync(~0u, u, h);
            above[level] = below[level] = 0;
            if (place == 0) {
                const T f = a * ra, g = lane < 31 ? c * rb : T(0);
                b = fused(-f, ca, b), a = -f * aa, c = 0;
                T q = fabs(f) * ua;
                if (lane < 31) b = fused(-g, ab, b), c = -g * cb, q = fused(fabs(g), ub, q);
                above[level] = f, below[level] = g;
                u = fabs(a) + fabs(b) + fabs(c);
                fine = fine && (!real || q + u <= allowed) && fabs(f) <= shared_limit<T> && fabs(g) <= shared_limit<T>;
            }
        }
        if (lane == 31) inverse = reciprocal(b);
        else fine = fine && fabs(inverse) <= shared_limit<T>;
    }

    /// y, z: y[R-1] and z[0] of the lane's segment. Returns the lane's right-hand side when it is eliminated.
    __device__ __forceinline__ T reduce(T y, T z) const {
        return reduce(fused(-coupling, __shfl_down_sync(~0u, z, 1), y));
    }
    __device__ __forceinline__ T reduce(T g) const {
#pragma unroll
        for (int level = 0; level < 5; ++level) {
            const T up = __shfl_up_sync(~0u, g, 1 << level), down = __shfl_down_sync(~0u, g, 1 << level);
            g = fused(-above[level], up, fused(-below[level], down, g));
        }
        return g;
    }

    /// The warp's part of its first row's unknown: z[0] of the warp, in all lanes.
    __device__ __forceinline__ T first_row(T g, T z, int lane) const {
        T sum = fused(first, g, lane == 0 ? z : T(0));
#pragma unroll
        for (int h = 16; h > 0; h >>= 1) sum += __shfl_xor_sync(~0u, sum, h);
        return sum;
    }

    /// The lane's unknown; `x`: lane 31's, `before`: that before the warp.
    __device__ __forceinline__ T substitute(T g, T x, T before, int lane) const {
        const T own = g * inverse;
#pragma unroll
        for (int level = 4; level >= 0; --level) {
            const int h = 1 << level;
            const T up = __shfl_up_sync(~0u, x, h), down = __shfl_down_sync(~0u, x, h);
            if (((lane + 1) & (2 * h - 1)) == h) x = fused(-left, lane >= h ? up : before, fused(-right, down, own));
        }
        return x;
    }
};

/// What every right-hand side needs of the matrix, R rows a lane, as far as it is in shared memory where registers are scarce: one over the pivots, and the join. A word
/// of every lane side by side.
template <class T, int R>
struct LanesAside {
    static constexpr int words = (R + 15) * 32;
    T* at;  ///< of the lane

    __device__ __forceinline__ void put(const T (&inverses)[R], const LaneJoin<T>& join) const {
        const T fixed[5] = {join.coupling, join.inverse, join.left, join.right, join.first};
#pragma unroll
        for (int i = 0; i < R; ++i) at[32 * i] = inverses[i];
#pragma unroll
        for (int k = 0; k < 5; ++k) at[32 * (R + k)] = fixed[k], at[32 * (R + 5 + k)] = join.above[k], at[32 * (R + 10 + k)] = join.below[k];
    }
    __device__ __forceinline__ T inverse(int i) const { return at[32 * i]; }
    __device__ __forceinline__ LaneJoin<T> join() const {
        const T* const from = at + 32 * R;
        LaneJoin<T> join;
        join.coupling = from[0], join.inverse = from[32], join.left = from[64], join.right = from[96], join.first = from[128];
#pragma unroll
        for (int k = 0; k < 5; ++k) join.above[k] = from[32 * (5 + k)], join.below[k] = from[32 * (10 + k)];
        return join;
    }
};

}  // namespace trifold::cuda
