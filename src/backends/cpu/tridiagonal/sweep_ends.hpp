// SPDX-License-Identifier: BSD-3-Clause
// The rows before the first stretch and after the last one, fewer than a tile holds, in plain loops; and the way back: x in
// place becomes the right-hand side that it solves.
#pragma once

#include <omp.h>

#include <cmath>

#include "backends/cpu/tridiagonal/sweep_job.hpp"

namespace trifold::cpu {

inline int thread_number() { return omp_get_thread_num(); }

/// Elimination of rows first … last from the state c, d of the row before; c', d' go to out. `forward` is the sum 1 + t_i (1 + t_{i-1} (…)) at the row before.
template <class T>
void eliminate_end(const SweepArrays<T>& arrays, std::int64_t first, std::int64_t last, T c, T d, double forward, T* out, tridiagonal::EndBound& bound) {
    for (std::int64_t i = 0; i <= last - first; ++i) {
        const T a = arrays.at(0, first + i), inverse = 1 / std::fma(-a, c, arrays.at(1, first + i));
        d = std::fma(-a, d, arrays.at(3, first + i)) * inverse;
        c = arrays.at(2, first + i) * inverse;
        forward = 1 + std::abs(static_cast<double>(a * inverse)) * forward;
        out[3 * i] = c, out[3 * i + 1] = d, out[3 * i + 2] = static_cast<T>(forward * 1.001);
        bound.largest_c = std::fmax(bound.largest_c, std::abs(static_cast<double>(c)));
    }
}

/// Substitution from the system's row last+1, which is x_next.
template <class T>
void substitute_end(const SweepArrays<T>& arrays, std::int64_t first, std::int64_t last, T x_next, const T* out, tridiagonal::EndBound& bound) {
    double sum = 0, product = 1;
    for (std::int64_t i = last - first; i >= 0; --i) {
        const double here = std::abs(static_cast<double>(out[3 * i]));
        sum = static_cast<double>(out[3 * i + 2]) + here * sum;
        product *= here;
        bound.sum = std::fmax(bound.sum, sum);
        bound.product = std::fmax(bound.product, product);
        arrays.x[first + i] = x_next = std::fma(-out[3 * i], x_next, out[3 * i + 1]);
        bound.max = std::fmax(bound.max, std::abs(static_cast<double>(x_next)));
        if (!std::isfinite(x_next)) bound.max = INFINITY;
    }
}

/// False where a |c'| is beyond what is accepted: then nothing is stored here, and in place what lies there is the right-hand side.
template <class T>
bool sweep_ends(SweepJob<T>& job, tridiagonal::SweepResult& result) {
    const std::int64_t lanes = job.cut.lanes, tail = job.cut.tail(), rows = job.arrays.rows;
    const T c = job.ends[lanes - 1], d = job.ends[2 * lanes - 1];
    T *const of_tail = job.ends + 2 * lanes, *const of_head = of_tail + 3 * (rows - tail);
    eliminate_end(job.arrays, tail, rows - 1, c, d, job.bounds[job.cut.stretches() - 1].end_sum, of_tail, result.tail);
    eliminate_end(job.arrays, 0, job.cut.first - 1, T(0), T(0), 0.0, of_head, result.head);
    const bool head_grows = result.head.largest_c > job.cut.growth;
    if (head_grows || result.tail.largest_c > job.cut.growth) {
        result.stop = tridiagonal::SweepStop::growth, result.row = head_grows ? 0 : tail;
        return false;
    }
    substitute_end(job.arrays, tail, rows - 1, T(0), of_tail, result.tail);
    substitute_end(job.arrays, 0, job.cut.first - 1, job.arrays.x[job.cut.first], of_head, result.head);
    result.tail.near = static_cast<double>(job.arrays.x[tail]);
    result.head.near = static_cast<double>(job.arrays.x[job.cut.first - 1]);
    return true;
}

/// x[first … last] ← the right-hand side it solves where `before` and `after` are the x beside it.
template <class T>
void restore_rows(const SweepArrays<T>& arrays, std::int64_t first, std::int64_t last, T before, T after) {
    for (std::int64_t i = first; i <= last; ++i) {
        const T here = arrays.x[i], next = i < last ? arrays.x[i + 1] : after;
        arrays.x[i] = arrays.at(0, i) * before + arrays.at(1, i) * here + arrays.at(2, i) * next;
        before = here;
    }
}

/// While the stretches still hold x.
template <class T>
void restore_ends(const SweepJob<T>& job) {
    const std::int64_t lanes = job.cut.lanes, tail = job.cut.tail();
    restore_rows(job.arrays, 0, job.cut.first - 1, T(0), job.arrays.x[job.cut.first]);
    const T before = job.ends[2 * lanes - 1] - job.ends[lanes - 1] * job.arrays.x[tail];
    restore_rows(job.arrays, tail, job.arrays.rows - 1, before, T(0));
}

/// Every stored block, from the x that its own elimination and substitution saw beside it.
template <class T>
void restore_groups(const SweepJob<T>& job, int threads) {
    const auto& cut = job.cut;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (std::int64_t group = 0; group < cut.groups; ++group)
        for (std::int64_t lane = 0; lane < cut.lanes; ++lane)
            for (std::int64_t block = 0; block < job.stored[group]; ++block) {
                const T* const beside = job.repair_of(group, block) + lane;
                const std::int64_t start = cut.group_start(group) + lane * cut.length_in(group);
                const std::int64_t first = start + cut.block_start(group, block), last = start + cut.block_start(group, block + 1) - 1;
                const T before = beside[cut.lanes] - beside[0] * job.arrays.x[first];
                restore_rows(job.arrays, first, last, before, beside[2 * cut.lanes]);
            }
}

}  // namespace trifold::cpu
