// SPDX-License-Identifier: BSD-3-Clause
// Copies into shared memory that a warp does not wait for at once, the barriers that count them, and where a tile's elements are.
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/block/tile_job.hpp"

namespace trifold::cuda {

__device__ __forceinline__ unsigned shared_address(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

template <class T>
__device__ __forceinline__ void copy_async(unsigned to, const T* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(sizeof(T)) : "memory");
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

/// The part of the batch that a warp or a block holds.
struct TilePlace {
    unsigned outer[3];
    std::int64_t column;   ///< first column
    int columns;           ///< that exist from there
    int first_row, rows;
};

template <class T>
__device__ __forceinline__ T* corner(const TileJob<T>& job, const TileOperand<T>& operand, const TilePlace& place) {
    T* at = operand.data + place.column * operand.column_stride + place.first_row * operand.row_stride;
    if (!job.one_run)
        at += place.outer[0] * operand.outer_stride[0] + place.outer[1] * operand.outer_stride[1] + place.outer[2] * operand.outer_stride[2];
    return at;
}

template <class T>
__device__ __forceinline__ int offset_in_vector(const T* at) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(at) % 16 / sizeof(T));
}

}  // namespace trifold::cuda
