// SPDX-License-Identifier: BSD-3-Clause
// One lane's chunk of R rows, and a warp's 32 of them: reduced to an Interface, later finished between known ends and
// checked.
//
//   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i]
//
// Between the two a lane keeps 1 / pivots, its row among the lanes', and the maxima of its bound; the rows stay in
// shared memory. With the unknown before the chunk and its last one known, c and d come back by two multiplications and
// no division.
// Numerics: docs/algorithms/gpu_single_bound.md, whose names are used here: A, C of a chunk's rows, a, c, delta of lanes, n,
//   q, X.
#pragma once

#include <type_traits>

#include "backends/cuda/tridiagonal/device/windows_job.cuh"
#include "backends/cuda/tridiagonal/thread/flushed.cuh"
#include "backends/cuda/tridiagonal/thread/largest_bits.cuh"
#include "backends/cuda/tridiagonal/thread/weight.cuh"
#include "backends/cuda/tridiagonal/warp/odd_even.cuh"

namespace trifold::cuda::windows {

template <class T>
__device__ __forceinline__ T largest_of_warp(T x) {
    for (int step = 16; step > 0; step /= 2) x = larger(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ __forceinline__ float rounded_up(float x) {
    return x;
}
__device__ __forceinline__ float rounded_up(double x) {
    return __double2float_ru(x);
}

/// Of numbers that are not negative, in their order; NaN above all. In double precision the upper half.
__device__ __forceinline__ unsigned bits_of(float x) {
    return __float_as_uint(x);
}
__device__ __forceinline__ unsigned bits_of(double x) {
    return static_cast<unsigned>(__double2hiint(x));
}
using cuda::held_bits, cuda::number_of, cuda::beyond_cut;

__device__ __forceinline__ unsigned sign_word(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned sign_word(double x) { return static_cast<unsigned>(__double2hiint(x)); }
/// x, or -x where `by` is negative.
__device__ __forceinline__ float turned(float x, float by) { return __uint_as_float(__float_as_uint(x) ^ (sign_word(by) & 0x80000000u)); }
__device__ __forceinline__ double turned(double x, double by) {
    return __hiloint2double(__double2hiint(x) ^ static_cast<int>(sign_word(by) & 0x80000000u), __double2loint(x));
}

/// What a bound of the error is made of: nothing; what elimination within chunks leaves; rows that are dominant, one by one.
enum class Bound { none, chunks, rows };

/// How a warp reduces its windows: what the last ones took. `rest`: windows until rows are looked at one by one again.
struct Way {
    bool sums = false;
    int rest = 0, pause = 0;
};

/// A warp that joins its lanes to the end, or until what is left of their couplings is at most `negligible`.
template <class T>
struct Whole : Interface<T> {
    T negligible;
    int apart = lanes;  ///< as OddEven::reduce returns it
    bool light = false;  ///< all rows, at every step (thread/weight.cuh)
};

/// The same of lanes whose first `skipped` rows only hand on what is before them (a = -1, b = 1): the lane's first unknown is the one behind these.
template <class T>
struct WholeOfRing : Whole<T> {
    int skipped = 0;
};

template <class T, int R>
struct Lane {
    T k[R - 1];       ///< 1 / pivots
    Relation<T> own;  ///< of the lane's last unknown among the warp's (OddEven)
    unsigned inner, reach, growth;
    float lasting;
    bool dominant;  ///< all rows of the warp: nothing has to be checked

    /// Where rows sum to 2^-24 of their size: half is forgotten over a thousand rows and more.
    static constexpr T little = T(R) * T(R) * T(0x1p-23);

    /// Bits of numbers are their logarithms, but for 0.0861, in these units. Rows that are hardly dominant are not taken for it: rounding of
    /// |b| - |a| - |c| then is at most a quarter of it.
    static constexpr unsigned octave = sizeof(T) == 8 ? 1u << 20 : 1u << 23, most_hardly = (sizeof(T) == 8 ? 30u : 22u) * octave;

    /// (|a| + |b| + |c|) / (|b| - |a| - |c|), not less, and eight times that: residuals of rows that nobody looks at are at most eight times those that
    /// are accepted (docs/algorithms/gpu_single_bound.md).
    __device__ __forceinline__ static float lasts_by_rows(unsigned hardly) {
        return exp2f(static_cast<float>(min(hardly, most_hardly)) * (1.0f / octave) + 4.6f);
    }

    /// All lanes. Leaves in `part` what there is of the warp: a Part in shared memory, or all of it in every lane. What is not
    /// finite goes on as it is: no x will pass its check.
    template <class Place>
    __device__ __forceinline__ void reduce(const T* a, const T* b, const T* c, const T* d, int lane, Place& part, Way& way) {
        if (way.rest > 0) {
            --way.rest;
        } else {
            dominant = !run<false, Bound::rows>(a, b, c, d, lane, part);
            if (dominant) return void(way.pause = 0);
            way.rest = way.pause = min(2 * way.pause + 1, 63);
        }
        dominant = false;
        reduce_by<Bound::chunks>(a, b, c, d, lane, part, way.sums);
    }

    /// The same where no bound is asked for. sums: what the last rows took, and these do.
    template <class Place>
    __device__ __forceinline__ void reduce_only(const T* a, const T* b, const T* c, const T* d, int lane, Place& part, bool& sums) {
        dominant = false;
        reduce_by<Bound::none>(a, b, c, d, lane, part, sums);
    }

    /// x of the rows; `before`, `end`: the unknown before the warp and its last one; left: the one before the lane.
    __device__ __forceinline__ void solve(const T* a, const T* c, const T* d, T before, T end, int lane, T (&x)[R],
                                          T& left, int apart = lanes) const {
        const T mine = OddEven<T, lanes>::substitute(own, before, end, lane, apart), above = __shfl_up_sync(~0u, mine, 1);
        left = lane ? above : before;
        T y = left;
#pragma unroll
        for (int i = 0; i < R - 1; ++i) x[i] = y = fused(-a[i], y, d[i]) * k[i];
        x[R - 1] = mine;
#pragma unroll
        for (int i = R - 2; i >= 0; --i) x[i] = fused(-(c[i] * k[i]), x[i + 1], x[i]);
    }

    /// Stores x over d; false where a residual is too large beside X, the largest |x| nearby. `after` is asked for last:
    /// the next warp may not have it yet.
    template <class After>
    __device__ __forceinline__ bool check(const T* a, const T* b, const T* c, T* d, const T (&x)[R], T left, T X,
                                          T accept, After after) const {
        const T allowed = accept * X;
        unsigned worst = 0;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const T l = a[i], m = b[i], u = c[i], size = fabs(l) + fabs(m) + fabs(u);
            T residual = fused(-l, i ? x[i ? i - 1 : 0] : left, fused(-m, x[i], d[i]));
            residual = fused(-u, i + 1 < R ? x[i + 1 < R ? i + 1 : 0] : after(), residual);
            worst =
                max(worst, bits_of(fused(allowed, size, -fabs(residual))));  // negative ones and NaN above all others
            d[i] = x[i];
        }
        constexpr unsigned infinity = sizeof(T) == 8 ? 0x7ff00000u : 0x7f800000u;
        return worst < infinity && is_moderate(X);
    }

    /// Stores x over d.
    __device__ __forceinline__ static void store(T* d, const T (&x)[R]) {
#pragma unroll
        for (int i = 0; i < R; ++i) d[i] = x[i];
    }

    __device__ __forceinline__ static bool is_moderate(T X) { return X < (sizeof(T) == 8 ? T(1e290) : T(1e30)); }

private:
    template <Bound By, class Place>
    __device__ __forceinline__ void reduce_by(const T* a, const T* b, const T* c, const T* d, int lane, Place& part, bool& sums) {
        for (bool tried = false;;) {
            if (sums) {
                if (run<true, By>(a, b, c, d, lane, part)) return;
                sums = false, tried = true;
            } else {
                if (!run<false, By>(a, b, c, d, lane, part) || tried) return;
                sums = true;
            }
        }
    }

    /// Sums: every row's |b| - |a| - |c| goes along, and pivots are made of it without cancellation. Where rows sum to
    /// nearly zero (-1, 2, -1) a rounding of a pivot is one of that sum; the same in chunks that are alike, it would
    /// grow with the condition number, and carried along it is none. Needs couplings that face each other to have the
    /// sign of a symmetric matrix. Returns whether some lane's row sums to so little, and that is so; where rows are to be dominant, whether
    /// that or one that is not, or hardly.
    template <bool Sums, Bound By, class Place>
    __device__ __forceinline__ bool run(const T* a, const T* b, const T* c, const T* d, int lane, Place& part) {
        Chunk<T, R> rows;
        constexpr bool by_chunks = By == Bound::chunks, by_rows = By == Bound::rows, whole = std::is_base_of_v<Whole<T>, Place>, of_ring = std::is_same_v<Place, WholeOfRing<T>>;
        T n[by_chunks ? R : 1];  // |U^-1| |L^-1| times the rows' sizes
        unsigned hardly = 0;     // log2 of |b| / (|b| - |a| - |c|), as bits of them differ
        T sum[Sums ? R : 1];
        unsigned facing = 0, mixed = 0, face = 0;  // signs
        Largest<T> grown, reached, most;
        Flushed<T> flushed;  // where nobody looks at residuals
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const T l = a[i], m = b[i], u = c[i], f = d[i];
            T pivot;
            if constexpr (Sums) {
                const bool more = fabs(l) > fabs(u);  // in this order what cancels leaves no rounding
                T rest = (fabs(m) - fabs(more ? l : u)) - fabs(more ? u : l), size = fabs(m);
                if (i > 0) {
                    rest = fused(fabs(l), sum[i ? i - 1 : 0], rest);
                    size = rest + fused(fabs(l), fabs(rows.a[i ? i - 1 : 0]), fabs(u));
                }
                const Divisor<T> by(copysign(size, m));
                sum[i] = by.roughly_of(turned(rest, m));
                pivot = by.roughly_inverse();
                rows.eliminate_by(i, l, u, f, by, pivot);
                const unsigned here = sign_word(l) ^ sign_word(m);
                bool begins = i == 0;
                if constexpr (of_ring) begins = i <= part.skipped;
                if (begins) face = here;
                else mixed |= here ^ facing;
                facing = sign_word(u) ^ sign_word(m);
            } else {
                pivot = rows.eliminate_to_check(i, l, m, u, f);
            }
            if (i < R - 1) k[i < R - 1 ? i : 0] = pivot;
            if constexpr (by_rows || whole) flushed.add(pivot);
            if constexpr (by_rows) hardly = max(hardly, bits_of(fabs(m)) - bits_of((fabs(m) - fabs(l)) - fabs(u)));
            if constexpr (by_chunks) {
                const T size = fabs(l) + fabs(m) + fabs(u);
                n[i] = (i == 0 ? size : fused(fabs(l), n[i ? i - 1 : 0], size)) * fabs(pivot);
                grown.add(rows.c[i]);
            }
        }
#pragma unroll
        for (int i = R - 3; i >= 0; --i) {
            if constexpr (by_chunks) n[i] = fused(fabs(rows.c[i]), n[i + 1], n[i]);
            if constexpr (Sums) sum[i] = fused(fabs(rows.c[i]), sum[i + 1], sum[i]);
        }
        [[maybe_unused]] bool light = !flushed.any();
        if constexpr (whole) {
#pragma unroll
            for (int i = 0; i < R - 1; ++i) light = light && is_light(Relation<T>{T(0), rows.c[i], rows.d[i]}, lane_weight<T, R>);
        }
        rows.reduce();
        if constexpr (whole) {
#pragma unroll
            for (int i = 0; i < R; ++i) light = light && is_light(Relation<T>{rows.a[i], rows.c[i], rows.d[i]}, lane_weight<T, R>);
        }
        if constexpr (by_chunks) {
#pragma unroll
            for (int i = 0; i < R - 1; ++i) reached.add(fabs(rows.a[i]) + fabs(rows.c[i])), most.add(n[i]);
            inner = held_bits(most), reach = held_bits(reached), growth = held_bits(grown);
        } else {
            inner = reach = growth = 0, lasting = by_rows ? lasts_by_rows(hardly) : INFINITY;
        }

        // Every lane's last row, closed with the next lane's first.
        Relation<T> first = rows.first();
        T first_sum = 0;
        if constexpr (Sums) first_sum = sum[0];
        if constexpr (of_ring) {
#pragma unroll
            for (int i = 1; i < R - 1; ++i)
                if (i == part.skipped) {
                    first = {rows.a[i], rows.c[i], rows.d[i]};
                    if constexpr (Sums) first_sum = sum[i];
                }
        }
        const Relation<T> next = from_below(first, 1, lanes);
        T delta = 0, next_n = 0, rest = 0;
        if constexpr (by_chunks) delta = n[R - 1], next_n = __shfl_down_sync(~0u, n[0], 1);
        own = rows.last();
        if constexpr (Sums) {
            rest = sum[R - 1];
            const T next_sum = __shfl_down_sync(~0u, first_sum, 1);
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
            if constexpr (by_chunks) delta = fabs(by.of(fused(fabs(own.c), next_n, delta)));
            own = {by.of(own.a), by.of(-own.c * next.c), by.of(fused(-own.c, next.d, own.d))};
        }
        if constexpr (!Sums) rest = T(1) - fabs(own.a) - fabs(own.c);
        if constexpr (by_chunks) {
            lasting = lasts(delta, rest);
            if (lane == 0)  // what the warp before is closed with has a bound of its own
                lasting = fmaxf(lasting, lasts(n[0], T(1) - fabs(first.a) - fabs(first.c)));
        }
        // The last lane's row is not closed: over m of its rows it sums to 1/m of what a closed one does.
        bool wanted = (__ballot_sync(~0u, fabs(rest) < little) & ~0u >> 1) != 0;
        if constexpr (by_rows) {
            if (wanted || __any_sync(~0u, hardly > most_hardly || flushed.any())) return true;
        }
        if constexpr (Sums) wanted = wanted && !__any_sync(~0u, static_cast<int>(mixed) < 0);
        if constexpr (whole) {
            part.first = of_lane(first, 0);
            part.apart = OddEven<T, lanes>::template reduce<Sums, true>(own, rest, lane, part.first, part.negligible);
            part.last = of_lane(own, lanes - 1);
            part.light = __all_sync(~0u, light && is_light(own)) && is_light(part.first);
        } else {
            OddEven<T, lanes>::template reduce<Sums>(own, rest, lane);
            int place = 0;
#pragma unroll
            for (int l = 0; l != lanes - 1; l = OddEven<T, lanes>::next(l), ++place)
                if (lane == l) part.on_the_way[place] = own;
            if (lane == 0) part.first = first;
            if (lane == lanes - 1) part.last = own;
        }
        return wanted;
    }

    /// n / (1 - q), not less; rest: 1 - q.
    __device__ __forceinline__ static float lasts(T n, T rest) {
        return rest > T(0.001) ? rounded_up(n) * reciprocal(static_cast<float>(rest)) * (1 + 0x1p-20f) : INFINITY;
    }
};

/// Whether rows sum to so little that sums will be carried along (Lane::run): in all of some lane's.
template <class T, int R>
__device__ __forceinline__ bool hardly_dominant(const T (&a)[R], const T (&b)[R], const T (&c)[R], int lane) {
    bool all = lane < lanes - 1;
#pragma unroll
    for (int i = 0; i < R; ++i) all = all && fabs((fabs(b[i]) - fabs(a[i])) - fabs(c[i])) < T(0x1p-23) * fabs(b[i]);
    return __any_sync(~0u, all);
}

/// What a window sees of the seam beside one of its rows: x of it and of the row beyond, whose coupling is given; a, b,
/// c are the row's.
template <class T>
__device__ __forceinline__ Side<T> side_of(T own, T seen, T coupling, T a, T b, T c, T allowed) {
    return {own, seen, fabs(coupling) * reciprocal(fabs(a) + fabs(b) + fabs(c)), allowed};
}

}  // namespace trifold::cuda::windows
