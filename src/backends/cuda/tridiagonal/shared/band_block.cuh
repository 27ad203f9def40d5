// SPDX-License-Identifier: BSD-3-Clause
// What a block of a cluster keeps of the one matrix for its band of the rows (bands.cuh), and what it does for a set of columns between the sweeps of its threads: its segments become one piece, of
// which two numbers per column go to all blocks, and what joins the blocks is solved in every block.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/shared/band_join.cuh"
#include "backends/cuda/tridiagonal/shared/columns.cuh"
#include "backends/cuda/tridiagonal/shared/join.cuh"

namespace trifold::cuda {

inline constexpr int most_bands = 8;            ///< that tell each other, all to all
inline constexpr int most_gathered_bands = 16;  ///< band_gather.cuh

/// Places for sets where they come and go by the copy engine as tensors (columns_ring.cuh): one is solved, one comes, one leaves. With two of them 1024 rows 84.8 instead of 87.6 % of the roof.
inline constexpr int band_stages = 3;

/// Rows of a thread that leave at once through shared memory (band_store.cuh): a sector's worth.
template <class T>
inline constexpr int band_chunk = 32 / static_cast<int>(sizeof(T));

/// Shared memory of a block, in elements from its start; the set comes first.
template <class T, int R>
struct BandsLayout {
    static constexpr int vector = 16 / static_cast<int>(sizeof(T)), line = 128 / static_cast<int>(sizeof(T));
    static constexpr int segment = 4 * R + vector;
    int stage, pairs, factors, ends, links, bands, join, last, first, flags, total;

    /// joined: of the job.
    __host__ __device__ BandsLayout(int segments, int across, int blocks, bool staged, int stages, int joined = 0) {
        stage = segments * R * (across + (staged ? line : 0));
        pairs = stages * stage + (staged ? 2 * segments * band_chunk<T> * (across + line) : 0);
        factors = pairs + (blocks == 1 ? 0 : joined ? (2 * blocks << joined) + 2 * across : 4 * blocks * across);
        ends = factors + segments * segment;
        links = ends + segments * 8;
        bands = links + segments * 8;
        join = bands + (blocks + 1) * 8;
        last = join + blocks * 4;
        first = last + segments * across;
        flags = first + segments * across;
        total = flags + 16;
    }
};

__device__ __forceinline__ void meet_in_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// By all threads, but for what says otherwise. `last`, `first`: in shared memory, of the thread's column, a number per segment.
template <class T, int R>
struct BandBlock {
    T* const factors;
    SegmentEnds<T>* const ends;
    BandLink<T>* const links;
    SegmentEnds<T>* const bands;  ///< all blocks', then this one's
    Join<T>* const join;
    volatile unsigned* const fine;
    const int rank, blocks, segments, across;

    __device__ __forceinline__ BandBlock(T* memory, const BandsLayout<T, R>& layout, int rank, int blocks, int segments, int across)
        : factors(memory + layout.factors), ends(reinterpret_cast<SegmentEnds<T>*>(memory + layout.ends)), links(reinterpret_cast<BandLink<T>*>(memory + layout.links)),
          bands(reinterpret_cast<SegmentEnds<T>*>(memory + layout.bands)), join(reinterpret_cast<Join<T>*>(memory + layout.join)),
          fine(reinterpret_cast<unsigned*>(memory + layout.flags)), rank(rank), blocks(blocks), segments(segments), across(across) {}

