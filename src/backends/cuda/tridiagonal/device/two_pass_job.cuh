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

inline constexpr int tile_chunks = 64, chunk_rows = 32, tile_pitch = 33, most_levels = 16, block_threads = 128, maxima = 5;

/// Who works on a tile, block_threads of them, and their words for maxima: a block.
template <int Size>
struct BlockOf {
    static constexpr int size = Size;
    __device__ __forceinline__ static int thread() { return static_cast<int>(threadIdx.x); }
    __device__ __forceinline__ static int threads() { return static_cast<int>(blockDim.x); }
    __device__ __forceinline__ static std::int64_t number() { return blockIdx.x; }
    __device__ __forceinline__ static std::int64_t count() { return gridDim.x; }
    __device__ __forceinline__ static void sync() { __syncthreads(); }
    __device__ __forceinline__ static double* partial() {
        __shared__ double words[Size / 32 * maxima];
        return words;
    }
};
using WholeBlock = BlockOf<block_threads>;

/// Or a third of one, where blocks are larger; barrier 0 is the block's. `room`: of its dynamic shared memory, for each.
struct ThirdOfBlock {
    static constexpr int size = block_threads, per_block = 3, tile_bytes = 69632, room = tile_bytes + block_threads / 32 * maxima * 8;
    __device__ __forceinline__ static int own() { return static_cast<int>(threadIdx.x) / block_threads; }
    __device__ __forceinline__ static int thread() { return static_cast<int>(threadIdx.x) % block_threads; }
    __device__ __forceinline__ static int threads() { return block_threads; }
    __device__ __forceinline__ static std::int64_t number() { return own() * static_cast<std::int64_t>(gridDim.x) + blockIdx.x; }
    __device__ __forceinline__ static std::int64_t count() { return per_block * static_cast<std::int64_t>(gridDim.x); }
    __device__ __forceinline__ static void sync() { asm volatile("bar.sync %0, %1;" ::"r"(1 + own()), "n"(block_threads) : "memory"); }
    __device__ __forceinline__ static double* partial() { return reinterpret_cast<double*>(memory() + tile_bytes); }
    __device__ __forceinline__ static unsigned char* memory() {
        extern __shared__ __align__(128) unsigned char of_block[];
        return of_block + own() * room;
    }
};

/// How systems are cut: chunks, long chunks, groups of these, groups of groups. Offsets count words in the scratch of one system.
/// Chunks have 32 rows but for the last one, which has 2 to 33.
struct Cut {
    std::int64_t rows = 0, count[most_levels] = {}, rows_at[most_levels] = {}, ends_at[most_levels] = {}, words = 0;
    std::int64_t tiles = 0, beside_at = 0;             ///< of the lowest level; x on both sides of where they meet, as it is before it is corrected
    int levels = 0, long_chunk = 1, together = group;  ///< chunks in a long one; of a level in one of the next

    /// least: long chunks, if there are rows for so many. at_once: systems that somebody waits for; where their long chunks are few they are joined by few, since joints follow each other.
    explicit Cut(std::int64_t n, std::int64_t least = 128, std::int64_t at_once = 0) : rows(n) {
        constexpr std::int64_t few = 32768;
        while (long_chunk < group && n / (2 * long_chunk * chunk_rows) >= least) long_chunk *= 2;
        if (n / (long_chunk * chunk_rows) * at_once <= few && at_once > 0) together = 4;
        std::int64_t chunks = n / chunk_rows + (n % chunk_rows > 1 ? 1 : 0);
        do {
            count[levels] = chunks;
            rows_at[levels] = words, ends_at[levels] = words + 10 * chunks;
            words += 12 * chunks;
            const int joined = levels == 0 ? long_chunk : together;
            chunks = (chunks + joined - 1) / joined;
        } while (levels++ == 0 || count[levels - 1] > together);
        tiles = (count[0] + tile_chunks - 1) / tile_chunks, beside_at = words, words += 2 * tiles;
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
    Found* found;
    unsigned char* marks;
    DeviceOutcome* outcome;
    bool again;            ///< the passes that correct: for rhs - A x in place of rhs
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
};

/// The rows of one system, and its x where it is kept until it is accepted.
template <class T>
struct Rows {
    Line<T> line[4], x;
    std::int64_t count;

    __device__ Rows(const Line<T>& lower, const Line<T>& diag, const Line<T>& upper, const Line<T>& rhs, const Line<T>& solution, std::int64_t n)
        : line{lower, diag, upper, rhs}, x(solution), count(n) {}

    __device__ Rows(const Job<T>& job, std::int64_t k) : count(job.cut.rows) {
        std::int64_t index[4];
        job.levels.indices(k, index);
        line[0] = line_of(job.lower, index), line[1] = line_of(job.diag, index), line[2] = line_of(job.upper, index), line[3] = line_of(job.rhs, index);
        x = line_of(job.x, index);
        if (job.kept_x) x = {job.kept_x + k * job.cut.rows, T(0), 1};
    }

