// SPDX-License-Identifier: BSD-3-Clause
// How blocks of a large cluster learn what joins them (bands.cuh): each column's pairs go to one block of the cluster, which solves what joins the blocks for its columns and tells every block what it
// needs. All to all a block receives a pair of every block for every column, twice (even and odd turns): 64 KB with sixteen blocks and a kilobyte of columns; here 4 KB, one hop later. One place for
// them is enough: who sends for a turn has had all results of the turn behind, for which all pairs have been read.
#pragma once

#include "backends/cuda/tridiagonal/shared/band_block.cuh"

namespace trifold::cuda {

/// Columns of a set that one block joins, as a power of two, 2 at least: so many that the blocks suffice for all.
constexpr int joined_shift(int across, int blocks) {
    int shift = 1;
    while (blocks << shift < across) ++shift;
    return shift;
}

template <class T>
struct BandGather {
    T* const gathered;    ///< of every block the pairs of this block's columns
    T* const results;     ///< of every column this block's last unknown and the one before the block
    const unsigned news;  ///< barrier: of what is gathered
    const int rank, blocks, across, shift;

    __device__ __forceinline__ BandGather(T* pairs, unsigned news, int rank, int blocks, int across, int shift)
        : gathered(pairs), results(pairs + (2 * blocks << shift)), news(news), rank(rank), blocks(blocks), across(across), shift(shift) {}

    /// What is sent to this block.
    __device__ __forceinline__ unsigned bytes() const { return rank << shift < across ? static_cast<unsigned>(2 * blocks << shift) * static_cast<unsigned>(sizeof(T)) : 0; }

    __device__ __forceinline__ void hand_in(int column, T g, T head) const {
        const int to = column >> shift;
        send(in_block(shared_address(gathered + 2 * ((rank - to << shift) + column)), to), g, head, in_block(news, to));
    }

    /// By the warps of segment 0, as a whole. told: barrier, of results.
    __device__ __forceinline__ void solve(const Join<T>* join, unsigned parity, unsigned told) const {
        const int each = 1 << shift, thread = static_cast<int>(threadIdx.x), warp = thread & ~31;
        if (warp >= each || rank << shift >= across) return;
        Arrival{news}.wait_cluster(parity);
        // What does not wait for another block's unknown is done by all lanes.
        const int here = min(shift, 5), pairs = blocks << here;
#pragma unroll 1
        for (int k = thread - warp; k < pairs; k += 32) {
            const int b = k >> here;
            T* const at = gathered + 2 * (warp + k + (b << shift) - (b << here));
            const Join<T> j = join[b];
            at[0] = fused(-j.coupling, b + 1 < blocks ? at[2 * each + 1] : T(0), at[0]) * j.inverse;
        }
        __syncwarp();
        if (thread < each) {
            constexpr int at_once = 2;  // loads that do not wait for each other
            T* const at = gathered + 2 * thread;
            T gamma = 0, follows = 0;
#pragma unroll 1
            for (int s = 0; s < blocks; s += at_once) {
                T g[at_once], lower[at_once];
#pragma unroll
                for (int k = 0; k < at_once; ++k)
                    if (s + k < blocks) g[k] = at[2 * each * (s + k)], lower[k] = join[s + k].lower;
#pragma unroll
                for (int k = 0; k < at_once; ++k)
                    if (s + k < blocks) at[2 * each * (s + k)] = gamma = fused(-lower[k], gamma, g[k]);
            }
#pragma unroll 1
            for (int s = blocks - 1; s >= 0; s -= at_once) {
                T g[at_once], upper[at_once];
#pragma unroll
                for (int k = 0; k < at_once; ++k)
                    if (s >= k) g[k] = at[2 * each * (s - k)], upper[k] = join[s - k].upper;
#pragma unroll
                for (int k = 0; k < at_once; ++k)
                    if (s >= k) {
                        follows = fused(-upper[k], follows, g[k]);
                        at[2 * each * (s - k)] = follows;
                        if (s - k + 1 < blocks) at[2 * each * (s - k + 1) + 1] = follows;
                    }
            }
            at[1] = 0;
        }
        __syncwarp();
        // A block's pair may be overwritten by that block as soon as it has what is sent for it.
#pragma unroll 1
        for (int k = thread - warp; k < pairs; k += 32) {
            const int b = k >> here, c = warp + k - (b << here);
            const T* const at = gathered + 2 * ((b << shift) + c);
            send(in_block(shared_address(results + 2 * ((rank << shift) + c)), b), at[0], at[1], in_block(told, b));
        }
    }
};

}  // namespace trifold::cuda
