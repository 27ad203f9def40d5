// SPDX-License-Identifier: BSD-3-Clause
// Long systems with one matrix, as the kernels that walk down them see it (march.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/tridiagonal/block/columns_job.hpp"
#include "backends/cuda/tridiagonal/shared/job.hpp"
#include "backends/cuda/tridiagonal/shared/march_cut.hpp"

namespace trifold::cuda {

inline constexpr int march_rows = 64;      ///< of a chunk
inline constexpr int march_slots = 12;     ///< chunks that a block's shared memory has room for
inline constexpr int march_warps = 4;      ///< pairs of warps of a block, at most
inline constexpr int march_reduce_ring = 4;  ///< chunks of a pair that reduces: even, so that a place is always the same warp's
inline constexpr int march_reducers = march_slots / march_reduce_ring;  ///< such pairs of a block
inline constexpr int most_joined_chunks = 1 << 13;  ///< two factors of each are in shared memory
inline constexpr int march_farthest = 3;   ///< chunks that a warp looks ahead, at most: with more of them fewer warps have room, and chunks that are joined take less time

template <class T>
struct DominantLink;

/// What the kernel that eliminates the matrix leaves.
template <class T>
struct MarchFactors {
    SharedBand<T> lower, diag, upper;
    int rows = 0, chunks = 0;
    bool forget = true;             ///< whether it is asked how far unknowns feel each other
    bool join = true;               ///< whether chunks are to be joined where unknowns feel each other too far
    T* reduce = nullptr;            ///< [chunk][1 / pivot, lower / pivot, weight of y in the first unknown][row of it], 1 and lower for the last row; behind it what keeps y
    T* finish = nullptr;            ///< [chunk][1 / pivot, lower / pivot, upper / pivot][row of it], from the last row on what keeps x
    DominantLink<T>* links = nullptr;  ///< [chunk]
    unsigned* joined = nullptr;     ///< 1 where chunks are to be joined, else 0
    T* factors = nullptr;           ///< [chunk][1 / pivot, lower / pivot, upper / pivot][row of it]; zeros behind the last row
    T *down = nullptr, *up = nullptr;  ///< [chunk]: products of |lower / pivot| and of |upper / pivot| over its rows
    T forgotten = 0;                ///< so little of an unknown need not be known
    int* ahead = nullptr;           ///< chunks behind which unknowns do not feel each other, 1 … march_farthest; 0: they do, farther, or nobody asked
    unsigned* wanted = nullptr;     ///< 1 where others have to solve all, else 0
    unsigned long long* all_left = nullptr;  ///< and, where it is not null, windows_turn, which others look for
    unsigned* done = nullptr;       ///< blocks that have finished: zero before
    unsigned char* marks = nullptr; ///< per system, reset here
    std::int64_t systems = 0;
};

template <class T>
struct March {
    const T *factors = nullptr, *reduce = nullptr, *finish = nullptr;
    const DominantLink<T>* links = nullptr;
    const int* ahead = nullptr;
    const unsigned* joined = nullptr;
    T *last = nullptr, *first = nullptr;  ///< [chunk][tile][column of it]: what is known of the chunk's last row, then its last unknown; what is known of the first
    unsigned* wanted = nullptr;     ///< as in MarchFactors, and so where chunks cannot be joined
    unsigned long long* all_left = nullptr;
    int chunks = 0;
    MarchCut cut, reduce_cut;       ///< of march_warps pairs of a block; of march_reducers
    bool in_place = false;          ///< x is rhs: systems that are marked are left as they are
    bool along_rows = false;        ///< rows of a system lie side by side: by the maps of march_rows.cuh
};

enum class MarchPass {
    whole_or_reduce,  ///< by what the kernel that eliminates the matrix has said
    join,
    finish
};

/// Enqueues the kernel for columns: operands 3 and 4 of `job` (rhs, x), marks and handed_over.
template <class T>
void launch_march(const ColumnJob<T>& job, const March<T>& march, MarchPass pass, cudaStream_t stream);

}  // namespace trifold::cuda
