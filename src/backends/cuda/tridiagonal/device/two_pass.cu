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
//   it and, on the way, each chunk to two rows; a warp brings eight rows of its 32 long chunks at a time into shared memory. Long
//   chunks are merged in groups of 16, level by level (couple.cuh), one thread each, until one thread solves what is left; the
//   way back finds the ends of long chunks and then of chunks. In the second pass a block brings 64 chunks into shared memory, a
//   thread solves one between its ends, and all of them multiply x with the rows read again (from the second-level cache) and
//   keep the largest residual. blockIdx.y = system.
// Words per row: 4 read; 4 read + 1 written; the levels move about 1.2. In place 2 more.
// Numerics: as docs/algorithms/two_pass.md. What two rows say of a chunk's interior drowns in their rounding the more, the more
//   chunks are coupled: hence the long ones. A system is accepted where the largest residual of every block of rows is at most 10 u
//   of max|A| max|x| + max|rhs| there, or at most 4 u of the largest such scale: LAPACK's measure. Maxima are by atomics, so
//   that their order does not matter, and bits repeat.
// Source: docs/algorithms/two_pass.md.
#include "backends/cuda/tridiagonal/device/two_pass.hpp"

#include <cuda_pipeline.h>

#include <algorithm>

#include "backends/cuda/tridiagonal/device/couple.cuh"
#include "backends/cuda/tridiagonal/operand.cuh"
#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::System;

constexpr int tile_chunks = 64, chunk_rows = 32, tile_pitch = 33, most_levels = 16, block_threads = 128, stage_rows = 8, stage_pitch = 9;
constexpr std::int64_t least_rows = 64, most_systems_at_once = 65535;

/// How systems are cut: chunks, long chunks, groups of these, groups of groups. Offsets count words in the scratch of one system.
/// Chunks have 32 rows but for the last one, which has 2 to 33.
struct Cut {
    std::int64_t rows = 0, count[most_levels] = {}, rows_at[most_levels] = {}, ends_at[most_levels] = {}, words = 0;
    int levels = 0, long_chunk = 1;  ///< chunks in a long one

    explicit Cut(std::int64_t n) : rows(n) {
        while (long_chunk < group && n / (2 * long_chunk * chunk_rows) >= 128) long_chunk *= 2;
        std::int64_t chunks = n / chunk_rows + (n % chunk_rows > 1 ? 1 : 0);
        do {
            count[levels] = chunks;
            rows_at[levels] = words, ends_at[levels] = words + 10 * chunks;
            words += 12 * chunks;
            chunks = levels == 0 ? (chunks + long_chunk - 1) / long_chunk : (chunks + group - 1) / group;
        } while (levels++ == 0 || count[levels - 1] > group);
    }
};

/// What the second pass finds of one system. Bits of numbers that are not negative order as the numbers do, NaN above all.
struct Found {
    unsigned long long ratio, residual, scale;
    int irregular, pad;
};

__device__ unsigned long long bits(double value) { return static_cast<unsigned long long>(__double_as_longlong(value)); }

template <class T>
struct Job {
    Levels levels;
    Cut cut;
    std::int64_t first_system;
    Source<T> lower, diag, upper, rhs, x;
    double* work;          ///< cut.words per system
    T* kept_x;             ///< in place: rows per system; else null
    Found* found;
    unsigned char* marks;
    DeviceOutcome* outcome;

    __device__ std::int64_t system() const { return first_system + blockIdx.y; }
    __device__ double* work_of(std::int64_t k) const { return work + k * cut.words; }
};

/// The chunks of a block in shared memory, one word between neighbours so that threads meet in no bank.
template <class T>
struct Tile {
    T* data;
    int rows, chunks;
    std::int64_t first_chunk, first;  ///< of the system: number of the first chunk, and its first row

    __device__ Tile(const Job<T>& job, T* shared) : data(shared) {
        first_chunk = static_cast<std::int64_t>(blockIdx.x) * tile_chunks;
        first = first_chunk * chunk_rows;
        chunks = static_cast<int>(min(static_cast<std::int64_t>(tile_chunks), job.cut.count[0] - first_chunk));
        const bool last = first_chunk + chunks == job.cut.count[0];
        rows = last ? static_cast<int>(job.cut.rows - first) : tile_chunks * chunk_rows;
    }

    __device__ T* array(int k) const { return data + k * tile_chunks * tile_pitch; }

    /// Where row r of the tile lies. The last chunk may have one row more than the others.
    __device__ int place(int r) const { return r + min(r / chunk_rows, chunks - 1); }

