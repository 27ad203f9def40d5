// SPDX-License-Identifier: BSD-3-Clause
// Long systems in two passes over their rows, pivoted, on the whole device.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: row i of system k at data[i row_stride + sum_d index_d(k) level_stride[d]]; a coefficient may be a scalar. x may be rhs:
//   it is then kept in scratch until it is accepted.
// Overwritten: x. Scratch: 24 words per chunk and level, one byte and 32 more per system, and x in place; then the same memory
//   serves the LU of what was not accepted.
// Who does what: in the first pass a thread walks down a long chunk of up to 16 chunks of 32 rows and reduces (chunk.cuh) both
//   it and, on the way, each chunk to two rows; a warp brings a line of each of its 32 long chunks at a time into shared memory. Long
//   chunks are merged in groups of 16, level by level (couple.cuh), one thread each, until one thread solves what is left; the
//   way back finds the ends of long chunks and then of chunks. In the second pass a block brings 64 chunks into shared memory, a
//   thread solves one between its ends, and all of them multiply x with the rows read again (from the second-level cache) and
//   keep the largest residual. Both passes once more correct x by the solution for rhs - A x where a residual is not small
//   enough; what then still is not, is solved by LU. Kernels that find nothing to do return at once, since nothing comes back to
//   the host. blockIdx.y = system.
// Words per row: 4 read; 4 read + 1 written; the levels move about 1.2. In place 2 more.
// Numerics: as docs/algorithms/two_pass.md. What two rows say of a chunk's interior drowns in their rounding the more, the more
//   chunks are coupled: hence the long ones. A system is accepted where the largest residual of every block of 2048 rows is at
//   most 10 u of max|A| max|x| + max|rhs| there, or at most 4 u of the largest such scale: LAPACK's measure. Maxima
//   are by atomics, so that their order does not matter, and bits repeat.
// Source: docs/algorithms/two_pass.md.
#include "backends/cuda/tridiagonal/device/two_pass.hpp"

#include <cooperative_groups.h>

#include <algorithm>

#include "backends/cuda/tridiagonal/device/two_pass_check.cuh"
#include "backends/cuda/tridiagonal/pivoted.hpp"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda {
namespace {

using namespace two_pass;
using tridiagonal::System;

constexpr int level_threads = 64, top_threads = 512;
/// Rows of a long chunk that are brought at once: whole lines of 128 bytes, since long chunks lie far apart.
template <class T>
constexpr int stage_rows = 128 / static_cast<int>(sizeof(T));
constexpr std::int64_t least_rows = 64, most_systems_at_once = 65535;

template <class T>
struct Staging {
    static constexpr int pitch = stage_rows<T> + 1;
    T rows[block_threads / 32][4][32 * pitch];
};

/// The long chunks of one block.
template <class T, bool again>
__device__ __forceinline__ void reduce_block(const Job<T>& job, std::int64_t k, std::int64_t block, Staging<T>& shared) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    constexpr int staged = stage_rows<T>, stage_pitch = Staging<T>::pitch;
    T(&stage)[4][32 * stage_pitch] = shared.rows[warp];
    const std::int64_t n = job.cut.rows, chunks = job.cut.count[1], length = job.cut.long_chunk * chunk_rows;
    const std::int64_t first_chunk = (block * (block_threads / 32) + warp) * 32, own = first_chunk + lane;
    const auto rows_of = [&](std::int64_t g) { return static_cast<int>(g >= chunks ? 0 : g + 1 == chunks ? n - g * length : length); };
    const Rows<T> system(job, k);
    double* const work = job.work_of(k);
    const int rows = rows_of(own);
    std::int64_t chunk = own * job.cut.long_chunk;
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
                const T l = stage[0][at + i], d = stage[1][at + i], u = stage[2][at + i], f = stage[3][at + i];
                whole.add(l, d, u, f), part.add(l, d, u, f);
            }
