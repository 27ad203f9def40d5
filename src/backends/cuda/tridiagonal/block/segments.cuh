// SPDX-License-Identifier: BSD-3-Clause
// Segments and windows of columns that are too long for a cluster: where they lie, what they tell others in device memory, and what they are told (ColumnSegments).
#pragma once

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/block/columns_load.cuh"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda {

/// A tile of them: `row` is its first one.
struct SegmentPlace : ColumnPlace {
    unsigned segment;
    int row;
};

/// Tiles side by side follow each other, then segments one below the other.
template <class T>
__device__ __forceinline__ SegmentPlace segment_place(const ColumnJob<T>& job, unsigned tile) {
    const ColumnRows& rows = job.segments.rows;
    const unsigned run = tile / job.tiles_per_run, whole = run / rows.count;
    SegmentPlace place;
    static_cast<ColumnPlace&>(place) = place_in_run(job, whole, static_cast<std::int64_t>(job.order(tile - run * job.tiles_per_run)) * job.cut.columns);
    place.segment = run - whole * rows.count;
    place.row = rows.begin(place.segment);
    return place;
}

/// The number of column j of a tile; -1 where it is none.
template <class T>
__device__ __forceinline__ std::int64_t system_of(const ColumnJob<T>& job, const ColumnPlace& place, int j) {
    const std::int64_t column = place.column + j;
    if (column >= job.columns) return -1;
    return column * job.column_weight + place.outer[0] * job.outer_weight[0] + place.outer[1] * job.outer_weight[1] + place.outer[2] * job.outer_weight[2];
}

template <class T>
__device__ __forceinline__ void tell_segment(const ColumnJob<T>& job, const SegmentPlace& place, int j, const Relation<T>& first, const Relation<T>& last) {
    const std::int64_t system = system_of(job, place, j), systems = job.segments.systems;
    if (system < 0) return;
    T* const to = job.segments.relations + place.segment * 6 * systems + system;
    const T words[6] = {first.a, first.c, first.d, last.a, last.c, last.d};
#pragma unroll
    for (int k = 0; k < 6; ++k) to[k * systems] = words[k];
}

/// What is around column j of a tile, on its way to three words of shared memory (Three): before, own last, after.
template <class T>
__device__ __forceinline__ void fetch_around(const ColumnJob<T>& job, const SegmentPlace& place, int j, T* to) {
    const std::int64_t system = system_of(job, place, j), systems = job.segments.systems;
    if (system < 0) return;
    const T* const last = job.segments.last + place.segment * systems + system;
    const T* const from[3] = {last, last + systems, job.segments.after + place.segment * systems + system};
#pragma unroll
    for (int k = 0; k < 3; ++k) copy_async(shared_address(to + k), from[k]);
}

/// Whether windows have solved all. By all threads, before anything else.
template <class T>
__device__ __forceinline__ bool windows_do(const ColumnJob<T>& job) {
    return job.segments.unsettled && *const_cast<const volatile unsigned*>(job.segments.unsettled) == 0;
}

/// The rows of a window that it stores.
template <class T>
__device__ __forceinline__ ColumnRows::Stored kept_of(const ColumnJob<T>& job, const SegmentPlace& place) {
    return ColumnRows::stored(place.segment, job.segments.rows.step, job.segments.rows.halo, job.segments.rows.count, job.rows);
}

/// Column j at the seam above a window, or below it: the unknown beside the seam, the one beyond it, the largest of a chunk.
template <class T>
__device__ __forceinline__ void tell_seam(const ColumnJob<T>& job, const SegmentPlace& place, int j, bool below, T inner, T beyond, T largest) {
    const std::int64_t system = system_of(job, place, j), systems = job.segments.systems;
    if (system < 0) return;
    T* const to = job.segments.seams + ((below ? place.segment : place.segment - 1) * 6 + (below ? 0 : 3)) * systems + system;
    to[0] = inner, to[systems] = beyond, to[2 * systems] = largest;
}

/// Whether so many systems are marked that others solve them all; said by the first thread to those who come behind.
template <class T>
__device__ __forceinline__ bool left_to_others(const ColumnJob<T>& job) {
    const unsigned long long marked = *const_cast<const volatile unsigned long long*>(job.segments.marked);
    const bool left = marked > job.segments.few;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *job.segments.few_marked = left ? 0 : marked;
        if (left) *job.segments.all_left = windows_turn;
    }
    return left;
}

}  // namespace trifold::cuda
