// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of two_pass.cu share: how a system is cut, its rows in global and in shared memory, and what is to be done.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/device/couple.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_spread.hpp"
#include "backends/cuda/tridiagonal/operand.cuh"

namespace trifold::cuda::two_pass {

inline constexpr int lanes = 32, chunk_rows = 32, most_levels = 16, block_threads = 128, maxima = 4;

/// Who works side by side on chunks that they join, and their words for maxima: a block. Passes over rows are by warps, each for itself.
template <int Size>
struct BlockOf {
    static constexpr int size = Size, most_turns = 1;  ///< segments of a system that is shared (two_pass_spread.hpp)
    __device__ __forceinline__ static int thread() { return static_cast<int>(threadIdx.x); }
    __device__ __forceinline__ static int threads() { return static_cast<int>(blockDim.x); }
    __device__ __forceinline__ static std::int64_t number() { return blockIdx.x; }
    __device__ __forceinline__ static std::int64_t count() { return gridDim.x; }
    __device__ __forceinline__ static int own() { return 0; }
    __device__ __forceinline__ static int warp() { return thread() / lanes; }
    __device__ __forceinline__ static void sync() { __syncthreads(); }
    __device__ __forceinline__ static unsigned* partial() {
        __shared__ unsigned words[Size / lanes * maxima];
        return words;
    }
};
using WholeBlock = BlockOf<block_threads>;

/// Or a third of one, where blocks are larger; barrier 0 is the block's. `room`: of its dynamic shared memory, for each.
struct ThirdOfBlock {
    static constexpr int size = block_threads, per_block = 3, most_turns = Spread::most_turns, tile_bytes = 69632, room = tile_bytes + block_threads / lanes * maxima * 4;
    __device__ __forceinline__ static int own() { return static_cast<int>(threadIdx.x) / block_threads; }
    __device__ __forceinline__ static int thread() { return static_cast<int>(threadIdx.x) % block_threads; }
    __device__ __forceinline__ static int threads() { return block_threads; }
    __device__ __forceinline__ static std::int64_t number() { return own() * static_cast<std::int64_t>(gridDim.x) + blockIdx.x; }
    __device__ __forceinline__ static std::int64_t count() { return per_block * static_cast<std::int64_t>(gridDim.x); }
    /// Counted so that those which come first in a block's teams are issued by different schedulers.
    __device__ __forceinline__ static int warp() { return (thread() / lanes + own()) % (size / lanes); }
    __device__ __forceinline__ static void sync() { asm volatile("bar.sync %0, %1;" ::"r"(1 + own()), "n"(block_threads) : "memory"); }
    __device__ __forceinline__ static unsigned* partial() { return reinterpret_cast<unsigned*>(memory() + tile_bytes); }
    __device__ __forceinline__ static unsigned char* memory() {
        extern __shared__ __align__(128) unsigned char of_block[];
        return of_block + own() * room;
    }
};

/// How systems are cut: chunks of 32 rows, but for the last one, which has 2 to 33, and groups of them, groups of groups. In double precision a group of chunks is a long chunk, which the first pass
/// reduces as well. Offsets count words in the scratch of one system.
struct Cut {
    static constexpr std::int64_t few = 32768;  ///< where joints are waited for, not issued
    static constexpr int least_long = 11;       ///< chunks in a long one of long systems

    std::int64_t rows = 0, count[most_levels] = {}, rows_at[most_levels] = {}, ends_at[most_levels] = {}, words = 0;
    int size[most_levels] = {}, levels = 0;  ///< of groups
    bool long_chunks = false;

    /// least: long chunks, if there are rows for so many; warps: that reduce them side by side.
    Cut(std::int64_t n, bool in_double, std::int64_t systems, std::int64_t warps, std::int64_t least = 128) : rows(n), long_chunks(in_double) {
        std::int64_t chunks = n / chunk_rows + (n % chunk_rows > 1 ? 1 : 0);
        const auto joined = [&](std::int64_t several) { return systems == 1 || several * systems <= few ? 4 : group; };
        const int lowest = in_double ? long_chunk(chunks, systems, warps, least) : chunks * systems <= 4 * few ? 4 : group;
        do {
            count[levels] = chunks, size[levels] = levels == 0 ? lowest : joined(chunks);
            rows_at[levels] = words, ends_at[levels] = words + 10 * level(levels).pitch();
            words = ends_at[levels] + 2 * chunks;
            chunks = level(levels).groups;
        } while (levels++ == 0 || count[levels - 1] > size[levels - 1]);
        size[levels - 1] = static_cast<int>(count[levels - 1]);
    }

    /// Of so many chunks each.
    __host__ __device__ std::int64_t tiles(int chunks) const { return (count[0] + chunks - 1) / chunks; }

