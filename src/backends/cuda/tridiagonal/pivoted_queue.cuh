// SPDX-License-Identifier: BSD-3-Clause
// Which systems the lanes of a block take next: all, one set of neighbours after another, or those that are marked, found window by window and taken together.
#pragma once

#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda {

struct PivotedSet {
    std::int64_t first = 0;  ///< the first system, or where it is in the list
    int count = 0;           ///< none: there is no more
};

/// By a block of Width threads, for Width/2 systems at a time.
template <class T, int Width>
class PivotedQueue {
public:
    static constexpr int systems = Width / 2, rounds = 4, most_window = rounds * Width, room = 2 * most_window;
    static constexpr int shared_bytes = room * 8 + rounds * 2 * 4;

    /// shared: on a boundary of 8 bytes. window: systems that are looked at together.
    __device__ __forceinline__ PivotedQueue(const PivotedJob<T>& job, int window, void* shared)
        : job_(job), window_(window), list_(static_cast<std::int64_t*>(shared)), at_(static_cast<std::int64_t>(blockIdx.x) * (marked() ? window : systems)) {}

    /// By all threads. The set before stays where it is in the list.
    __device__ __forceinline__ PivotedSet next() {
        const std::int64_t all = job_.levels.systems;
        PivotedSet set;
        if (!marked()) {
            set.first = at_, set.count = static_cast<int>(max(min(all - at_, static_cast<std::int64_t>(systems)), static_cast<std::int64_t>(0)));
            at_ += static_cast<std::int64_t>(gridDim.x) * systems;
            return set;
        }
        while (listed_ - taken_ < systems && at_ < all) {
            look();
            at_ += static_cast<std::int64_t>(gridDim.x) * window_;
        }
        set.first = taken_, set.count = min(listed_ - taken_, systems);
        taken_ += set.count;
        return set;
    }

    __device__ __forceinline__ std::int64_t number(const PivotedSet& set, int system) const {
        return marked() ? list_[(set.first + system) & (room - 1)] : set.first + system;
    }

private:
    __device__ __forceinline__ bool marked() const { return job_.marks.of_systems; }

    /// Lists the marked ones of a window.
    __device__ __forceinline__ void look() {
        const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
        int* const counts = reinterpret_cast<int*>(list_ + room);
        unsigned votes[rounds];
#pragma unroll
        for (int j = 0; j < rounds; ++j) {
            const int k = j * Width + thread;
            votes[j] = __ballot_sync(~0u, k < window_ && at_ + k < job_.levels.systems && job_.wanted(at_ + k));
            if (lane == 0) counts[2 * j + warp] = __popc(votes[j]);
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < rounds; ++j)
            for (int w = 0; w < Width / 32; ++w) {
                if (w == warp && votes[j] >> lane & 1) list_[(listed_ + __popc(votes[j] & ((1u << lane) - 1))) & (room - 1)] = at_ + j * Width + thread;
                listed_ += counts[2 * j + w];
            }
        __syncthreads();
    }

    const PivotedJob<T>& job_;
    const int window_;
    std::int64_t* const list_;
    std::int64_t at_;
    int listed_ = 0, taken_ = 0;
};

}  // namespace trifold::cuda
