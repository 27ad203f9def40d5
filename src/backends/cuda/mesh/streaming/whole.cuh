// SPDX-License-Identifier: BSD-3-Clause
// All steps of meshes that stay in the second-level cache, in one launch: the passes of rows.cuh and columns.cuh one after another in blocks that stay, with a
// barrier of the grid between them. Factors are brought once per run.
// Words per point and step: none of memory, 7 of the second-level cache in three dimensions. A barrier of 132 blocks takes 1.1 µs on an H200; kernels that
// do nothing follow each other every 3.3.
#pragma once

#include "backends/cuda/mesh/streaming/columns.cuh"
#include "backends/cuda/mesh/streaming/rows.cuh"
#include "backends/cuda/mesh/streaming/whole.hpp"

namespace trifold::cuda::streaming {

/// What any thread stored is seen by all; where rows come next, by their copies too, which go another way to memory, shared memory included.
template <bool rows_next>
__device__ __forceinline__ void await_grid(unsigned* arrived, unsigned& due) {
    if (rows_next) asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    due += gridDim.x;
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
        unsigned found;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(arrived) : "memory");
        while (static_cast<int>(found - due) < 0);
    }
    __syncthreads();
    if (rows_next) asm volatile("fence.proxy.async;" ::: "memory");
}

template <class First, class... Next>
__device__ __forceinline__ void whole_run(const MeshArguments<typename First::real>& given, const typename First::Parameters& p, const WholeRun<typename First::real>& run) {
    using T = typename First::real;
    extern __shared__ int4 shared[];
    T* const memory = reinterpret_cast<T*>(shared);
    const int thread = static_cast<int>(threadIdx.x);
    MeshArguments<T> a = given;
    Rows<First> rows(memory, run.table[0], thread);
    int at = aligned<T>(RowsLayout<First>::kept), k = 0;
    ((keep_columns<Next>(memory + at, run.table[++k], thread), at += aligned<T>(ColumnsLayout<Next>::kept)), ...);
    T* const work = memory + at;
    __syncthreads();
    unsigned due = 0;
#pragma unroll 1
    for (a.sweep = run.from; a.sweep < run.to; ++a.sweep) {
        // Known by the time that the first planes have come; rows alone change no field.
        const bool on = runs(a.state, a.sweep);
        a.step = run.first_step + static_cast<std::int64_t>(a.sweep);
        rows_tasks(rows, a, p, work, run.low[0], run.high[0]);
        if (!on) return;
        const T* kept = memory + aligned<T>(RowsLayout<First>::kept);
        int pass = 0;
        ((await_grid<false>(run.arrived, due), a.backwards = !a.backwards, ++pass, columns_tasks<Next>(a, p, work, kept, run.low[pass], run.high[pass]), kept += aligned<T>(ColumnsLayout<Next>::kept)), ...);
        await_grid<true>(run.arrived, due);
        a.backwards = !a.backwards;
    }
}

}  // namespace trifold::cuda::streaming
