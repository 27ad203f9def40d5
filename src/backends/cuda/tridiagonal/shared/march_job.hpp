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
inline constexpr int march_farthest = march_slots - 2;  ///< chunks that a warp looks ahead, at most

/// What the kernel that eliminates the matrix leaves.
template <class T>
struct MarchFactors {
    SharedBand<T> lower, diag, upper;
    int rows = 0, chunks = 0;
    T* factors = nullptr;           ///< [chunk][1 / pivot, lower / pivot, upper / pivot][row of it]; zeros behind the last row
    T *down = nullptr, *up = nullptr;  ///< [chunk]: products of |lower / pivot| and of |upper / pivot| over its rows
    T forgotten = 0;                ///< so little of an unknown need not be known
    int* ahead = nullptr;           ///< chunks behind which unknowns do not feel each other, 1 … march_farthest; 0: the kernel behind does nothing
    unsigned* wanted = nullptr;     ///< then 1, else 0: others have to solve all
    unsigned long long* all_left = nullptr;  ///< and, where it is not null, windows_turn, which others look for
    unsigned* done = nullptr;       ///< blocks that have finished: zero before
    unsigned char* marks = nullptr; ///< per system, reset here
    std::int64_t systems = 0;
};

template <class T>
struct March {
    const T* factors = nullptr;
    const int* ahead = nullptr;
    int chunks = 0;
    MarchCut cut;
    bool along_rows = false;        ///< rows of a system lie side by side: by the maps of march_rows.cuh
};

/// Enqueues the kernel for columns: operands 3 and 4 of `job` (rhs, x), marks and handed_over.
template <class T>
void launch_march(ColumnJob<T>& job, const March<T>& march, cudaStream_t stream);

}  // namespace trifold::cuda
