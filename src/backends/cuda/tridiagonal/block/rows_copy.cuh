// SPDX-License-Identifier: BSD-3-Clause
// Rows side by side, between device memory and shared memory, by one warp.
//
// Spans: where an operand's systems follow each other in memory as they do in the tile, one bulk copy (`cp.async.bulk`) brings the
//   tile. Bulk copies want 16-byte pieces: the span is widened to these where what lies around it belongs to the same batch, and
//   its ends are copied one by one where that is not known. The first of lower and the last of upper of a batch are not touched:
//   they need not exist. A tile keeps its operand's offset from a line of 128 bytes (TileJob::line): the copy engine then asks for
//   whole lines, else for two halves of each.
// Apart: any other strides, and scalars; run by run or one by one.
// A warp's arrival counts 4: lane k asks for operand k (lower, diag, upper, rhs).
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/block/store_rows.cuh"
#include "backends/cuda/tridiagonal/block/tile_place.cuh"

namespace trifold::cuda {

/// The dynamic shared memory of a block, by bytes: an offset is one register where a pointer is two.
template <class T>
__device__ __forceinline__ T* in_shared(int offset) {
    extern __shared__ __align__(128) char block_memory[];
    return reinterpret_cast<T*>(block_memory + offset);
}

template <class T>
__device__ __forceinline__ int offset_in_line(const TileJob<T>& job, const T* at) {
    return (static_cast<int>(reinterpret_cast<std::uintptr_t>(at)) & (job.line - 1)) / static_cast<int>(sizeof(T));
}

/// What stays the same for a warp: where its tile is, and which rows of a system it has.
template <class T>
struct RowsPlace {
    int warp, part;    ///< in the block; of the column
    int tiles, apart;  ///< offset of the first operand's tile; elements from operand to operand
    int bad;           ///< offset of the marks of a tile's systems; negative where there is one system
    int first_row, rows;
    Arrival arrival;

    __device__ __forceinline__ T* tile(int k) const { return in_shared<T>(tiles) + k * apart; }
};

/// The warp's number in its block, for who would rather ask again than remember.
__device__ __forceinline__ int warp_again() {
    unsigned thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return static_cast<int>(thread >> 5);
}

/// Rows from `start` on in shared memory, their operands shifted by a byte each of `shifts`.
template <class T>
struct RowsTile {
    T *a, *b, *c, *d;

    __device__ __forceinline__ RowsTile(const RowsPlace<T>& home, unsigned shifts, int start) {
        T* const at = home.tile(0) + start;
        a = at + (shifts & 255), b = at + home.apart + (shifts >> 8 & 255);
        c = at + 2 * home.apart + (shifts >> 16 & 255), d = at + 3 * home.apart + (shifts >> 24);
    }
};

template <class T>
__device__ __forceinline__ TilePlace place_of(const TileJob<T>& job, const RowsPlace<T>& home, unsigned tile) {
    TilePlace place;
    const unsigned run = job.one_run ? 0 : tile / job.tiles_per_run, rest = job.one_run ? 0 : run / job.outer_extent[2];
    place.column = static_cast<std::int64_t>(tile - run * job.tiles_per_run) * job.groups;
    place.columns = static_cast<int>(min(static_cast<std::int64_t>(job.groups), job.columns - place.column));
    place.outer[2] = run - rest * job.outer_extent[2];
    place.outer[0] = rest / job.outer_extent[1];
    place.outer[1] = rest - place.outer[0] * job.outer_extent[1];
    place.first_row = home.first_row, place.rows = home.rows;
    return place;
}

template <class T>
__device__ __noinline__ int columns_of(const TileJob<T>& job, unsigned tile) {
    const unsigned column = job.one_run ? tile : tile % job.tiles_per_run;
    return static_cast<int>(min(static_cast<std::int64_t>(job.groups), job.columns - static_cast<std::int64_t>(column) * job.groups));
}

/// Which part of an operand `k` may be read around the rows of `place`: from element `low` to before `high` of its span.
template <class T>
struct Readable {
    int low, high;