    /// The matrix. Whether what this thread did is safe.
    __device__ __forceinline__ bool eliminate(const SharedJob<T>& job, int first_row, int threads) const {
        const int thread = static_cast<int>(threadIdx.x);
        for (int r = thread; r < segments * R; r += threads) {
            T* const at = factors + r / R * BandsLayout<T, R>::segment + r % R;
            const int row = first_row + r;
            const bool real = row < job.rows;
            at[0] = real ? job.diag[row] : T(1);
            at[R] = real && row ? job.lower[row] : T(0);
            at[2 * R] = real && row + 1 < job.rows ? job.upper[row] : T(0);
        }
        __syncthreads();
        bool safe = true;
        if (thread < segments) {
            SegmentInShared<T, R> rows{factors + thread * BandsLayout<T, R>::segment, job.rows - first_row - thread * R};
            SegmentEnds<T> own;
            safe = factor_segment<R, 4>(rows, own);
            ends[thread] = own;
        }
        safe = __syncthreads_and(safe);
        if (thread == 0) {
            safe = factor_band(ends, segments, links, bands[blocks]) && safe;
            *fine = safe;
        }
        if (blocks > 1) meet_in_cluster();
        else __syncthreads();
        if (thread < blocks) {
            const unsigned there = in_block(shared_address(bands + blocks), thread);
            unsigned words[sizeof(SegmentEnds<T>) / 4], good;
#pragma unroll
            for (unsigned w = 0; w < sizeof words / 4; ++w) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(words[w]) : "r"(there + 4 * w) : "memory");
            asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(good) : "r"(in_block(shared_address(const_cast<unsigned*>(fine)), thread)) : "memory");
#pragma unroll
            for (unsigned w = 0; w < sizeof words / 4; ++w) reinterpret_cast<unsigned*>(bands + thread)[w] = words[w];
            safe = good;
        }
        __syncthreads();
        if (thread == 0) safe = factor_join(bands, blocks, join) && safe;
        return safe;
    }

    /// By the threads of segment 0: the column's last unknown, and in `head` its first one, as if nothing came before and after.
    __device__ __forceinline__ T reduce(T* last, const T* first, T& head) const {
        T g = 0;
        head = 0;
#pragma unroll 1
        for (int s = 0; s < segments; ++s) {
            const BandLink<T> link = links[s];
            T d = last[s * across];
            if (s + 1 < segments) d = fused(-link.coupling, first[(s + 1) * across], d);
            g = fused(-link.lower, g, d * link.inverse);
            last[s * across] = g;
        }
#pragma unroll 1
        for (int s = segments - 2; s >= 0; --s) head = fused(-links[s].upper, head, last[s * across]);
        head = fused(-links[0].beta, head, first[0]);
        return g;
    }

    /// The same of at most eight segments, what their last rows have become in registers: no load waits for a store. (In place 1024 rows 86.0 to 87.4 % of the roof.)
    struct Few {
        static constexpr int most = 8;
        T of[most];
    };
    __device__ __forceinline__ T reduce(const T* last, const T* first, Few& ends, T& head) const {
        T g = 0;
        head = 0;
#pragma unroll
        for (int s = 0; s < Few::most; ++s)
            if (s < segments) {
                const BandLink<T> link = links[s];
                T d = last[s * across];
                if (s + 1 < segments) d = fused(-link.coupling, first[(s + 1) * across], d);
                ends.of[s] = g = fused(-link.lower, g, d * link.inverse);
            }
#pragma unroll
        for (int s = Few::most - 2; s >= 0; --s)
            if (s + 1 < segments) head = fused(-links[s].upper, head, ends.of[s]);
        head = fused(-links[0].beta, head, first[0]);
        return g;
    }

    /// To all blocks. arrived: of the thread's column, a pair per block.
    __device__ __forceinline__ void tell(const T* arrived, unsigned barrier, T g, T head) const {
        const unsigned slot = shared_address(arrived + 2 * rank * across);
#pragma unroll 1
        for (int b = 0; b < blocks; ++b) send(in_block(slot, b), g, head, in_block(barrier, b));
    }

    /// From what all blocks have told: the block's last unknown, and in `before` that of the block before.
    __device__ __forceinline__ T join_all(const T* arrived, T& before) const {
        T gamma[most_bands], x_band = 0, follows = 0;
#pragma unroll
        for (int s = 0; s < most_bands; ++s)
            if (s < blocks) {
                const Join<T> j = join[s];
                const T after = s + 1 < blocks ? arrived[2 * (s + 1) * across + 1] : T(0);
                gamma[s] = fused(-j.coupling, after, arrived[2 * s * across]) * j.inverse;
                if (s) gamma[s] = fused(-j.lower, gamma[s - 1], gamma[s]);
            }
#pragma unroll
        for (int s = most_bands - 1; s >= 0; --s)
            if (s < blocks) {
                follows = fused(-join[s].upper, follows, gamma[s]);
                if (s == rank) x_band = follows;
                if (s + 1 == rank) before = follows;
            }
        return x_band;
    }

    /// `last` becomes the segments' last unknowns, first[0] the one before the block.
    __device__ __forceinline__ void substitute(T* last, T* first, T x_band, T before) const {
        first[0] = before, last[(segments - 1) * across] = x_band;
#pragma unroll 1
        for (int s = segments - 2; s >= 0; --s) last[s * across] = x_band = fused(-links[s].upper, x_band, fused(-links[s].fill, before, last[s * across]));
    }
    __device__ __forceinline__ void substitute(T* last, T* first, Few& ends, T x_band, T before) const {
        first[0] = before, last[(segments - 1) * across] = x_band;
#pragma unroll
        for (int s = Few::most - 2; s >= 0; --s)
            if (s + 1 < segments) ends.of[s] = x_band = fused(-links[s].upper, x_band, fused(-links[s].fill, before, ends.of[s]));
#pragma unroll
        for (int s = Few::most - 2; s >= 0; --s)
            if (s + 1 < segments) last[s * across] = ends.of[s];
    }
};

}  // namespace trifold::cuda
