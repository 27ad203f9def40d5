// SPDX-License-Identifier: BSD-3-Clause
// LU with pivoting of systems in shared memory, each by 8 to all lanes of a block, a chunk each (pivoted_chunk.cuh).
//
// Array: [4][n], lower, diag, upper, rhs; lower[0] and upper[n-1] are zero. Left behind: x in place of rhs, the rest is overwritten.
// Who does what: a lane eliminates its chunk; lanes join their two equations pairwise, 2, 4, 8 … of them, all of a group the same arithmetic, and one of them keeps what the substitution
//   needs; groups of several warps meet in shared memory once. Then x comes back the same way.
// A step of a chunk waits for the latency of one reciprocal, a joint for two: n/lanes of the former, twice, log2(lanes) of the latter.
#pragma once

#include "backends/cuda/tridiagonal/pivoted_chunk.cuh"

namespace trifold::cuda {

template <class T>
__device__ __forceinline__ Equation<T> from_lane(const Equation<T>& e, int mask) {
    return {__shfl_xor_sync(~0u, e.before, mask), __shfl_xor_sync(~0u, e.first, mask), __shfl_xor_sync(~0u, e.last, mask),
            __shfl_xor_sync(~0u, e.after, mask),  __shfl_xor_sync(~0u, e.rhs, mask),   __shfl_xor_sync(~0u, e.origin, mask)};
}

/// Word by word: chosen as a whole, one of them would live in memory.
template <class T>
__device__ __forceinline__ Equation<T> either(bool first, const Equation<T>& a, const Equation<T>& b) {
    return {first ? a.before : b.before, first ? a.first : b.first, first ? a.last : b.last, first ? a.after : b.after, first ? a.rhs : b.rhs, first ? a.origin : b.origin};
}

/// Groups of `lanes` neighbours (a power of two) within a warp.
template <class T>
struct LaneTree {
    Joint<T> kept;
    int lane, lanes;

    __device__ __forceinline__ Equations<T> join(Equations<T> own, PivotRange<T>& range) {
#pragma unroll 1
        for (int step = 1; step < lanes; step *= 2) {
            const Equations<T> other{from_lane(own.a, step), from_lane(own.b, step)};
            const bool right = lane & step;
            Joint<T> joint;
            own = joint.eliminate({either(right, other.a, own.a), either(right, other.b, own.b)}, {either(right, own.a, other.a), either(right, own.b, other.b)}, range);
            if ((lane & (2 * step - 1)) == step) kept = joint;
        }
        return own;
    }

    /// From what a group has at its ends to what each lane has.
    __device__ __forceinline__ Ends<T> substitute(Ends<T> ends) const {
#pragma unroll 1
        for (int step = lanes / 2; step > 0; step /= 2) {
            T left_last, right_first;
            kept.substitute(ends, left_last, right_first);
            const int keeper = (lane & ~(2 * step - 1)) | step;
            left_last = __shfl_sync(~0u, left_last, keeper), right_first = __shfl_sync(~0u, right_first, keeper);
            if (lane & step) ends.before = left_last, ends.first = right_first;
            else ends.last = left_last, ends.after = right_first;
        }
        return ends;
    }
};

/// Which rows of its systems a block has: all, or those from `before` on. `room`: between its arrays.
struct BlockRows {
    int room, count, before, all;

    __device__ static __forceinline__ BlockRows whole(int n) { return {n, n, 0, n}; }
};

/// What is beyond a block's rows: nothing.
struct NothingBeyond {
    template <class T>
    __device__ __forceinline__ Ends<T> operator()(const Equations<T>& own, int, bool, PivotRange<T>& range) const {
        return solve_ends(own, range);
    }
};

/// By all threads of a block, the first `lanes` of them for the system at `systems`, the next ones for the one `pitch` further, `part` of them.
/// verdicts: of each the least of n + 1, n where it is left to another path, and the first row that is not finite; n + 1 on entry.
/// across: room for the equations of every warp. Short: 34 rows of a lane at most.
/// beyond(equations, system, whether to tell others, range): what is at the ends of the block's rows. By all threads.
template <bool Short, class T, class Beyond = NothingBeyond>
__device__ __forceinline__ void solve_by_lanes(T* systems, int pitch, const BlockRows& rows, int part, int lanes, int* verdicts, Equations<T>* across, const Beyond& beyond = {}) {
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, s = thread / lanes, place = thread - s * lanes;
    const bool active = s < part;
    // Odd, so that lanes read from different banks.
    const int each = (rows.count + lanes - 1) / lanes | 1, first = min(place * each, rows.count);
    PivotedChunk<T, Short> chunk{systems + (active ? s * pitch + first : 0), rows.room, active ? min(each, rows.count - first) : 0};
    PivotRange<T> range;
    int bad = rows.all;
    const Equations<T> own = chunk.reduce(bad, range);
    LaneTree<T> tree{{}, lane, min(lanes, 32)};
    const Equations<T> group = tree.join(own, range);
    Ends<T> ends;
    if (lanes <= 32) {
        ends = tree.substitute(beyond(group, s, active && place == 0, range));
    } else {
        const int warps = lanes / 32, warp = thread / 32, own_warp = warp & (warps - 1);
        if (lane == 0) across[warp] = group;
        __syncthreads();
        LaneTree<T> over{{}, lane & (warps - 1), warps};
        const Equations<T> all = over.join(across[warp - own_warp + over.lane], range);
        const Ends<T> of_warps = over.substitute(beyond(all, s, active && place == 0, range));
        ends = {__shfl_sync(~0u, of_warps.before, own_warp), __shfl_sync(~0u, of_warps.first, own_warp), __shfl_sync(~0u, of_warps.last, own_warp),
                __shfl_sync(~0u, of_warps.after, own_warp)};
        ends = tree.substitute(ends);
        __syncthreads();  // `across` may be written again
    }
    const bool good = chunk.finish(ends) && range.good;
    if (active && bad < rows.all) atomicMin(&verdicts[s], rows.before + first + bad);
    else if (active && !good) atomicMin(&verdicts[s], rows.all);
}

}  // namespace trifold::cuda
