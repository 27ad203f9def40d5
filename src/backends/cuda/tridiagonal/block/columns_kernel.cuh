// SPDX-License-Identifier: BSD-3-Clause
// A batch whose columns lie side by side, on chip:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i]   in every column.
//
// Shapes and strides: columns_job.hpp. x may be rhs; nothing else is overwritten.
// Who does what: a lane has R rows of one column, its *chunk*, neighbouring lanes neighbouring columns: no transpose. The chunks of a column are
//   those of a block's warps and of a cluster's blocks. Every warp eliminates its chunks out of shared memory into registers
//   (thread/chunk.cuh), one thread per column joins them (columns_join.cuh), once more over the cluster through distributed shared
//   memory; lanes substitute, *check* their rows against what is still in shared memory, and store from registers.
//   Blocks stay, and draw tile after tile from a counter, so that tiles side by side are under way together. Shared memory is a ring of slices (a
//   warp's R rows of 32 columns, or two warps' of 64); a warp that has checked its slice asks for the one that takes its place, of one of the
//   next two tiles, so that loads are under way while chunks are joined and stored.
// Words per row of device memory: 4 read, 1 written. Lanes read neighbouring words: no bank conflicts.
// Limit: 128 KiB of rows on a multiprocessor may take 9700 cycles at the memory's roof. From the load to the check they take 1200 (elimination) +
//   1000 to 3000 (joins) + 1200 (check, other blocks' verdicts), and what is asked for then comes 2000 later, 4000 where memory is busy.
// Numerics: nothing is pivoted. Per chunk max|rhs - A x| ≤ accept × max|diag| × max|x| (neighbours' x too), else the whole system is marked and
//   not stored: what is stored has a backward error that was seen, whatever the matrix. Marked systems are for a pivoted kernel.
// Second: where columns_dominant.cuh comes first, only what that has marked is solved, and nothing is done where that is little: pivots cost less
//   than another pass over all tiles then.
// Source: F. A. Wang, A parallel method for tridiagonal equations, ACM TOMS 7 (1981), by chunks, blocks and clusters.
#pragma once

#include <cooperative_groups.h>

#include "backends/cuda/tridiagonal/block/columns_join.cuh"
#include "backends/cuda/tridiagonal/block/columns_load.cuh"
#include "backends/cuda/tridiagonal/block/store_rows.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/thread/largest.cuh"

namespace trifold::cuda {

/// A lane's raw rows in shared memory, laid out as S says: those of every offset begin elsewhere.
template <class T, int R, class S>
struct RawChunk {
    const T* at[S::offsets];
    int count;    ///< rows that exist, 0 … R
    bool top, bottom;  ///< nothing before the first row, after the last one
    const T* table = nullptr;  ///< S::shared_couplings: lower and upper of its rows, in pairs; zeros where there is nothing to couple. S::shared_bands: lower, diag, upper and nothing of its rows

    struct Row {
        T lower, diag, upper, rhs;
    };
    using Two = typename ColumnVector<T>::type;

    __device__ __forceinline__ Two pair(int i) const { return *reinterpret_cast<const Two*>(table + 2 * i); }

    /// The bands of a line, without what couples to nothing.
    template <bool Whole>
    __device__ __forceinline__ Row bands(int i) const {
        struct alignas(16) Of {
            T lower, diag, upper, nothing;
        } of = *reinterpret_cast<const Of*>(table + 4 * i);
        const bool in = Whole || i < count, last = bottom && (Whole ? i == R - 1 : i == count - 1);
        return {in && !(i == 0 && top) ? of.lower : T(0), in ? of.diag : T(0), in && !last ? of.upper : T(0), T(0)};
    }

