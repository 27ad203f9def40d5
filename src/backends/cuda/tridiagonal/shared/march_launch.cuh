// SPDX-License-Identifier: BSD-3-Clause
// Enqueues the kernels of march.cuh and march_join.cuh. What the kernel that eliminates the matrix has not chosen does nothing.
#pragma once

#include "backends/cuda/tridiagonal/shared/march_join.cuh"

namespace trifold::cuda {

template <class Access, class T, MarchPass pass>
void enqueue_march_pass(const ColumnJob<T>& job, const March<T>& march, cudaStream_t stream) {
    auto* const kernel = march_kernel<Access, T, pass>;
    static PerDevice prepared;
    prepared.once([&] { allow_shared_memory(kernel, MarchMemory<Access>::bytes); });
    const auto blocks = static_cast<unsigned>(multiprocessors_of_current());
    launch_after(kernel, dim3(std::min(blocks, std::max(march.cut.units(), march.reduce_cut.units()))), 64 * march_warps, MarchMemory<Access>::bytes, stream, job, march);
}

template <class Access, class T>
void enqueue_march_join(const ColumnJob<T>& job, const March<T>& march, cudaStream_t stream) {
    auto* const kernel = march_join_kernel<Access, T>;
    static PerDevice prepared;
    prepared.once([&] { allow_shared_memory(kernel, static_cast<int>(JoinMemory<T>::bytes(most_joined_chunks))); });
    // Many columns: twice as many blocks of half as many warps.
    const auto units = job.tiles * Access::V, multiprocessors = static_cast<unsigned>(multiprocessors_of_current());
    const unsigned warps = units > multiprocessors ? march_joiners / 2 : march_joiners;
    launch_after(kernel, dim3(std::min(units, multiprocessors * 2 * march_joiners / warps)), 32 * warps, JoinMemory<T>::bytes(march.chunks), stream, job, march);
}

template <class Access, class T>
void enqueue_march(const ColumnJob<T>& job, const March<T>& march, MarchPass pass, cudaStream_t stream) {
    if (pass == MarchPass::join) enqueue_march_join<Access>(job, march, stream);
    else if (pass == MarchPass::finish) enqueue_march_pass<Access, T, MarchPass::finish>(job, march, stream);
    else enqueue_march_pass<Access, T, MarchPass::whole_or_reduce>(job, march, stream);
}

}  // namespace trifold::cuda
