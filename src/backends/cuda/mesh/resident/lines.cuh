// SPDX-License-Identifier: BSD-3-Clause
// A line solve on chip: segments of lines in registers, the matrix eliminated beforehand (factors.hpp), the segments' last rows joined
// by the inverse of their matrix.
//
//   y[i] = inverse[i] d[i] - lower[i] y[i-1],  z = sum reach[i] y[i]            forwards
//   x[last of s] = sum over j of G[s][j] (y[last of j] - coupling[j] z[j+1])     the join
//   x[i] = y[i] - fill[i] x[before] - upper[i] x[i+1]                            backwards
//
// Where a line is one segment and no ring there is no join, and the last row is as the others are.
// Per point: 5 multiply-adds (3 without a join), 5/4 (doubles: 5/2) loads of 16 bytes that all lanes share.
#pragma once

#include "backends/cuda/mesh/resident/numbers.hpp"
#include "backends/cuda/mesh/resident/place.cuh"

namespace trifold::cuda::resident {

template <class P, int l>
class LineSolver {
    using real = typename P::real;
    static constexpr int axis = P::plan.line[l].axis, R = P::plan.cut[axis].rows, V = P::plan.vector, padded = P::plan.padded_rows(axis);
    static constexpr bool joined = P::plan.joined(l), across = P::plan.crosses(axis), shared = P::plan.shared(axis), ring = P::plan.line[l].ring, ends = P::plan.line[l].ends;
    using Own = Segment<P, axis>;
    static constexpr int K = Own::count, S = P::plan.segments(axis), lines = P::plan.lines_along(axis);

public:
    __device__ __forceinline__ LineSolver(const Place<P>& place, const Own& own, const Numbers<real>& numbers) : place_(place), own_(own), numbers_(numbers) {
        const int stored = !P::plan.alike(l) ? own.own : own.number == 0 ? 0 : own.last() ? 2 : 1;
        factors_ = place.memory + P::plan.factors(l) + stored * P::plan.segment_size(axis);
    }

    /// `right`(k, i): the right-hand side at point i of the k-th line. d becomes y.
    template <class Right>
    __device__ __forceinline__ void forwards(real (&d)[K][R], Right right) {
#pragma unroll
        for (int k = 0; k < K; ++k) first_[k] = 0;
#pragma unroll
        for (int c = 0; c < R; c += V) {
            real inverse[V], lower[V], reach[V];
            load_vector(factors_ + c, inverse), load_vector(factors_ + padded + c, lower);
            if (joined) load_vector(factors_ + 2 * padded + c, reach);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int i = c + v;
                if (i >= R) break;
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    real value = 0;
                    if (own_.has(k, i)) value = right(k, i);
                    if (ends && i == 0 && own_.number == 0) value -= numbers_.ends[l][0];
                    if (ends && (i == R - 1 || i == Own::last_rows - 1) && own_.last() && i == Own::last_rows - 1) value -= numbers_.ends[l][1];
                    d[k][i] = i > 0 ? multiply_add(-lower[v], d[k][i > 0 ? i - 1 : 0], value * inverse[v]) : value * inverse[v];
                    if (joined && i < R - 1) first_[k] = multiply_add(reach[v], d[k][i], first_[k]);
                }
            }
        }
    }

    /// Between forwards and backwards: all threads of the block, or the cluster.
    __device__ __forceinline__ void join(const real (&d)[K][R]) {
        if constexpr (!joined) return;
        real last[K];
#pragma unroll
        for (int k = 0; k < K; ++k) {
            last[k] = d[k][R - 1];
            if (Own::last_rows < R && own_.last()) last[k] = d[k][Own::last_rows - 1];
        }
        if constexpr (across) join_across(last);
        else join_in_block(last);
    }

    /// x of rows c … c + V - 1, downwards; d[k][i] = x.
    __device__ __forceinline__ void backwards(real (&d)[K][R], int c) {
        real upper[V], fill[V];
        load_vector(factors_ + 3 * padded + c, upper);
        if (joined) load_vector(factors_ + 4 * padded + c, fill);
#pragma unroll
        for (int v = V - 1; v >= 0; --v) {
            const int i = c + v;
            if (i >= R) continue;
#pragma unroll
            for (int k = 0; k < K; ++k) {
                if (joined) {
                    real x = last_[k];
                    if (i < R - 1) x = multiply_add(-upper[v], d[k][i < R - 1 ? i + 1 : i], multiply_add(-fill[v], before_[k], d[k][i]));
                    if (Own::last_rows < R && i == Own::last_rows - 1 && own_.last()) x = last_[k];
                    d[k][i] = x;
                } else if (i < R - 1) {
                    d[k][i] = multiply_add(-upper[v], d[k][i < R - 1 ? i + 1 : i], d[k][i]);
                }
            }
        }
    }

