// SPDX-License-Identifier: BSD-3-Clause
// Runs of rows that lie side by side, brought by one warp into shared memory and stored from there by the copy engine
// (cp.async.bulk), any alignment: what is outside 16-byte boundaries, and stores whose offset from them differs, go one by one.
#pragma once

#include "backends/cuda/tridiagonal/block/store_rows.cuh"
#include "backends/cuda/tridiagonal/shared/place.cuh"

namespace trifold::cuda {

/// The systems of one tile, or a part of one system.
template <class T>
struct Run {
    const T* from;
    T* to;
    unsigned system;   ///< number of the first one
    int systems, rows; ///< rows: of a system here
    int shift;         ///< elements before the first one in shared memory: as many as from a line of 128 bytes in device memory

    /// From the first row to the last one, gaps between systems included.
    __device__ __forceinline__ int length(int pitch) const { return (systems - 1) * pitch + rows; }
};

template <class T>
__device__ __forceinline__ Run<T> run_of(const SharedJob<T>& job, unsigned tile, int first_row, int part_rows) {
    const int last = job.levels - 1;
    Run<T> run;
    unsigned line = 0, in_line = tile;
    run.from = job.rhs.data + first_row;
    run.to = job.x.data + first_row;
    if (last > 0) {
        line = tile / job.tiles_per_line, in_line = tile - line * job.tiles_per_line;
        unsigned rest = line;
#pragma unroll 1
        for (int l = last - 1; l >= 0; --l) {
            const unsigned above = l ? rest / job.extent[l] : 0, index = rest - above * job.extent[l];
            run.from += index * job.rhs.level_stride[l];
            run.to += index * job.x.level_stride[l];
            rest = above;
        }
    }
    const unsigned first = in_line * static_cast<unsigned>(job.groups);
    run.systems = static_cast<int>(min(static_cast<unsigned>(job.groups), job.line_extent - first));
    run.rows = part_rows;
    run.system = line * job.line_extent + first;
    run.from += first * job.rhs_apart;
    run.to += first * job.x_apart;
    run.shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(run.from) % 128 / sizeof(T));
    return run;
}

/// What one of several lanes does of a run of `length` elements: what lies between 16-byte boundaries at once, the others one by one.
template <class T>
struct Pieces {
    static constexpr int E = 16 / sizeof(T), slots = 2 * E;
    int head, bulk = 0, one = -1;

    __device__ __forceinline__ Pieces(int offset, int length, int slot) : head(min(-offset & E - 1, length)) {
        const int body = (length - head) & ~(E - 1);
        if (slot == 0) bulk = body;
        else if (slot < E) one = slot <= head ? slot - 1 : -1;
        else if (head + body + slot - E < length) one = head + body + slot - E;
    }
};

/// What store_run will add to, by all lanes.
template <Adding How, class T>
__device__ __forceinline__ void prefetch_runs(const SharedJob<T>& job, const Run<T>& run, int lane) {
    if (!job.merged) {
#pragma unroll 1
        for (int k = lane; k < run.systems; k += 32) prefetch_run<How>(run.to + k * job.x_apart, run.rows);
    } else if (lane == 0) {
        prefetch_run<How>(run.to, run.length(job.pitch));
    }
}