#pragma unroll 2
            for (int i = 2; i < staged; ++i) {
                const T l = stage[0][at + i], d = stage[1][at + i], u = stage[2][at + i], f = stage[3][at + i];
                whole.join(l, d, u, f), part.join(l, d, u, f);
            }
            __syncwarp();
            if ((from + staged) % chunk_rows != 0) continue;
            store_rows(work + job.cut.rows_at[0], job.cut.count[0], chunk++, part.rows());
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
            const T l = stage[0][at], d = stage[1][at], u = stage[2][at], f = stage[3][at];
            whole.add(l, d, u, f), part.add(l, d, u, f);
            // The last row of a system that would be a chunk of its own joins the chunk before it.
            if ((part.count < chunk_rows || left == 1) && left > 0) continue;
            store_rows(work + job.cut.rows_at[0], job.cut.count[0], chunk++, part.rows());
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
    if (!job.idle(job.system())) reduce_block<T, again>(job, job.system(), blockIdx.x, *reinterpret_cast<Staging<T>*>(shared));
}

/// Group `g` of a level becomes one chunk of the next.
template <class T>
__device__ void merge_group(const Job<T>& job, std::int64_t k, int level, std::int64_t g) {
    const std::int64_t count = job.cut.count[level];
    double* const work = job.work_of(k);
    TwoRows two;
    if (!merge(work + job.cut.rows_at[level], count, g * group, min((g + 1) * group, count) - 1, two)) job.found[k].irregular = 1;
    store_rows(work + job.cut.rows_at[level + 1], job.cut.count[level + 1], g, two);
}

/// The ends of group `g` of a level from those of the next.
template <class T>
__device__ void spread_group(const Job<T>& job, std::int64_t k, int level, std::int64_t g) {
    const std::int64_t count = job.cut.count[level], groups = job.cut.count[level + 1], size = level == 0 ? job.cut.long_chunk : group;
    double* const work = job.work_of(k);
    const double* const ends = work + job.cut.ends_at[level + 1];
    const double known[4] = {g > 0 ? ends[groups + g - 1] : 0, ends[g], ends[groups + g], g + 1 < groups ? ends[g + 1] : 0};
    spread(work + job.cut.rows_at[level], count, g * size, min((g + 1) * size, count) - 1, known, work + job.cut.ends_at[level]);
}

template <class T>
__global__ void __launch_bounds__(level_threads) merge_kernel(const __grid_constant__ Job<T> job, int level) {
    after_the_kernel_before();
    const std::int64_t k = job.system(), g = static_cast<std::int64_t>(blockIdx.x) * level_threads + threadIdx.x;
    if (!job.idle(k) && g < job.cut.count[level + 1]) merge_group(job, k, level, g);
}

template <class T>
__global__ void __launch_bounds__(level_threads) spread_kernel(const __grid_constant__ Job<T> job, int level) {
    after_the_kernel_before();
    const std::int64_t k = job.system(), g = static_cast<std::int64_t>(blockIdx.x) * level_threads + threadIdx.x;
    if (!job.idle(k) && g < job.cut.count[level + 1]) spread_group(job, k, level, g);
}

/// The last level, by one thread.
template <class T>
__device__ void solve_top(const Job<T>& job, std::int64_t k) {
    const int last = job.cut.levels - 1;
    const std::int64_t count = job.cut.count[last];
    double* const work = job.work_of(k);
    TwoRows two;
    double known[4] = {0, 0, 0, 0};
    const bool regular = merge(work + job.cut.rows_at[last], count, 0, count - 1, two);
    if (!solve_last(two, known[1], known[2]) || !regular) job.found[k].irregular = 1;
    spread(work + job.cut.rows_at[last], count, 0, count - 1, known, work + job.cut.ends_at[last]);
}

