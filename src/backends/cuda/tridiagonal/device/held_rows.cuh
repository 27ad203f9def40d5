// SPDX-License-Identifier: BSD-3-Clause
// A warp's rows of one system that all multiprocessors hold, on their way into shared memory, and x on its way out.
//
// Shape: the warp's rows of one operand lie side by side, as in memory: whole lines of the copy engine where the system begins with one. At the system's ends what is off 16 bytes comes element by element, and what
//   is no array of such rows comes so altogether; scalars are written. Rows that do not exist are x = 0; lower[0] and upper[rows-1] are not read.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/block/copy_out.cuh"
#include "backends/cuda/tridiagonal/device/held_job.cuh"

namespace trifold::cuda::held {

/// Rows first … first + count - 1.
template <class T>
struct WarpRows {
    static constexpr int vector = 16 / static_cast<int>(sizeof(T));
    const Job<T>& job;
    std::int64_t first;
    int count;

    /// From the first row on: those of operand k that there are, and of them those that the copy engine brings.
    struct Range {
        int begin, end;
    };
    __device__ __forceinline__ Range there(int k) const {
        const int begin = k == 0 && first == 0, end = static_cast<int>(min(static_cast<std::int64_t>(count), max(job.rows - (k == 2) - first, std::int64_t{0})));
        return {begin, max(begin, end)};
    }
    __device__ __forceinline__ Range brought(int k) const {
        const Range all = there(k);
        if (!(job.whole >> k & 1)) return {all.begin, all.begin};
        const int begin = (all.begin + vector - 1) / vector * vector;
        return {begin, max(begin, all.end / vector * vector)};
    }
    __device__ __forceinline__ unsigned bytes(int k) const {
        const Range range = brought(k);
        return static_cast<unsigned>((range.end - range.begin) * static_cast<int>(sizeof(T)));
    }

    /// By one thread, for whom nobody waits at a fence: fences wait for what is under way.
    __device__ __forceinline__ void ask(int k, T* to, const Arrival& arrival) const {
        if (const unsigned all = bytes(k)) arrival.copy(shared_address(to + brought(k).begin), job.input[k].data + first + brought(k).begin, all);
    }

    /// The rest, by all lanes, before they await_copies.
    __device__ __forceinline__ void fill(int k, T* to) const {
        const Range range = brought(k);
        if (range.end - range.begin < count) fill_beside(&job, k, first, to, there(k), range, count);
    }

    /// x, from shared memory where all lanes have left it.
    __device__ __forceinline__ void store(const T* from, int lane) const {
        const int rows = static_cast<int>(min(static_cast<std::int64_t>(count), job.rows - first)), whole = job.whole >> 4 & 1 ? rows / vector * vector : 0;
        if (whole > 0 && lane == 0) send_bulk(job.x.data + first, shared_address(from), static_cast<unsigned>(whole * static_cast<int>(sizeof(T)))), await_sent_reads();
        for (int i = whole + lane; i < rows; i += lanes) job.x.data[(first + i) * job.x.row_stride] = from[i];
    }

private:
    __device__ __noinline__ static void fill_beside(const Job<T>* job, int k, std::int64_t first, T* to, Range all, Range by_engine, int count) {
        const Source<T>& from = job->input[k];
        const int lane = static_cast<int>(threadIdx.x) % lanes;
        const T* const data = from.data + first * from.row_stride;
        const auto fetch = [&](int i) {
            if (from.data) copy_async(shared_address(to + i), data + i * from.row_stride);
            else to[i] = from.value;
        };
        if (by_engine.begin < by_engine.end) {  // what is off 16 bytes at either end
            const int i = lane < vector ? all.begin + lane : by_engine.end + lane - vector;
            if (lane < vector ? i < by_engine.begin : i < all.end) fetch(i);
        } else {
#pragma unroll 4
            for (int i = all.begin + lane; i < all.end; i += lanes) fetch(i);
        }
        const T missing = k == 1 ? T(1) : T(0);
        if (lane < all.begin) to[lane] = T(0);
#pragma unroll 4
        for (int i = all.end + lane; i < count; i += lanes) to[i] = missing;
    }
};

}  // namespace trifold::cuda::held