    /// All four are arrays whose rows lie side by side.
    __device__ bool plain() const {
        return line[0].data && line[1].data && line[2].data && line[3].data && line[0].row_stride == 1 && line[1].row_stride == 1 && line[2].row_stride == 1 &&
               line[3].row_stride == 1;
    }

    __device__ T lower(std::int64_t i) const { return i > 0 ? line[0][i] : T(0); }
    __device__ T upper(std::int64_t i) const { return i + 1 < count ? line[2][i] : T(0); }

    __device__ T residual(std::int64_t i) const { return residual(i, i > 0 ? x[i - 1] : T(0), i + 1 < count ? x[i + 1] : T(0)); }

    __device__ T residual(std::int64_t i, T x_before, T x_after) const {
        const T above = i > 0 ? line[0][i] * x_before : T(0), below = i + 1 < count ? line[2][i] * x_after : T(0);
        return line[3][i] - above - line[1][i] * x[i] - below;
    }

    /// Word k of row i (lower, diag, upper, rhs) on its way to shared memory; `again`: rhs - A x for rhs.
    template <bool again>
    __device__ void fetch(T* to, int k, std::int64_t i) const {
        const bool outside = (k == 0 && i == 0) || (k == 2 && i + 1 == count);
        if (outside) *to = 0;
        else if (k == 3 && again) *to = residual(i);
        else if (line[k].data) __pipeline_memcpy_async(to, line[k].data + i * line[k].row_stride, sizeof(T));
        else *to = line[k].value;
    }
};

/// The chunks of a block in shared memory, one word between neighbours so that threads meet in no bank.
template <class T>
struct Tile {
    T* data;
    int rows, chunks;
    std::int64_t first_chunk, first;  ///< of the system: number of the first chunk, and its first row
    bool last;                        ///< the system ends here

    __device__ Tile(const Job<T>& job, T* shared, std::int64_t number) : data(shared) {
        first_chunk = number * tile_chunks;
        first = first_chunk * chunk_rows;
        chunks = static_cast<int>(min(static_cast<std::int64_t>(tile_chunks), job.cut.count[0] - first_chunk));
        last = first_chunk + chunks == job.cut.count[0];
        rows = last ? static_cast<int>(job.cut.rows - first) : tile_chunks * chunk_rows;
    }

    __device__ T* array(int k) const { return data + k * tile_chunks * tile_pitch; }

    /// Where row r of the tile lies. The last chunk may have one row more than the others.
    __device__ int place(int r) const { return r + min(r / chunk_rows, chunks - 1); }

    __device__ int rows_of(int chunk) const { return chunk + 1 == chunks ? rows - chunk * chunk_rows : chunk_rows; }

    /// No end of the system is here (the last tile may be full and have one row more), and rows lie side by side.
    __device__ bool whole(const Rows<T>& from) const { return first > 0 && !last && from.plain(); }

    /// beside: of the system, where `again`; others may have corrected x beyond the tile's ends.
    template <bool again, class Team = WholeBlock>
    __device__ void load(const Rows<T>& from, const double* beside) const {
        if (!again && whole(from)) {
            static_assert(block_threads % chunk_rows == 0);
            const int me = Team::thread(), to = me + me / chunk_rows;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const T* const at = from.line[k].data + first + me;
#pragma unroll
                for (int i = 0; i < tile_chunks * chunk_rows / block_threads; ++i)
                    __pipeline_memcpy_async(array(k) + to + i * (block_threads + block_threads / chunk_rows), at + i * block_threads, sizeof(T));
            }
        } else {
            const std::int64_t number = first_chunk / tile_chunks;
            const T x_before = again && first > 0 ? static_cast<T>(beside[2 * number]) : T(0), x_after = again && !last ? static_cast<T>(beside[2 * number + 3]) : T(0);
#pragma unroll 2
            for (int r = Team::thread(); r < rows; r += block_threads) {
#pragma unroll
                for (int k = 0; k < 3; ++k) from.template fetch<again>(array(k) + place(r), k, first + r);
                if constexpr (again) array(3)[place(r)] = from.residual(first + r, r > 0 ? from.x[first + r - 1] : x_before, r + 1 < rows ? from.x[first + r + 1] : x_after);
                else from.template fetch<false>(array(3) + place(r), 3, first + r);
            }
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        Team::sync();
    }
};

/// Where tile `number` begins, before x is corrected: x of the row before, and of its first row.
template <class T>
__device__ void keep_beside(const Job<T>& job, std::int64_t k, std::int64_t number) {
    if (number == 0) return;
    const Rows<T> system(job, k);
    double* const beside = job.work_of(k) + job.cut.beside_at + 2 * number;
    const std::int64_t first = number * tile_chunks * chunk_rows;
    beside[0] = system.x[first - 1], beside[1] = system.x[first];
}

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

}  // namespace trifold::cuda::two_pass