    __device__ int rows_from(int chunk, int count) const {
        return chunk >= chunks ? 0 : chunk + count >= chunks ? rows - chunk * chunk_rows : count * chunk_rows;
    }

    __device__ void load(const Job<T>& job, const Line<T> (&lines)[4]) const {
#pragma unroll 2
        for (int r = threadIdx.x; r < rows; r += block_threads) {
            const std::int64_t i = first + r;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                T* const to = array(k) + place(r);
                const bool outside = (k == 0 && i == 0) || (k == 2 && i + 1 == job.cut.rows);
                if (outside) *to = 0;
                else if (lines[k].data) __pipeline_memcpy_async(to, lines[k].data + i * lines[k].row_stride, sizeof(T));
                else *to = lines[k].value;
            }
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
    }

};

/// One chunk of a tile.
template <class T>
struct ChunkRows {
    T* data;
    __device__ ChunkRows(const Tile<T>& tile, int chunk) : data(tile.data + chunk * tile_pitch) {}
    __device__ T& at(int k, int i) const { return data[k * tile_chunks * tile_pitch + i]; }
    __device__ T& lower(int i) const { return at(0, i); }
    __device__ T& diag(int i) const { return at(1, i); }
    __device__ T& upper(int i) const { return at(2, i); }
    __device__ T& rhs(int i) const { return at(3, i); }
};

template <class T>
__device__ void lines_of(const Job<T>& job, std::int64_t k, std::int64_t (&index)[4], Line<T> (&lines)[4]) {
    job.levels.indices(k, index);
    lines[0] = line_of(job.lower, index), lines[1] = line_of(job.diag, index), lines[2] = line_of(job.upper, index), lines[3] = line_of(job.rhs, index);
}

