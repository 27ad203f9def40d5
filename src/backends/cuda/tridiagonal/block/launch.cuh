// SPDX-License-Identifier: BSD-3-Clause
// One instantiation of the tile kernel as a row of the table.
#pragma once

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/column_kernel.cuh"
#include "backends/cuda/tridiagonal/block/tiles.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::cuda {

template <class T, int R, int W, bool Couple, int Threads, int Blocks>
void launch_tiles(const TileJob<T>& job, int shared, cudaStream_t stream) {
    auto* const kernel = solve_columns<T, R, W, Couple, Threads, Blocks>;
    allow_shared_memory(kernel);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(job.tiles * static_cast<unsigned>(job.blocks));
    config.blockDim = dim3(32 * static_cast<unsigned>(job.warps));
    config.dynamicSmemBytes = static_cast<std::size_t>(shared);
    config.stream = stream;
    cudaLaunchAttribute cluster = cluster_of(static_cast<unsigned>(job.blocks));
    if (Couple && job.blocks > 1) {
        if (job.blocks > 8) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
        config.attrs = &cluster, config.numAttrs = 1;
    }
    enqueue_kernel(config, kernel, job);
}

template <class T, int R, int W, bool Couple, int Threads, int Blocks>
constexpr TileKernel<T> tile_kernel() {
    return {R, W, Couple, Threads / 32, Blocks, launch_tiles<T, R, W, Couple, Threads, Blocks>};
}

}  // namespace trifold::cuda
