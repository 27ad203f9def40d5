// SPDX-License-Identifier: BSD-3-Clause
// One instantiation of the rows kernel as a row of the table: as many blocks as the GPU holds at a time.
#pragma once

#include <algorithm>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/block/rows_kernel.cuh"
#include "backends/cuda/tridiagonal/block/tiles.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::cuda {

template <class T, int R, bool Couple, int Threads, int Blocks, bool Adds = false>
void launch_rows(const TileJob<T>& job, int shared, cudaStream_t stream) {
    auto* const kernel = solve_rows<T, R, Couple, Threads, Blocks, Adds>;
    static PerDevice prepared;
    prepared.once([&] {
        allow_shared_memory(kernel);
        if (Couple) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    });
    const auto blocks = static_cast<unsigned>(job.blocks), warps = static_cast<unsigned>(job.warps);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(32 * warps);
    config.dynamicSmemBytes = static_cast<std::size_t>(shared);
    config.stream = stream;
    cudaLaunchAttribute attributes[2];
    config.attrs = attributes;
    if (blocks > 1) attributes[config.numAttrs++] = cluster_of(blocks);
    static Residency residency;
    const unsigned teams = residency(kernel, config, blocks), needed = Couple ? job.tiles : (job.tiles + job.draw * warps - 1) / (job.draw * warps);
    config.gridDim = dim3(std::min(teams, needed) * blocks);
    if (!job.opening.outcome) while_the_kernel_before_ends(attributes[config.numAttrs++]);
    enqueue_kernel(config, kernel, job);
}

template <class T, int R, bool Couple, int Threads>
void launch_rows_once(const TileJob<T>& job, const OneLaunch<T>& once, int shared, cudaStream_t stream) {
    auto* const kernel = solve_rows_in_one_launch<T, R, Couple, Threads>;
    static PerDevice prepared;
    prepared.once([&] {
        allow_shared_memory(kernel);
        if (Couple) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    });
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(job.blocks));
    config.blockDim = dim3(32 * static_cast<unsigned>(job.warps));
    config.dynamicSmemBytes = std::max(static_cast<std::size_t>(shared), sizeof(BlockPivoting<T>));
    config.stream = stream;
    cudaLaunchAttribute cluster = cluster_of(static_cast<unsigned>(job.blocks));
    config.attrs = &cluster, config.numAttrs = job.blocks > 1;
    enqueue_kernel(config, kernel, job, once);
}

template <class T, int R, bool Couple, int Threads, int Blocks>
constexpr TileKernel<T> rows_kernel() {
    return {R, 1, Couple, Threads / 32, Blocks, launch_rows<T, R, Couple, Threads, Blocks>, launch_rows_once<T, R, Couple, Threads>};
}

/// One that adds to x.
template <class T, int R, bool Couple, int Threads, int Blocks>
constexpr TileKernel<T> adding_rows_kernel() {
    return {R, 1, Couple, Threads / 32, Blocks, launch_rows<T, R, Couple, Threads, Blocks, true>};
}

}  // namespace trifold::cuda