template <class T>
__global__ void __launch_bounds__(block_threads, 4) reduce_kernel(const __grid_constant__ Job<T> job) {
    __shared__ T shared[block_threads / 32][4][32 * stage_pitch];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T(&stage)[4][32 * stage_pitch] = shared[warp];
    const std::int64_t k = job.system(), n = job.cut.rows, chunks = job.cut.count[1], length = job.cut.long_chunk * chunk_rows;
    const std::int64_t first_chunk = (static_cast<std::int64_t>(blockIdx.x) * (block_threads / 32) + warp) * 32, own = first_chunk + lane;
    const auto rows_of = [&](std::int64_t g) { return static_cast<int>(g >= chunks ? 0 : g + 1 == chunks ? n - g * length : length); };
    std::int64_t index[4];
    Line<T> lines[4];
    lines_of(job, k, index, lines);
    double* const work = job.work_of(k);
    const int rows = rows_of(own);
    std::int64_t chunk = own * job.cut.long_chunk;
    Reducer<T> whole, part;
    for (int from = 0; __any_sync(0xffffffffu, from < rows); from += stage_rows) {
#pragma unroll 4
        for (int round = 0; round < stage_rows; ++round) {
            const int c = (round * 32 + lane) / stage_rows, r = lane % stage_rows;
            if (from + r >= rows_of(first_chunk + c)) continue;
            const std::int64_t i = (first_chunk + c) * length + from + r;
#pragma unroll
            for (int a = 0; a < 4; ++a) {
                T* const to = &stage[a][c * stage_pitch + r];
                const bool outside = (a == 0 && i == 0) || (a == 2 && i + 1 == n);
                if (outside) *to = 0;
                else if (lines[a].data) __pipeline_memcpy_async(to, lines[a].data + i * lines[a].row_stride, sizeof(T));
                else *to = lines[a].value;
            }
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncwarp();
        for (int r = 0; r < stage_rows && from + r < rows; ++r) {
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

constexpr int level_threads = 64;

template <class T>
__global__ void __launch_bounds__(level_threads) merge_kernel(const __grid_constant__ Job<T> job, int level) {
    const std::int64_t k = job.system(), above = static_cast<std::int64_t>(blockIdx.x) * level_threads + threadIdx.x, count = job.cut.count[level];
    if (above >= job.cut.count[level + 1]) return;
    double* const work = job.work_of(k);
    TwoRows two;
    if (!merge(work + job.cut.rows_at[level], count, above * group, min((above + 1) * group, count) - 1, two)) job.found[k].irregular = 1;
    store_rows(work + job.cut.rows_at[level + 1], job.cut.count[level + 1], above, two);
}

/// The highest level: one thread per system.
template <class T>
__global__ void top_kernel(const __grid_constant__ Job<T> job) {
    const std::int64_t k = job.system();
    const int level = job.cut.levels - 1;
    const std::int64_t count = job.cut.count[level];
    double* const work = job.work_of(k);
    TwoRows two;
    double known[4] = {0, 0, 0, 0};
    const bool regular = merge(work + job.cut.rows_at[level], count, 0, count - 1, two);
    if (!solve_last(two, known[1], known[2]) || !regular) job.found[k].irregular = 1;
    spread(work + job.cut.rows_at[level], count, 0, count - 1, known, work + job.cut.ends_at[level]);
}

template <class T>
__global__ void __launch_bounds__(level_threads) spread_kernel(const __grid_constant__ Job<T> job, int level) {
    const std::int64_t k = job.system(), above = static_cast<std::int64_t>(blockIdx.x) * level_threads + threadIdx.x, count = job.cut.count[level];
    const std::int64_t groups = job.cut.count[level + 1];
    if (above >= groups) return;
    double* const work = job.work_of(k);
    const double* const ends = work + job.cut.ends_at[level + 1];
    const double known[4] = {above > 0 ? ends[groups + above - 1] : 0, ends[above], ends[groups + above], above + 1 < groups ? ends[above + 1] : 0};
    const int size = level == 0 ? job.cut.long_chunk : group;
    spread(work + job.cut.rows_at[level], count, above * size, min((above + 1) * size, count) - 1, known, work + job.cut.ends_at[level]);
}

__device__ double largest_of_block(double value, double* shared) {
    for (int step = 16; step > 0; step /= 2) value = fmax(value, __shfl_xor_sync(0xffffffffu, value, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    for (int w = 0; w < block_threads / 32; ++w) value = fmax(value, shared[w]);
    return value;
}

template <class T>
__global__ void __launch_bounds__(block_threads) finish_kernel(const __grid_constant__ Job<T> job) {
    extern __shared__ double shared[];
    __shared__ double partial[block_threads / 32];
    const std::int64_t k = job.system();
    if (job.found[k].irregular) return;
    std::int64_t index[4];
    Line<T> lines[4];
    lines_of(job, k, index, lines);
    const Tile<T> tile(job, reinterpret_cast<T*>(shared));
    tile.load(job, lines);
    const std::int64_t count = job.cut.count[0], chunk = tile.first_chunk + threadIdx.x;
    const double* const ends = job.work_of(k) + job.cut.ends_at[0];
    if (threadIdx.x < tile.chunks)
        solve_chunk<T>(ChunkRows<T>(tile, threadIdx.x), tile.rows_from(threadIdx.x, 1), chunk > 0 ? static_cast<T>(ends[count + chunk - 1]) : T(0), static_cast<T>(ends[chunk]),
                       static_cast<T>(ends[count + chunk]), chunk + 1 < count ? static_cast<T>(ends[chunk + 1]) : T(0));
    __syncthreads();

    const std::int64_t after_chunk = tile.first_chunk + tile_chunks;
    const T before = tile.first_chunk > 0 ? static_cast<T>(ends[count + tile.first_chunk - 1]) : T(0), after = after_chunk < count ? static_cast<T>(ends[after_chunk]) : T(0);
    const Line<T> x = line_of(job.x, index);
    const T* const solution = tile.array(3);
    T entry = 0, size = 0, right = 0, residual = 0, finite = 0;
#pragma unroll 2
    for (int r = threadIdx.x; r < tile.rows; r += block_threads) {
        const std::int64_t i = tile.first + r;
        const T own = solution[tile.place(r)];
        const T above = r > 0 ? solution[tile.place(r - 1)] : before;
        const T below = r + 1 < tile.rows ? solution[tile.place(r + 1)] : after;
        const T l = i > 0 ? lines[0][i] : T(0), d = lines[1][i], u = i + 1 < job.cut.rows ? lines[2][i] : T(0), f = lines[3][i];
        const T rest = f - l * above - d * own - u * below;
        entry = max(max(entry, abs(d)), max(abs(l), abs(u)));
        size = max(size, abs(own)), right = max(right, abs(f)), residual = max(residual, abs(rest));
        finite += rest * T(0);
        if (job.kept_x) job.kept_x[k * job.cut.rows + i] = own;
        else x.at(i) = own;
    }
    // max() lets NaN pass by; it stays in the sum.
    const double lost = largest_of_block(finite == T(0) ? 0 : 1, partial);
    const double a = largest_of_block(entry, partial), s = fmax(largest_of_block(size, partial), fmax(abs(static_cast<double>(before)), abs(static_cast<double>(after))));
    const double f = largest_of_block(right, partial), e = lost > 0 ? INFINITY : largest_of_block(residual, partial);
    if (threadIdx.x != 0) return;
    const double scale = a * s + f;
    const double ratio = e == 0 ? 0 : isinf(scale) ? e / a / s : e / scale;
    atomicMax(&job.found[k].ratio, bits(ratio));
    atomicMax(&job.found[k].residual, bits(e));
    atomicMax(&job.found[k].scale, bits(scale));
}

/// One thread per system: accepted, or marked for LU.
template <class T>
__global__ void judge_kernel(const __grid_constant__ Job<T> job) {
    const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k >= job.levels.systems) return;
    const Found found = job.found[k];
    const double u = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
    const double ratio = __longlong_as_double(static_cast<long long>(found.ratio)), residual = __longlong_as_double(static_cast<long long>(found.residual));
    const double scale = __longlong_as_double(static_cast<long long>(found.scale));
    const bool good = !found.irregular && (ratio <= 10 * u || (isfinite(scale) && residual <= 4 * u * scale));
    job.marks[k] = !good;
    // The bits of -1, "not computed", are below those of any number as signed integers.
    if (good) atomicMax(reinterpret_cast<long long*>(&job.outcome->residual), static_cast<long long>(found.ratio));
}

template <class T>
__global__ void copy_kernel(const __grid_constant__ Job<T> job) {
    const std::int64_t k = job.system();
    if (job.marks[k]) return;
    std::int64_t index[4];
    job.levels.indices(k, index);
    const Line<T> x = line_of(job.x, index);
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < job.cut.rows; i += stride)
        x.at(i) = job.kept_x[k * job.cut.rows + i];
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

template <class T>
void solve(const System& system, const BatchLaunch& launch) {
    const Cut cut(system.rows);
    const Parts parts(system, cut);
    if (launch.scratch_bytes < parts.all) return;
    char* const base = static_cast<char*>(launch.scratch);
    Job<T> job{Levels(system), cut, 0, Source<T>(system.lower), Source<T>(system.diag), Source<T>(system.upper), Source<T>(system.rhs),
               Source<T>(system.x), reinterpret_cast<double*>(base), system.in_place ? reinterpret_cast<T*>(base + parts.shared) : nullptr,
               reinterpret_cast<Found*>(base + parts.found), reinterpret_cast<unsigned char*>(base + parts.marks), launch.outcome};
    const std::int64_t systems = system.systems();
    constexpr int tile_bytes = 4 * tile_chunks * tile_pitch * sizeof(T);
    cudaFuncSetAttribute(finish_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, tile_bytes);
    cudaMemsetAsync(job.found, 0, static_cast<std::size_t>(systems) * sizeof(Found), launch.stream);
    for (job.first_system = 0; job.first_system < systems; job.first_system += most_systems_at_once) {
        const auto y = static_cast<unsigned>(std::min(systems - job.first_system, most_systems_at_once));
        const unsigned tiles = blocks(cut.count[0], tile_chunks);
        reduce_kernel<T><<<dim3(blocks(cut.count[1], block_threads), y), block_threads, 0, launch.stream>>>(job);
        for (int level = 1; level + 1 < cut.levels; ++level)
            merge_kernel<T><<<dim3(blocks(cut.count[level + 1], level_threads), y), level_threads, 0, launch.stream>>>(job, level);
        top_kernel<T><<<dim3(1, y), 1, 0, launch.stream>>>(job);
        for (int level = cut.levels - 2; level >= 0; --level)
            spread_kernel<T><<<dim3(blocks(cut.count[level + 1], level_threads), y), level_threads, 0, launch.stream>>>(job, level);
        finish_kernel<T><<<dim3(tiles, y), block_threads, tile_bytes, launch.stream>>>(job);
    }
    judge_kernel<T><<<blocks(systems, 128), 128, 0, launch.stream>>>(job);
    if (job.kept_x)
        for (job.first_system = 0; job.first_system < systems; job.first_system += most_systems_at_once) {
            const auto y = static_cast<unsigned>(std::min(systems - job.first_system, most_systems_at_once));
            copy_kernel<T><<<dim3(std::min(blocks(system.rows, 256), 1u << 14), y), 256, 0, launch.stream>>>(job);
        }
    BatchLaunch rescue = launch;
    rescue.scratch = base + parts.shared;
    rescue.scratch_bytes = parts.all - parts.shared;
    solve_pivoted(system, rescue, job.marks);
}

}  // namespace

const char* two_pass_refuses(const System& system) { return system.rows < least_rows ? "the system is too short to be cut" : nullptr; }

std::size_t two_pass_scratch(const System& system) { return Parts(system, Cut(system.rows)).all; }

void solve_two_pass(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