    __device__ __forceinline__ Readable(const TileJob<T>& job, const TilePlace& place, int k, std::int64_t column_stride, int length) {
        const bool forwards = column_stride >= job.rows;
        const bool before = place.first_row > 0 || (forwards && place.column > 0);
        const bool after = place.first_row + place.rows < job.rows || (forwards && place.column + place.columns < job.columns);
        low = before ? -16 : k == 0, high = after ? length + 16 : length - (k == 2);
    }
};

/// Lane k < 4 asks for its operand. Returns how many elements after `tile` (in shared memory) the span begins.
template <class T>
__device__ __forceinline__ int ask_span(const TileJob<T>& job, const TilePlace& place, const T* tile, Arrival arrival, int k) {
    constexpr int E = 16 / sizeof(T);
    const TileOperand<T>& operand = job.operand[k];
    const T* const from = corner(job, operand, place);
    const int shift = offset_in_line(job, from), length = (place.columns - 1) * job.pitch + place.rows;
    const Readable<T> readable(job, place, k, operand.column_stride, length);
    const int begin = readable.low < 0 ? -(shift % E) : (shift + readable.low + E - 1) / E * E - shift;
    const int end = readable.high > length ? (shift + length + E - 1) / E * E - shift : (shift + readable.high) / E * E - shift;
    const unsigned to = shared_address(tile) + shift * sizeof(T);
    const unsigned bytes = end > begin ? static_cast<unsigned>((end - begin) * sizeof(T)) : 0;
    arrival.expect(bytes);
    if (bytes) arrival.copy(to + begin * sizeof(T), from + begin, bytes);
    const int first = max(readable.low, 0), last = min(readable.high, length), head_end = bytes ? begin : last, tail_begin = bytes ? end : last;
#pragma unroll 1
    for (int i = first; i < head_end; ++i) copy_async(to + i * sizeof(T), from + i);
#pragma unroll 1
    for (int i = tail_begin; i < last; ++i) copy_async(to + i * sizeof(T), from + i);
    return shift;
}

/// The same of a tile whose surroundings belong to the batch: whole pieces only, and what is kept of the tile before, whose shifts are given. Returns the shift, in byte k.
template <class T>
__device__ __forceinline__ unsigned ask_within(const TileJob<T>& job, const RowsPlace<T>& home, unsigned tile, int k, unsigned shifts) {
    constexpr int E = 16 / sizeof(T);
    if (job.kept >> k & 1) {
        home.arrival.expect(0);
        return shifts & 255u << 8 * k;
    }
    const TileOperand<T>& operand = job.operand[k];
    const T* const from = operand.data + tile * operand.tile_stride + home.first_row;
    const int shift = offset_in_line(job, from), over = shift % E, length = (job.groups - 1) * job.pitch + home.rows;
    const unsigned bytes = length > 0 ? static_cast<unsigned>(over + length + E - 1) / E * 16 : 0;
    home.arrival.expect(bytes);
    if (bytes) home.arrival.copy(shared_address(home.tile(k) + shift - over), from - over, bytes);
    return static_cast<unsigned>(shift) << 8 * k;
}

/// All four operands, whatever their strides. tiles: of the first one, the others `apart` on. Returns the shifts of the
/// operands, a byte each.
template <class T>
__device__ __forceinline__ unsigned load_apart(const TileJob<T>& job, const TilePlace& place, T* tiles, int apart, Arrival arrival, int lane) {
    constexpr int E = 16 / sizeof(T);
    using Path = typename TileOperand<T>::Path;
    // Lane by lane: operand lane % 4, runs lane / 4 and every eighth after it.
    const int mine = lane & 3;
    const TileOperand<T>& operand = job.operand[mine];
    const T* const from = corner(job, operand, place);
    const bool runs_mine = operand.path == Path::vectors;
    const int shift = runs_mine ? offset_in_line(job, from) : 0;
    const int skip = mine == 0 && place.first_row == 0, rows = place.rows - (mine == 2 && place.first_row + place.rows == job.rows);
    unsigned bytes = 0;
    if (runs_mine) {
        const unsigned target = shared_address(tiles + mine * apart + shift);
#pragma unroll 1
        for (int run = lane >> 2; run < place.columns; run += 8) {
            const T* const source = from + run * operand.column_stride + skip;
            const unsigned at = target + (run * job.pitch + skip) * sizeof(T);
            const int length = rows - skip, head = min((E - offset_in_vector(source)) % E, length), body = max(length - head, 0) / E * E;
            if (body) arrival.copy(at + head * sizeof(T), source + head, body * sizeof(T)), bytes += body * sizeof(T);
#pragma unroll 1
            for (int i = 0; i < head; ++i) copy_async(at + i * sizeof(T), source + i);
#pragma unroll 1
            for (int i = head + body; i < length; ++i) copy_async(at + i * sizeof(T), source + i);
        }
    }
    bytes = __reduce_add_sync(~0u, bytes);
    if (lane < 4) arrival.expect(lane == 0 ? bytes : 0);
    const unsigned shifts = __reduce_or_sync(~0u, static_cast<unsigned>(shift) << 8 * mine);
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
        const TileOperand<T>& other = job.operand[k];
        if (other.path == Path::vectors) continue;
        T* const to = tiles + k * apart;
        if (other.path == Path::scalar) {
            for (int i = lane; i < (place.columns - 1) * job.pitch + place.rows; i += 32) to[i] = other.value;
            continue;
        }
        const T* const source = corner(job, other, place);
        const int first = k == 0 && place.first_row == 0, last = place.rows - (k == 2 && place.first_row + place.rows == job.rows);
        int column = 0, row = lane;
        while (true) {
            while (row >= place.rows) row -= place.rows, ++column;
            if (column >= place.columns) break;
            if (row >= first && row < last)
                copy_async(shared_address(to + column * job.pitch + row), source + column * other.column_stride + row * other.row_stride);
            row += 32;
        }
    }
    return shifts;
}

