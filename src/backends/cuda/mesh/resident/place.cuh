// SPDX-License-Identifier: BSD-3-Clause
// Where a thread is in a line solve, and what point functions see from there.
#pragma once

#include "backends/cuda/mesh/resident/blocks.cuh"
#include "backends/cuda/mesh/resident/layout.cuh"

namespace trifold::cuda::resident {

template <class P>
struct Place {
    typename P::real* memory;  ///< shared, of the block
    int rank;                  ///< of the block in its cluster
    std::int64_t mesh, step;

    /// Of the block among those along an axis; the first row of its part of the mesh; and the rank of the k-th block along the axis beside it.
    __device__ __forceinline__ int along(int axis) const { return P::plan.block_along(axis, rank); }
    __device__ __forceinline__ int first(int axis) const { return along(axis) * P::plan.local(axis); }
    /// Points of the block along an axis.
    __device__ __forceinline__ int points(int axis) const { return axis != P::plan.slab() || along(axis) < P::plan.slabs() - 1 ? P::plan.local(axis) : P::plan.last_rows(); }
    __device__ __forceinline__ int beside(int axis, int k) const { return rank + (k - along(axis)) * (axis == P::plan.slab() ? 1 : P::plan.slabs()); }
    mutable typename P::real check = 0;  ///< no longer 0 once a line solve of this thread has left something that is not finite
};

/// The k-th line of a thread along `axis`, the same segment of all of them. Where there is no such line it is the last one, and not
/// `there`: nothing is read or stored then.
template <class P, int axis>
struct Segment {
    static constexpr int count = P::plan.together(axis), rows = P::plan.cut[axis].rows, last_rows = P::plan.last_segment(axis);
    static constexpr int across = P::plan.side_by_side(axis), lines = P::plan.lines_along(axis), own_segments = P::plan.cut[axis].segments;
    static constexpr bool all_there = across * own_segments == P::plan.threads && count * across == lines && (axis == P::plan.slab() || P::plan.even_slabs());

    int own, number;                  ///< in the block; in the line
    int line[count], x[count][3];     ///< of its first point, in the block
    bool there[count];

    __device__ __forceinline__ explicit Segment(int rank) {
        const int thread = thread_number();
        own = own_segments == 1 ? 0 : thread / across;
        const bool idle = own >= own_segments;
        if (idle) own = own_segments - 1;
        number = P::plan.block_along(axis, rank) * own_segments + own;
        // Where all threads have lines as far apart, their places differ by constants.
        constexpr int one = axis == 0 ? 1 : 0, other = axis == 2 ? 1 : 2, wide = P::plan.local(one);
        constexpr bool exact = count * across == lines, apart = exact && across % wide == 0;
        const int first = thread - thread / across * across;
#pragma unroll
        for (int k = 0; k < count; ++k) {
            const int at = first + k * across;
            line[k] = exact || at < lines ? at : lines - 1;
            there[k] = all_there || (!idle && at < lines);
            x[k][axis] = own * rows;
            x[k][one] = lines == wide ? line[k] : apart ? first % wide : line[k] % wide;
            x[k][other] = lines == wide ? 0 : apart ? first / wide + k * (across / wide) : line[k] / wide;
            if (axis != P::plan.slab() && !P::plan.even_slabs() && P::plan.block_along(P::plan.slab(), rank) == P::plan.slabs() - 1 && x[k][P::plan.slab()] >= P::plan.last_rows()) x[k][P::plan.slab()] = P::plan.last_rows() - 1, there[k] = false;
        }
    }

    /// Of the last segment only some rows are there.
    __device__ __forceinline__ bool last() const { return number == P::plan.segments(axis) - 1; }
    __device__ __forceinline__ bool has(int k, int i) const { return (all_there || there[k]) && (i < last_rows || !last()); }
};

/// A point: the fields around it in shared memory.
template <class P>
struct Near {
    using real = typename P::real;
    const real* at_field[P::plan.fields];
    real solution;

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ real at() const {
        if constexpr (f == P::plan.fields) return solution;
        else return at_field[f][dx * P::plan.stride(f, 0) + dy * P::plan.stride(f, 1) + dz * P::plan.stride(f, 2)];
    }
};

/// A point, and the values kept of it that the right-hand side of sweep s has been cut at.
template <class P, int s>
struct NearKept : Near<P> {
    const typename P::real* first;

    template <int value>
    __device__ __forceinline__ typename P::real kept() const {
        return first[P::plan.invariant(s, value)];
    }
};

template <class P, int f, int axis>
__device__ __forceinline__ void look_at(Near<P>& near, const typename P::real* memory, const int (&x)[3], int i) {
    if constexpr (f < P::plan.fields) {
        constexpr FieldPlan field = P::plan.field[f];
        if constexpr (field.kept) near.at_field[f] = memory + P::plan.origin(f) + x[0] * P::plan.stride(f, 0) + x[1] * P::plan.stride(f, 1) + x[2] * P::plan.stride(f, 2) + i * P::plan.stride(f, axis);
        look_at<P, f + 1, axis>(near, memory, x, i);
    }
}

/// Point i of the segment.
template <class P, int axis>
__device__ __forceinline__ Near<P> near_point(const Place<P>& place, const int (&x)[3], int i, typename P::real solution) {
    Near<P> near;
    near.solution = solution;
    look_at<P, 0, axis>(near, place.memory, x, i);
    return near;
}

}  // namespace trifold::cuda::resident
