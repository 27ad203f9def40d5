// SPDX-License-Identifier: BSD-3-Clause
// What the warps of a cluster tell each other of one system: each its Interface, to all blocks, with the news of it (st.async), later whether its residuals are good. Every warp looks at all of it in its own block's memory.
#pragma once

#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/cluster.cuh"
#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_spread.cuh"
#include "backends/cuda/tridiagonal/device/windows_couple.cuh"

namespace trifold::cuda::one_system {

inline constexpr int lanes = 32, most_blocks = 16;
/// Of a block.
template <int Each>
inline constexpr int most_warps = Each == 1 ? 4 : 2 * Each;

inline constexpr int most_dynamic_bytes = most_shared_bytes - 1024;  ///< less what is static
inline constexpr int most_told_bytes = 8 << 10;                      ///< of what warps tell each other

/// Of a block's rows where blocks share what needs pivots, in double precision: as many as there is room for (two_pass::Spread::words).
template <int Threads>
constexpr int pivot_words(int rows) {
    const auto fit = [&](int words) { return two_pass::SpreadMemory<double, Threads>::bytes(rows, words) <= most_dynamic_bytes - most_told_bytes; };
    return fit(9) ? 9 : fit(5) ? 5 : 4;
}

/// Each: warps of the cluster per lane of the warp that joins them.
template <class T, int Each>
struct __align__(16) Memory {
    windows::Interface<T> parts[lanes * Each];
    unsigned light[lanes * Each], good[lanes * Each];  ///< of the warps: whether all rows are, whether all residuals are
    unsigned apart[2 * lanes];                            ///< of those with halos: whether x is good
    unsigned long long arrived, judged, asked;

    /// Behind it: where blocks share what needs pivots, in double precision if need be.
    __device__ unsigned char* rows() { return reinterpret_cast<unsigned char*>(this + 1); }
    static constexpr std::size_t bytes(int rows) {
        static_assert(sizeof(Memory) <= most_told_bytes);
        constexpr int threads = lanes * most_warps<Each>;
        return sizeof(Memory) + static_cast<std::size_t>(two_pass::SpreadMemory<double, threads>::bytes(rows, pivot_words<threads>(rows)));
    }
};

/// By all lanes of a warp, `number` of `all`.
template <class T, int Each>
struct WarpsOfCluster {
    Memory<T, Each>& shared;
    int lane, number, all, blocks;

    __device__ __forceinline__ Arrival arrival() const { return {shared_address(&shared.arrived)}; }
    __device__ __forceinline__ Arrival judgement() const { return {shared_address(&shared.judged)}; }

    /// By one thread of each block, before blocks have met.
    __device__ __forceinline__ void prepare() const {
        const auto words = static_cast<unsigned>(all * static_cast<int>(sizeof(unsigned)));
        arrival().prepare(1), judgement().prepare(1);
        arrival().expect(words + static_cast<unsigned>(all * static_cast<int>(sizeof(windows::Interface<T>)))), judgement().expect(words);
    }

    __device__ __forceinline__ void tell(unsigned* at, int who, unsigned what, const Arrival& news) const {
        if (lane < blocks) send(in_block(shared_address(at + who), lane), what, in_block(news.barrier, lane));
    }
    __device__ __forceinline__ void show(const windows::Whole<T>& part) const {
        if (lane < blocks) {
            const unsigned to = in_block(shared_address(&shared.parts[number]), lane), news = in_block(arrival().barrier, lane);
            constexpr unsigned pair = 2 * sizeof(T);
            send(to, part.first.a, part.first.c, news), send(to + pair, part.first.d, part.last.a, news), send(to + 2 * pair, part.last.c, part.last.d, news);
        }
        tell(shared.light, number, part.light, arrival());
    }

    /// Those of the lane, when all are there; returns whether all of their rows are light.
    __device__ __forceinline__ bool await(windows::Interface<T> (&mine)[Each]) const {
        arrival().wait_cluster(0);
        __syncwarp();
        bool light = true;
#pragma unroll
        for (int i = 0; i < Each; ++i) {
            mine[i] = windows::Interface<T>{};
            if (lane * Each + i < all) mine[i] = shared.parts[lane * Each + i], light = light && shared.light[lane * Each + i];
        }
        return light;
    }

    __device__ __forceinline__ void say_good(bool good) const { tell(shared.good, number, __all_sync(~0u, good), judgement()); }
    /// When all have said so.
    __device__ __forceinline__ bool are_good() const {
        judgement().wait_cluster(0);
        __syncwarp();
        bool good = true;
#pragma unroll
        for (int i = 0; i < Each; ++i) good = good && (lane * Each + i >= all || shared.good[lane * Each + i]);
        return __all_sync(~0u, good);
    }

    /// Of what lanes have of their warps: that of warp `which`.
    __device__ __forceinline__ static T of_warp(const T (&values)[Each], int which) { return windows::of_one(values, which); }
};

/// By the first thread.
__device__ __forceinline__ void begin_outcome(DeviceOutcome* outcome, std::int8_t* status, std::int64_t number, int rows, int branch) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    *outcome = fresh_outcome(rows, 1, branch);
    if (status) status[number] = static_cast<std::int8_t>(Reason::exact);
}

/// The largest |x| that a row's residual is held against: that of the lanes' rows, and of the last ones of all warps.
template <class T, int R, int Each>
__device__ __forceinline__ T largest_nearby(const T (&x)[R], const T (&last)[Each]) {
    Largest<T> largest;
#pragma unroll
    for (int i = 0; i < Each; ++i) largest.add(last[i]);
#pragma unroll
    for (int i = 0; i < R; ++i) largest.add(x[i]);
    return windows::number_of<T>(__reduce_max_sync(~0u, windows::held_bits(largest))) * windows::beyond_cut<T>;
}

}  // namespace trifold::cuda::one_system