    __host__ __device__ LevelOf level(int which) const { return {count[which], size[which]}; }

private:
    /// Where there are enough rows, so that the last turn of warps is a full one.
    static int long_chunk(std::int64_t chunks, std::int64_t systems, std::int64_t warps, std::int64_t least) {
        int length = 1;
        while (length < group && chunks / (2 * length) >= least) length *= 2;
        const auto time = [&](int each) { return (((chunks + each - 1) / each + lanes - 1) / lanes * systems + warps - 1) / warps * each; };
        if (length == group && warps > 0)
            for (int each = group - 1; each >= least_long; --each)
                if (time(each) < time(length)) length = each;
        return length;
    }
};

/// What the second pass finds of one system. Bits of numbers that are not negative order as the numbers do, NaN above all.
struct Found {
    unsigned long long ratio, residual, scale;
    int irregular, pad;
};

/// What is to be done with a system; everything but 0 is a rescue.
enum Mark : unsigned char { accepted = 0, to_correct = 1, to_pivot = 2 };

template <class T>
struct Job {
    Levels levels;
    Cut cut;
    std::int64_t first_system;
    Source<T> lower, diag, upper, rhs, x;
    double* work;          ///< cut.words per system
    T* kept_x;             ///< in place: rows per system; else null
    T* residue;            ///< rhs - A x, for the passes that correct: rows per system
    Found* found;
    unsigned char* marks;
    DeviceOutcome* outcome;
    bool again;            ///< the passes that correct: residue in the place of rhs
    const unsigned* left;         ///< what other kernels have left to this one, per system: null, or 2 where something is to be done
    const unsigned char* marked;  ///< likewise: null, or not 0
    const unsigned long long* wanted;  ///< null, or a word below `least_wanted` where nothing is to be done
    unsigned long long least_wanted;
    Spread spread;                ///< of one system that the teams of one launch share

    __device__ std::int64_t system() const { return first_system + blockIdx.y; }
    __device__ bool was_left(std::int64_t k) const { return left ? left[k] == 2 : marked[k] != 0; }
    __device__ bool unwanted() const { return wanted && *wanted < least_wanted; }
    /// Nothing is to be done with this system.
    __device__ bool idle(std::int64_t k) const { return again && marks[k] != to_correct; }
    __device__ double* work_of(std::int64_t k) const { return work + k * cut.words; }
    __device__ double* rows_of(std::int64_t k, int level) const { return work_of(k) + cut.rows_at[level]; }
    __device__ double* ends_of(std::int64_t k, int level) const { return work_of(k) + cut.ends_at[level]; }
};

/// The rows of one system, and its x where it is kept until it is accepted.
template <class T>
struct Rows {
    Line<T> line[4], x;
    std::int64_t count;

    __device__ Rows(const Line<T>& lower, const Line<T>& diag, const Line<T>& upper, const Line<T>& rhs, const Line<T>& solution, std::int64_t n)
        : line{lower, diag, upper, rhs}, x(solution), count(n) {}

    __device__ Rows(const Job<T>& job, std::int64_t k, bool again = false) : count(job.cut.rows) {
        std::int64_t index[4];
        job.levels.indices(k, index);
        line[0] = line_of(job.lower, index), line[1] = line_of(job.diag, index), line[2] = line_of(job.upper, index), line[3] = line_of(job.rhs, index);
        x = line_of(job.x, index);
        if (job.kept_x) x = {job.kept_x + k * job.cut.rows, T(0), 1};
        if (again) line[3] = {job.residue + k * job.cut.rows, T(0), 1};
    }

    /// All four are arrays whose rows lie side by side, from a multiple of 16 bytes on.
    __device__ bool plain() const {
        bool all = true;
#pragma unroll
        for (int k = 0; k < 4; ++k) all = all && is_plain(line[k]);
        return all;
    }
    __device__ static bool is_plain(const Line<T>& one) { return one.data && one.row_stride == 1 && reinterpret_cast<std::uintptr_t>(one.data) % 16 == 0; }

    __device__ T lower(std::int64_t i) const { return i > 0 ? line[0][i] : T(0); }
    __device__ T upper(std::int64_t i) const { return i + 1 < count ? line[2][i] : T(0); }

    __device__ T residual(std::int64_t i) const {
        const T above = i > 0 ? line[0][i] * x[i - 1] : T(0), below = i + 1 < count ? line[2][i] * x[i + 1] : T(0);
        return line[3][i] - above - line[1][i] * x[i] - below;
    }

    /// Word k of row i (lower, diag, upper, rhs) on its way to shared memory.
    __device__ void fetch(T* to, int k, std::int64_t i) const {
        const bool outside = (k == 0 && i == 0) || (k == 2 && i + 1 == count);
        if (outside) *to = 0;
        else if (line[k].data) __pipeline_memcpy_async(to, line[k].data + i * line[k].row_stride, sizeof(T));
        else *to = line[k].value;
    }
};

}  // namespace trifold::cuda::two_pass