    /// Whole: all R rows exist. Rows that do not are zero, lower and upper where nothing comes before or after as well. column: so many further.
    template <bool Whole>
    __device__ __forceinline__ Row row(int i, int column = 0) const {
        const T* const p = at[i % S::offsets] + i / S::offsets * S::pitch + column;
        const bool in = Whole || i < count;
        if constexpr (S::shared_couplings) return {pair(i).x, in ? p[S::diag] : T(0), pair(i).y, in ? p[S::rhs] : T(0)};
        if constexpr (S::shared_bands) {
            Row r = bands<Whole>(i);
            r.rhs = in ? p[S::rhs] : T(0);
            return r;
        }
        Row r{in ? p[0] : T(0), in ? p[S::operand] : T(0), in ? p[2 * S::operand] : T(0), in ? p[3 * S::operand] : T(0)};
        if (i == 0 && top) r.lower = 0;
        if (bottom && (Whole ? i == R - 1 : i == count - 1)) r.upper = 0;
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

template <bool Whole, class T, int R, class S>
__device__ __forceinline__ void eliminate_chunk(const RawChunk<T, R, S>& raw, Chunk<T, R>& rows) {
    by_fours<R, Whole>(
        raw.count,
        [&](int i) {
            const auto r = raw.template row<Whole>(i);
            rows.eliminate_to_check(i, r.lower, Whole || i < raw.count ? r.diag : T(1), r.upper, r.rhs);
        },
        [&](int i) { rows.a[i] = rows.c[i] = rows.d[i] = 0; });
}

/// x in place of d; true where the chunk's residual is accepted.
template <bool Whole, class T, int R, class S>
__device__ __forceinline__ bool check_chunk(const RawChunk<T, R, S>& raw, Chunk<T, R>& rows, T before, T last, T after, T accept) {
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

/// What is the same in all columns, in all slots: each is of the same rows whatever the tile. Called before all else, so that what is done once costs few registers; where warps share slices it cost the loop some.
template <class T, int R, int L, int Share, bool Shifted>
__device__ __noinline__ void fill_slices(const ColumnJob<T>& job) {
    using S = SliceLayout<T, R, L, Share, Shifted>;
    extern __shared__ __align__(128) unsigned char column_memory[];
    T* const ring = reinterpret_cast<T*>(column_memory);
    const ColumnCut& cut = job.cut;
    const int rank = cut.blocks > 1 ? static_cast<int>(cooperative_groups::this_cluster().block_rank()) : 0;
    const int slices = cut.warps / Share, across = cut.across / Share;
#pragma unroll 1
    for (int k = 0; k < 3; ++k) {
        const TileOperand<T>& from = job.fill[k];
        if (!from.data) continue;
#pragma unroll 1
        for (int i = static_cast<int>(threadIdx.x); i < cut.slots * S::operand; i += static_cast<int>(blockDim.x)) {
            const int slot = i / S::operand, within = i % S::operand, of_slice = within % S::region / S::pitch * S::offsets + within / S::region;
            const int row = (rank * cut.chunks + slot % slices / across * (32 / L)) * R + of_slice;
            const bool matters = of_slice < S::rows && row < job.rows && !(k == 0 && row == 0) && !(k == 2 && row + 1 == job.rows);
            ring[slot * S::all + k * S::operand + within] = matters ? from.data[row * from.row_stride] : T(0);
        }
    }
}

/// Numbers among the bands of a line, in all slots.
template <class S, class T>
__device__ __forceinline__ void fill_bands(const ColumnJob<T>& job, T* ring, int slots) {
    for (int k = 0; k < 3; ++k)
        if (!job.operand[k].data)
            for (int i = static_cast<int>(threadIdx.x); i < slots * S::rows; i += static_cast<int>(blockDim.x)) ring[i / S::rows * S::all + S::bands + i % S::rows * 4 + k] = job.operand[k].value;
}

template <class T, int R, int L, int Share, bool Shifted, ColumnBands Bands = ColumnBands::own, bool Adds = false>
__global__ void __launch_bounds__(column_threads<T>, 1) solve_columns_side_by_side(const __grid_constant__ ColumnJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // batch_refuses keeps others away
    namespace cg = cooperative_groups;
    constexpr int per_warp = 32 / L, wide = L * Share;
    using S = SliceLayout<T, R, L, Share, Shifted, Bands>;
    extern __shared__ __align__(128) unsigned char column_memory[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
    job.opening.open();
    if (job.undecided) {  // after another kernel, which may have left nothing
        after_the_kernel_before();
        if (const unsigned long long left = *job.undecided; left <= job.few || left > job.most) {
            if (left && blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(job.handed_over, left);
            return;
        }
    }
    if constexpr (Share == 1 && !S::shared_bands)
        if (job.cut.bands == ColumnBands::filled) fill_slices<T, R, L, Share, Shifted>(job);
    const ColumnCut& cut = job.cut;
    const int warps = cut.warps, slices = warps / Share, slots = cut.slots, blocks = cut.blocks, columns = cut.columns, chunks = cut.chunks;
    const int rank = blocks > 1 ? static_cast<int>(cg::this_cluster().block_rank()) : 0;
    const bool joined = chunks > 1 || blocks > 1;

    T* const ring = reinterpret_cast<T*>(column_memory);
    T* const links = reinterpret_cast<T*>(column_memory + cut.links_at);
    T* const ends = reinterpret_cast<T*>(column_memory + cut.ends_at);
    T* const answers = reinterpret_cast<T*>(column_memory + cut.answers_at);
    auto* const votes = reinterpret_cast<unsigned*>(column_memory + cut.votes_at);  // of every warp of the cluster, a bit per column
    auto* const barriers = reinterpret_cast<unsigned long long*>(column_memory + cut.barriers_at);
    auto* const drawn = reinterpret_cast<unsigned*>(barriers + slots + 2);  // the tiles of four turns
    const auto arrival = [&](int slot) { return Arrival{shared_address(barriers + slot)}; };
    const Arrival ends_here = arrival(slots), votes_here = arrival(slots + 1);
    const unsigned ends_bytes = static_cast<unsigned>(blocks * columns * 6 * sizeof(T)), votes_bytes = 4u * static_cast<unsigned>(blocks * warps) + 4u;

    for (int s = thread; s < slots; s += static_cast<int>(blockDim.x)) arrival(s).prepare(S::shared_bands ? 33 : 1);
    if (thread == 0) ends_here.prepare(1), votes_here.prepare(blocks > 1 ? 1 : warps);
    if constexpr (S::shared_bands) fill_bands<S>(job, ring, slots);
    else for (int k = 0; k < 4; ++k)
        if (!job.operand[k].data && !(Share == 1 && k < 3 && job.fill[k].data))
            for (int i = thread; i < slots * S::operand; i += static_cast<int>(blockDim.x))
                ring[i / S::operand * S::all + k * S::operand + i % S::operand] = job.operand[k].value;
    const unsigned cluster = blockIdx.x / static_cast<unsigned>(blocks), clusters = static_cast<unsigned>(cut.clusters);
    if (thread < 3) drawn[thread] = cluster + static_cast<unsigned>(thread) * clusters;
    __syncthreads();
    if (blocks > 1) {
        if (thread == 0) ends_here.expect(ends_bytes), votes_here.expect(votes_bytes);
        cg::this_cluster().sync();
    }

    // This warp's place in a tile, and that of the slices which it asks for: `slots` slices later, so always the same.
    const int part = warp % Share, across = cut.across / Share;  // slices side by side
    const auto column_of = [&](int role) { return role % across * wide; };
    const auto row_of = [&](int role) { return (rank * chunks + role / across * per_warp) * R; };
    const auto fill = [&](unsigned tile, int column, int row, int slot) {
        if (tile >= job.tiles || (lane != 0 && !S::shared_bands) || part != 0) return;
        const ColumnPlace place = column_place(job, tile);
        if (lane == 0) load_slice<T, R, L, Share, Shifted, false, Bands>(job, place, place.column + column, row, ring + slot * S::all, arrival(slot));
        if constexpr (S::shared_bands) load_bands<T, S>(job, place, row, ring + slot * S::all + S::bands, arrival(slot));
    };
    const int role = warp / Share, unit = role / across;
    for (int s = role; s < slots; s += slices) fill(cluster + static_cast<unsigned>(s / slices) * clusters, column_of(role), row_of(role), s);
    const int later = role + slots % slices, later_role = later < slices ? later : later - slices;
    const unsigned later_turns = static_cast<unsigned>(slots / slices + (later < slices ? 0 : 1));  // 1 or 2
    const int later_column = column_of(later_role), later_row = row_of(later_role);
    const bool urgent = later_turns == 1;  // what this warp asks for is of the very next tile

    const int chunk = unit * per_warp + lane / L, mine = column_of(role) + part * L + lane % L;
    const int first_row = (rank * chunks + chunk) * R;
    const int rows_left = job.rows - first_row;
    const int count = max(min(R, rows_left), 0);  // not compared with R below: ptxas 13.0 fuses that with the clamp into one instruction, wrongly
    const bool top = first_row == 0, bottom = rows_left > 0 && rows_left <= R;
    const bool whole = __all_sync(~0u, rows_left >= R);
    const JoinRows<T> link{links + mine * 6, columns};
    const bool last_warp = warp + 1 == warps;

    await_the_kernel_before();
    if (!joined) {
        if (thread == 0) job.opening.enter();
        __syncthreads();
    }
    int slot = role;
    unsigned phase = 0;
#pragma unroll 1
    for (unsigned turn = 0;; ++turn) {
        const unsigned tile = joined ? drawn[turn & 3] : cluster + turn * clusters;
        if (tile >= job.tiles) break;
        unsigned later_tile = cluster + (turn + 3) * clusters;
        if (joined && job.tickets && rank == 0 && last_warp && lane == 31) {
            if (turn == 0) job.opening.await();
            const unsigned ticket = atomicAdd(job.tickets, 1u);
            job.opening.close(ticket + 1 == job.tiles);  // one per tile
            later_tile = 3 * clusters + ticket;
        }
        const ColumnPlace place = column_place(job, tile);
        arrival(slot).wait(phase);
        RawChunk<T, R, S> raw{{}, count, top, bottom};
        if constexpr (S::shared_bands) raw.table = ring + slot * S::all + S::bands + lane / L * 4 * R;
        {
            const T* const at = ring + slot * S::all + lane / L * R / S::offsets * S::pitch + part * L + lane % L;
            const unsigned offset = Shifted ? static_cast<unsigned>(offset_in_vector(column_corner(job.operand[3], place, place.column, 0))) : 0u;
#pragma unroll
            for (unsigned p = 0; p < S::offsets; ++p) raw.at[p] = at + p * S::region + (offset + p * static_cast<unsigned>(job.operand[3].row_stride)) % S::offsets;
        }
        Chunk<T, R> rows;
        if (whole) eliminate_chunk<true>(raw, rows);
        else eliminate_chunk<false>(raw, rows);
        rows.reduce();

        Three<T> x{T(0), rows.d[R - 1], T(0)};
        if (joined) {
            link.set(chunk, rows.first(), rows.last());
            __syncthreads();
            if (thread < columns) {
                if (blocks > 1) {
                    const JoinRows<T, wide> own{links + thread * 6, wide}, all{ends + thread * 6, wide};
                    Relation<T> first;
                    bool unused = true;  // the check will tell
                    const Relation<T> last = chunks == 4 ? reduce_rows<4>(own, first, unused) : chunks == 8 ? reduce_rows<8>(own, first, unused) : reduce_rows<16>(own, first, unused);
                    send_relations(shared_address(all.of(rank)), ends_here.barrier, rank, blocks, first, last);
                    ends_here.wait_cluster(turn & 1);
                    if (thread == 0) ends_here.expect(ends_bytes);
                    Three<T> block{T(0), T(0), T(0)};
                    T next = 0;
                    solve_few_rows(all, blocks, unused, [&](int i, T x_i) {
                        if (i + 1 == rank) block.before = x_i;
                        if (i == rank) block.own = x_i;
                        if (i - 1 == rank) next = x_i;
                    });
                    if (rank + 1 < blocks) block.after = value(all.first(rank + 1), block.own, next);
                    T* const answer = answers + thread * 4;
                    answer[0] = block.before, answer[1] = block.own, answer[2] = block.after;
                } else {
                    const JoinRows<T> own{links + thread * 6, columns};
                    bool unused = true;
                    solve_few_rows(own, chunks, unused, [&](int i, T x_i) { own.x(i) = x_i; });
                }
            }
            __syncthreads();
            const T* const answer = answers + mine * 4;
            if (blocks > 1) x = within(link, chunk, chunks, Three<T>{answer[0], answer[1], answer[2]});
            else x = around(link, chunk, chunks);
        }

        const std::int64_t column = place.column + mine;
        unsigned char* const mark = job.marks + (column * job.column_weight + place.outer[0] * job.outer_weight[0] + place.outer[1] * job.outer_weight[1] +
                                                 place.outer[2] * job.outer_weight[2]);
        const bool exists = column < job.columns && (!job.undecided || *mark);  // it changes when all have voted
        const bool good = whole ? check_chunk<true>(raw, rows, x.before, x.own, x.after, job.accept)
                                : check_chunk<false>(raw, rows, x.before, x.own, x.after, job.accept);
        bool failed = exists && rows_left > 0 && !good;
        if (joined) {  // told as early as can be: it is heard after the next rows have been asked for
            unsigned vote = __ballot_sync(~0u, failed);
            if constexpr (L < 32) vote |= vote >> L;
            if (blocks > 1) {
                later_tile = __shfl_sync(~0u, later_tile, 31);
                if (lane < blocks) {
                    const unsigned news = in_block(votes_here.barrier, lane);
                    send(in_block(shared_address(votes + rank * warps + warp), lane), vote, news);
                    if (rank == 0 && last_warp) send(in_block(shared_address(drawn + ((turn + 3) & 3)), lane), later_tile, news);
                }
            } else if (lane == 31) {
                votes[warp] = vote;
                if (last_warp) drawn[(turn + 3) & 3] = later_tile;
                votes_here.arrive();
            }
        }
        if (Share == 1) __syncwarp();
        else asm volatile("bar.sync %0, %1;" ::"r"(1 + role), "n"(32 * Share) : "memory");
        const auto refill = [&] { fill(joined ? drawn[(turn + later_turns) & 3] : tile + later_turns * clusters, later_column, later_row, slot); };
        if (urgent) refill();
        if (joined) {
            votes_here.wait_cluster(turn & 1);
            if (blocks > 1 && thread == 0) votes_here.expect(votes_bytes);
            unsigned any = 0;
            for (int w = lane; w < blocks * warps; w += 32) any |= votes[w];
            if (__any_sync(~0u, any != 0)) {
                unsigned bits = 0;
                for (int w = warp % cut.across; w < blocks * warps; w += cut.across) bits |= votes[w];
                failed = bits >> lane % L & 1;
            }
        }
        if (!urgent) refill();

        if (exists && !failed) {
            const TileOperand<T>& to_x = job.operand[4];
            T* to = column_corner(to_x, place, column, first_row);
            if constexpr (Adds) {
                add_rows_to<R>(to, to_x.row_stride, count, [&](int i) { return rows.d[i]; });
            } else if (whole) {
#pragma unroll
                for (int i = 0; i < R; ++i) __stcs(to, rows.d[i]), to += to_x.row_stride;
            } else {
#pragma unroll
                for (int i = 0; i < R; ++i)
                    if (i < count) __stcs(to, rows.d[i]), to += to_x.row_stride;
            }
        }
        if (rank == 0 && chunk == 0 && exists) {
            *mark = failed;
            if (failed) atomicAdd(job.handed_over, 1ull);
        }
        slot += slices;
        if (slot >= slots) slot -= slots, phase ^= 1;
    }
    if (blocks > 1) cg::this_cluster().sync();
#endif
}

}  // namespace trifold::cuda
