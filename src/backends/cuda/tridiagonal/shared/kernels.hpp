// SPDX-License-Identifier: BSD-3-Clause
// The kernels for one shared matrix that exist, and how a batch is cut for one of them.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/tridiagonal/shared/job.hpp"

namespace trifold::cuda {

/// What a kernel was compiled for.
template <class T>
struct SharedKernel {
    int rows = 0;       ///< per thread
    bool columns = false;
    bool coupled = false;  ///< rows: systems longer than a warp's run
    bool bands = false;    ///< columns: a cluster's blocks share them; taken wherever it fits
    int threads = 0;    ///< of a block, at most
    bool (*cut)(SharedJob<T>& job, const SharedKernel<T>& kernel) = nullptr;  ///< false where the job does not fit
    void (*launch)(SharedJob<T>& job, cudaStream_t stream) = nullptr;
};

template <class T>
struct SharedKernels {
    const SharedKernel<T>* first;
    int count;
};

template <class T>
SharedKernels<T> shared_kernels();

/// Those that add to x.
template <class T>
SharedKernels<T> adding_shared_kernels();

/// Those for rings.
template <class T>
SharedKernels<T> shared_ring_kernels();

}  // namespace trifold::cuda
