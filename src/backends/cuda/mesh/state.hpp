// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of a run of sweeps find out, in the device's memory: changed by atomics whose order does not matter, read back
// when the run is done. Sweeps are numbered through the whole run: step × sweeps per step + sweep.
#pragma once

#include <cstdint>

namespace trifold::cuda {

struct MeshState {
    static constexpr unsigned long long none = ~0ull;

    unsigned long long failed_at = none;   ///< the sweep in which lines have failed: none runs after it
    unsigned long long refused_at = none;  ///< the sweep before which a kind of kernels gives up, its targets being stored up to there
    unsigned long long first[2] = {none, none};  ///< least key of a failure, in even and in odd sweeps: groups of meshes may be a sweep apart, and only those of failed_at count
    unsigned long long failures[2] = {0, 0};     ///< lines without a solution
    unsigned long long rescued = 0;        ///< lines that needed pivots

    /// Line solves of a sweep count first, then points ((mesh z + z) y + y) x + x. reason: minus that of trifold::Reason. `exact`: the row is
    /// known, else the point is its line's first one.
    static constexpr unsigned long long key(int line, std::int64_t point, bool exact, int reason) {
        return (static_cast<unsigned long long>(line) << 56) | (static_cast<unsigned long long>(point) << 4) | (exact ? 0u : 8u) | static_cast<unsigned long long>(reason);
    }
};

#ifdef __CUDACC__
__device__ __forceinline__ bool runs(const MeshState* state, unsigned long long sweep) {
    // Both are on their way at the same time.
    const unsigned long long failed = *reinterpret_cast<const volatile unsigned long long*>(&state->failed_at), refused = *reinterpret_cast<const volatile unsigned long long*>(&state->refused_at);
    return failed >= sweep && refused > sweep;
}

__device__ __forceinline__ void report_line(MeshState* state, unsigned long long sweep, unsigned long long key) {
    if (atomicMin(&state->failed_at, sweep) < sweep) return;  // what follows it does not count
    atomicMin(&state->first[sweep & 1], key);
    atomicAdd(&state->failures[sweep & 1], 1ull);
}
#endif

}  // namespace trifold::cuda
