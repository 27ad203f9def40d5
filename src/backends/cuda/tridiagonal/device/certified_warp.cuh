// SPDX-License-Identifier: BSD-3-Clause
// 32 chunks of a window in one warp: solved as if what lies beyond them were 0, checked row by row, and bounded.
//
//   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   R rows per lane; lanes halo … 31-halo are kept
//
// Numerics: docs/algorithms/gpu_single_bound.md, whose names are used here: A, C of a chunk's rows, a, c, delta of lanes, n, q, X.
#pragma once

#include "backends/cuda/tridiagonal/device/certified_verdict.cuh"
#include "backends/cuda/tridiagonal/thread/largest_bits.cuh"
#include "backends/cuda/tridiagonal/warp/lanes.cuh"

namespace trifold::cuda::certified {

/// Powers of two, in units of 1/32, rounded down by more than the hardware's logarithms are off.
inline constexpr int log_unit = 32, most_forgotten = 2047;

/// What a halo and, in the upper 16 bits, its half of the warp forget. wary: `unlike` of what the halo forgets less than others, in addition.
__device__ __forceinline__ bool forgets_enough(int enough, unsigned both, bool wary) {
    const int of_halo = static_cast<int>(both & 0xffffu), of_half = static_cast<int>(both >> 16);
    return lanes * halo * (of_halo - enough) >= (wary ? unlike : 0) * max(of_half - lanes / 2 / halo * of_halo, 0);
}

/// A lane's chunk is two halves, so that two chains of divisions run side by side; `middle` is the last row of the first one.
template <class T, int R>
struct WarpWindow {
    static constexpr int upper = (R + 1) / 2, lower = R / 2;

    Chunk<T, upper> one;
    Chunk<T, lower> two;
    T n_one[upper], n_two[lower];  ///< |U^-1| |L^-1| of the half times the rows' sizes
    Relation<T> middle;            ///< in the unknown before the lane and its last one
    Relation<T> own, next;         ///< lane by lane; the next lane's first row
    T delta_middle, delta, growth;
    T mine, left, after;           ///< unknowns: the lane's last, the one before its first, the one after its last
    bool active, broken;
    bool unknown = false;          ///< a lane that is kept: how large x is, is not known
    unsigned forgotten;            ///< by the lesser half of the warp

