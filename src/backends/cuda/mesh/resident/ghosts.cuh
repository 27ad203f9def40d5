// SPDX-License-Identifier: BSD-3-Clause
// Values beyond the sides and beyond a block's slab, from the points that they mirror or that other blocks have.
#pragma once

#include "backends/cuda/mesh/resident/place.cuh"
#include "backends/cuda/mesh/views.hpp"

namespace trifold::cuda::resident {

/// Where the values beyond a side come from.
template <class P, int f, int axis>
struct Beyond {
    using real = typename P::real;
    static constexpr FieldPlan field = P::plan.field[f];
    static constexpr int apart = P::plan.stride(f, axis), last = P::plan.blocks_along(axis) - 1;

    real* memory;
    Elsewhere<real> neighbour;
    int n, rows;    ///< points of a line in this block, and in the neighbour
    bool outside;
    real twice;

    __device__ __forceinline__ Beyond(const Place<P>& place, const FieldView<real>& view, int side, int own_points)
        : memory(place.memory), neighbour(place.memory, place.beside(axis, beyond(place, side))), n(own_points) {
        outside = place.along(axis) == (side == 0 ? 0 : last);
        rows = axis == P::plan.slab() && beyond(place, side) == last ? P::plan.last_rows() : P::plan.local(axis);
        twice = view.twice[axis][side];
    }

    static __device__ __forceinline__ int beyond(const Place<P>& place, int side) {
        const int own = place.along(axis);
        return side == 0 ? (own > 0 ? own : last + 1) - 1 : own < last ? own + 1 : 0;
    }

    /// The j-th one of the line that starts at `line`.
    __device__ __forceinline__ real value(int line, int side, int j) const {
        constexpr int low = field.edge[axis][0], high = field.edge[axis][1];
        const int edge = side == 0 ? low : high;
        if (outside && edge != periodic) {
            const real mirrored = memory[line + (side == 0 ? j : n - 1 - j) * apart];
            return edge == odd ? twice - mirrored : mirrored;
        }
        if constexpr (last > 0) return neighbour.load(line + (side == 0 ? rows - 1 - j : j) * apart);
        else return memory[line + (side == 0 ? n - 1 - j : j) * apart];
    }
};

template <class P, int f, int axis>
__device__ __forceinline__ void fill_axis(const Place<P>& place, const FieldView<typename P::real>& view) {
    using real = typename P::real;
    constexpr FieldPlan field = P::plan.field[f];
    constexpr int g = field.ghosts[axis];
    if constexpr (field.kept && g > 0) {
        // Lines along the axis, with the ghosts of the axes before it where they are read.
        constexpr int one = axis == 0 ? 1 : 0, other = axis == 2 ? 1 : 2;
        constexpr int one_more = field.diagonal && one < axis ? field.ghosts[one] : 0, other_more = field.diagonal && other < axis ? field.ghosts[other] : 0;
        constexpr int one_lines = field.one[one] ? 1 : P::plan.local(one) + 2 * one_more, other_lines = field.one[other] ? 1 : P::plan.local(other) + 2 * other_more;
        constexpr int apart = P::plan.stride(f, axis);
        constexpr int lines = one_lines * other_lines, each = ceiling(lines, P::plan.threads), at_once = each < 4 ? each : 4;
        const auto line_at = [&](int q) {
            return P::plan.origin(f) + (q % one_lines - one_more) * P::plan.stride(f, one) + (q / one_lines - other_more) * P::plan.stride(f, other);
        };
        // Rows that the last slab lacks are left alone.
        const auto there = [&](int q) {
            if (axis == P::plan.slab() || P::plan.even_slabs() || place.along(P::plan.slab()) < P::plan.slabs() - 1) return q < lines;
            return q < lines && (one == P::plan.slab() ? q % one_lines - one_more : q / one_lines - other_more) < P::plan.last_rows();
        };
        const int n = place.points(axis);
        const Beyond<P, f, axis> low(place, view, 0, n), high(place, view, 1, n);
        // Several at once, since other blocks are far away.
#pragma unroll 1
        for (int q = thread_number(); q < lines; q += at_once * P::plan.threads) {
            real value[at_once][2][g] = {};
#pragma unroll
            for (int u = 0; u < at_once; ++u) {
                const int own = q + u * P::plan.threads;
                if (!there(own)) continue;
                const int line = line_at(own);
#pragma unroll
                for (int side = 0; side < 2; ++side)
#pragma unroll
                    for (int j = 0; j < g; ++j) value[u][side][j] = (side == 0 ? low : high).value(line, side, j);
            }
#pragma unroll
            for (int u = 0; u < at_once; ++u) {
                const int own = q + u * P::plan.threads;
                if (!there(own)) continue;
                real* const line = place.memory + line_at(own);
#pragma unroll
                for (int j = 0; j < g; ++j) line[(-1 - j) * apart] = value[u][0][j], line[(n + j) * apart] = value[u][1][j];
            }
        }
    }
}

/// Ghosts of one axis are there before those of the next are made from them.
template <class P, int axis>
__device__ __forceinline__ void meet_before() {
    if (P::plan.blocks_along(axis) > 1) cluster_barrier();
    else block_barrier();
}

/// Once this block's points have been stored by its threads. Ends with all of its ghosts there.
template <class P, int f>
__device__ __forceinline__ void fill_ghosts(const Place<P>& place, const FieldView<typename P::real>& view) {
    constexpr FieldPlan field = P::plan.field[f];
    constexpr bool any = field.kept && field.ghosts[0] + field.ghosts[1] + field.ghosts[2] > 0, alone = P::plan.cluster == 1;
    if constexpr (!any) {
        if (alone) block_barrier();
        else cluster_barrier();
    } else if constexpr (field.diagonal || alone) {
        if (alone) block_barrier();
        else cluster_barrier();
        fill_axis<P, f, 0>(place, view);
        if (field.diagonal) meet_before<P, 1>();
        fill_axis<P, f, 1>(place, view);
        if (field.diagonal) meet_before<P, 2>();
        fill_axis<P, f, 2>(place, view);
        block_barrier();
    } else {
        // What needs no other block is done while they come.
        constexpr int slab = P::plan.slab();
        cluster_arrive();
        if (slab > 1) fill_axis<P, f, 0>(place, view);
        if (P::plan.abreast == 1) fill_axis<P, f, slab - 1>(place, view);
        cluster_wait();
        if (P::plan.abreast > 1) fill_axis<P, f, slab - 1>(place, view);
        fill_axis<P, f, slab>(place, view);
        block_barrier();
    }
}

/// Rows of a slab that neighbours get (Plan::sends_rows), and those that come.
template <class P, int s>
struct RowsSent {
    using real = typename P::real;
    static constexpr int f = P::plan.sweep[s].target, slab = P::plan.slab(), g = P::plan.field[f].ghosts[slab], last = P::plan.slabs() - 1, apart = P::plan.stride(f, slab), box = P::plan.letterbox(s);
    static constexpr int wide = P::plan.local(0), lines = wide * (slab > 1 ? P::plan.local(1) : 1);
    static constexpr bool ring[2] = {P::plan.field[f].edge[slab][0] == periodic, P::plan.field[f].edge[slab][1] == periodic};

