// SPDX-License-Identifier: BSD-3-Clause
// The general path: any layout, LU with partial pivoting, on chip or one thread per system. Exact, and the rescue of the fast paths.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Bytes of scratch for solve_pivoted. More of it lets more systems run at once; no more than this is used.
std::size_t pivoted_scratch(const tridiagonal::System& system);

/// Which systems are marked: a byte of theirs is not zero, in the order of system_at (last level fastest). `of_tiles`, where given, has one for every `per_tile`
/// systems: where that is zero, none of them is, whatever theirs say.
struct Marks {
    const unsigned char* of_systems = nullptr;
    const unsigned char* of_tiles = nullptr;
    unsigned per_tile = 1;

    Marks(const unsigned char* of_systems = nullptr, const unsigned char* of_tiles = nullptr, unsigned per_tile = 1)
        : of_systems(of_systems), of_tiles(of_tiles), per_tile(per_tile) {}
    explicit operator bool() const { return of_systems; }

#ifdef __CUDACC__
    /// Whether system k is marked; every one where there are no marks.
    __device__ __forceinline__ bool has(std::int64_t k) const { return !of_systems || ((!of_tiles || of_tiles[k / per_tile]) && of_systems[k]); }
#endif
};

/// Enqueues, like solve_batch. Where `marks` are given, only marked systems are solved, and those that turn out good are counted as rescued. A failed
/// system's x is not written. `marked`, where given, is how many marks are set: nothing is looked for where it is 0.
void solve_pivoted(const tridiagonal::System& system, const BatchLaunch& launch, const Marks& marks = {},
                   const unsigned long long* marked = nullptr);

/// All systems, where *wanted, in the device's memory, is not 0. False: they are neither many side by side nor what a cluster's shared memory has room for, and nothing was enqueued.
bool solve_all_on_chip(const tridiagonal::System& system, const BatchLaunch& launch, const unsigned long long* wanted);

}  // namespace trifold::cuda