/// Any tile of any batch. Returns the shifts.
template <class T>
__device__ __noinline__ unsigned load_any(const TileJob<T>& job, RowsPlace<T> home, unsigned tile, int lane) {
    const TilePlace place = place_of(job, home, tile);
    if (place.rows == 0) {
        if (lane < 4) home.arrival.expect(0);
        return 0;
    }
    if (!job.spans) return load_apart(job, place, home.tile(0), home.apart, home.arrival, lane);
    unsigned shifts = 0;
    if (lane < 4) shifts = static_cast<unsigned>(ask_span(job, place, home.tile(lane), home.arrival, lane)) << 8 * lane;
    return __reduce_or_sync(~0u, shifts);
}

/// The same, without a call where that is possible: the code that is called, and what it finds in the kernel's arguments, would come from memory first.
template <class T>
__device__ __forceinline__ unsigned ask_any(const TileJob<T>& job, const RowsPlace<T>& home, unsigned tile, int lane) {
    if (!job.within(tile) || job.kept) return load_any(job, home, tile, lane);
    const unsigned shift = lane < 4 ? ask_within(job, home, tile, lane, 0) : 0;
    return __reduce_or_sync(~0u, shift);
}

/// What store_within will add to, by one thread.
template <Adding How, class T>
__device__ __forceinline__ void prefetch_within(const TileJob<T>& job, const RowsPlace<T>& home, unsigned tile) {
    if (job.runs_stored) prefetch_run<How>(job.operand[4].data + tile * job.operand[4].tile_stride + home.first_row, (job.groups - 1) * job.pitch + home.rows);
}

/// x of a tile as one run, or a run per system where there are gaps; false where it lies otherwise to 16-byte pieces than in shared memory.
/// The copy engine still reads it then.
template <Adding How = Adding::no, class T>
__device__ __forceinline__ bool store_within(const TileJob<T>& job, const RowsPlace<T>& home, unsigned tile, int shift, int lane) {
    constexpr int E = 16 / sizeof(T);
    T* const to = job.operand[4].data + tile * job.operand[4].tile_stride + home.first_row;
    if (offset_in_vector(to) != shift % E) return false;
    const T* const x = home.tile(3) + shift;
    const bool whole = job.span_stored;
    const int runs = whole ? 1 : job.groups, length = whole ? (job.groups - 1) * job.pitch + home.rows : home.rows;
    if constexpr (How != Adding::no) {
#pragma unroll 1
        for (int run = 0; run < runs; ++run) add_run<How>(to + run * job.pitch, x + run * job.pitch, length, lane);
        return true;
    }
#pragma unroll 1
    for (int run = lane ^ 3; run < runs; run += 32) {  // lane 3 first: it asks for the next d
        const int at = run * job.pitch, head = min((E - (shift + at) % E) % E, length), body = (length - head) / E * E;
        if (body)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + at + head), "r"(shared_address(x + at + head)),
                         "r"(static_cast<unsigned>(body * sizeof(T)))
                         : "memory");
