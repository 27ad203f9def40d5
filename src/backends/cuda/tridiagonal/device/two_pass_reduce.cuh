// SPDX-License-Identifier: BSD-3-Clause
// The first of two pivoted passes: a thread walks down a long chunk and reduces (chunk.cuh) both it and, on the way, each of its chunks to
// two rows; a warp brings a line of each of its 32 long chunks at a time into shared memory. Shapes and numerics: two_pass.cu.
// Words per row: 4 read; with `again` rhs - A x in the place of rhs, 3 more, mostly from the caches.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_job.cuh"

namespace trifold::cuda::two_pass {

/// Rows of a long chunk that are brought at once: whole lines of 128 bytes, since long chunks lie far apart.
template <class T>
constexpr int stage_rows = 128 / static_cast<int>(sizeof(T));

template <class T>
struct Staging {
    static constexpr int pitch = stage_rows<T> + 1;
    T rows[block_threads / 32][4][32 * pitch];
};

/// The long chunks of one block.
template <class T, bool again, class Team = WholeBlock>
__device__ __forceinline__ void reduce_block(const Job<T>& job, std::int64_t k, std::int64_t block, Staging<T>& shared) {
    const int warp = Team::thread() / 32, lane = Team::thread() % 32;
    constexpr int staged = stage_rows<T>, stage_pitch = Staging<T>::pitch;
    T(&stage)[4][32 * stage_pitch] = shared.rows[warp];
    const std::int64_t n = job.cut.rows, chunks = job.cut.count[1], length = job.cut.long_chunk * chunk_rows;
    const std::int64_t first_chunk = (block * (block_threads / 32) + warp) * 32, own = first_chunk + lane;
    const auto rows_of = [&](std::int64_t g) { return static_cast<int>(g >= chunks ? 0 : g + 1 == chunks ? n - g * length : length); };
    const Rows<T> system(job, k);
    double* const work = job.work_of(k);
    const int rows = rows_of(own);
    std::int64_t number = own * job.cut.long_chunk;  // of the next chunk
    Reducer<T> whole, part;
    if (!again && first_chunk > 0 && first_chunk + 32 < chunks && system.plain()) {  // as below, where no row is missing
        constexpr int beside = 32 / staged;  // long chunks that the warp reads at once
        const int c = lane / staged, r = lane % staged;
        const T* from_array[4];
#pragma unroll
        for (int a = 0; a < 4; ++a) from_array[a] = system.line[a].data + (first_chunk + c) * length + r;
        for (int from = 0; from < rows; from += staged) {
#pragma unroll
            for (int a = 0; a < 4; ++a) {
                const T* at = from_array[a] + from;
                T* to = &stage[a][c * stage_pitch + r];
#pragma unroll 8
                for (int round = 0; round < staged; ++round, at += beside * length, to += beside * stage_pitch) __pipeline_memcpy_async(to, at, sizeof(T));
            }
            __pipeline_commit();
            __pipeline_wait_prior(0);
            __syncwarp();
            const int at = lane * stage_pitch;
#pragma unroll 1
            for (int i = 0; i < 2; ++i) {
                T l = stage[0][at + i], d = stage[1][at + i], u = stage[2][at + i], f = stage[3][at + i];
                chunk::scale_row(l, d, u, f);
                whole.add(l, d, u, f), part.add(l, d, u, f);
            }
#pragma unroll 2
            for (int i = 2; i < staged; ++i) {
                T l = stage[0][at + i], d = stage[1][at + i], u = stage[2][at + i], f = stage[3][at + i];
                chunk::scale_row(l, d, u, f);
                whole.join(l, d, u, f), part.join(l, d, u, f);
            }
            __syncwarp();
            if ((from + staged) % chunk_rows != 0) continue;
            store_rows(work + job.cut.rows_at[0], job.cut.count[0], number++, part.rows());
            if (!part.regular) job.found[k].irregular = 1;
            part = Reducer<T>();
        }
        store_rows(work + job.cut.rows_at[1], chunks, own, whole.rows());
        if (!whole.regular) job.found[k].irregular = 1;
        return;
    }
    for (int from = 0; __any_sync(0xffffffffu, from < rows); from += staged) {
#pragma unroll 4
        for (int round = 0; round < staged; ++round) {
            const int c = (round * 32 + lane) / staged, r = lane % staged;
            if (from + r >= rows_of(first_chunk + c)) continue;
            const std::int64_t i = (first_chunk + c) * length + from + r;
#pragma unroll
            for (int a = 0; a < 4; ++a) system.template fetch<again>(&stage[a][c * stage_pitch + r], a, i);
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncwarp();
        for (int r = 0; r < staged && from + r < rows; ++r) {
            const int at = lane * stage_pitch + r, left = rows - from - r - 1;
            T l = stage[0][at], d = stage[1][at], u = stage[2][at], f = stage[3][at];
            chunk::scale_row(l, d, u, f);
            whole.add(l, d, u, f), part.add(l, d, u, f);
            // The last row of a system that would be a chunk of its own joins the chunk before it.
            if ((part.count < chunk_rows || left == 1) && left > 0) continue;
            store_rows(work + job.cut.rows_at[0], job.cut.count[0], number++, part.rows());
            if (!part.regular) job.found[k].irregular = 1;
            part = Reducer<T>();
        }
        __syncwarp();
    }
    if (rows == 0) return;
    store_rows(work + job.cut.rows_at[1], chunks, own, whole.rows());
    if (!whole.regular) job.found[k].irregular = 1;
}

template <class T, bool again>
__global__ void __launch_bounds__(block_threads, 3) reduce_kernel(const __grid_constant__ Job<T> job) {
    extern __shared__ double shared[];
    after_the_kernel_before();
    if (job.idle(job.system())) return;
    if constexpr (again)
        for (std::int64_t number = blockIdx.x * block_threads + threadIdx.x; number < job.cut.tiles; number += gridDim.x * block_threads) keep_beside(job, job.system(), number);
    reduce_block<T, again>(job, job.system(), blockIdx.x, *reinterpret_cast<Staging<T>*>(shared));
}

}  // namespace trifold::cuda::two_pass
