// SPDX-License-Identifier: BSD-3-Clause
// Values change threads between line solves along different axes, some rows of the slab at a time: the rest is in registers.
//
// Why: a mesh and as many values between two line solves are two words per point, where shared memory has room for little more than one; registers of a
//   multiprocessor hold as much again. A turn moves the same rows of the slab for the line solve before and for the one after it, and of every thread as many
//   values out as in: lines within the slab are dealt so that a thread's k-th one lies in the rows of turn k, and lines through it are one segment,
//   whose rows those are. Which registers move is then known when it is compiled.
// Shared memory, words per point: 2, as without turns. Barriers: 2 per turn.
#pragma once

#include "backends/cuda/mesh/resident/place.cuh"

namespace trifold::cuda::resident {

struct InSharedMemory {};

/// What a thread has of its lines along an axis.
template <class P, int axis>
struct InRegisters {
    typename P::real value[Segment<P, axis>::count][Segment<P, axis>::rows];
};

/// `visit`(k, i, place in shared memory) for what a thread has of its lines in a turn.
template <class P, int axis, class Visit>
__device__ __forceinline__ void each_of_turn(const Segment<P, axis>& own, int turn, Visit visit) {
    using Own = Segment<P, axis>;
    constexpr int slab = P::plan.slab(), C = P::plan.turn_rows;
#pragma unroll
    for (int k = 0; k < Own::count; ++k) {
        if (axis != slab && k != turn) continue;
        const int at = P::plan.between() + own.x[k][0] + own.x[k][1] * P::plan.between_stride(1) + own.x[k][2] * P::plan.between_stride(2) - turn * C * P::plan.between_stride(slab);
#pragma unroll
        for (int i = 0; i < Own::rows; ++i)
            if ((axis != slab || i / C == turn) && own.has(k, i)) visit(k, i, at + i * P::plan.between_stride(axis));
    }
}

template <class P, int from, int to>
__device__ __forceinline__ void change_threads(const Place<P>& place, const Segment<P, from>& own, const typename P::real (&d)[Segment<P, from>::count][Segment<P, from>::rows], InRegisters<P, to>& after) {
    static_assert(P::plan.takes_turns());
    if constexpr (from == to) {
#pragma unroll
        for (int k = 0; k < Segment<P, to>::count; ++k)
#pragma unroll
            for (int i = 0; i < Segment<P, to>::rows; ++i) after.value[k][i] = d[k][i];
    } else {
        const Segment<P, to> next(place.rank);
        block_barrier();  // ends of segments lie here
#pragma unroll
        for (int turn = 0; turn < P::plan.turns(); ++turn) {
            each_of_turn<P, from>(own, turn, [&](int k, int i, int at) { place.memory[at] = d[k][i]; });
            block_barrier();
            each_of_turn<P, to>(next, turn, [&](int k, int i, int at) { after.value[k][i] = place.memory[at]; });
            block_barrier();
        }
    }
}

}  // namespace trifold::cuda::resident
