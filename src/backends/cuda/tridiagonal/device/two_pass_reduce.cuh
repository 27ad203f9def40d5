// SPDX-License-Identifier: BSD-3-Clause
// The first of two pivoted passes: chunks are reduced (chunk.cuh) to two rows. In double precision a lane walks down a long chunk and reduces both it and, on the way, each of its chunks; a warp has
// 64 bytes of each of its 32 long chunks in shared memory and the next 64 on their way. In single precision a lane has one chunk of a tile, and reduces it in double precision: what its two rows
// say does not drown in their rounding, however many are coupled. Shapes and numerics: two_pass.cu.
// Words per row: 4 read. Flops: of a row 3 comparisons, a reciprocal and 13 multiply-adds, of a long chunk twice; two
// thirds of all instructions choose rows.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_tile.cuh"

namespace trifold::cuda::two_pass {

/// Pieces of 16 bytes of each long chunk that are brought at once.
inline constexpr int stage_pieces = 4;

/// Of a warp. Piece k of four of lane l lies where no two of eight lanes meet in a bank.
template <class T>
struct Staging {
    static constexpr int rows = stage_pieces * together<T>;
    Piece<T> pieces[2][4][lanes * stage_pieces];
    const T* from[4];  ///< rows of the first long chunk in memory. Here, for registers would not do in window_kernel

    static __device__ unsigned place(unsigned chunk, unsigned k) { return chunk * stage_pieces + (k ^ (chunk >> 1 & stage_pieces - 1)); }
    __device__ T& row(int stage, int which, int chunk, int r) { return pieces[stage][which][place(chunk, r / together<T>)].at[r % together<T>]; }
};

/// A chunk for each lane.
template <class T>
using WideTile = Tile<T, lanes>;

/// A warp's memory, for either way.
template <class T>
inline constexpr int reduce_bytes = sizeof(T) == 8 ? static_cast<int>(sizeof(Staging<T>)) : WideTile<T>::bytes;

template <class T>
__host__ __device__ inline std::int64_t reduce_items(const Cut& cut) {
    return sizeof(T) == 8 ? (cut.count[1] + lanes - 1) / lanes : cut.tiles(lanes);
}

/// 32 long chunks, by a warp.
template <class T>
struct LongChunks {
    const Job<T>& job;
    std::int64_t k;
    Staging<T>& stage;
    int lane = static_cast<int>(threadIdx.x) % lanes;
    std::int64_t length, first_chunk, chunks;  ///< rows of a long chunk; the first of the warp's; all
    double* parts;
    Reducer<T> whole, part;

    __device__ __forceinline__ LongChunks(const Job<T>& from, std::int64_t system, std::int64_t item, Staging<T>& memory)
        : job(from), k(system), stage(memory), length(from.cut.size[0] * chunk_rows), first_chunk(item * lanes), chunks(from.cut.count[1]), parts(from.rows_of(system, 0)) {}

    /// Row `i` of the first two, where `begins`.
    __device__ __forceinline__ static void join(Reducer<T>& to, bool begins, int i, T l, T d, T u, T f) {
        if (!begins) to.join(l, d, u, f);
        else if (i == 0) to.begin(l, d, u, f);
        else to.second(l, d, u, f);
    }

    /// The lane's chunk number `part_number` of its long one has come to its end.
    __device__ __forceinline__ void store_part(int part_number) {
        store_rows(parts, job.cut.level(0).pitch(), part_number * chunks + first_chunk + lane, part.rows());
        if (!part.regular) job.found[k].irregular = 1;
        part = Reducer<T>();
    }
    __device__ __forceinline__ void store_whole() {
        store_rows(job.rows_of(k, 1), job.cut.level(1).pitch(), job.cut.level(1).place(first_chunk + lane), whole.rows());
        if (!whole.regular) job.found[k].irregular = 1;
    }

