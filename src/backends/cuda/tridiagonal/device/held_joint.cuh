// SPDX-License-Identifier: BSD-3-Clause
// What joins the warps of a block, and the blocks, of one system that all multiprocessors hold (held_kernel.cuh), by a warp of each block that has no rows.
#pragma once

#include "backends/cuda/tridiagonal/device/held_lane.cuh"
#include "backends/cuda/tridiagonal/device/windows_couple.cuh"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda::held {

template <class T>
__device__ __forceinline__ void show(T& word, T what) { const_cast<volatile T&>(word) = what; }

/// Bits of a size as a word among numbers, and back.
template <class T>
__device__ __forceinline__ T word_of(unsigned bits) {
    if constexpr (sizeof(T) == 8) return __longlong_as_double(bits);
    else return __uint_as_float(bits);
}
__device__ __forceinline__ unsigned bits_in(double word) { return static_cast<unsigned>(__double2loint(word)); }
__device__ __forceinline__ unsigned bits_in(float word) { return __float_as_uint(word); }

/// What is left of a block's warps, and what lies around them, by a warp that has no rows. `real`: else nobody is told, and nothing is read that others write.
template <class T>
struct BlockJoint {
    static constexpr int width = 16, none = width - warps;
    static_assert(none > 0 && 2 * width == lanes);
    const Job<T>& job;
    Memory<T>& shared;
    int lane;
    windows::Interface<T> mine;  ///< of warp lane - none
    Relation<T> own;             ///< of its last unknown among the block's (OddEven); the lanes before have the one before the block for theirs
    bool apart;                  ///< warps do not matter to each other

    /// Joins the warps, and tells all blocks what they became.
    __device__ __forceinline__ void join(bool real) {
        const int warp = lane % width - none;
        Part<T> from{{}, T(1), T(1), false, true, true, 0};
        if (warp >= 0) {
            if (real) from = shared.parts[warp];
            else from.ends = shared.all[warp].part;
        }
        mine = from.ends;
        const unsigned hardly = __reduce_max_sync(~0u, from.hardly);
        const Relation<T> next = from_below(mine.first, 1, width);
        const T next_sum = __shfl_down_sync(~0u, from.first_sum, 1, width);
        own = {T(-1), T(0), T(0)};
        T rest = 0;
        if (warp >= 0) own = mine.last, rest = from.last_sum;
        const bool closes = warp >= 0 && warp + 1 < warps, summed = __any_sync(~0u, from.summed) && __all_sync(~0u, from.exact && !(closes && own.c * next.a < T(0)));
        if (closes) {
            T pivot = fused(-own.c, next.a, T(1));
            if (summed) rest = fused(fabs(own.c), next_sum, rest), pivot = rest + fused(fabs(own.c), fabs(next.c), fabs(own.a));
            const Divisor<T> by(pivot);
            rest = by.of(rest), own = {by.of(own.a), by.of(-own.c * next.c), by.of(fused(-own.c, next.d, own.d))};
        }
        bool light = from.light && is_light(own);
        windows::Interface<T> whole;
        apart = __all_sync(~0u, warp < 0 || (fabs(own.a) <= job.negligible && (fabs(own.c) <= job.negligible || warp + 1 == warps)));
        if (apart) {
            const Relation<T> first = of_lane(mine.first, none);
            whole = {{first.a, T(0), fused(-first.c, __shfl_sync(~0u, own.d, none), first.d)}, {T(0), __shfl_sync(~0u, own.c, width - 1), __shfl_sync(~0u, own.d, width - 1)}};
        } else {
            if (summed) OddEven<T, width>::template reduce<true>(own, rest, lane % width);
            else OddEven<T, width>::reduce(own, lane % width);
            whole = {OddEven<T, width>::template through_all<none>(of_lane(mine.first, none), own), of_lane(own, width - 1)};
        }
        light = __all_sync(~0u, light && is_light(own)) && is_light(whole.first);
        if (lane != 0 || !real) return;
        News<T>& to = job.news[blockIdx.x];
        windows::show_interface(&to.part, whole);
        show(to.light, light ? T(1) : T(0)), show(to.hardly, word_of<T>(hardly));
    }

    /// When those of all blocks are in shared memory.
    __device__ __forceinline__ void solve(bool real) const {
        const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x), warp = lane % width - none;
        windows::Interface<T> parts[each];
        bool light = true;
        unsigned hardly = 0;
#pragma unroll
        for (int i = 0; i < each; ++i) {
            parts[i] = {};
            if (lane * each + i >= blocks) continue;
            const News<T>& news = shared.all[lane * each + i];
            parts[i] = news.part, light = light && news.light != T(0), hardly = max(hardly, bits_in(news.hardly));
        }
        T last[each], first[each], left;
        const bool certain = windows::solve_parts<T, each>(parts, light, job.negligible, lane, last, first, left);
        const T before = block ? windows::of_one(last, max(block - 1, 0)) : T(0), end = windows::of_one(last, block), begin = windows::of_one(first, block),
                after = windows::of_one(first, min(block + 1, lanes * each - 1));
        T x = warp < 0 ? before : warp + 1 == warps ? end : own.d;
        if (!apart) x = OddEven<T, width>::substitute(own, before, end, lane % width);
        const T above = __shfl_up_sync(~0u, x, 1, width);
        if (lane < width && warp >= 0) {
            shared.ends[warp + 1] = x;
            shared.begins[warp] = warp == 0 ? begin : fused(-mine.first.c, x, fused(-mine.first.a, above, mine.first.d));
        }
        Largest<T> largest;
        largest.add(before), largest.add(x), largest.add(after);
        const unsigned most = __reduce_max_sync(~0u, held_bits(largest));
        hardly = __reduce_max_sync(~0u, hardly);
        if (lane != 0) return;
        shared.ends[0] = before, shared.begins[warps] = block + 1 < blocks ? after : T(0);
        shared.largest = windows::number_of<T>(most) * windows::beyond_cut<T>, shared.certain = certain;
        if (real && block == 0 && certain) certify(hardly);
    }

private:
    /// Rows that are dominant one by one, of which nobody has looked at a residual: eight times what is accepted at most (windows::Lane::lasts_by_rows).
    __device__ __forceinline__ void certify(unsigned hardly) const {
        using Sized = windows::Lane<T, most_rows<T>>;
        if (hardly > Lane<T, most_rows<T>>::most_octaves * Sized::octave) return;
        const double lasts = Sized::lasts_by_rows(hardly + Sized::octave / 8);  // for what rows may lack
        const double accept = job.accept, theta = 2 * accept + 8 * static_cast<double>(job.roundoff), bound = (1.0625 * theta + 0x1p-40 * accept) * lasts;
        if (!(bound <= 0x1p-6)) return;
        job.outcome->reason = static_cast<int>(Reason::certified), job.outcome->branch = static_cast<int>(tridiagonal::Algorithm::certified);
        job.outcome->certificate = bound, job.outcome->certified = true;
    }
};

}  // namespace trifold::cuda::held
