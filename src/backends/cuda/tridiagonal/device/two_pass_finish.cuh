// SPDX-License-Identifier: BSD-3-Clause
// The second of two pivoted passes: a block brings 64 chunks into shared memory, a thread solves one between its ends, and all of them
// multiply x with the rows read again (from the second-level cache) and keep the largest residual. Shapes and numerics: two_pass.cu.
// Words per row: 4 read, 1 written.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_check.cuh"

namespace trifold::cuda::two_pass {

template <class T, bool again, class Team = WholeBlock>
__device__ __forceinline__ void finish_tile(const Job<T>& job, const Rows<T>& system, std::int64_t k, const Tile<T>& tile) {
    tile.template load<again, Team>(system, job.work_of(k) + job.cut.beside_at);
    const int me = Team::thread();
    const std::int64_t count = job.cut.count[0], chunk = tile.first_chunk + me;
    const double* const ends = job.work_of(k) + job.cut.ends_at[0];
    if (me < tile.chunks)
        solve_chunk<T>(ChunkRows<T>(tile, me), tile.rows_of(me), chunk > 0 ? static_cast<T>(ends[count + chunk - 1]) : T(0), static_cast<T>(ends[chunk]),
                       static_cast<T>(ends[count + chunk]), chunk + 1 < count ? static_cast<T>(ends[chunk + 1]) : T(0));
    Team::sync();
    const T* const solution = tile.array(3);
    if constexpr (again) {
        // The x beside the block may be corrected already: residuals are found when all are.
        for (int r = me; r < tile.rows; r += block_threads) system.x.at(tile.first + r) += solution[tile.place(r)];
        return;
    }
    const std::int64_t after_chunk = tile.first_chunk + tile_chunks;
    const T before = tile.first_chunk > 0 ? static_cast<T>(ends[count + tile.first_chunk - 1]) : T(0);
    const T after = after_chunk < count ? static_cast<T>(ends[after_chunk]) : T(0);
    Seen<T> seen;
    const auto see = [&](int r, T l, T d, T u, T f) {
        const T x = solution[tile.place(r)];
        const T above = r > 0 ? solution[tile.place(r - 1)] : before, below = r + 1 < tile.rows ? solution[tile.place(r + 1)] : after;
        seen.add(l, d, u, f, x, f - l * above - d * x - u * below);
        system.x.at(tile.first + r) = x;
    };
    if (tile.whole(system)) {
        const T *const l = system.line[0].data + tile.first, *const d = system.line[1].data + tile.first, *const u = system.line[2].data + tile.first,
                *const f = system.line[3].data + tile.first;
#pragma unroll 4
        for (int i = 0; i < tile_chunks * chunk_rows / block_threads; ++i) {
            const int r = me + i * block_threads;
            see(r, l[r], d[r], u[r], f[r]);
        }
    } else {
#pragma unroll 2
        for (int r = me; r < tile.rows; r += block_threads) {
            const std::int64_t i = tile.first + r;
            see(r, system.lower(i), system.line[1][i], system.upper(i), system.line[3][i]);
        }
    }
    seen.template store<Team>(job.found[k]);
}

template <class T, bool again>
__global__ void __launch_bounds__(block_threads) finish_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    extern __shared__ double shared[];
    const std::int64_t k = job.system();
    if (job.idle(k) || job.found[k].irregular) return;
    const Rows<T> system(job, k);
    for (std::int64_t number = blockIdx.x; number * tile_chunks < job.cut.count[0]; number += gridDim.x) {
        finish_tile<T, again>(job, system, k, Tile<T>(job, reinterpret_cast<T*>(shared), number));
        __syncthreads();
    }
}

template <class T>
__device__ void copy_of(const Job<T>& job, std::int64_t k) {
    std::int64_t index[4];
    job.levels.indices(k, index);
    const Line<T> x = line_of(job.x, index);
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < job.cut.rows; i += stride)
        x.at(i) = job.kept_x[k * job.cut.rows + i];
}

template <class T>
__global__ void copy_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    const std::int64_t k = job.system();
    if (job.marks[k] == accepted) copy_of(job, k);
}

}  // namespace trifold::cuda::two_pass
