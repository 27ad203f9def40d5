// SPDX-License-Identifier: BSD-3-Clause
// Where a system lies, and small helpers of the kernels for one shared matrix.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/shared/job.hpp"

namespace trifold::cuda {

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

/// Where `at` is within a sector of 32 bytes: asks the second-level cache for it. A sector that is not there and is written in part costs memory a read
/// and a write of its own when it leaves, in the midst of others.
template <class T>
__device__ __forceinline__ void ask_for_part_of_sector(const T* at) {
    if (reinterpret_cast<std::uintptr_t>(at) % 32) asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
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
