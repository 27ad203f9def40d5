// SPDX-License-Identifier: BSD-3-Clause
// Launches that cost little. Kernels that follow each other in a stream and are launched while the one before ends (programmatic dependent launch): most kernels of a
// chain find nothing to do, and then their launches would be all that they cost.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "backends/cuda/runtime/launches.hpp"

namespace trifold::cuda {

/// What is done once for every device: asking the runtime at every solve would cost more than a short system.
class PerDevice {
public:
    template <class F>
    void once(F call) {
        int device = 0;
        cudaGetDevice(&device);
        if (device < 0 || device >= static_cast<int>(flags_.size())) call();
        else std::call_once(flags_[static_cast<std::size_t>(device)], call);
    }

private:
    std::array<std::once_flag, 64> flags_;
};

/// A number of the current device, asked for once.
class OfDevice {
public:
    template <class Ask>
    int operator()(Ask ask) {
        int device = 0;
        if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= static_cast<int>(known_.size())) return ask(device);
        std::atomic<int>& known = known_[static_cast<std::size_t>(device)];
        if (known.load(std::memory_order_acquire) == 0) known.store(1 + ask(device), std::memory_order_release);
        return known.load(std::memory_order_acquire) - 1;
    }

private:
    std::array<std::atomic<int>, 64> known_{};  ///< one more than that
};

inline int multiprocessors_of_current() {
    static OfDevice known;
    return known([](int device) {
        int count = 1;
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
        return count;
    });
}

/// The copy engine and distributed shared memory are there from compute capability 9.0 on.
inline bool has_clusters() {
    static OfDevice known;
    return known([](int device) {
        int major = 0;
        return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
    }) != 0;
}

/// The next kernel may be launched: where most of the work is done, since its blocks take room.
__device__ __forceinline__ void let_the_next_begin() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// First of all in such a kernel. What comes before it must neither read nor write what other kernels do.
__device__ __forceinline__ void after_the_kernel_before() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Not for the first kernel of a solve: what its inputs come from may end later than the kernel before it says.
inline void while_the_kernel_before_ends(cudaLaunchAttribute& attribute) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
}

/// So many blocks of a grid share what each other has.
inline cudaLaunchAttribute cluster_of(unsigned blocks) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = blocks, attribute.val.clusterDim.y = 1, attribute.val.clusterDim.z = 1;
    return attribute;
}

/// All blocks at once, and while the kernel before ends. Returns how many attributes that is.
inline unsigned together_after(cudaLaunchAttribute (&attributes)[2]) {
    attributes[0].id = cudaLaunchAttributeCooperative, attributes[0].val.cooperative = 1;
    while_the_kernel_before_ends(attributes[1]);
    return 2;
}

template <class... Arguments>
void launch_after(void (*kernel)(Arguments...), dim3 blocks, unsigned threads, std::size_t shared, cudaStream_t stream, Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks, config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    cudaLaunchAttribute overlap;
    while_the_kernel_before_ends(overlap);
    config.attrs = &overlap, config.numAttrs = 1;
    enqueue_kernel(config, kernel, arguments...);
}

}  // namespace trifold::cuda
