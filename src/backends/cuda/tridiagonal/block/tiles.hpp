// SPDX-License-Identifier: BSD-3-Clause
// The tile kernels that exist, and how a batch is cut for one of them.
#pragma once

#include "backends/cuda/tridiagonal/block/tile_job.hpp"

struct CUstream_st;  // what cudaStream_t points to; the plan is tested where CUDA is not

namespace trifold::cuda {

template <class T>
struct OneLaunch;

/// What a kernel was compiled for.
template <class T>
struct TileKernel {
    int chunk = 0;        ///< rows per lane
    int width = 1;        ///< columns side by side
    bool coupled = false; ///< columns longer than 32 chunks
    int warps = 0;        ///< of a block, at most
    int resident = 0;     ///< blocks per multiprocessor that registers allow
    void (*launch)(const TileJob<T>& job, int shared_bytes, CUstream_st* stream) = nullptr;
    void (*launch_once)(const TileJob<T>& job, const OneLaunch<T>& once, int shared_bytes, CUstream_st* stream) = nullptr;  ///< for one tile

    int warp_rows() const noexcept { return 32 * chunk; }
};

template <class T>
struct TileKernels {
    const TileKernel<T>* first;
    int count;
};

/// Those with columns side by side, and those with rows side by side.
template <class T>
TileKernels<T> tile_kernels();
template <class T>
TileKernels<T> rows_kernels();
/// The latter, adding to x.
template <class T>
TileKernels<T> adding_rows_kernels();

/// Cuts `job` (columns, rows, operands set) for this kernel, columns side by side; false where it does not fit.
template <class T>
bool cut_tiles(TileJob<T>& job, const TileKernel<T>& kernel);

/// The same where rows lie side by side: width 1. Returns about how many rows a multiprocessor then holds at a time; 0 where it does not fit.
template <class T>
int cut_rows(TileJob<T>& job, const TileKernel<T>& kernel);

template <class T>
int rows_bytes(const TileJob<T>& job, const TileKernel<T>& kernel) noexcept;

/// Of lower, diag and upper, a bit for each that is the same in all systems.
template <class T>
unsigned same_in_all(const TileJob<T>& job) noexcept;

/// Bytes of shared memory of a block.
template <class T>
int shared_bytes(const TileJob<T>& job, const TileKernel<T>& kernel) noexcept;

}  // namespace trifold::cuda
