// SPDX-License-Identifier: BSD-3-Clause
// A batch whose columns lie side by side, on chip:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i]   in every column.
//
// Shapes and strides: columns_job.hpp. x may be rhs; nothing else is overwritten.
// Who does what: a lane has 16 rows of one column, its *chunk*, neighbouring lanes neighbouring columns: no transpose. The chunks of a column are
//   those of a block's warps and of a cluster's blocks. Every warp eliminates its chunks out of shared memory into registers
//   (thread/chunk.cuh), one thread per column joins them (columns_join.cuh), once more over the cluster through distributed shared
//   memory; lanes substitute, *check* their rows against what is still in shared memory, and store from registers.
//   Blocks stay: shared memory is a ring of slices (a warp's 16 rows of 32 columns, or two warps' of 64); a warp that has checked its slice
//   at once asks for the one that takes its place, of a later tile, so that loads are under way while chunks are joined and stored.
// Words per row of device memory: 4 read, 1 written. Lanes read neighbouring words: no bank conflicts.
// Numerics: nothing is pivoted. Per chunk max|rhs - A x| ≤ accept × max|diag| × max|x| (neighbours' x too), else the whole system is marked and
//   not stored: what is stored has a backward error that was seen, whatever the matrix. Marked systems are for a pivoted kernel.
// Source: F. A. Wang, A parallel method for tridiagonal equations, ACM TOMS 7 (1981), by chunks, blocks and clusters.
#pragma once

#include <cooperative_groups.h>

#include "backends/cuda/tridiagonal/block/columns_join.cuh"
#include "backends/cuda/tridiagonal/block/columns_load.cuh"
#include "backends/cuda/tridiagonal/thread/largest.cuh"

namespace trifold::cuda {

/// A lane's raw rows in shared memory: row i of operand k is at[k operand + i Pitch].
template <class T, int Pitch>
struct RawChunk {
    const T* at;
    int operand;  ///< elements from operand to operand
    int count;    ///< rows that exist, 0 … 16
    bool top, bottom;  ///< nothing before the first row, after the last one

    struct Row {
        T lower, diag, upper, rhs;
    };