/// By all lanes; element-wise copies belong to the caller's next group. The barrier expects one arrival.
template <class T>
__device__ __forceinline__ void load_run(const SharedJob<T>& job, const Run<T>& run, T* buffer, unsigned barrier, int lane) {
    constexpr int E = 16 / sizeof(T);
    const unsigned target = shared_address(buffer);
    if (job.touch)
#pragma unroll 1
        for (int at = lane; at < 2 * run.systems; at += 32) {
            T* const system = run.to + (at >> 1) * job.x_apart;
            ask_for_part_of_sector(at & 1 ? system + run.rows : system);
        }
    if (job.spans) {
        // One copy, widened to 16-byte boundaries as far as the array goes.
        const int over = run.shift % E, whole = (over + run.length(job.pitch) + E - 1) / E * E;
        const T* const begin = run.from - over;
        if (begin >= job.lowest && begin + whole <= job.highest) {
            if (lane == 0) {
                const unsigned bytes = static_cast<unsigned>(whole * sizeof(T));
                Arrival{barrier}.expect(bytes);
                Arrival{barrier}.copy(target + static_cast<unsigned>((run.shift - over) * static_cast<int>(sizeof(T))), begin, bytes);
            }
            return;
        }
    }
    const int runs = job.spans ? 1 : run.systems, length = job.spans ? run.length(job.pitch) : run.rows;
#pragma unroll 1
    for (int at = lane; at < runs * Pieces<T>::slots; at += 32) {
        const int k = at / Pieces<T>::slots;
        const T* const source = run.from + k * job.rhs_apart;
        const unsigned to = target + static_cast<unsigned>(run.shift + k * job.pitch) * static_cast<unsigned>(sizeof(T));
        const Pieces<T> pieces(offset_in_vector(source), length, at % Pieces<T>::slots);
        if (pieces.one >= 0) copy_async(to + static_cast<unsigned>(pieces.one * static_cast<int>(sizeof(T))), source + pieces.one);
        if (pieces.bulk > 0) {
            const unsigned bytes = static_cast<unsigned>(pieces.bulk * static_cast<int>(sizeof(T)));
            asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
            Arrival{barrier}.copy(to + static_cast<unsigned>(pieces.head * static_cast<int>(sizeof(T))), source + pieces.head, bytes);
        }
    }
    __syncwarp();
    if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// What has come along, or was there before, between the systems of a run and behind the last one.
template <class T>
__device__ __forceinline__ void clear_gaps(const SharedJob<T>& job, const Run<T>& run, T* first, int lane) {
    constexpr int E = 16 / sizeof(T);
    const int length = run.length(job.pitch), behind = -(run.shift + length) & E - 1, gap = job.pitch - run.rows;
    if (lane < behind) first[length + lane] = 0;
    if (job.groups > 1 && gap)
#pragma unroll 1
        for (int k = lane; k < (run.systems - 1) * gap; k += 32) first[k / gap * job.pitch + run.rows + k % gap] = 0;
}

/// System k of the run is stored unless flags[k]; every one where `all`. The caller commits what the copy engine is asked for.
template <Adding How = Adding::no, class T>
__device__ __forceinline__ void store_run(const SharedJob<T>& job, const Run<T>& run, const T* from, bool all, const unsigned char* flags, int lane) {
    constexpr int E = 16 / sizeof(T);
    const bool one = all && (job.merged || job.groups == 1);
    const bool same_offset = offset_in_vector(run.to) == run.shift % E;
    const int runs = one ? 1 : run.systems, length = one ? run.length(job.pitch) : run.rows;
    if (How == Adding::no && same_offset && (runs == 1 || (job.x_apart - job.pitch) % E == 0)) {
#pragma unroll 1
        for (int at = lane; at < runs * Pieces<T>::slots; at += 32) {
            const int k = at / Pieces<T>::slots;
            if (!all && flags[k]) continue;
            T* const target = run.to + k * job.x_apart;
            const T* const source = from + k * job.pitch;
            const Pieces<T> pieces(offset_in_vector(target), length, at % Pieces<T>::slots);
            if (pieces.one >= 0) target[pieces.one] = source[pieces.one];
            if (pieces.bulk > 0)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target + pieces.head), "r"(shared_address(source + pieces.head)),
                             "r"(static_cast<unsigned>(pieces.bulk * static_cast<int>(sizeof(T))))
                             : "memory");
        }
        return;
    }
#pragma unroll 1
    for (int k = 0; k < runs; ++k) {
        if (!all && flags[k]) continue;
        T* const target = run.to + k * job.x_apart;
        const T* const source = from + k * job.pitch;
        if constexpr (How != Adding::no) {
            add_run<How>(target, source, length, lane);
            continue;
        }
#pragma unroll 2
        for (int i = lane; i < length; i += 32) __stcs(target + i, source[i]);
    }
}

}  // namespace trifold::cuda