    /// Where no row is missing, and rows lie side by side.
    __device__ __forceinline__ void run_whole(const Rows<T>& system) {
        constexpr int E = together<T>, pieces = stage_pieces, beside = lanes / pieces;  // long chunks of which a warp asks for a piece at once
        const int c = lane / pieces, piece = lane % pieces, steps = static_cast<int>(length / Staging<T>::rows);
        if (lane == 0)
#pragma unroll
            for (int a = 0; a < 4; ++a) stage.from[a] = system.line[a].data + first_chunk * length;
        __syncwarp();
        const int rows_of_long = static_cast<int>(length), own = c * rows_of_long + piece * E;
        const unsigned place = Staging<T>::place(c, piece);
        static_assert(beside % (2 * stage_pieces) == 0, "chunks so far apart have the same order of pieces");
        const auto ask = [&](int step) {
            if (step < steps)
#pragma unroll
                for (int a = 0; a < 4; ++a) {
                    const T* const from = stage.from[a] + own + step * Staging<T>::rows;
#pragma unroll
                    for (int round = 0; round < lanes / beside; ++round)
                        __pipeline_memcpy_async(&stage.pieces[step & 1][a][place + round * lanes], from + round * beside * rows_of_long, 16);
                }
            __pipeline_commit();
        };
        ask(0);
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            ask(step + 1);
            __pipeline_wait_prior(1);
            __syncwarp();
            const int of_part = step % (chunk_rows / Staging<T>::rows);
            // Row by row: of two at once, registers would not do in window_kernel.
            const auto row_of = [&](int a, int r) { return stage.row(step & 1, a, lane, r); };
            T l = row_of(0, 0), d = row_of(1, 0), u = row_of(2, 0), f = row_of(3, 0);
            int r = 0;
            const auto next_row = [&](bool begins, bool begins_whole, int i) {
                T a = l, b = d, c = u, rhs = f;
                r = min(r + 1, Staging<T>::rows - 1);  // the next one, while this one is eliminated
                l = row_of(0, r), d = row_of(1, r), u = row_of(2, r), f = row_of(3, r);
                chunk::scale_row(a, b, c, rhs);
                join(part, begins, i, a, b, c, rhs), join(whole, begins_whole, i, a, b, c, rhs);
            };
            if (of_part == 0) next_row(true, step == 0, 0), next_row(true, step == 0, 1);
#pragma unroll 1
            for (int i = of_part == 0 ? 2 : 0; i < Staging<T>::rows; ++i) next_row(false, false, 2);
            if (of_part == chunk_rows / Staging<T>::rows - 1) store_part(step * Staging<T>::rows / chunk_rows);
            __syncwarp();
        }
        store_whole();
    }

    __device__ __forceinline__ void run(const Rows<T>& system) {
        const std::int64_t n = job.cut.rows, own = first_chunk + lane;
        if (first_chunk > 0 && first_chunk + lanes < chunks && system.plain()) return run_whole(system);
        constexpr int staged = Staging<T>::rows;
        const auto rows_of = [&](std::int64_t g) { return static_cast<int>(g >= chunks ? 0 : g + 1 == chunks ? n - g * length : length); };
        const int rows = rows_of(own);
        int number = 0;
#pragma unroll 1
        for (int from = 0; __any_sync(~0u, from < rows); from += staged) {
#pragma unroll 1
            for (int round = 0; round < staged; ++round) {
                const int c = (round * lanes + lane) / staged, r = lane % staged;
                if (from + r >= rows_of(first_chunk + c)) continue;
                const std::int64_t i = (first_chunk + c) * length + from + r;
#pragma unroll
                for (int a = 0; a < 4; ++a) system.fetch(&stage.row(0, a, c, r), a, i);
            }
            __pipeline_commit();
            __pipeline_wait_prior(0);
            __syncwarp();
#pragma unroll 1
            for (int r = 0; r < staged && from + r < rows; ++r) {
                const int left = rows - from - r - 1;
                T l = stage.row(0, 0, lane, r), d = stage.row(0, 1, lane, r), u = stage.row(0, 2, lane, r), f = stage.row(0, 3, lane, r);
                chunk::scale_row(l, d, u, f);
                whole.add(l, d, u, f), part.add(l, d, u, f);
                // The last row of a system that would be a chunk of its own joins the chunk before it.
                if ((part.count < chunk_rows || left == 1) && left > 0) continue;
                store_part(number++);
            }
            __syncwarp();
        }
        if (rows > 0) store_whole();
    }
};

