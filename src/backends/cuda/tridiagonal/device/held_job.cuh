// SPDX-License-Identifier: BSD-3-Clause
// One system that all multiprocessors hold (held_kernel.cuh): what the host tells the kernel, what blocks tell each other.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/device/windows_job.cuh"
#include "backends/cuda/tridiagonal/operand.cuh"

namespace trifold::cuda::held {

inline constexpr int lanes = 32;
/// Blocks of a lane of the warp that joins them, and at most.
inline constexpr int each = 5, most_blocks = each * lanes;

/// Rows of a lane at most, as many as registers and shared memory hold. Odd: lanes read from different banks.
template <class T>
inline constexpr int most_rows = sizeof(T) == 8 ? 17 : 35;
/// Of a block, which is alone on its multiprocessor: warps with rows, behind one that joins them. Registers come for four warps at a time.
inline constexpr int warps = 15, threads = lanes * (warps + 1);

/// What a block shows of its rows: words that are nothing until they are there.
template <class T>
struct alignas(16) News {
    windows::Interface<T> part;
    T light;   ///< 1: all rows are (thread/weight.cuh); 0; -1: they do not do without pivots, and the rest says nothing
    T hardly;  ///< bits of how hardly dominant its rows are (Lane::hardly)
};

/// What a warp leaves in its block's memory.
template <class T>
struct Part {
    windows::Interface<T> ends;
    T first_sum, last_sum;  ///< 1 - |a| - |c| of either row
    bool summed, exact;     ///< sums were carried along (held_lane.cuh), or are no smaller than that they had to be
    bool light;             ///< as in News
    unsigned hardly;
};

template <class T>
struct Job {
    Source<T> input[4], x;  ///< lower, diag, upper, rhs; no data: a scalar
    std::int64_t rows = 0;
    int rows_of_lane = 0;   ///< odd
    bool tight = false;     ///< rhs has no place of its own beside the matrix
    unsigned whole = 0;     ///< bit k: the copy engine takes input k; bit 4: x
    bool in_place = false;
    T accept = 0, roundoff = 0, negligible = 0;  ///< as in windows::Job
    News<T>* news = nullptr;                     ///< per block
    DeviceOutcome* outcome = nullptr;
    DeviceOutcome fresh;                         ///< what the kernel begins with
};

/// A block's shared memory, in front of its rows.
template <class T>
struct alignas(128) Memory {
    News<T> all[most_blocks];            ///< of all blocks
    Part<T> parts[warps];                ///< of the block's warps
    T ends[warps + 1], begins[warps + 1];  ///< x before warp w, and behind the last; x of its first row, and of the next block's
    T largest;
    int certain, given_up;
    unsigned long long arrived[2][warps];  ///< a warp's rows: rhs; the matrix

    __host__ __device__ static constexpr int pitch(int rows_of_lane) { return warps * lanes * rows_of_lane; }
    /// One row more than there is, which is read before it is known that it is none.
    static constexpr std::size_t bytes(int rows_of_lane, bool tight) { return sizeof(Memory) + static_cast<std::size_t>((tight ? 3 : 4) * pitch(rows_of_lane) + 1) * sizeof(T); }
    /// Of the operands lower, diag, upper, rhs.
    __device__ T* rows(int k, int rows_of_lane, bool tight) { return reinterpret_cast<T*>(this + 1) + (k == 3 && tight ? 0 : k) * pitch(rows_of_lane); }
};

}  // namespace trifold::cuda::held
