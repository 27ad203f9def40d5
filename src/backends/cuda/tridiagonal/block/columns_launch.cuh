// SPDX-License-Identifier: BSD-3-Clause
// Launches one instantiation of the kernel for columns side by side.
#pragma once

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/columns_dominant.cuh"
#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::cuda {

/// As many clusters as the GPU holds at a time. V: columns of a lane.
template <auto kernel, int V = 1, class T>
void enqueue_column_kernel(ColumnJob<T>& job, cudaStream_t stream) {
    static PerDevice prepared;
    prepared.once([&] {
        allow_shared_memory(kernel);
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    });
    ColumnCut& cut = job.cut;
    const auto blocks = static_cast<unsigned>(cut.blocks);
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(static_cast<unsigned>(32 * cut.warps / V));
    config.gridDim = dim3(blocks);
    config.dynamicSmemBytes = static_cast<std::size_t>(cut.shared_bytes);
    config.stream = stream;
    cudaLaunchAttribute attributes[2];
    config.attrs = attributes;
    if (blocks > 1) attributes[0] = cluster_of(blocks), config.numAttrs = 1;
    static Residency residency;
    cut.clusters = static_cast<int>(std::min(residency(kernel, config, blocks), job.tiles));
    config.gridDim.x = blocks * static_cast<unsigned>(cut.clusters);
    if (!job.opening.outcome) while_the_kernel_before_ends(attributes[config.numAttrs++]);
    enqueue_kernel(config, kernel, job);
}

template <class T, int Share, ColumnPass Pass>
void enqueue_segments(ColumnJob<T>& job, cudaStream_t stream) {
    if (job.cut.shifted) enqueue_column_kernel<solve_dominant_columns<T, column_chunk, 32, Share, true, 2, Pass>, Share>(job, stream);
    else enqueue_column_kernel<solve_dominant_columns<T, column_chunk, 32, Share, false, 2, Pass>, Share>(job, stream);
}

template <class T, int L, int Share>
void enqueue_rings(ColumnJob<T>& job, cudaStream_t stream) {
    const auto enqueue = [&]<bool Shifted>() {
        if (job.cut.pieces == 2) {
            if constexpr (L * Share * sizeof(T) == 256) enqueue_column_kernel<solve_dominant_columns<T, column_chunk, L, Share, Shifted, 2, ColumnPass::rings>, Share>(job, stream);
        } else {
            enqueue_column_kernel<solve_dominant_columns<T, column_chunk, L, Share, Shifted, 1, ColumnPass::rings>, Share>(job, stream);
        }
    };
    if (job.cut.shifted) enqueue.template operator()<true>();
    else enqueue.template operator()<false>();
}

template <class T, int Share>
void enqueue_shared_couplings(ColumnJob<T>& job, cudaStream_t stream) {
    const auto enqueue_as = [&]<bool Shifted, int P, int Most>() { enqueue_column_kernel<solve_dominant_columns<T, column_chunk, 32, Share, Shifted, P, ColumnPass::whole, ColumnBands::table, Most>, Share>(job, stream); };
    const auto enqueue = [&]<bool Shifted>() {
        if (job.cut.pieces == 1) return enqueue_as.template operator()<Shifted, 1, 4>();
        if constexpr (sizeof(T) == 8)
            if (job.cut.blocks <= 4) return enqueue_as.template operator()<Shifted, 2, 4>();
        enqueue_as.template operator()<Shifted, 2, 16>();
    };
    if (job.cut.shifted) enqueue.template operator()<true>();
    else enqueue.template operator()<false>();
}

template <class T, int Share>
void enqueue_columns_of_lines(ColumnJob<T>& job, cudaStream_t stream) {
    constexpr ColumnBands line = ColumnBands::line;
    const auto enqueue = [&]<bool Shifted>() {
        if (!job.cut.dominant) {
            if (job.cut.share > 1) enqueue_column_kernel<solve_columns_side_by_side<T, column_chunk, 32, Share, Shifted, line>>(job, stream);
            else if (job.cut.lane_columns == 32) enqueue_column_kernel<solve_columns_side_by_side<T, column_chunk, 32, 1, Shifted, line>>(job, stream);
            else if constexpr (sizeof(T) == 8) enqueue_column_kernel<solve_columns_side_by_side<T, column_chunk, 16, 1, Shifted, line>>(job, stream);
        } else if (job.cut.pieces == 1) {
            enqueue_column_kernel<solve_dominant_columns<T, column_chunk, 32, Share, Shifted, 1, ColumnPass::whole, line, 4>, Share>(job, stream);
        } else {
            enqueue_column_kernel<solve_dominant_columns<T, column_chunk, 32, Share, Shifted, 2, ColumnPass::whole, line, 16>, Share>(job, stream);
        }
    };
    if (job.cut.shifted) enqueue.template operator()<true>();
    else enqueue.template operator()<false>();
}

template <class T, int R, int L, int Share, bool Adds = false>
void enqueue_columns(ColumnJob<T>& job, cudaStream_t stream) {
    constexpr ColumnPass whole = ColumnPass::whole;
    constexpr ColumnBands own = ColumnBands::own;
    const auto enqueue = [&]<bool Shifted>() {
        if (job.cut.pieces == 2) {
            if constexpr (L * Share * sizeof(T) == 256) enqueue_column_kernel<solve_dominant_columns<T, R, L, Share, Shifted, 2, whole, own, 4, Adds>, Share>(job, stream);
        } else if (job.cut.dominant) enqueue_column_kernel<solve_dominant_columns<T, R, L, Share, Shifted, 1, whole, own, 16, Adds>, Share>(job, stream);
        else enqueue_column_kernel<solve_columns_side_by_side<T, R, L, Share, Shifted, own, Adds>>(job, stream);
    };
    if (job.cut.shifted) enqueue.template operator()<true>();
    else enqueue.template operator()<false>();
}

}  // namespace trifold::cuda