private:
    static constexpr int padded_segments = P::plan.padded_segments(axis);
    __device__ __forceinline__ const real* coupling() const { return place_.memory + P::plan.factors(l) + P::plan.own_factors(l) * P::plan.segment_size(axis); }
    __device__ __forceinline__ const real* inverse_row(int s) const { return coupling() + (1 + s) * padded_segments; }

    __device__ __forceinline__ void join_in_block(const real (&last)[K]) {
        constexpr int y_at = shared ? P::plan.ends_shared() : P::plan.ends(), z_at = y_at + S * lines;
        const real *const y = place_.memory + y_at, *const z = place_.memory + z_at;
        if (shared && P::plan.joined_before(l)) cluster_barrier();  // others may still look there
#pragma unroll
        for (int b = 0; b < P::plan.blocks_along(axis); ++b) {
            const Elsewhere<real> to(place_.memory, shared ? place_.beside(axis, b) : place_.rank);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                if (!own_.there[k]) continue;
                const int at = own_.number * lines + own_.line[k];
                if constexpr (shared) to.store(y_at + at, last[k]), to.store(z_at + at, first_[k]);
                else place_.memory[y_at + at] = last[k], place_.memory[z_at + at] = first_[k];
            }
        }
        if (shared) cluster_barrier();
        else block_barrier();
        const bool has_before = ring || own_.number > 0;
        const real *const row = inverse_row(own_.number), *const row_before = inverse_row(own_.number > 0 ? own_.number - 1 : S - 1);
#pragma unroll
        for (int k = 0; k < K; ++k) last_[k] = before_[k] = 0;
#pragma unroll
        for (int c = 0; c < S; c += V) {
            real coupled[V], g[V], g_before[V];
            load_vector(coupling() + c, coupled), load_vector(row + c, g), load_vector(row_before + c, g_before);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int j = c + v;
                if (j >= S) break;
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    real value = y[j * lines + own_.line[k]];
                    if (ring || j + 1 < S) value = multiply_add(-coupled[v], z[(j + 1 < S ? j + 1 : 0) * lines + own_.line[k]], value);
                    last_[k] = multiply_add(g[v], value, last_[k]);
                    before_[k] = multiply_add(g_before[v], value, before_[k]);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < K; ++k)
            if (!has_before) before_[k] = 0;
    }

    // Every block joins some of the lines.
    __device__ __forceinline__ void join_across(const real (&last)[K]) {
        constexpr int owned = P::plan.owned(axis), own_segments = Own::own_segments;
        constexpr int y_at = P::plan.ends_across(), z_at = y_at + S * owned;
        constexpr int after_at = P::plan.between(), before_at = after_at + own_segments * lines;  // x[last] of own segments; of the ones before
        real* const y = place_.memory + y_at;
        const real* const z = place_.memory + z_at;
        if (P::plan.fetches(axis) && P::plan.joined_before(l)) cluster_barrier();  // others may still fetch from there
#pragma unroll
        for (int k = 0; k < K; ++k) {
            if (!own_.there[k]) continue;
            const int at = own_.number * owned + own_.line[k] % owned;
            const Elsewhere<real> owner(place_.memory, place_.beside(axis, own_.line[k] / owned));
            owner.store(y_at + at, last[k]), owner.store(z_at + at, first_[k]);
        }
        cluster_barrier();
        constexpr int groups = P::plan.joiners(axis), each = ceiling(S, groups);
#pragma unroll 1
        for (int q = thread_number(); q < owned * groups; q += P::plan.threads) {
            const int at = q % owned, line = place_.along(axis) * owned + at, first = q / owned * each;
            if (line >= lines) continue;
            real x[each];
#pragma unroll
            for (int e = 0; e < each; ++e) x[e] = 0;
#pragma unroll
            for (int c = 0; c < S; c += V) {
                real coupled[V], g[V];
                load_vector(coupling() + c, coupled);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    const int j = c + v;
                    if (j >= S) break;
                    g[v] = y[j * owned + at];
                    if (ring || j + 1 < S) g[v] = multiply_add(-coupled[v], z[(j + 1 < S ? j + 1 : 0) * owned + at], g[v]);
                }
#pragma unroll
                for (int e = 0; e < each; ++e) {
                    real row[V];
                    load_vector(inverse_row(first + e < S ? first + e : S - 1) + c, row);
#pragma unroll
                    for (int v = 0; v < V; ++v)
                        if (c + v < S) x[e] = multiply_add(row[v], g[v], x[e]);
                }
            }
#pragma unroll
            for (int e = 0; e < each; ++e) {
                const int s = first + e;
                if (s >= S) break;
                if (P::plan.fetches(axis)) {
                    y[s * owned + at] = x[e];
                    continue;
                }
                Elsewhere<real>(place_.memory, place_.beside(axis, s / own_segments)).store(after_at + s % own_segments * lines + line, x[e]);
                const int next = s + 1 < S ? s + 1 : 0;
                if (ring || s + 1 < S) Elsewhere<real>(place_.memory, place_.beside(axis, next / own_segments)).store(before_at + next % own_segments * lines + line, x[e]);
            }
        }
        cluster_barrier();
#pragma unroll
        for (int k = 0; k < K; ++k) {
            if constexpr (P::plan.fetches(axis)) {
                const Elsewhere<real> owner(place_.memory, place_.beside(axis, own_.line[k] / owned));
                const int at = y_at + own_.line[k] % owned, previous = own_.number > 0 ? own_.number - 1 : S - 1;
                last_[k] = owner.load(at + own_.number * owned);
                before_[k] = ring || own_.number > 0 ? owner.load(at + previous * owned) : real(0);
                continue;
            }
            last_[k] = place_.memory[after_at + own_.own * lines + own_.line[k]];
            before_[k] = ring || own_.number > 0 ? place_.memory[before_at + own_.own * lines + own_.line[k]] : real(0);
        }
    }

    const Place<P>& place_;
    const Own& own_;
    const Numbers<real>& numbers_;
    const real* factors_;
    real first_[K], last_[K], before_[K];
};

}  // namespace trifold::cuda::resident
