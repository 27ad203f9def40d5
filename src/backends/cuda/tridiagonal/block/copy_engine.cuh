// SPDX-License-Identifier: BSD-3-Clause
// Copies into shared memory that nobody waits for at once, the barriers that count them, and what blocks of a cluster send each other.
#pragma once

#include <cstdint>

namespace trifold::cuda {

__device__ __forceinline__ unsigned shared_address(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

template <class T>
__device__ __forceinline__ void copy_async(unsigned to, const T* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(sizeof(T)) : "memory");
}

__device__ __forceinline__ void copy_vector_async(unsigned to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Counts the bytes of bulk copies: as many arrivals as it was prepared for, each with the bytes that it asked for.
struct Arrival {
    unsigned barrier;

    __device__ void prepare(int threads) const {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(threads) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __device__ void expect(unsigned bytes) const {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    }
    __device__ void copy(unsigned to, const void* from, unsigned bytes) const {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
                     "r"(barrier)
                     : "memory");
    }
    __device__ void arrive() const { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
    /// When this thread's cp.async are there: one of the arrivals that the barrier was prepared for. What the thread has written itself is not
    /// seen by who waits for this: another arrival has to say so.
    __device__ void arrive_after_copies() const { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory"); }
    /// For several.
    __device__ void arrive_for(unsigned count) const { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory"); }
    /// Until the phase of this parity is over: phases are 0, 1, 0, …
    __device__ void wait(unsigned parity = 0) const {
        unsigned done;
        do {
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(barrier), "r"(parity)
                         : "memory");
        } while (!done);
    }
    /// The same by all lanes of a warp, which go on together: what follows is compiled as for a whole warp.
    __device__ __forceinline__ void wait_together(unsigned parity) const {
        while (!is_over_together(parity)) {
        }
    }
    /// Or a short while.
    __device__ __forceinline__ bool is_over_together(unsigned parity) const {
        unsigned done;
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
        return __all_sync(~0u, done);
    }
    /// The same, and what other blocks of the cluster have stored is seen.
    __device__ void wait_cluster(unsigned parity) const {
        unsigned done;
        do {
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(barrier), "r"(parity)
                         : "memory");
        } while (!done);
    }
};

/// Elements from a 16-byte boundary to `at`.
template <class T>
__device__ __forceinline__ int offset_in_vector(const T* at) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(at) % 16 / sizeof(T));
}

// ---- what blocks of a cluster send each other: data and the news of it together, so that nothing waits for other stores ----

/// The same place in another block's shared memory.
__device__ __forceinline__ unsigned in_block(unsigned address, int rank) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

__device__ __forceinline__ void send(unsigned to, unsigned word, unsigned barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(word), "r"(barrier) : "memory");
}
__device__ __forceinline__ void send(unsigned to, double x, double y, unsigned barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(to), "l"(__double_as_longlong(x)),
                 "l"(__double_as_longlong(y)), "r"(barrier)
                 : "memory");
}
__device__ __forceinline__ void send(unsigned to, float x, float y, unsigned barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(to), "r"(__float_as_uint(x)),
                 "r"(__float_as_uint(y)), "r"(barrier)
                 : "memory");
}

}  // namespace trifold::cuda
