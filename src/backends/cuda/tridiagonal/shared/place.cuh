// SPDX-License-Identifier: BSD-3-Clause
// Where a system lies, and small helpers of the kernels for one shared matrix.
#pragma once

#include "backends/cuda/tridiagonal/shared/job.hpp"

namespace trifold::cuda {

__device__ __forceinline__ unsigned shared_memory(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

/// Row 0 of a system, by its index. (Loops are left as they are: most batches have one level.)
template <class T>
__device__ __forceinline__ T* place(const SharedJob<T>& job, const SharedOperand<T>& operand, unsigned system) {
    T* at = operand.data;
#pragma unroll 1
    for (int l = job.levels - 1; l > 0; --l) {
        const unsigned above = system / job.extent[l];
        at += (system - above * job.extent[l]) * operand.level_stride[l];
        system = above;
    }
    return at + system * operand.level_stride[0];
}

/// at += step, one at a time: multiples of a stride that are known before a loop would fill the registers.
template <class T>
__device__ __forceinline__ void advance(T*& at, std::int64_t step) {
    at += step;
    asm volatile("" : "+l"(at)::"memory");
}

template <class T>
__device__ __forceinline__ void copy_element(unsigned to, const T* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(sizeof(T)) : "memory");
}

__device__ __forceinline__ void copy_vector(unsigned to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void prepare_arrival(unsigned barrier, unsigned threads) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ void await_arrival(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

template <class T>
__device__ __forceinline__ int offset_of(const T* at) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(at) % 16 / sizeof(T));
}

__device__ __forceinline__ void copy_bulk(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

template <class T>
struct SharedVector;
template <>
struct SharedVector<float> {
    using type = float4;
};
template <>
struct SharedVector<double> {
    using type = double2;
};

__device__ __forceinline__ float entry(const float4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
__device__ __forceinline__ double entry(const double2& v, int i) { return i == 0 ? v.x : v.y; }

/// The matrix is not for this path: all systems of the tiles of this block are handed over.
template <class T>
__device__ __forceinline__ void mark_all(const SharedJob<T>& job) {
    for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < job.systems; k += gridDim.x * blockDim.x) job.marks[k] = 1;
    if (blockIdx.x == 0 && threadIdx.x == 0) *job.handed_over = job.systems;
}

}  // namespace trifold::cuda