    /// a, b, c, d: the lane's rows. Returns true, in one lane at least, where halos have not forgotten what is beyond them, or a number is not finite. wary: where halos forget
    /// by unlike amounts, more is asked of those that forget less than others: what is to come has some that forget still less.
    __device__ __forceinline__ bool solve(const Job<T>& job, const T* a, const T* b, const T* c, const T* d, int chunk, T* scratch, int lane, bool wary) {
        active = chunk >= 0 && chunk < job.chunks, broken = false;
        Relation<T> first{T(0), T(0), T(0)}, last = first;
        T n_first = 0;
        middle = first, delta_middle = delta = 0, growth = 1;
        if (active) {
            eliminate(a, b, c, d);
            middle = close(one.last(), two.first());
            delta_middle = fused(fabs(one.c[upper - 1]), n_two[0], n_one[upper - 1]) * fabs(finite_or_zero(reciprocal(fused(-one.c[upper - 1], two.a[0], T(1)))));
            const Relation<T> end = two.last();
            const T k = finite_or_zero(reciprocal(fused(-end.a, middle.c, T(1))));
            first = through(one.first(), middle);
            last = {-end.a * middle.a * k, end.c * k, fused(-end.a, middle.d, end.d) * k};
            n_first = fused(fabs(one.c[0]), delta_middle, n_one[0]);
            delta = fused(fabs(end.a), delta_middle, n_two[lower - 1]) * fabs(k);
            const T sum = fabs(first.a) + fabs(first.c) + fabs(first.d) + fabs(last.a) + fabs(last.c) + fabs(last.d) + delta;
            broken = finite_or_zero(sum) != sum;
            if (broken) first = last = {T(0), T(0), T(0)}, n_first = 0;
        }

        // Every lane's last row, closed with the next lane's first.
        next = {__shfl_down_sync(~0u, first.a, 1), __shfl_down_sync(~0u, first.c, 1), __shfl_down_sync(~0u, first.d, 1)};
        const T next_n = __shfl_down_sync(~0u, n_first, 1);
        own = last;
        if (lane < 31) {
            const T k = finite_or_zero(reciprocal(fused(-last.c, next.a, T(1))));
            own = {last.a * k, -last.c * next.c * k, fused(-last.c, next.d, last.d) * k};
            delta = fused(fabs(last.c), next_n, delta) * fabs(k);
        }

        // What is beyond the warp is taken for 0. A lane's unknown moves by at most |a| / (1 - |c|) of what the one before it does, and a halo lets the product
        // of these through: lanes 0 to 3 from the left, 28 to 31 from the right, all by the same instructions. The last lane's row is not closed and forgets less than
        // the others: what the first kept lane beside the halo has of the next one's first unknown makes up for it.
        static_assert(halo == 4 && most_forgotten * (lanes / 2) < 1 << 16);
        const float fa = static_cast<float>(fabs(own.a)), fc = static_cast<float>(fabs(own.c));
        const bool on_the_right = lane >= lanes / 2;
        float above = on_the_right ? fc : fa;
        if (lane == lanes - halo) above *= fminf(static_cast<float>(fabs(first.c)), 1.0f);
        const int powers = __float2int_rd((__log2f(1 - (on_the_right ? fa : fc)) - __log2f(above)) * log_unit);
        const unsigned forgets = fa + fc <= 1 ? static_cast<unsigned>(min(max(powers, 1) - 1, most_forgotten)) : 0u;
        // Of the halo, and above it of the half of the warp.
        const unsigned from_the_left = __reduce_add_sync(~0u, forgets * (lane < halo ? 0x10001u : lane < lanes / 2 ? 0x10000u : 0u));
        const unsigned from_the_right = __reduce_add_sync(~0u, forgets * (lane >= lanes - halo ? 0x10001u : lane >= lanes / 2 ? 0x10000u : 0u));

        // Where lanes hardly couple, a few substitutions into each other do.
        const float coupling = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint((lane ? fa : 0.0f) + (lane < 31 ? fc : 0.0f))));
        const float rounds = __fdividef(job.strict, __log2f(coupling));
        if (coupling < 0.5f && rounds <= 10) {
            mine = own.d;
            if (lane == 0) own.a = 0;
            if (lane == 31) own.c = 0;
            for (float r = 0; r < rounds; ++r) {
                const T above = __shfl_up_sync(~0u, mine, 1), below = __shfl_down_sync(~0u, mine, 1);
                mine = fused(-own.c, below, fused(-own.a, above, own.d));
            }
            left = __shfl_up_sync(~0u, mine, 1);
            if (lane == 0) left = 0;
        } else {
            WarpRows<T> joined(scratch);
            Relation<T> unused;
            const Relation<T> whole = joined.template reduce_joined<false>(own, first, lane, unused);
            mine = joined.substitute(T(0), whole.d, lane, left);
        }
        const T x_next = __shfl_down_sync(~0u, mine, 1);
        after = lane < 31 ? fused(-next.c, x_next, fused(-next.a, mine, next.d)) : T(0);
        forgotten = min(from_the_left, from_the_right) >> 16;
        const int first_chunk = chunk - lane;
        bool fails = broken;
        fails |= first_chunk > 0 & first_chunk + halo < job.chunks & !forgets_enough(job.enough, from_the_left, wary);
        fails |= first_chunk + lanes < job.chunks & !forgets_enough(job.enough, from_the_right, wary);
        return fails;
    }

    /// Lanes that are kept: their x; above, below: of this lane's first and last row. Returns true where a row's residual is too large.
    __device__ __forceinline__ bool keep(const Job<T>& job, const T* a, const T* b, const T* c, const T* d, T* to, Maxima<T>& most, Side<T>& above, Side<T>& below) {
        const T x_middle = fused(-middle.c, mine, fused(-middle.a, left, middle.d));
        Largest<T> largest, reach, inner;
        T x[R];
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i == upper - 1) {
                x[i] = x_middle;
            } else if (i < upper) {
                reach.add(fabs(one.a[i < upper ? i : 0]) + fabs(one.c[i < upper ? i : 0])), inner.add(n_one[i < upper ? i : 0]);
                x[i] = one.x(i < upper ? i : 0, left, x_middle);
            } else if (i < R - 1) {
                constexpr int top = upper;
                const int r = i - top;
                reach.add(fabs(two.a[r]) + fabs(two.c[r])), inner.add(n_two[r]);
                x[i] = two.x(r, x_middle, mine);
            } else {
                x[i] = mine;
            }
            largest.add(x[i]);
        }
        if (a[0] != T(0)) largest.add(left);
        if (c[R - 1] != T(0)) largest.add(after);
        constexpr T up = beyond_cut<T>;
        const T X = largest.value() * up, allowed = job.accept * X;
        bool bad = broken || !(X < (sizeof(T) == 8 ? T(1e290) : T(1e30)));
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const T l = a[i], m = b[i], u = c[i], size = fabs(l) + fabs(m) + fabs(u);
            const T before = i ? x[i ? i - 1 : 0] : left, behind = i + 1 < R ? x[i + 1 < R ? i + 1 : 0] : after;
            const T residual = fused(-u, behind, fused(-l, before, fused(-m, x[i], d[i])));
            bad |= !(fabs(residual) <= allowed * size);
            to[i] = x[i];
            if (i == 0) above = {x[0], left, fabs(l) * reciprocal(size), allowed};
            if (i == R - 1) below = {mine, after, fabs(u) * reciprocal(size), allowed};
        }
        // e of a row ≤ n X + reach E of its half's ends; of the middle ≤ delta X + (|a| + |c|) E.
        const T q = fabs(own.a) + fabs(own.c), through_middle = fabs(middle.a) + fabs(middle.c), reached = reach.value() * up;
        const T lasting = q < T(0.999) ? delta * up * reciprocal(T(1) - q) : T(INFINITY);
        const T n_most = larger(delta_middle, fused(reached, delta_middle, inner.value() * up));
        unknown = !(fused(reached, lasting, n_most) <= job.least_known) | !(n_most * growth <= 8 * job.least_known);
        most.largest.add(X);
        most.inner_unit.add(n_most), most.inner.add(n_most * X);
        most.ends_unit.add(lasting), most.ends.add(X > T(0) ? lasting * X : T(0));
        most.reach.add(larger(reached, T(1)) * larger(through_middle, T(1))), most.growth.add(growth * up);
        return bad;
    }

    /// Of a lane that is kept: whether some row's residual is beyond that.
    __device__ __forceinline__ bool is_unstable(const T* a, const T* b, const T* c, const T* d, const T* x, T allowed) const {
        bool bad = broken;
#pragma unroll 1
        for (int i = 0; i < R; ++i) {
            const T before = i ? x[i - 1] : left, behind = i + 1 < R ? x[i + 1] : after;
            bad |= !(fabs(fused(-c[i], behind, fused(-a[i], before, fused(-b[i], x[i], d[i])))) <= allowed * (fabs(a[i]) + fabs(b[i]) + fabs(c[i])));
        }
        return bad;
    }

    /// Where a system begins within the lane's rows: those of either are held to the largest |x| of its own.
    __device__ __forceinline__ bool keep_apart(const Job<T>& job, int begins, const T* a, const T* b, const T* c, const T* d, const T* x, Side<T>& above, Side<T>& below) const {
        T one_most = a[0] != T(0) ? fabs(left) : T(0), two_most = c[R - 1] != T(0) ? fabs(after) : T(0);
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i < begins) one_most = larger(one_most, fabs(x[i]));
            else two_most = larger(two_most, fabs(x[i]));
        }
        above.allowed = job.accept * one_most, below.allowed = job.accept * two_most;
        bool bad = false;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const T l = a[i], m = b[i], u = c[i], size = fabs(l) + fabs(m) + fabs(u);
            const T residual = fused(-u, i + 1 < R ? x[i + 1] : after, fused(-l, i ? x[i - 1] : left, fused(-m, x[i], d[i])));
            bad |= !(fabs(residual) <= (i < begins ? above.allowed : below.allowed) * size);
        }
        return bad;
    }

