// SPDX-License-Identifier: BSD-3-Clause
// Systems that the blocks of a cluster share, so many rows each: what is beyond a block's rows.
//
// A block's lanes leave two equations of each of its systems (pivoted_lanes.cuh). Every block writes its own, reads those of all others, and joins them as lanes join theirs, all of them the same arithmetic. So
//   a cluster meets once for a set of systems, and once more to agree on what became of them.
#pragma once

#include "backends/cuda/tridiagonal/block/cluster.cuh"
#include "backends/cuda/tridiagonal/pivoted_lanes.cuh"

namespace trifold::cuda {

/// Of what all blocks have there.
__device__ __forceinline__ int least_in_cluster(const int* mine, int blocks) {
    int least = *mine;
    for (int b = 0; b < blocks; ++b) least = min(least, *of_block(mine, b));
    return least;
}

/// For solve_by_lanes. slots: of each system, the equations of this block.
template <class T>
struct RowsOfOthers {
    Equations<T>* slots;
    int systems, blocks;

    __device__ __forceinline__ Ends<T> operator()(const Equations<T>& own, int s, bool tells, PivotRange<T>& range) const {
        if (tells) slots[s] = own;
        meet_in_cluster();
        const int lane = static_cast<int>(threadIdx.x) & 31;
        LaneTree<T> tree{{}, lane, blocks};
        const Equations<T> all = tree.join(*of_block(slots + min(s, systems - 1), lane & (blocks - 1)), range);
        const Ends<T> ends = tree.substitute(solve_ends(all, range));
        const int mine = (lane & ~(blocks - 1)) | static_cast<int>(rank_in_cluster());
        return {__shfl_sync(~0u, ends.before, mine), __shfl_sync(~0u, ends.first, mine), __shfl_sync(~0u, ends.last, mine), __shfl_sync(~0u, ends.after, mine)};
    }
};

}  // namespace trifold::cuda
