// SPDX-License-Identifier: BSD-3-Clause
// What the warps of one column tell each other, in one block or in a cluster of them: once per column six words each, once whether
// the rows are good. Every warp reads what all have told.
//
// A message lies in the shared memory of every block, in one of two places by turns, with a barrier (mbarrier) that counts what has
//   come: in a single block the warps that arrive, in a cluster the bytes that `st.async` brings, which nobody waits for but the
//   readers. A place is written again two columns later, when a barrier between tells that all have read it.
#pragma once

#include "backends/cuda/tridiagonal/block/rows_copy.cuh"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda {

template <class T>
struct Exchange {
    unsigned barriers;  ///< address in shared memory
    int memory;         ///< offset of relations [2][parts][6] on a 16-byte boundary, behind them verdicts [2][parts] and tickets [2]
    int parts, blocks;
    bool spares_cache = false;  ///< see await

    __device__ __forceinline__ T* relation_of(unsigned turn, int part) const {
        return in_shared<T>(memory) + (static_cast<int>(turn) * parts + part) * 6;
    }
    __device__ __forceinline__ unsigned* verdict_of(unsigned turn, int part) const {
        return in_shared<unsigned>(memory + 12 * parts * static_cast<int>(sizeof(T))) + static_cast<int>(turn) * parts + part;
    }

    __device__ __forceinline__ Arrival related(unsigned turn) const { return {barriers + 8 * turn}; }
    __device__ __forceinline__ Arrival judged(unsigned turn) const { return {barriers + 16 + 8 * turn}; }

    __device__ __forceinline__ unsigned* ticket_of(unsigned turn) const { return verdict_of(2, 0) + turn; }

    /// What another block has stored is seen at the price of what the first-level cache holds, registers' among it: not where there is one block, if asked to.
    __device__ __forceinline__ void await(const Arrival& arrival, unsigned parity) const {
        if (spares_cache && blocks == 1) arrival.wait(parity);
        else arrival.wait_cluster(parity);
    }

    /// By one thread of every block.
    __device__ __forceinline__ void prepare(int warps) const {
        for (unsigned turn = 0; turn < 2; ++turn) {
            related(turn).prepare(blocks > 1 ? 1 : warps), judged(turn).prepare(blocks > 1 ? 1 : warps);
            if (blocks > 1) rearm_relations(turn), rearm_verdicts(turn);
        }
    }
    __device__ __forceinline__ void rearm_relations(unsigned turn) const { related(turn).expect(static_cast<unsigned>(parts * 6 * sizeof(T)) + 4); }
    __device__ __forceinline__ void rearm_verdicts(unsigned turn) const { judged(turn).expect(static_cast<unsigned>(parts) * 4); }

    /// ticket: of part 0's lane 0, for everybody.
    __device__ __forceinline__ void tell(unsigned turn, int me, const Relation<T>& first, const Relation<T>& last, unsigned ticket, int lane) const {
        if (me == 0) ticket = __shfl_sync(~0u, ticket, 0);
        T* const to = relation_of(turn, me);
        if (blocks > 1) {
            if (lane < blocks) {
                const unsigned there = in_block(shared_address(to), lane), barrier = in_block(related(turn).barrier, lane);
                send(there, last.a, last.c, barrier);
                send(there + 2 * sizeof(T), last.d, first.a, barrier);
                send(there + 4 * sizeof(T), first.c, first.d, barrier);
                if (me == 0) send(in_block(shared_address(ticket_of(turn)), lane), ticket, barrier);
            }
        } else if (lane == 0) {
            to[0] = last.a, to[1] = last.c, to[2] = last.d, to[3] = first.a, to[4] = first.c, to[5] = first.d;
            if (me == 0) *ticket_of(turn) = ticket;
            related(turn).arrive();
        }
    }
    /// Lane l < parts: those of warp l, else zeros. Returns the ticket. `armer`: one warp of the block.
    __device__ __forceinline__ unsigned hear(unsigned turn, unsigned parity, bool armer, Relation<T>& first, Relation<T>& last, int lane) const {
        await(related(turn), parity);
        if (blocks > 1 && armer && lane == 0) rearm_relations(turn);
        const T* const from = relation_of(turn, lane);
        first = last = {T(0), T(0), T(0)};
        if (lane < parts) last = {from[0], from[1], from[2]}, first = {from[3], from[4], from[5]};
        return *ticket_of(turn);
    }

    __device__ __forceinline__ void judge(unsigned turn, int me, bool good, int lane) const {
        unsigned* const to = verdict_of(turn, me);
        if (blocks > 1) {
            if (lane < blocks) send(in_block(shared_address(to), lane), static_cast<unsigned>(good), in_block(judged(turn).barrier, lane));
        } else if (lane == 0) {
            *to = good;
            judged(turn).arrive();
        }
    }
    /// Whether all are good.
    __device__ __forceinline__ bool agree(unsigned turn, unsigned parity, bool armer, int lane) const {
        await(judged(turn), parity);
        if (blocks > 1 && armer && lane == 0) rearm_verdicts(turn);
        return __all_sync(~0u, lane >= parts || *verdict_of(turn, lane));
    }
};

}  // namespace trifold::cuda