#pragma unroll 1
        for (int i = 0; i < head; ++i) to[at + i] = x[at + i];
#pragma unroll 1
        for (int i = head + body; i < length; ++i) to[at + i] = x[at + i];
    }
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    return true;
}

/// Until the copy engine has read what it stores: by the lanes that asked.
__device__ __forceinline__ void await_reads() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

/// x of a tile, whatever its strides, but for the systems that are marked.
template <Adding How, class T, class Keep>
__device__ __forceinline__ void store_apart(const TileJob<T>& job, const TilePlace& place, const T* from, Keep keep, int lane) {
    constexpr int E = 16 / sizeof(T);
    const TileOperand<T>& operand = job.operand[4];
    T* const to = corner(job, operand, place);
    if (How != Adding::no && operand.row_stride == 1) {
#pragma unroll 1
        for (int run = 0; run < place.columns; ++run)
            if (keep(run)) add_run<How>(to + run * operand.column_stride, from + run * job.pitch, place.rows, lane);
        return;
    }
    const bool same_offset = operand.row_stride == 1 && reinterpret_cast<std::uintptr_t>(to) % 16 == shared_address(from) % 16;
    if (How == Adding::no && same_offset && (place.columns == 1 || (operand.column_stride - job.pitch) % E == 0)) {
#pragma unroll 1
        for (int run = lane; run < place.columns; run += 32) {
            if (!keep(run)) continue;
            T* const target = to + run * operand.column_stride;
            const T* const source = from + run * job.pitch;
            const int head = min((E - offset_in_vector(target)) % E, place.rows), body = (place.rows - head) / E * E;
            if (body)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target + head), "r"(shared_address(source + head)),
                             "r"(static_cast<unsigned>(body * sizeof(T)))
                             : "memory");
#pragma unroll 1
            for (int i = 0; i < head; ++i) target[i] = source[i];
#pragma unroll 1
            for (int i = head + body; i < place.rows; ++i) target[i] = source[i];
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        await_reads();
    } else {
        int column = 0, row = lane;
        while (true) {
            while (row >= place.rows) row -= place.rows, ++column;
            if (column >= place.columns) break;
            if (keep(column)) store_or_add<How>(to + (column * operand.column_stride + row * operand.row_stride), from[column * job.pitch + row]);
            row += 32;
        }
    }
}

/// Stores what is good of any tile, and marks the rest. shift: of x, from its operand's place.
template <Adding How = Adding::no, class T>
__device__ __noinline__ void finish_any(const TileJob<T>& job, RowsPlace<T> home, unsigned tile, unsigned shift, bool all, int lane) {
    const TilePlace place = place_of(job, home, tile);
    const bool many = home.bad >= 0;
    const auto bad = [&](int k) { return !all && (!many || *in_shared<unsigned char>(home.bad + k)); };
    if (place.rows > 0) store_apart<How>(job, place, home.tile(3) + shift, [&](int k) { return !bad(k); }, lane);
    __syncwarp();
    if (home.part != 0) return;
    if (job.tile_marks) {
        if (lane == 0) job.tile_marks[tile] = !all;
        if (all) return;
    }
    unsigned char* const marks = job.marks + (place.column * job.column_weight + place.outer[0] * job.outer_weight[0] +
                                              place.outer[1] * job.outer_weight[1] + place.outer[2] * job.outer_weight[2]);
    for (int k = lane; k < place.columns; k += 32) {
        const bool marked = bad(k);
        marks[k * job.column_weight] = marked;
        if (marked) atomicAdd(job.handed_over, 1ull);
        if (marked && many) *in_shared<unsigned char>(home.bad + k) = 0;
    }
}

}  // namespace trifold::cuda