private:
    __device__ __forceinline__ void eliminate(const T* a, const T* b, const T* c, const T* d) {
        Largest<T> largest;
#pragma unroll
        for (int i = 0; i < upper; ++i) {
            step(one, n_one, i, a[i], b[i], c[i], d[i]), largest.add(one.c[i]);
            if (i < lower) step(two, n_two, i < lower ? i : 0, a[upper + i], b[upper + i], c[upper + i], d[upper + i]), largest.add(two.c[i < lower ? i : 0]);
        }
        growth = largest.value();
        back(n_one, one), back(n_two, two);
    }

    template <int N>
    __device__ __forceinline__ static void step(Chunk<T, N>& rows, T (&n)[N], int i, T l, T m, T u, T f) {
        const T size = fabs(l) + fabs(m) + fabs(u), k = rows.eliminate(i, l, m, u, f);
        n[i] = (i == 0 ? size : fused(fabs(l), n[i ? i - 1 : 0], size)) * fabs(k);
    }

    template <int N>
    __device__ __forceinline__ static void back(T (&n)[N], Chunk<T, N>& rows) {
#pragma unroll
        for (int i = N - 3; i >= 0; --i) n[i] = fused(fabs(rows.c[i]), n[i + 1], n[i]);
        rows.reduce();
    }
};

}  // namespace trifold::cuda::certified
