// SPDX-License-Identifier: BSD-3-Clause
// SPIKE with the truncated reduced system: the far tips of the spikes are neglected, which leaves one 2 × 2 system per pair
// of neighbouring blocks, for the last unknown of the upper one and the first of the lower one. Source: see spikes.hpp.
//
// Theorem used. With v = right(last of k), w = left(first of k+1), the exact pair (x_l, x_f) satisfies
//   M (x_l, x_f) = (g_l, g_f) - (left_l x_l', right_f x_f'),   M = [1 v; w 1],
// x_l', x_f' being the neighbouring pairs' tips. Let c = |M^-1| in the maximum norm and s = max(|left_l|, |right_f|) of a pair,
// E its error, x^ the computed tips. Then E ≤ c (max(|left_l x^_l'|, |right_f x^_f'|) + s E'), E' a neighbour's error. Where
// q = max c s < 1, every E ≤ E* = max c max(…) / (1 - q), and once more with E* for E'. Row i of block k then differs by at most
// |left[i]| E(k-1) + |right[i]| E(k), which must be ≤ tolerance · max|x^| of its block. So decay (left_l, right_f), the size of
// what is neglected (x^) and growth (c, left[i], right[i]) all count; rounding is bounded apart, see error_bound.hpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "backends/reference/tridiagonal/spikes.hpp"

namespace trifold::tridiagonal::reference {

/// Tips of the pair between block k and the next one, its error bound and the two quantities that the bound needs.
template <class T>
struct Pair {
    T last = 0, first = 0;
    double inverse = 0, far = 0, error = 0;
};

template <class T>
Verdict truncated_spike(Ring<T> ring, bool periodic, double tolerance, Scratch scratch) {
    const Bands<T>& s = ring.bands;
    const std::int64_t n = s.rows();
    const Partition partition = spike_partition(n);
    const std::int64_t blocks = partition.chunks(), pairs = periodic ? blocks : blocks - 1;
    const Spikes<T> spikes{scratch.take<T>(n), scratch.take<T>(n)};
    const std::span<Pair<T>> pair = scratch.take<Pair<T>>(blocks + 1);
    if (const Verdict verdict = make_spikes(ring, partition, spikes, scratch); !verdict.good()) return verdict;

    // Neighbours on the ring; without one, the pair of zeros at the end.
    const auto above = [&](std::int64_t k) -> Pair<T>& { return pair[k > 0 ? k - 1 : periodic ? pairs - 1 : blocks]; };
    const auto below = [&](std::int64_t k) -> Pair<T>& { return pair[k + 1 < pairs ? k + 1 : periodic ? 0 : blocks]; };
    const auto next_first = [&](std::int64_t k) { return partition.first(k + 1 < blocks ? k + 1 : 0); };
    double q = 0, worst = 0;
    for (std::int64_t k = 0; k < pairs; ++k) {
        const std::int64_t l = partition.last(k), f = next_first(k);
        // A single block on a ring meets itself: both its couplings enter, and nothing is neglected.
        const T alone_l = blocks == 1 ? spikes.left[l] : T{0}, alone_f = blocks == 1 ? spikes.right[f] : T{0};
        const T v = spikes.right[l], w = spikes.left[f], ll = 1 + alone_l, ff = 1 + alone_f;
        const T determinant = ll * ff - v * w;
        if (determinant == 0) return {Reason::unstable, l};
        pair[k].last = (ff * s.x[l] - v * s.x[f]) / determinant;
        pair[k].first = (ll * s.x[f] - w * s.x[l]) / determinant;
        pair[k].inverse = std::max(std::abs(ff) + std::abs(v), std::abs(ll) + std::abs(w)) / std::abs(double{determinant});
        if (blocks == 1) continue;
        const bool has_above = periodic || k > 0, has_below = periodic || k + 1 < pairs;
        pair[k].far = std::max(has_above ? std::abs(spikes.left[l]) : T{0}, has_below ? std::abs(spikes.right[f]) : T{0});
        q = std::max(q, pair[k].inverse * pair[k].far);
    }
    const auto neglected = [&](std::int64_t k) {
        if (blocks == 1) return 0.0;
        const double up = std::abs(double{spikes.left[partition.last(k)]} * above(k).last);
        return std::max(up, std::abs(double{spikes.right[next_first(k)]} * below(k).first));
    };
    for (std::int64_t k = 0; k < pairs; ++k) worst = std::max(worst, pair[k].inverse * neglected(k));
    worst /= 1 - q;
    for (std::int64_t k = 0; k < pairs; ++k) pair[k].error = pair[k].inverse * (neglected(k) + pair[k].far * worst);

    for (std::int64_t k = 0; k < blocks; ++k) {
        const Pair<T>& up = above(k);
        const Pair<T>& down = k < pairs ? pair[k] : pair[blocks];
        double error = 0, largest = 0;
        for (std::int64_t i = partition.first(k); i <= partition.last(k); ++i) {
            s.x[i] -= spikes.left[i] * up.last + spikes.right[i] * down.first;
            error = std::max(error, std::abs(spikes.left[i]) * up.error + std::abs(spikes.right[i]) * down.error);
            largest = std::max(largest, std::abs(double{s.x[i]}));
        }
        if (!(q < 1 && error <= tolerance * largest)) return {Reason::not_certified, partition.first(k)};
    }
    return {Reason::certified};
}

}  // namespace trifold::tridiagonal::reference
