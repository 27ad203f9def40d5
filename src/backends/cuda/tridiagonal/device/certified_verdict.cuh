// SPDX-License-Identifier: BSD-3-Clause
// What the windows of one long system, or of several, say of the error: seams between them, and the certificate (docs/algorithms/gpu_single_bound.md, "The verdict").
#pragma once

#include "backends/cuda/tridiagonal/device/certified_job.cuh"

namespace trifold::cuda::certified {

/// Words of seams are waited for by their value: all ones until they are there, which is no number, nor the NaN that arithmetic leaves.
__device__ __forceinline__ bool is_there(double x) { return __double_as_longlong(x) != -1ll; }
__device__ __forceinline__ bool is_there(float x) { return __float_as_int(x) != -1; }

inline constexpr int side_words = 4;

/// Before the first window of any block is looked at: what the block's own windows will show. All threads.
template <class T>
__device__ __forceinline__ void clear_sides(const Job<T>& job) {
    static_assert(sizeof(Side<T>) == side_words * sizeof(T) && sizeof(Side<T>) % sizeof(int4) == 0);
    constexpr int each = sizeof(Side<T>) / sizeof(int4);
    const int stride = static_cast<int>(gridDim.x);
    for (int i = static_cast<int>(threadIdx.x); static_cast<int>(blockIdx.x) + i / (2 * each) * stride < job.windows; i += static_cast<int>(blockDim.x)) {
        const int window = static_cast<int>(blockIdx.x) + i / (2 * each) * stride, m = i % each;
        const bool above = i / each & 1;  // of the seam behind the window
        if (above ? window + 1 == job.windows : window == 0) continue;
        reinterpret_cast<int4*>(above ? &job.seams[window].above : &job.seams[window - 1].below)[m] = make_int4(-1, -1, -1, -1);
    }
}

/// The residual that the seams behind the block's windows add, when both sides have shown them. Returns false where a block has given up. All threads.
template <class T>
__device__ __forceinline__ bool look_at_seams(const Job<T>& job, Largest<T>& excess) {
    const int stride = static_cast<int>(gridDim.x) * static_cast<int>(blockDim.x);
    for (int s = static_cast<int>(blockIdx.x) + static_cast<int>(threadIdx.x * gridDim.x); s < job.windows - 1; s += stride) {
        const volatile T* const from = reinterpret_cast<const volatile T*>(job.seams + s);
        T words[2 * side_words];
        for (;;) {
            bool all = true;
#pragma unroll
            for (int m = 0; m < 2 * side_words; ++m) words[m] = from[m];
#pragma unroll
            for (int m = 0; m < 2 * side_words; ++m) all &= is_there(words[m]);
            if (all) break;
            if (!job.mine()) return false;
        }
        excess.add(excess_of(Side<T>{words[0], words[1], words[2], words[3]}, Side<T>{words[4], words[5], words[6], words[7]}));
    }
    return true;
}

/// The residual that seams between windows add, every `step`th from `first` on.
template <class T>
__device__ __forceinline__ void add_excess(const Job<T>& job, int first, int step, Largest<T>& excess) {
    for (int s = first; s < job.windows - 1; s += step) {
        T words[2 * side_words];
#pragma unroll
        for (int m = 0; m < 2 * side_words; ++m) words[m] = __ldcg(reinterpret_cast<const T*>(job.seams + s) + m);
        excess.add(excess_of(Side<T>{words[0], words[1], words[2], words[3]}, Side<T>{words[4], words[5], words[6], words[7]}));
    }
}

inline constexpr int most_warps = 8;  ///< one for each word of Maxima

/// The maxima of all blocks into parts[0 … 7], by the first eight warps of a block, each its own. Behind it comes a barrier.
template <class T>
__device__ __forceinline__ void gather_blocks(const Verdict<T>& of, unsigned* parts) {
    const int m = static_cast<int>(threadIdx.x) / 32;
    constexpr int some = 6;  // asked for together
    const auto of_block = [&](int k) { return __ldcg(of.words + m * of.count + k); };
    unsigned words[some], x = 0;
#pragma unroll
    for (int i = 0; i < some; ++i) {
        const int k = static_cast<int>(threadIdx.x) % 32 + 32 * i;
        words[i] = k < of.count ? of_block(k) : 0;
    }
#pragma unroll
    for (int i = 0; i < some; ++i) x = max(x, words[i]);
    for (int k = static_cast<int>(threadIdx.x) % 32 + 32 * some; k < of.count; k += 32) x = max(x, of_block(k));
    x = __reduce_max_sync(~0u, x);
    if (threadIdx.x % 32 == 0) parts[m] = x;
}

template <class T>
__device__ __forceinline__ double largest_of(const unsigned* parts, int m) { return static_cast<double>(number_of<T>(parts[m])) * beyond_cut<double>; }

/// Whether no seam fails.
template <class T>
__device__ __forceinline__ bool seams_hold(const Verdict<T>& of, const unsigned* parts) {
    const double floor = of.several ? 0 : 0x1p-40 * static_cast<double>(of.accept);  // of several systems one may be small
    return largest_of<T>(parts, 7) <= floor * largest_of<T>(parts, 0);
}

/// By one thread, where seams hold.
template <class T>
__device__ __forceinline__ void conclude(const Verdict<T>& of, const unsigned* parts, DeviceOutcome* outcome) {
    const auto most = [&](int m) { return largest_of<T>(parts, m); };
    const double largest = most(0), inner = most(1), ends = most(2), inner_unit = most(3), ends_unit = most(4), reach = most(5), growth = larger(most(6), 1.0);
    const double accept = of.accept, floor = 0x1p-40 * accept;
    // A row's residual: what was accepted, once more at a seam, and the rounding of the residual itself.
    const double theta = 2 * accept + 8 * static_cast<double>(of.roundoff);
    const double perturbed = theta * inner_unit * growth / 4;  // of the chunks' own elimination
    double bound = 1.0625 * theta * (inner + reach * ends);
    if (largest > 0) bound = bound / largest + floor * (inner_unit + reach * ends_unit);
    const bool holds = !of.several && perturbed <= 0x1p-5 && bound <= 0x1p-6;
    outcome->reason = static_cast<int>(holds ? Reason::certified : Reason::exact);
    if (holds) outcome->certificate = bound;
    outcome->certified = holds;
}

}  // namespace trifold::cuda::certified