/// All levels from `lowest` on, whose groups are few, up and down again: one block per system.
template <class T>
__global__ void __launch_bounds__(top_threads) top_kernel(const __grid_constant__ Job<T> job, int lowest) {
    after_the_kernel_before();
    const std::int64_t k = job.system();
    if (job.idle(k)) return;
    const int last = job.cut.levels - 1;
    for (int level = lowest; level < last; ++level) {
        for (std::int64_t g = threadIdx.x; g < job.cut.count[level + 1]; g += blockDim.x) merge_group(job, k, level, g);
        __syncthreads();
    }
    if (threadIdx.x == 0) solve_top(job, k);
    __syncthreads();
    for (int level = last - 1; level >= lowest; --level) {
        for (std::int64_t g = threadIdx.x; g < job.cut.count[level + 1]; g += blockDim.x) spread_group(job, k, level, g);
        __syncthreads();
    }
}

template <class T, bool again>
__device__ __forceinline__ void finish_tile(const Job<T>& job, const Rows<T>& system, std::int64_t k, const Tile<T>& tile) {
    tile.template load<again>(system);
    const int me = threadIdx.x;
    const std::int64_t count = job.cut.count[0], chunk = tile.first_chunk + me;
    const double* const ends = job.work_of(k) + job.cut.ends_at[0];
    if (me < tile.chunks)
        solve_chunk<T>(ChunkRows<T>(tile, me), tile.rows_of(me), chunk > 0 ? static_cast<T>(ends[count + chunk - 1]) : T(0), static_cast<T>(ends[chunk]),
                       static_cast<T>(ends[count + chunk]), chunk + 1 < count ? static_cast<T>(ends[chunk + 1]) : T(0));
    __syncthreads();
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
    seen.store(job.found[k]);
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

/// All passes over the systems that are to be solved, in one launch that ends at once where there is none: kernels one by one would cost what comes
/// before more than they are worth. Blocks wait for each other, so the launch is cooperative. `to_correct` marks what is to be done in both turns.
template <class T, bool again>
__device__ void passes_of(const Job<T>& job, const cooperative_groups::grid_group& grid, unsigned char* shared) {
    const Cut& cut = job.cut;
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x, threads = static_cast<std::int64_t>(gridDim.x) * block_threads;
    const int last = cut.levels - 1;
    // call(system, item), items 0 … each-1 of every system shared out.
    const auto share = [&](std::int64_t each, std::int64_t from, std::int64_t step, auto call) {
        for (std::int64_t i = from; i < each * job.levels.systems; i += step) {
            const std::int64_t k = i / each;
            if (job.marks[k] == to_correct) call(k, i - k * each);
        }
    };
    share((cut.count[1] + block_threads - 1) / block_threads, blockIdx.x, gridDim.x,
          [&](std::int64_t k, std::int64_t block) { reduce_block<T, again>(job, k, block, *reinterpret_cast<Staging<T>*>(shared)); });
    for (int level = 1; level < last; ++level) {
        grid.sync();
        share(cut.count[level + 1], thread, threads, [&](std::int64_t k, std::int64_t g) { merge_group(job, k, level, g); });
    }
    grid.sync();
    share(1, thread, threads, [&](std::int64_t k, std::int64_t) { solve_top(job, k); });
    for (int level = last - 1; level >= 0; --level) {
        grid.sync();
        share(cut.count[level + 1], thread, threads, [&](std::int64_t k, std::int64_t g) { spread_group(job, k, level, g); });
    }
    grid.sync();
    share((cut.count[0] + tile_chunks - 1) / tile_chunks, blockIdx.x, gridDim.x, [&](std::int64_t k, std::int64_t number) {
        if (!job.found[k].irregular) finish_tile<T, again>(job, Rows<T>(job, k), k, Tile<T>(job, reinterpret_cast<T*>(shared), number));
        __syncthreads();
    });
    grid.sync();
    if constexpr (again) {
        for (std::int64_t k = 0; k < job.levels.systems; ++k)
            if (job.marks[k] == to_correct) residuals_of(job, k);
        grid.sync();
    }
    share(1, thread, threads, [&](std::int64_t k, std::int64_t) { judge(job, k, again); });
    grid.sync();
}

template <class T>
__global__ void __launch_bounds__(block_threads, 3) chain_kernel(const __grid_constant__ Job<T> job, const __grid_constant__ PivotedJob<T> rest) {
    extern __shared__ double shared[];
    after_the_kernel_before();
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x, threads = static_cast<std::int64_t>(gridDim.x) * block_threads;
    const bool unwanted = job.unwanted();
    for (std::int64_t k = thread; k < job.levels.systems; k += threads) {
        job.marks[k] = !unwanted && job.was_left(k) ? to_correct : accepted;  // what comes last looks at marks alone
        job.found[k] = {};
    }
    if (unwanted) return;
    grid.sync();
    passes_of<T, false>(job, grid, reinterpret_cast<unsigned char*>(shared));
    passes_of<T, true>(job, grid, reinterpret_cast<unsigned char*>(shared));
    if (job.kept_x) {
        for (std::int64_t k = 0; k < job.levels.systems; ++k)
            if (job.was_left(k) && job.marks[k] == accepted) copy_of(job, k);
        grid.sync();  // LU takes its memory
    }
    if (thread < rest.slots) solve_lines(rest, thread);
}

std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Scratch: levels, findings, marks, then what x in place and LU take one after the other.
struct Parts {
    std::size_t found, marks, shared, all;

    Parts(const System& system, const Cut& cut) {
        const auto systems = static_cast<std::size_t>(system.systems());
        found = align(systems * static_cast<std::size_t>(cut.words) * sizeof(double));
        marks = found + align(systems * sizeof(Found));
        shared = marks + align(systems);
        const std::size_t x = system.in_place ? systems * static_cast<std::size_t>(system.rows) * size_of(system.dtype) : 0;
        all = shared + align(std::max(x, pivoted_scratch(system)));
    }
};

unsigned blocks(std::int64_t work, std::int64_t per_block) { return static_cast<unsigned>((work + per_block - 1) / per_block); }

/// `launch(y)` for every part of the batch that one grid takes.
template <class T, class Launch>
void for_systems(Job<T>& job, Launch launch) {
    for (job.first_system = 0; job.first_system < job.levels.systems; job.first_system += most_systems_at_once)
        launch(static_cast<unsigned>(std::min(job.levels.systems - job.first_system, most_systems_at_once)));
}

template <class T, bool again>
void passes(Job<T>& job, cudaStream_t stream) {
    job.again = again;
    constexpr int tile_bytes = 4 * tile_chunks * tile_pitch * sizeof(T);
    static PerDevice prepared;
    prepared.once([&] {
        cudaFuncSetAttribute(finish_kernel<T, again>, cudaFuncAttributeMaxDynamicSharedMemorySize, tile_bytes);
        cudaFuncSetAttribute(reduce_kernel<T, again>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Staging<T>));
    });
    const Cut& cut = job.cut;
    int top = 1;  // the lowest level that one block takes
    while (top + 1 < cut.levels && cut.count[top + 1] > top_threads / 4) ++top;
    const std::int64_t groups = top + 1 < cut.levels ? cut.count[top + 1] : 1;
    // Where nothing is to be done, few blocks find it out.
    const unsigned tiles = std::min(blocks(cut.count[0], tile_chunks), again ? 1024u : ~0u), threads = 32 * blocks(std::min<std::int64_t>(groups, top_threads), 32);
    for_systems(job, [&](unsigned y) {
        launch_after(reduce_kernel<T, again>, dim3(blocks(cut.count[1], block_threads), y), block_threads, sizeof(Staging<T>), stream, job);
        for (int level = 1; level < top; ++level)
            launch_after(merge_kernel<T>, dim3(blocks(cut.count[level + 1], level_threads), y), level_threads, 0, stream, job, level);
        launch_after(top_kernel<T>, dim3(1, y), threads, 0, stream, job, top);
        for (int level = top - 1; level >= 0; --level)
            launch_after(spread_kernel<T>, dim3(blocks(cut.count[level + 1], level_threads), y), level_threads, 0, stream, job, level);
        launch_after(finish_kernel<T, again>, dim3(tiles, y), block_threads, tile_bytes, stream, job);
        if (again) launch_after(residual_kernel<T>, dim3(tiles, y), block_threads, 0, stream, job);
    });
    launch_after(judge_kernel<T>, dim3(blocks(job.levels.systems, 128)), 128, 0, stream, job);
}