    /// Whole: all 16 rows exist. Rows that do not are zero, lower and upper where nothing comes before or after as well.
    template <bool Whole>
    __device__ __forceinline__ Row row(int i) const {
        const T* const p = at + i * Pitch;
        const bool in = Whole || i < count;
        Row r{in ? p[0] : T(0), in ? p[operand] : T(0), in ? p[2 * operand] : T(0), in ? p[3 * operand] : T(0)};
        if (i == 0 && top) r.lower = 0;
        if (bottom && (Whole ? i == column_chunk - 1 : i == count - 1)) r.upper = 0;
        return r;
    }
};

/// Calls part(i) for all rows, by fours, those without a row that exists by none(i).
template <int R, bool Whole, class Part, class None>
__device__ __forceinline__ void by_fours(int count, Part part, None none) {
#pragma unroll
    for (int q = 0; q < R; q += 4) {
        if (Whole || q < count) {
#pragma unroll
            for (int i = q; i < q + 4; ++i) part(i);
        } else {
#pragma unroll
            for (int i = q; i < q + 4; ++i) none(i);
        }
    }
}

template <class T, int L, bool Whole>
__device__ __forceinline__ void eliminate_chunk(const RawChunk<T, L>& raw, Chunk<T, column_chunk>& rows) {
    by_fours<column_chunk, Whole>(
        raw.count,
        [&](int i) {
            const auto r = raw.template row<Whole>(i);
            rows.eliminate(i, r.lower, Whole || i < raw.count ? r.diag : T(1), r.upper, r.rhs);
        },
        [&](int i) { rows.a[i] = rows.c[i] = rows.d[i] = 0; });
}

/// x in place of d; true where the chunk's residual is accepted.
template <class T, int L, bool Whole>
__device__ __forceinline__ bool check_chunk(const RawChunk<T, L>& raw, Chunk<T, column_chunk>& rows, T before, T last, T after, T accept) {
    constexpr int R = column_chunk;
    T previous = before, own = rows.x(0, before, last);
    Largest<T> defect, diag, largest;
    by_fours<R, Whole>(
        raw.count,
        [&](int i) {
            const auto r = raw.template row<Whole>(i);
            const T next = i + 1 < R ? rows.x(i + 1 < R ? i + 1 : 0, before, last) : after;
            if (i == 0 && r.lower != T(0)) largest.add(before);
            if (i + 1 == R && r.upper != T(0)) largest.add(after);
            defect.add(fused(-r.upper, next, fused(-r.lower, previous, fused(-r.diag, own, r.rhs))));
            diag.add(r.diag);
            largest.add(own);
            rows.d[i] = own;
            previous = own, own = next;
        },
        [](int) {});
    const T allowed = accept * diag.value() * largest.value();
    return defect.value() <= allowed && allowed < (sizeof(T) == 8 ? T(1e290) : T(1e30));
}

template <class T, int LaneColumns, int Share>
__global__ void __launch_bounds__(most_column_threads<T>, 1) solve_columns_side_by_side(const __grid_constant__ ColumnJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // batch_refuses keeps others away
    namespace cg = cooperative_groups;
    constexpr int R = column_chunk, L = LaneColumns, per_warp = 32 / L, pitch = L * Share;
    extern __shared__ __align__(128) unsigned char column_memory[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
    const ColumnCut& cut = job.cut;
    const int slices = cut.warps / Share, slots = cut.slots, blocks = cut.blocks, columns = cut.columns, chunks = cut.chunks;
    const int rank = blocks > 1 ? static_cast<int>(cg::this_cluster().block_rank()) : 0;
    const int slice = cut.slice_elements, operand = slice / 4;
    const bool joined = chunks > 1 || blocks > 1;

    T* const ring = reinterpret_cast<T*>(column_memory);
    T* const links = reinterpret_cast<T*>(column_memory + cut.links_at);
    T* const ends = reinterpret_cast<T*>(column_memory + cut.ends_at);
    auto* const barriers = reinterpret_cast<unsigned long long*>(column_memory + cut.barriers_at);
    unsigned long long* const bad = barriers + slots + 2;  // a bit per column: this block's, then those of all blocks
    unsigned long long* const votes = bad + 1;
    const auto barrier = [&](int slot) { return SliceBarrier{shared_word(barriers + slot)}; };
    const SliceBarrier ends_here = barrier(slots), votes_here = barrier(slots + 1);
    const unsigned ends_bytes = static_cast<unsigned>(blocks * columns * 6 * sizeof(T)), votes_bytes = 8u * static_cast<unsigned>(blocks);

    for (int s = thread; s < slots; s += static_cast<int>(blockDim.x)) barrier(s).prepare(job.elements ? 1 + 32 * Share : 1);
    if (thread == 0) {
        ends_here.prepare(1), votes_here.prepare(1);
        *bad = 0;
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int k = 0; k < 4; ++k)
        if (job.path[k] == ColumnPath::scalar)
            for (int i = thread; i < slots * operand; i += static_cast<int>(blockDim.x))
                ring[i / operand * slice + k * operand + i % operand] = job.operand[k].value;
    __syncthreads();
    if (blocks > 1) {
        if (thread == 0) ends_here.expect(ends_bytes), votes_here.expect(votes_bytes);
        cg::this_cluster().sync();
    }

    // This warp's place in a tile, and that of the slices which it asks for: `slots` slices later, so always the same.
    const int part = warp % Share, across = cut.across / Share;  // slices side by side
    const unsigned cluster = blockIdx.x / static_cast<unsigned>(blocks), clusters = static_cast<unsigned>(cut.clusters);
    const auto fill = [&](unsigned tile, int column, int row, int slot) {
        if (tile >= job.tiles) return;
        const ColumnPlace place = column_place(job, tile);
        fill_slice<T, L, Share>(job, place, place.column + column, row, ring + slot * slice, barrier(slot), lane, part);
    };
    const auto column_of = [&](int role) { return role % across * pitch; };
    const auto row_of = [&](int role) { return (rank * chunks + role / across * per_warp) * R; };
    const int role = warp / Share, unit = role / across;
    for (int s = role; s < slots; s += slices) fill(cluster + static_cast<unsigned>(s / slices) * clusters, column_of(role), row_of(role), s);
    const int later = role + slots % slices, later_role = later < slices ? later : later - slices;
    const unsigned later_tiles = static_cast<unsigned>(slots / slices + (later < slices ? 0 : 1)) * clusters;
    const int later_column = column_of(later_role), later_row = row_of(later_role);

    const int chunk = unit * per_warp + lane / L, mine = column_of(role) + part * L + lane % L;
    const int first_row = (rank * chunks + chunk) * R;
    const int rows_left = job.rows - first_row;
    const int count = max(min(R, rows_left), 0);  // not compared with R below: ptxas 13.0 fuses that with the clamp into one instruction, wrongly
    const bool top = first_row == 0, bottom = rows_left > 0 && rows_left <= R;
    const bool whole = __all_sync(~0u, rows_left >= R);
    const JoinRows<T> link{links + mine, 6 * columns, columns};

    int slot = role;
    unsigned phase = 0, turn = 0;
#pragma unroll 1
    for (unsigned tile = cluster; tile < job.tiles; tile += clusters, turn ^= 1) {
        barrier(slot).wait(phase);
        const RawChunk<T, pitch> raw{ring + slot * slice + lane / L * R * pitch + part * L + lane % L, operand, count, top, bottom};
        Chunk<T, R> rows;
        if (whole) eliminate_chunk<T, pitch, true>(raw, rows);
        else eliminate_chunk<T, pitch, false>(raw, rows);
        rows.reduce();

        T before = 0, last = rows.d[R - 1], after = 0;
        if (joined) {
            link.set(chunk, 0, rows.first());
            link.set(chunk, 3, rows.last());
            __syncthreads();
            if (thread == 0) *bad = 0;
            const auto level = [&](int l, int column) { return JoinRows<T>{ends + (cut.level_base[l] * columns + column) * 6, 6 * columns, 1}; };
            // A row of level l, its two relations; a block's single row goes to every block of the cluster.
            const auto pass_on = [&](int l, int r, int column, const Relation<T>& first, const Relation<T>& end) {
                const JoinRows<T> to = level(l, column);
                if (l == cut.meeting && blocks > 1) send_relations(shared_word(to.at + rank * to.row), ends_here.at, blocks, first, end);
                else to.set(r, 0, first), to.set(r, 3, end);
            };
            const auto join_level = [&](int l) {
                const int count_here = cut.level_rows[l], fours = (count_here + 3) / 4;
                for (int t = thread; t < columns * fours; t += static_cast<int>(blockDim.x)) {
                    const int four = t / columns, column = t - four * columns;
                    Relation<T> first;
                    const Relation<T> end = join_four(level(l, column), 4 * four, min(4, count_here - 4 * four), first);
                    pass_on(l + 1, four, column, first, end);
                }
            };
            for (int t = thread; t < columns * cut.quads; t += static_cast<int>(blockDim.x)) {
                const int quad = t / columns, column = t - quad * columns;
                Relation<T> first;
                const Relation<T> end = join_four(JoinRows<T>{links + column, 6 * columns, columns}, 4 * quad, min(4, chunks - 4 * quad), first);
                pass_on(0, quad, column, first, end);
            }
#pragma unroll 1
            for (int l = 0; l < cut.meeting; ++l) {
                __syncthreads();
                join_level(l);
            }
            if (blocks > 1) {
                ends_here.wait(turn);
                if (thread == 0) ends_here.expect(ends_bytes);
            } else {
                __syncthreads();
            }
#pragma unroll 1
            for (int l = cut.meeting; l + 1 < cut.levels; ++l) {
                join_level(l);
                __syncthreads();
            }
            // Down again: the blocks, this block's fours, the chunk.
            Three<T> x{T(0), level(cut.levels - 1, mine).last(0).d, T(0)};
#pragma unroll 1
            for (int l = cut.levels - 2; l >= cut.meeting; --l) x = descend(level(l, mine), rank >> 2 * (l - cut.meeting), cut.level_rows[l], x);
            if (rank + 1 < blocks) after = value(level(cut.meeting, mine).first(rank + 1), x.own, x.after);
            const int quad = chunk >> 2;
#pragma unroll 1
            for (int l = cut.meeting - 1; l >= 0; --l) x = descend(level(l, mine), quad >> 2 * l, cut.level_rows[l], x);
            const bool end = (chunk & 3) == 3 || chunk + 1 == chunks;
            last = end ? x.own : value(link.last(chunk), x.before, x.own);
            before = chunk & 3 ? value(link.last(chunk - 1), x.before, x.own) : x.before;
            if (!end) {
                const T next = (chunk & 3) == 2 || chunk + 2 == chunks ? x.own : value(link.last(chunk + 1), x.before, x.own);
                after = value(link.first(chunk + 1), last, next);
            } else if (quad + 1 < cut.quads) {
                after = value(level(0, mine).first(quad + 1), x.own, x.after);
            }
        }

        const ColumnPlace place = column_place(job, tile);
        const std::int64_t column = place.column + mine;
        const bool exists = column < job.columns;
        const bool good = whole ? check_chunk<T, pitch, true>(raw, rows, before, last, after, job.accept)
                                : check_chunk<T, pitch, false>(raw, rows, before, last, after, job.accept);
        bool failed = exists && rows_left > 0 && !good;
        if (Share == 1) __syncwarp();
        else asm volatile("bar.sync %0, %1;" ::"r"(1 + role), "n"(32 * Share) : "memory");
        fill(tile + later_tiles, later_column, later_row, slot);

        if (joined) {
            if (failed) atomicOr(bad, 1ull << mine);
            __syncthreads();
            unsigned long long all = *bad;
            if (thread < blocks && blocks > 1) send(in_block(shared_word(votes + rank), thread), all, in_block(votes_here.at, thread));
            if (blocks > 1) {
                votes_here.wait(turn);
                if (thread == 0) votes_here.expect(votes_bytes);
                all = lane < blocks ? votes[lane] : 0;
                const unsigned low = __reduce_or_sync(~0u, static_cast<unsigned>(all)), high = __reduce_or_sync(~0u, static_cast<unsigned>(all >> 32));
                all = static_cast<unsigned long long>(high) << 32 | low;
            }
            failed = all >> mine & 1;
        }
        if (exists && !failed) {
            const TileOperand<T>& x = job.operand[4];
            T* to = column_corner(x, place, column, first_row);
            if (whole) {
#pragma unroll
                for (int i = 0; i < R; ++i) __stcs(to, rows.d[i]), to += x.row_stride;
            } else {
#pragma unroll
                for (int i = 0; i < R; ++i)
                    if (i < count) __stcs(to, rows.d[i]), to += x.row_stride;
            }
        }
        if (rank == 0 && chunk == 0 && exists) {
            job.marks[column * job.column_weight + place.outer[0] * job.outer_weight[0] + place.outer[1] * job.outer_weight[1] +
                      place.outer[2] * job.outer_weight[2]] = failed;
            if (failed) atomicAdd(job.handed_over, 1ull);
        }
        slot += slices;
        if (slot >= slots) slot -= slots, phase ^= 1;
    }
    if (blocks > 1) cg::this_cluster().sync();
#endif
}

}  // namespace trifold::cuda
