// SPDX-License-Identifier: BSD-3-Clause
// How the kernel that walks down columns (march.cuh) reads and stores systems whose rows lie side by side: a lane has a system; 128 bytes of 32 systems come at one
// request, 16-byte pieces of a line in another order from line to line, so that lanes read and write from different banks. x leaves as rhs came.
#pragma once

#include "backends/cuda/tridiagonal/shared/march.cuh"

namespace trifold::cuda {

/// A lane has V systems, 32 apart. Maps: of rhs at maps[3], of x at maps[2], in the order rows, systems, outer levels.
template <class T_, int V_>
struct MarchOneByOne {
    using T = T_;
    static constexpr int V = V_, slice_rows = 16, slices = march_rows / slice_rows;
    static constexpr int E = 16 / static_cast<int>(sizeof(T)), line = 128 / static_cast<int>(sizeof(T)), boxes = march_rows / line, box = line * 32, requests = boxes * V;
    static constexpr int elements = requests * box;  ///< [box][v][lane][row]
    static constexpr bool stored_by_copies = true, in_step = false;  // lines are one system's
    struct alignas(16) Vector {
        T of[E];
    };

    const ColumnJob<T>& job;
    ColumnPlace place;
    int lane;

    __device__ __forceinline__ MarchOneByOne(const ColumnJob<T>& from, const ColumnPlace& at, int l) : job(from), place(at), lane(l) {}
    static __device__ __forceinline__ int column_of(int lane, int v) { return lane + 32 * v; }
    __device__ __forceinline__ void leave(unsigned) {}  // what is stored of them is what was read

    /// By one thread: `requests` arrivals.
    __device__ __forceinline__ void ask(int chunk, T* to, Arrival news) const {
#pragma unroll 1
        for (int r = 0; r < requests; ++r) {
            news.expect(static_cast<unsigned>(box * sizeof(T)));
            asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(shared_address(to + r * box)),
                         "l"(&job.maps[3][0]), "r"(chunk * march_rows + r / V * line), "r"(static_cast<int>(place.column) + r % V * 32), "r"(place.outer[2]), "r"(place.outer[1]),
                         "r"(place.outer[0]), "r"(news.barrier)
                         : "memory");
        }
    }
    /// The same, of x: what is beyond the last row or system is left out.
    __device__ __forceinline__ void send(int chunk, T* from) const {
#pragma unroll 1
        for (int r = 0; r < requests; ++r)
            asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];" ::"l"(&job.maps[2][0]), "r"(chunk * march_rows + r / V * line),
                         "r"(static_cast<int>(place.column) + r % V * 32), "r"(place.outer[2]), "r"(place.outer[1]), "r"(place.outer[0]), "r"(shared_address(from + r * box))
                         : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }

    /// E rows from row i of a slice on.
    __device__ __forceinline__ Vector* at(T* chunk, int s, int i, int v) const {
        const int row = s * slice_rows + i;
        return reinterpret_cast<Vector*>(chunk + (row / line * V + v) * box + lane * line + ((row % line / E) ^ (lane & 7)) * E);
    }
    __device__ __forceinline__ void read(T* chunk, int s, T (&to)[slice_rows][V]) const {
#pragma unroll
        for (int v = 0; v < V; ++v)
#pragma unroll
            for (int i = 0; i < slice_rows; i += E) {
                const Vector some = *at(chunk, s, i, v);
#pragma unroll
                for (int e = 0; e < E; ++e) to[i + e][v] = some.of[e];
            }
    }
    __device__ __forceinline__ void write(T* chunk, int s, const T (&from)[slice_rows][V]) const {
#pragma unroll
        for (int v = 0; v < V; ++v)
#pragma unroll
            for (int i = 0; i < slice_rows; i += E) {
                Vector some;
#pragma unroll
                for (int e = 0; e < E; ++e) some.of[e] = from[i + e][v];
                *at(chunk, s, i, v) = some;
            }
    }
    __device__ __forceinline__ void store(T* chunk, int s, int, const T (&x)[slice_rows][V]) const { write(chunk, s, x); }
};

}  // namespace trifold::cuda
