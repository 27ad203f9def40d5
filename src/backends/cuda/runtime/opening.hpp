// SPDX-License-Identifier: BSD-3-Clause
// How the first kernel of a solve resets the outcome itself: a launch for that would be a tenth of what a GPU takes for a hundred megabytes where it waits for the host.
//
// Block 0 resets the outcome first of all, then says so in a word of it. Whoever changes the outcome looks for that before, when its first loads have long been on their way. Who
// looks last takes the word back, so that the next launch of the same kernel, of a graph too, does not find it. Nothing is expected of that memory before the first call: that
// the word lies there by chance has a probability of 2^-64. Block 0 waits for nobody and is on the GPU no later than others are.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"

namespace trifold::cuda {

struct Opening {
    static constexpr unsigned long long said = 0x6f70656e2b1d9c53ull;

    DeviceOutcome* outcome = nullptr;  ///< null: it was reset before
    std::int64_t rows = 0, systems = 0;
    int branch = 0;                    ///< as reset_outcome has them

#ifdef __CUDACC__
    /// By all threads, first of all.
    __device__ __forceinline__ void open() const {
        if (!outcome || blockIdx.x != 0 || threadIdx.x != 0) return;
        *outcome = fresh_outcome(rows, systems, branch);
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(&outcome->opened), "l"(said) : "memory");
    }
    /// Before the outcome is changed.
    __device__ __forceinline__ void await() const {
        if (!outcome) return;
        unsigned long long seen;
        do asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(&outcome->opened) : "memory");
        while (seen != said);
    }
    /// By a thread that knows that it is the last one to have awaited: of those that draw tickets, who has the last one.
    __device__ __forceinline__ void close(bool last) const {
        if (outcome && last) *static_cast<volatile unsigned long long*>(&outcome->opened) = 0;
    }
    /// Where tickets are not drawn: by one thread of every block, before a barrier of the block behind which others may change the outcome.
    __device__ __forceinline__ void enter() const {
        if (!outcome) return;
        await();
        close(atomicAdd(&outcome->entered, 1u) + 1 == gridDim.x);
    }
#endif
};

#ifdef __CUDACC__
/// For a kernel that may be another's successor and fills the GPU until its end: blocks of the next one would only be in the way before that.
__device__ __forceinline__ void await_the_kernel_before() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif

}  // namespace trifold::cuda