    static __device__ __forceinline__ bool has_neighbour(const Place<P>& place, int side) { return ring[side] || place.rank != (side == 0 ? 0 : last); }
    static __device__ __forceinline__ int line(int q) { return P::plan.origin(f) + q % wide + q / wide * (slab > 1 ? P::plan.stride(f, 1) : 0); }

    static __device__ __forceinline__ void expect(const Place<P>& place) {
        constexpr int bytes = sizeof(real);
        expect_letters(place.memory + box, (has_neighbour(place, 0) + has_neighbour(place, 1)) * lines * g * bytes);
    }

    /// By one thread, before the first barrier of the cluster.
    static __device__ __forceinline__ void open(const Place<P>& place) {
        open_letterbox(place.memory + box);
        expect(place);
    }

    /// This block's points are stored and seen by its threads.
    static __device__ __forceinline__ void send(const Place<P>& place, const FieldView<real>& view) {
        const int n = place.points(slab);
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            if (has_neighbour(place, side)) {
                const int beyond = Beyond<P, f, slab>::beyond(place, side), there = beyond == last ? P::plan.last_rows() : P::plan.local(slab);
                const Elsewhere<real> neighbour(place.memory, beyond);
                for (int q = thread_number(); q < lines; q += P::plan.threads)
#pragma unroll
                    for (int j = 0; j < g; ++j) neighbour.send(line(q) + (side == 0 ? there + j : -1 - j) * apart, place.memory[line(q) + (side == 0 ? j : n - 1 - j) * apart], box);
            } else {
                const Beyond<P, f, slab> own(place, view, side, n);
                for (int q = thread_number(); q < lines; q += P::plan.threads)
#pragma unroll
                    for (int j = 0; j < g; ++j) place.memory[line(q) + (side == 0 ? -1 - j : n + j) * apart] = own.value(line(q), side, j);
            }
        }
    }

    static __device__ __forceinline__ void await(const Place<P>& place, unsigned round) {
        wait_for_letters(place.memory + box, round);
        if (thread_number() == 0) expect(place);
    }
};

/// As fill_ghosts, without a barrier of the cluster.
template <class P, int s>
__device__ __forceinline__ void send_rows(const Place<P>& place, const FieldView<typename P::real>& view, unsigned round) {
    using Sent = RowsSent<P, s>;
    block_barrier();
    Sent::send(place, view);
    if (Sent::slab > 1) fill_axis<P, Sent::f, 0>(place, view);
    fill_axis<P, Sent::f, Sent::slab - 1>(place, view);
    Sent::await(place, round);
    block_barrier();
}

template <class P, int s>
__device__ __forceinline__ void open_letterboxes(const Place<P>& place) {
    if constexpr (s < P::plan.sweeps) {
        if constexpr (P::plan.sends_rows(s))
            if (thread_number() == 0) RowsSent<P, s>::open(place);
        open_letterboxes<P, s + 1>(place);
    }
}

}  // namespace trifold::cuda::resident
