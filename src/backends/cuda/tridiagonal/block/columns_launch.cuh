// SPDX-License-Identifier: BSD-3-Clause
// Launches one instantiation of the kernel for columns side by side.
#pragma once

#include "backends/cuda/tridiagonal/block/columns_kernel.cuh"

namespace trifold::cuda {

template <class T, int L, int Share, bool Shifted>
void enqueue_columns(ColumnJob<T>& job, cudaStream_t stream) {
    auto* const kernel = solve_columns_side_by_side<T, L, Share, Shifted>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024);
    cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    ColumnCut& cut = job.cut;
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(static_cast<unsigned>(32 * cut.warps));
    config.gridDim = dim3(static_cast<unsigned>(cut.blocks));
    config.dynamicSmemBytes = static_cast<std::size_t>(cut.shared_bytes);
    config.stream = stream;
    cudaLaunchAttribute cluster[1];
    cluster[0].id = cudaLaunchAttributeClusterDimension;
    cluster[0].val.clusterDim.x = static_cast<unsigned>(cut.blocks);
    cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
    config.attrs = cluster;
    config.numAttrs = cut.blocks > 1 ? 1 : 0;
    // As many as are resident at once; a block that finds no tile left ends.
    if (cut.blocks > 1) {
        if (cudaOccupancyMaxActiveClusters(&cut.clusters, kernel, &config) != cudaSuccess) return;
    } else {
        int device = 0, multiprocessors = 1, resident = 1;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 32 * cut.warps, config.dynamicSmemBytes);
        cut.clusters = multiprocessors * max(resident, 1);
    }
    cut.clusters = max(min(cut.clusters, static_cast<int>(job.tiles)), 1);
    config.gridDim.x = static_cast<unsigned>(cut.blocks * cut.clusters);
    cudaLaunchKernelEx(&config, kernel, job);
}

template <class T, int L, int Share>
void enqueue_columns(ColumnJob<T>& job, cudaStream_t stream) {
    if (job.cut.shifted) enqueue_columns<T, L, Share, true>(job, stream);
    else enqueue_columns<T, L, Share, false>(job, stream);
}

}  // namespace trifold::cuda
