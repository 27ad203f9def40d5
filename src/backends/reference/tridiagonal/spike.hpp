// SPDX-License-Identifier: BSD-3-Clause
// SPIKE with the full reduced system: the first and last unknown of every block, 2 per block, in a band of two diagonals
// on each side that is solved with partial pivoting. Source: see spikes.hpp.
//
//   block k: x_f + left_f x_l(k-1) + right_f x_f(k+1) = g_f,   x_l + left_l x_l(k-1) + right_l x_f(k+1) = g_l
//
// As stable as its worst block is well conditioned: a nearly singular block of a regular matrix spoils the result, which
// the residual shows.
#pragma once

#include "backends/reference/tridiagonal/banded_lu.hpp"
#include "backends/reference/tridiagonal/spikes.hpp"

namespace trifold::tridiagonal::reference {

template <class T>
Verdict spike(Bands<T> s, Scratch scratch) {
    const std::int64_t n = s.rows();
    const Partition partition = spike_partition(n);
    const std::int64_t blocks = partition.chunks();
    const Spikes<T> spikes{scratch.take<T>(n), scratch.take<T>(n)};
    Banded<T> reduced{scratch.take<T>(2 * blocks * Banded<T>::width)};
    const std::span<T> tips = scratch.take<T>(2 * blocks);
    if (const Verdict verdict = make_spikes(Ring<T>{s}, partition, spikes, scratch); !verdict.good()) return verdict;

    for (std::int64_t k = 0; k < blocks; ++k) {
        const std::int64_t ends[] = {partition.first(k), partition.last(k)};
        for (int end = 0; end < 2; ++end) {
            const std::int64_t row = 2 * k + end;
            reduced(row, row) = 1;
            if (k > 0) reduced(row, 2 * k - 1) = spikes.left[ends[end]];
            if (k + 1 < blocks) reduced(row, 2 * k + 2) = spikes.right[ends[end]];
            tips[row] = s.x[ends[end]];
        }
    }
    if (const std::int64_t row = solve_banded(reduced, tips); row >= 0) {
        const std::int64_t k = row / 2;
        return {Reason::unstable, row % 2 ? partition.last(k) : partition.first(k)};
    }
    for (std::int64_t k = 0; k < blocks; ++k) {
        const T above = k > 0 ? tips[2 * k - 1] : T{0}, below = k + 1 < blocks ? tips[2 * k + 2] : T{0};
        for (std::int64_t i = partition.first(k); i <= partition.last(k); ++i)
            s.x[i] -= spikes.left[i] * above + spikes.right[i] * below;
    }
    return {};
}

}  // namespace trifold::tridiagonal::reference
