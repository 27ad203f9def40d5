// SPDX-License-Identifier: BSD-3-Clause
// A lane of one system that all multiprocessors hold: up to R rows, of which rhs, the reciprocals of pivots and x are in registers, the matrix in shared memory.
//
//   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Elimination goes forwards only: row i becomes x[i] = D - A x[before] - C x[i+1], of which nothing but the pivot is kept; the lane's first unknown is composed on the way, from row to row. So a lane holds 2 R numbers
// where windows::Lane has 4 R, and takes twice as many rows. When its ends are known it goes down and up once more.
// Sums of rows: as in windows_lane.cuh; a warp may have few rows, so that what is left of it has them too. What is light (thread/weight.cuh) is told by the rows themselves, not by what elimination leaves of them: of weakly dominant rows it leaves such.
#pragma once

#include "backends/cuda/tridiagonal/device/held_job.cuh"
#include "backends/cuda/tridiagonal/device/windows_lane.cuh"

namespace trifold::cuda::held {

template <class T, int R>
struct Lane {
    using Sized = windows::Lane<T, R>;
    T d[R], k[R];      ///< rhs; 1 / pivots
    Relation<T> own;   ///< of the lane's last unknown among the warp's (OddEven)
    int apart;
    bool grown;        ///< the lane has a pivot that says that the one before was next to none: rows do not do without exchanges
    unsigned hardly;   ///< of the lane: log2 of |b| / (|b| - |a| - |c|), as bits of them differ, where rows are weakly dominant

    /// Rows may be taken for weakly dominant by so much more than they are, which sums of rounded numbers want; and be taken for dominant where they are by 2^most_octaves as much.
    static constexpr T slack = sizeof(T) == 8 ? T(0x1p-36) : T(0x1p-20);
    static constexpr unsigned most_octaves = sizeof(T) == 8 ? 29 : 16;
    /// log2 of what a pivot may exceed its row by: what was lost of it is as many bits of residuals, which may lose three.
    static constexpr unsigned most_growth = 10;

    /// Leaves what there is of the warp. All lanes; sums: what is guessed, and corrected. Rows that a lane does not have are not looked at.
    __device__ __forceinline__ void reduce(const T* a, const T* b, const T* c, int rows, int lane, T negligible, bool sums, Part<T>& part) {
        for (bool tried = false;;) {
            if (sums) {
                if (run<true>(a, b, c, rows, lane, negligible, part)) return;
                sums = false, tried = true;
            } else {
                if (!run<false>(a, b, c, rows, lane, negligible, part) || tried) return;
                sums = true;
            }
        }
    }

    /// x of the rows, which may be d; `before`, `end`: the unknown before the warp and its last one; left: the one before the lane.
    __device__ __forceinline__ void solve(const T* a, const T* c, int rows, T before, T end, int lane, T (&x)[R], T& left) {
        const T mine = OddEven<T, lanes>::substitute(own, before, end, lane, apart), above = __shfl_up_sync(~0u, mine, 1);
        left = lane ? above : before;
        T y = left, next = a[0];
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i >= rows) break;
            const T lower = next;
            next = a[i + 1];
            y = i + 1 < rows ? fused(-lower, y, d[i]) * k[i] : mine;
            x[i] = y;
        }
#pragma unroll
        for (int i = R - 2; i >= 0; --i)
            if (i + 1 < rows) x[i] = fused(-(c[i] * k[i]), x[i + 1], x[i]);
    }

    /// Whether every residual is at most `allowed` times the size of its row.
    __device__ __forceinline__ bool check(const T* a, const T* b, const T* c, int rows, const T (&x)[R], T left, T after, T allowed) const {
        unsigned worst = 0;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i >= rows) break;
            const T l = a[i], m = b[i], u = c[i], size = fabs(l) + fabs(m) + fabs(u);
            T residual = fused(-l, i ? x[i ? i - 1 : 0] : left, fused(-m, x[i], d[i]));
            residual = fused(-u, i + 1 < R && i + 1 < rows ? x[i + 1 < R ? i + 1 : i] : after, residual);
            worst = max(worst, windows::bits_of(fused(allowed, size, -fabs(residual))));  // negative ones and NaN above all others
        }
        constexpr unsigned infinity = sizeof(T) == 8 ? 0x7ff00000u : 0x7f800000u;
        return worst < infinity;
    }