template <class T>
void launch_chain(const Job<T>& job, PivotedJob<T> rest, cudaStream_t stream) {
    constexpr int bytes = std::max<int>(4 * tile_chunks * tile_pitch * sizeof(T), sizeof(Staging<T>));
    constexpr int resident = 3;  // as the kernel's launch bounds and shared memory have it
    static PerDevice prepared;
    prepared.once([&] {
        cudaFuncSetAttribute(chain_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        cudaFuncSetAttribute(chain_kernel<T>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    });
    const std::int64_t wanted = std::max<std::int64_t>(blocks(job.cut.count[1], block_threads), blocks(job.cut.count[0], tile_chunks));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(std::min<std::int64_t>(wanted, std::int64_t{resident} * multiprocessors_of_current())));
    config.blockDim = dim3(block_threads);
    rest.slots = std::min(rest.slots, std::int64_t{config.gridDim.x} * block_threads);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    cudaLaunchAttribute attributes[2];
    config.attrs = attributes, config.numAttrs = together_after(attributes);
    cudaLaunchKernelEx(&config, chain_kernel<T>, job, rest);
}

template <class T>
void solve(const System& system, const BatchLaunch& launch, const unsigned* left) {
    const Cut cut(system.rows);
    const Parts parts(system, cut);
    if (launch.scratch_bytes < parts.all) return;
    char* const base = static_cast<char*>(launch.scratch);
    Job<T> job{Levels(system), cut, 0, Source<T>(system.lower), Source<T>(system.diag), Source<T>(system.upper), Source<T>(system.rhs),
               Source<T>(system.x), reinterpret_cast<double*>(base), system.in_place ? reinterpret_cast<T*>(base + parts.shared) : nullptr,
               reinterpret_cast<Found*>(base + parts.found), reinterpret_cast<unsigned char*>(base + parts.marks), launch.outcome, false, left};
    BatchLaunch rescue = launch;
    rescue.scratch = base + parts.shared;
    rescue.scratch_bytes = parts.all - parts.shared;
    if (left) return launch_chain(job, PivotedJob<T>(system, rescue, job.marks, nullptr, pivoted_slots(system)), launch.stream);
    cudaMemsetAsync(job.found, 0, static_cast<std::size_t>(job.levels.systems) * sizeof(Found), launch.stream);
    passes<T, false>(job, launch.stream);
    passes<T, true>(job, launch.stream);
    if (job.kept_x)
        for_systems(job, [&](unsigned y) {
            launch_after(copy_kernel<T>, dim3(std::min(blocks(system.rows, 256), 1u << 14), y), 256, 0, launch.stream, job);
        });
    solve_pivoted(system, rescue, job.marks);
}

}  // namespace

const char* two_pass_refuses(const System& system) { return system.rows < least_rows ? "the system is too short to be cut" : nullptr; }

std::size_t two_pass_scratch(const System& system) { return Parts(system, Cut(system.rows)).all; }

void solve_two_pass(const System& system, const BatchLaunch& launch, const unsigned* left) {
    if (system.dtype == DType::f32) solve<float>(system, launch, left);
    else solve<double>(system, launch, left);
}

}  // namespace trifold::cuda
