// SPDX-License-Identifier: BSD-3-Clause
// What blocks and clusters of blocks do together. Without a CUDA compiler, whoever includes this says it himself before (tests run the
// kernels on the host).
#pragma once

#include <cstdint>

#ifdef __CUDACC__

namespace trifold::cuda {

__device__ __forceinline__ int thread_number() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ void block_barrier() { __syncthreads(); }

__device__ __forceinline__ int rank_in_cluster() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}

/// The block's threads meet, and tell the cluster: what any of them has stored into any shared memory is seen by who waits. One warp
/// waits for memory on behalf of its block, since that takes hundreds of clocks of every warp that does. A warp arrives as one: its
/// lanes must not do so in different ways.
__device__ __forceinline__ void cluster_arrive() {
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    else asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_barrier() {
    cluster_arrive();
    cluster_wait();
}

/// The shared memory of a block of the cluster, from where this block has `own`. Barriers keep accesses in their place; others do not.
template <class T>
struct Elsewhere {
    unsigned address;

    __device__ __forceinline__ Elsewhere(const T* own, int rank) {
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(static_cast<unsigned>(__cvta_generic_to_shared(own))), "r"(rank));
    }

    __device__ __forceinline__ T load(int i) const {
        T value;
        if constexpr (sizeof(T) == 4) asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address + 4 * i));
        else asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(value) : "r"(address + 8 * i));
        return value;
    }

    __device__ __forceinline__ void store(int i, T value) const {
        if constexpr (sizeof(T) == 4) asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address + 4 * i), "f"(value));
        else asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(address + 8 * i), "d"(value));
    }

    /// A store that the letterbox at `box` of that block counts.
    __device__ __forceinline__ void send(int i, T value, int box) const {
        constexpr unsigned size = sizeof(T);
        if constexpr (size == 4)
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address + size * i), "r"(__float_as_uint(value)), "r"(address + size * box) : "memory");
        else
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(address + size * i), "l"(__double_as_longlong(value)), "r"(address + size * box) : "memory");
    }
};

/// Counts what other blocks send to this one, round after round: 8 bytes of shared memory. One thread opens it, before a barrier of the cluster and any sending, and says in
/// every round, once it has seen the one before, how many bytes are to come; what comes earlier is counted too.
__device__ __forceinline__ void open_letterbox(void* box) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(box))) : "memory");
}

__device__ __forceinline__ void expect_letters(void* box, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(box))), "r"(bytes) : "memory");
}

/// round: of the first one, 0.
__device__ __forceinline__ void wait_for_letters(void* box, unsigned round) {
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(box));
    unsigned done;
    do
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(done) : "r"(at), "r"(round & 1) : "memory");
    while (!done);
}

__device__ __forceinline__ float multiply_add(float x, float y, float z) { return fmaf(x, y, z); }
__device__ __forceinline__ double multiply_add(double x, double y, double z) { return fma(x, y, z); }

template <class T>
struct Vector16;
template <>
struct Vector16<float> {
    using type = float4;
};
template <>
struct Vector16<double> {
    using type = double2;
};

/// The same value, of which the compiler does not know that it is: what is made of it is made where it is wanted.
__device__ __forceinline__ float unforeseen(float value) {
    asm volatile("" : "+f"(value));
    return value;
}
__device__ __forceinline__ int unforeseen(int value) {
    asm volatile("" : "+r"(value));
    return value;
}
__device__ __forceinline__ double unforeseen(double value) {
    asm volatile("" : "+d"(value));
    return value;
}

/// 16 bytes of shared memory, in as many values.
template <class T>
__device__ __forceinline__ void load_vector(const T* from, T* to) {
    const auto vector = *reinterpret_cast<const typename Vector16<T>::type*>(from);
    to[0] = vector.x, to[1] = vector.y;
    if constexpr (sizeof(T) == 4) to[2] = vector.z, to[3] = vector.w;
}

}  // namespace trifold::cuda

#endif