private:
    /// Returns whether rows sum to so little that sums are wanted, where they can be had.
    template <bool Sums>
    __device__ __forceinline__ bool run(const T* a, const T* b, const T* c, int rows, int lane, T negligible, Part<T>& part) {
        Relation<T> head{}, row{};
        T sum = 0, head_sum = 0;
        unsigned facing = 0, mixed = 0, face = 0;  // signs
        unsigned below = 0, largest = 0;  // the sign: a row is not weakly dominant; the largest |b| and |D|
        bool grows = false;
        hardly = 0;
        T lower = a[0], diag = b[0], upper = c[0];
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i >= rows) break;
            const T l = lower, m = diag, u = upper, f = d[i];
            lower = a[i + 1], diag = b[i + 1], upper = c[i + 1];  // asked for before they are wanted; of the last row, what lies behind it
            if (i >= 2) {
                if constexpr (Sums) head_sum = fused(fabs(head.c), sum, head_sum);
                head = through(head, row);
            }
            if constexpr (Sums) {
                const bool more = fabs(l) > fabs(u);  // in this order what cancels leaves no rounding
                T rest = (fabs(m) - fabs(more ? l : u)) - fabs(more ? u : l), size = fabs(m);
                if (i > 0) {
                    rest = fused(fabs(l), sum, rest);
                    size = rest + fused(fabs(l), fabs(row.a), fabs(u));
                }
                const Divisor<T> by(copysign(size, m));
                sum = by.roughly_of(windows::turned(rest, m));
                k[i] = by.roughly_inverse();
                row = {by.roughly_of(i == 0 ? l : -l * row.a), u * k[i], (i == 0 ? f : fused(-l, row.d, f)) * k[i]};
                const unsigned here = windows::sign_word(l) ^ windows::sign_word(m);
                if (i == 0) face = here;
                else mixed |= here ^ facing;
                facing = windows::sign_word(u) ^ windows::sign_word(m);
                if (i == 0) head_sum = sum;
            } else {
                T next;
                const T pivot = i == 0 ? m : fused(-l, row.c, m);
                if (i % 2 == 1) grows = grows || windows::bits_of(fabs(pivot)) > max(max(windows::bits_of(fabs(l)), windows::bits_of(fabs(u))), windows::bits_of(fabs(m))) + most_growth * Sized::octave;
                k[i] = divide_by(pivot, u, next);
                row = {i == 0 ? l * k[i] : -(l * k[i]) * row.a, next, (i == 0 ? f : fused(-l, row.d, f)) * k[i]};
            }
            if (i == 0) head = row;
            const unsigned beyond = windows::bits_of(fused(fabs(m), T(1) + slack, -fabs(l)) - fabs(u)), size = windows::bits_of(fabs(m));
            below |= beyond, hardly = max(hardly, size - min(beyond, size));
            largest = max(largest, max(size, windows::bits_of(fabs(row.d))));
        }

        // Every lane's last row, closed with the next lane's first.
        const Relation<T> next = from_below(head, 1, lanes);
        own = row;
        T rest = 0;
        if constexpr (Sums) {
            rest = sum;
            const T next_sum = __shfl_down_sync(~0u, head_sum, 1);
            const unsigned next_face = __shfl_down_sync(~0u, face, 1);
            if (lane < lanes - 1) {
                mixed |= next_face ^ facing;
                rest = fused(fabs(own.c), next_sum, rest);
            }
        }
        if (lane < lanes - 1) {
            T pivot = fused(-own.c, next.a, T(1));
            if constexpr (Sums) pivot = rest + fused(fabs(own.c), fabs(next.c), fabs(own.a));
            const Divisor<T> by(pivot);
            if constexpr (Sums) rest = by.of(rest);
            own = {by.of(own.a), by.of(-own.c * next.c), by.of(fused(-own.c, next.d, own.d))};
        }
        if constexpr (!Sums) rest = T(1) - fabs(own.a) - fabs(own.c);
        // The last lane's row is not closed: over m of its rows it sums to 1/m of what a closed one does.
        bool wanted = (__ballot_sync(~0u, fabs(rest) < Sized::little) & ~0u >> 1) != 0;
        if constexpr (Sums) wanted = wanted && !__any_sync(~0u, static_cast<int>(mixed) < 0);
        part.ends.first = of_lane(head, 0), part.summed = Sums;
        if constexpr (Sums) part.first_sum = __shfl_sync(~0u, head_sum, 0);
        apart = OddEven<T, lanes>::template reduce<Sums, true>(own, rest, lane, part.ends.first, part.first_sum, negligible);
        part.ends.last = of_lane(own, lanes - 1), part.last_sum = __shfl_sync(~0u, rest, lanes - 1), part.exact = Sums;
        if constexpr (!Sums) {
            constexpr T enough = T(0.0625);
            part.first_sum = (T(1) - fabs(part.ends.first.a)) - fabs(part.ends.first.c), part.last_sum = (T(1) - fabs(part.ends.last.a)) - fabs(part.ends.last.c);
            part.exact = part.first_sum >= enough && part.last_sum >= enough;
        }
        // What weakly dominant rows become is no heavier than they are.
        const bool own_light = !(below >> 31) && largest <= windows::bits_of(join_limit<T>);
        part.light = __all_sync(~0u, own_light && is_light(own)) && is_light(part.ends.first), grown = grows;
        return wanted;
    }
};

}  // namespace trifold::cuda::held
