// SPDX-License-Identifier: BSD-3-Clause
// The part that full and truncated SPIKE share: A = D S with D the diagonal blocks of a partition. Each block is factored
// with partial pivoting and solved for its right-hand side and for its two couplings, which gives per block
//
//   x[i] + left[i] x[first-1] + right[i] x[last+1] = g[i]
//
// Source: E. Polizzi and A. H. Sameh, A parallel hybrid banded system solver: the SPIKE algorithm, Parallel Computing 32, 2006.
#pragma once

#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/lu.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal::reference {

/// Rows of a block: long enough for an entry to die out where truncation makes sense at all.
inline constexpr std::int64_t spike_rows = 128;

inline Partition spike_partition(std::int64_t rows) { return {rows, rows < spike_rows ? rows : spike_rows}; }

template <class T>
struct Spikes {
    std::span<T> left, right;
};

/// Replaces s.x by g. A singular block is `unstable`: the matrix may be regular. The couplings of the first block upwards
/// and of the last block downwards are those of the ring.
template <class T>
Verdict make_spikes(Ring<T> ring, const Partition& partition, Spikes<T> spikes, Scratch scratch) {
    const Bands<T>& s = ring.bands;
    for (std::int64_t k = 0; k < partition.chunks(); ++k) {
        const std::int64_t first = partition.first(k), last = partition.last(k), count = last - first + 1;
        spikes.left[first] = k > 0 ? s.lower[first] : ring.top_right;
        spikes.right[last] = k + 1 < partition.chunks() ? s.upper[last] : ring.bottom_left;
        Scratch local = scratch;
        const Bands<T> block = s.part(first, count);
        const LU<T> f = lu_of(block, local);
        if (const std::int64_t row = factor(f); row >= 0) return {Reason::unstable, first + row};
        solve(f, block.x);
        solve(f, spikes.left.subspan(first, count));
        solve(f, spikes.right.subspan(first, count));
    }
    return {};
}

}  // namespace trifold::tridiagonal::reference
