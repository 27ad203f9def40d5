// SPDX-License-Identifier: BSD-3-Clause
// A tile: some chunks of a system, in the shared memory of one warp.
//
// Shape: four arrays of 32 rows a chunk, one after the other, and a place for the 33rd row that the last chunk may have. 16 bytes of a chunk, `together` rows, lie in the places of 16 bytes of eight others,
//   so that no two of eight lanes meet in a bank, neither where a lane reads its chunk nor where lanes read rows side by side.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_job.cuh"

namespace trifold::cuda::two_pass {

/// 16 bytes of a chunk, as they are read and written.
template <class T>
inline constexpr int together = 16 / static_cast<int>(sizeof(T));
template <class T>
struct alignas(16) Piece {
    T at[together<T>];
};

template <class T, int Chunks>
struct Tile {
    static constexpr int E = together<T>, of_all = Chunks, rows_of_all = Chunks * chunk_rows, pitch = rows_of_all + E, bytes = 4 * pitch * static_cast<int>(sizeof(T)) + 32;

    T* data;
    std::int64_t first_chunk, first;  ///< of the system: number of the first chunk, and its first row
    int rows, chunks;
    bool last;  ///< the system ends here

    __device__ Tile(const Job<T>& job, T* shared, std::int64_t number) : data(shared) {
        first_chunk = number * Chunks, first = first_chunk * chunk_rows;
        chunks = static_cast<int>(min(static_cast<std::int64_t>(Chunks), job.cut.count[0] - first_chunk));
        last = first_chunk + chunks == job.cut.count[0];
        rows = last ? static_cast<int>(job.cut.rows - first) : rows_of_all;
    }

    __device__ T* array(int k) const { return data + k * pitch; }

    /// Where the rows of a whole tile are in memory. Here, for registers would not do in window_kernel.
    __device__ const T*& from(int k) const { return reinterpret_cast<const T**>(data + 4 * pitch)[k]; }

    /// Row r of a chunk.
    __device__ static int place(int chunk, int r) { return r < chunk_rows ? chunk * chunk_rows + (r / E ^ (chunk & 7)) * E + r % E : rows_of_all; }
    /// Row r of the tile. The last chunk may have one row more than the others.
    __device__ int place(int r) const {
        const int chunk = min(r / chunk_rows, chunks - 1);
        return place(chunk, r - chunk * chunk_rows);
    }

    __device__ int rows_of(int chunk) const { return chunk + 1 == chunks ? rows - chunk * chunk_rows : chunk_rows; }

    /// Rows together * k … of a chunk of 32.
    __device__ Piece<T>& piece(int which, int chunk, int k) const { return *reinterpret_cast<Piece<T>*>(array(which) + chunk * chunk_rows + (k ^ (chunk & 7)) * E); }

    /// All chunks are there, with 32 rows each.
    __device__ bool full() const { return rows == rows_of_all && chunks == Chunks; }

    /// No end of the system is here (the last tile may be full and have one row more), and rows lie side by side.
    __device__ bool whole(const Rows<T>& from) const { return first > 0 && !last && from.plain(); }

    /// By all lanes, who see it then.
    __device__ __forceinline__ void load(const Rows<T>& from) const {
        const int lane = static_cast<int>(threadIdx.x) % lanes;
        if (whole(from)) {
            if (lane == 0)
#pragma unroll
                for (int k = 0; k < 4; ++k) this->from(k) = from.line[k].data + first;
            __syncwarp();
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const T* const at = this->from(k) + lane * E;
#pragma unroll
                for (int i = 0; i < rows_of_all / E / lanes; ++i) {
                    const int r = (i * lanes + lane) * E;
                    __pipeline_memcpy_async(&piece(k, r / chunk_rows, r % chunk_rows / E), at + i * lanes * E, 16);
                }
            }
        } else {
#pragma unroll 1
            for (int r = lane; r < rows; r += lanes)
#pragma unroll
                for (int k = 0; k < 4; ++k) from.fetch(array(k) + place(r), k, first + r);
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncwarp();
    }
};

/// One chunk of a tile, row by row.
template <class T, int Chunks>
struct ChunkRows {
    const Tile<T, Chunks>& tile;
    int chunk;
    __device__ T& at(int k, int i) const { return tile.array(k)[tile.place(chunk, i)]; }
    __device__ T& lower(int i) const { return at(0, i); }
    __device__ T& diag(int i) const { return at(1, i); }
    __device__ T& upper(int i) const { return at(2, i); }
    __device__ T& rhs(int i) const { return at(3, i); }
};

}  // namespace trifold::cuda::two_pass