/// 32 chunks, by a warp.
template <class T>
__device__ __forceinline__ void reduce_tile(const Job<T>& job, const Rows<T>& system, std::int64_t k, const WideTile<T>& tile) {
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    tile.load(system);
    if (lane < tile.chunks) {
        const int rows = tile.rows_of(lane);
        Reducer<double, false> chunk;
        if (rows == chunk_rows) {
            constexpr int E = together<T>;
            static_assert(E >= 2);
#pragma unroll 1
            for (int p = 0; p < chunk_rows / E; ++p) {
                Piece<T> l = tile.piece(0, lane, p), d = tile.piece(1, lane, p), u = tile.piece(2, lane, p), f = tile.piece(3, lane, p);
#pragma unroll
                for (int i = 0; i < E; ++i) {
                    chunk::scale_row(l.at[i], d.at[i], u.at[i], f.at[i]);
                    if (p > 0 || i > 1) chunk.join(l.at[i], d.at[i], u.at[i], f.at[i]);
                    else if (i == 0) chunk.begin(l.at[i], d.at[i], u.at[i], f.at[i]);
                    else chunk.second(l.at[i], d.at[i], u.at[i], f.at[i]);
                }
            }
        } else {
            const ChunkRows<T, lanes> own{tile, lane};
#pragma unroll 1
            for (int i = 0; i < rows; ++i) {
                T l = own.lower(i), d = own.diag(i), u = own.upper(i), f = own.rhs(i);
                chunk::scale_row(l, d, u, f);
                chunk.add(l, d, u, f);
            }
        }
        const LevelOf level = job.cut.level(0);
        store_rows(job.rows_of(k, 0), level.pitch(), level.place(tile.first_chunk + lane), chunk.rows());
        if (!chunk.regular) job.found[k].irregular = 1;
    }
    __syncwarp();
}

/// Item 0 … reduce_items - 1 of a system, by a warp. memory: its reduce_bytes.
template <class T, bool again>
__device__ __forceinline__ void reduce_item(const Job<T>& job, std::int64_t k, std::int64_t item, unsigned char* memory) {
    const Rows<T> system(job, k, again);
    if constexpr (sizeof(T) == 8) LongChunks<T>(job, k, item, *reinterpret_cast<Staging<T>*>(memory)).run(system);
    else reduce_tile(job, system, k, WideTile<T>(job, reinterpret_cast<T*>(memory), item));
}

/// What is left of 1024 rows, for the passes that correct, by a warp. Words per row: 5 read, 1 written.
template <class T>
__device__ __forceinline__ void leave_residue(const Job<T>& job, std::int64_t k, std::int64_t tile) {
    constexpr int tile_rows = lanes * chunk_rows;
    const Rows<T> system(job, k);
    T* const to = job.residue + k * job.cut.rows;
    const std::int64_t end = min((tile + 1) * tile_rows, job.cut.rows);
#pragma unroll 4
    for (std::int64_t i = tile * tile_rows + threadIdx.x % lanes; i < end; i += lanes) to[i] = system.residual(i);
}

template <class T>
__global__ void __launch_bounds__(block_threads) residue_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    if (job.idle(job.system())) return;
    constexpr std::int64_t each = block_threads / lanes;
    for (std::int64_t tile = blockIdx.x * each + threadIdx.x / lanes; tile < job.cut.tiles(lanes); tile += gridDim.x * each) leave_residue(job, job.system(), tile);
}

/// The level whose chunks the first pass leaves to be merged.
template <class T>
inline constexpr int first_level = sizeof(T) == 8 ? 1 : 0;

template <class T, bool again>
__global__ void __launch_bounds__(block_threads, 3) reduce_kernel(const __grid_constant__ Job<T> job) {
    extern __shared__ double shared[];
    after_the_kernel_before();
    if (job.idle(job.system())) return;
    const int warp = static_cast<int>(threadIdx.x) / lanes;
    const std::int64_t item = blockIdx.x * std::int64_t{block_threads / lanes} + warp;
    if (item < reduce_items<T>(job.cut)) reduce_item<T, again>(job, job.system(), item, reinterpret_cast<unsigned char*>(shared) + warp * reduce_bytes<T>);
}

}  // namespace trifold::cuda::two_pass
