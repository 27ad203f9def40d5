// SPDX-License-Identifier: BSD-3-Clause
// Lines in segments (F. A. Wang 1981) whose matrices are eliminated where they are used, and lines that are rings.
//
// A segment has its last row in common with nobody: x[i] = y[i] - upper[i] x[i+1] - fill[i] before, `before` being the last row of the segment before it, with
//   y[i] = inverse[i] d[i] - lower[i] y[i-1],  fill[0] = lower[0],  fill[i] = -lower[i] fill[i-1]
//   x[0] = z - alpha before + rho last,  z = sum of reach[i] y[i],  alpha = sum of reach[i] fill[i],  reach[i] = -upper[i-1] reach[i-1],  rho = reach of the last row.
// So the last rows of segments are a tridiagonal system with a row per segment; in a ring the first and last of them are coupled too, and the last unknown is
// kept until all others depend on it alone.
// Segments of a line differ in length by one at most: where it is shorter than R, a segment's first place repeats `before` and is no row.
// Numerics: no pivots; the matrices are diagonally dominant in every row, strictly (pass.cuh, check), so that pivots are at least what dominance leaves
//   and growth is at most 2 (N. J. Higham, Accuracy and Stability, 2nd ed., 9.5); their Schur complements on last rows are dominant likewise.
#pragma once

#include "backends/cuda/mesh/resident/blocks.cuh"

namespace trifold::cuda::fused {

/// What is left of the matrix of a segment.
template <class T, int R>
struct SegmentFactors {
    T lower[R], inverse[R], upper[R];

    /// A row with its couplings; place by place.
    __device__ __forceinline__ void eliminate(int i, T a, T b, T c, bool = false) {
        const T p = i ? multiply_add(-a, upper[i ? i - 1 : 0], b) : b;
        inverse[i] = T(1) / p;
        lower[i] = a * inverse[i], upper[i] = c * inverse[i];
    }

    /// y in place of d; returns z.
    __device__ __forceinline__ T forwards(T (&y)[R], bool shorter) const {
        T reach = shorter ? T(0) : T(1), z = 0;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            y[i] = i ? multiply_add(-lower[i], y[i ? i - 1 : 0], y[i] * inverse[i]) : y[i] * inverse[i];
            if (i + 1 < R) {
                z = multiply_add(reach, y[i], z);
                reach = i == 0 && shorter ? T(1) : -upper[i] * reach;
            }
        }
        return z;
    }

    /// alpha, rho and the fill of the last row.
    __device__ __forceinline__ void ends(bool shorter, T& alpha, T& rho, T& fill) const {
        T reach = shorter ? T(0) : T(1);
        alpha = 0, fill = lower[0];
#pragma unroll
        for (int i = 0; i + 1 < R; ++i) {
            alpha = multiply_add(reach, fill, alpha);
            reach = i == 0 && shorter ? T(1) : -upper[i] * reach;
            fill = -lower[i + 1] * fill;
        }
        rho = reach;
    }

    __device__ __forceinline__ void backwards(T (&y)[R], T before, T last) const {
        T fill = lower[0];
#pragma unroll
        for (int i = 0; i + 1 < R; ++i) {
            y[i] = multiply_add(-fill, before, y[i]);
            fill = -lower[i + 1] * fill;
        }
        y[R - 1] = last;
#pragma unroll
        for (int i = R - 2; i >= 0; --i) y[i] = multiply_add(-upper[i], y[i + 1], y[i]);
    }
};

/// The system of last rows, of W lines side by side in shared memory; one thread per line has `memory` where its values begin. Per segment: five words of the
/// matrix (four where lines are no rings), the last row and z.
template <class T, int S, int W, bool Ring>
struct Join {
    static constexpr int matrix = Ring ? 5 : 4, values = (matrix + 2) * S * W;
    T* memory;

    __device__ __forceinline__ T& coupling(int s) const { return memory[s * W]; }
    __device__ __forceinline__ T& lower(int s) const { return memory[(S + s) * W]; }
    __device__ __forceinline__ T& inverse(int s) const { return memory[(2 * S + s) * W]; }  ///< before it is eliminated: alpha
    __device__ __forceinline__ T& upper(int s) const { return memory[(3 * S + s) * W]; }    ///< before it is eliminated: rho
    __device__ __forceinline__ T& around(int s) const { return memory[(4 * S + s) * W]; }   ///< of a ring: how the row depends on the last one
    __device__ __forceinline__ T& last(int s) const { return memory[(matrix * S + s) * W]; }
    __device__ __forceinline__ T& first(int s) const { return memory[((matrix + 1) * S + s) * W]; }

    __device__ __forceinline__ void eliminate() const {
        const T alpha_0 = inverse(0), rho_0 = upper(0);
        T above = 0, w = 0;
        constexpr int inner = Ring ? S - 1 : S;
#pragma unroll 1
        for (int s = 0; s < inner; ++s) {
            const bool end = s + 1 == S;
            const T c = end ? T(0) : coupling(s), a = lower(s), p = multiply_add(-c, end ? T(0) : inverse(s + 1 < S ? s + 1 : 0), T(1)), u = c * (end ? T(0) : upper(s + 1 < S ? s + 1 : 0));
            const T inverted = T(1) / (s ? multiply_add(-a, above, p) : p), m = a * inverted;
            if (Ring) w = s ? -m * w : m, around(s) = w;
            above = u * inverted;
            inverse(s) = inverted, lower(s) = s ? m : T(0), upper(s) = above;
        }
        if constexpr (Ring) {
            T q = around(S - 2) + upper(S - 2);
            const T before = q;
            around(S - 2) = q;
#pragma unroll 1
            for (int s = S - 3; s >= 0; --s) q = multiply_add(-upper(s), q, around(s)), around(s) = q;
            const T c = coupling(S - 1), p = multiply_add(-c, alpha_0, T(1)), u = c * rho_0;
            upper(S - 1) = u;
            inverse(S - 1) = T(1) / multiply_add(-u, q, multiply_add(-lower(S - 1), before, p));
        }
    }

    /// last becomes the solution; in a ring, but for the last one, what it is without the last one's part.
    __device__ __forceinline__ void solve() const {
        constexpr int inner = Ring ? S - 1 : S;
        T g = 0;
#pragma unroll 4
        for (int s = 0; s < inner; ++s) {
            const T d = s + 1 < S ? multiply_add(-coupling(s), first(s + 1 < S ? s + 1 : 0), last(s)) : last(s);
            g = multiply_add(-lower(s), g, d * inverse(s));
            last(s) = g;
        }
#pragma unroll 4
        for (int s = inner - 2; s >= 0; --s) g = multiply_add(-upper(s), g, last(s)), last(s) = g;
        if constexpr (Ring) {
            const T d = multiply_add(-coupling(S - 1), first(0), last(S - 1));
            last(S - 1) = multiply_add(-upper(S - 1), g, multiply_add(-lower(S - 1), last(S - 2), d)) * inverse(S - 1);
        }
    }

    /// The last rows of a segment and of the one before it, once they are solved.
    __device__ __forceinline__ void give(int s, T& own, T& before) const {
        if constexpr (Ring) {
            const T end = last(S - 1);
            own = s + 1 < S ? multiply_add(-around(s), end, last(s)) : end;
            before = s ? multiply_add(-around(s - 1), end, last(s - 1)) : end;
        } else {
            own = last(s), before = s ? last(s - 1) : T(0);
        }
    }
};

}  // namespace trifold::cuda::fused
