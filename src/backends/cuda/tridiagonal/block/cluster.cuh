// SPDX-License-Identifier: BSD-3-Clause
// How blocks of a cluster wait for each other and see each other's shared memory.
#pragma once

namespace trifold::cuda {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/// Nothing that this thread has stored need be seen by others, but barriers behind their own fence: it does not wait for what it has asked for.
__device__ __forceinline__ void arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

__device__ __forceinline__ unsigned rank_in_cluster() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/// The same place in the shared memory of another block.
template <class T>
__device__ __forceinline__ const T* of_block(const T* mine, int block) {
    const T* there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(mine), "r"(block));
    return there;
}
#else
// There are none: a block is alone.
__device__ __forceinline__ void arrive_relaxed() {}
__device__ __forceinline__ void arrive_in_cluster() {}
__device__ __forceinline__ void wait_for_cluster() {}
__device__ __forceinline__ unsigned rank_in_cluster() { return 0; }
template <class T>
__device__ __forceinline__ const T* of_block(const T* mine, int) {
    return mine;
}
#endif

__device__ __forceinline__ void meet_in_cluster() {
    arrive_in_cluster();
    wait_for_cluster();
}

}  // namespace trifold::cuda
