// SPDX-License-Identifier: BSD-3-Clause
// A batch whose columns lie side by side and are shared by blocks of a cluster, on chip, for rows that stay dominant:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i].
//
// Shapes and strides: columns_job.hpp. x may be rhs; nothing else is overwritten but the marks.
// Who does what: as in columns_kernel.cuh, but nothing is checked when x is known, so that a slice's memory is asked for its next rows as soon as its
//   rows are eliminated: loads are under way while chunks are joined, substituted and stored, however long blocks of a cluster wait for each other.
//   They tell each other once per tile. A lane may have two slices, one below the other: a tile is more than shared memory then. Chunks are joined by fours, a thread each, then by one thread per column, then over the cluster.
// Words per row of device memory: 4 read, 1 written. Lanes read neighbouring words: no bank conflicts.
// Numerics: nothing is pivoted. What every elimination leaves, x = d - a before - c next, must weigh |a| + |c| ≤ 17/16: weakly dominant rows have 1
//   at most, in every order of elimination. With p the pivot, |p| + |p c| + |p a| and |lower| (1 + |c| + |a|) of the row before, that is |L||U| row by row,
//   then are at most 5 times the row of |A|, and substitution never amplifies: so the computed x solves (A + E) x = d with |E| ≤ k u |A|, k of the order of the
//   rows of a lane in the worst case (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., theorem 9.3 for the permuted matrix; 14.4 for the
//   upward elimination). A chunk whose rows weigh more tells its neighbours relations that are not numbers: these reach all of the column, which is marked and
//   not stored. Marked columns are for the kernel that checks. Where most seem to be, this one does nothing (columns_judge.hpp).
// Where all columns have the same couplings: a block has those of its rows in a table, and 2 words per row are read.
// Longer columns (device/segments.hpp): windows that overlap are solved as columns are, as if unknowns beyond them were zero; what they found at their seams is compared
//   behind. Or segments, a block each: the first pass reduces them to what a block tells others, in device memory; the second one eliminates again, between unknowns
//   that are known then.
// Rings: lower's first row and upper's last one couple a column's ends. The last chunk that has rows is made a whole one, whose last row is the ring's; chunks behind it are
//   left out of the joins, and the last relation of all is closed with the first one.
// Source: F. A. Wang, A parallel method for tridiagonal equations, ACM TOMS 7 (1981), by chunks, blocks and clusters.
#pragma once

#include "backends/cuda/tridiagonal/block/columns_kernel.cuh"
#include "backends/cuda/tridiagonal/block/segments.cuh"
#include "backends/cuda/tridiagonal/block/store_rows.cuh"
#include "backends/cuda/tridiagonal/thread/flushed.cuh"

namespace trifold::cuda {

/// Row i of V columns: side by side, then they are one vector, or `apart`, where rows begin anywhere.
template <bool Whole, int V, class T, int R, class S>
__device__ __forceinline__ void rows_at(const RawChunk<T, R, S>& raw, int i, int apart, typename RawChunk<T, R, S>::Row (&to)[V]) {
    if constexpr (V == 1 || S::offsets > 1) {
#pragma unroll
        for (int v = 0; v < V; ++v) to[v] = raw.template row<Whole>(i, v * apart);
    } else {
        static_assert(V == 2);
        using Two = typename ColumnVector<T>::type;
        const T* const p = raw.at[0] + i * S::pitch;
        const bool in = Whole || i < raw.count, before = !(i == 0 && raw.top), after = !(raw.bottom && (Whole ? i == R - 1 : i == raw.count - 1));
        const Two none{T(0), T(0)};
        const auto at = [&](int place, bool wanted) { return wanted ? *reinterpret_cast<const Two*>(p + place) : none; };
        if constexpr (S::shared_couplings) {
            const Two couplings = raw.pair(i), diag = at(S::diag, in), rhs = at(S::rhs, in);
            to[0] = {couplings.x, diag.x, couplings.y, rhs.x}, to[1] = {couplings.x, diag.y, couplings.y, rhs.y};
        } else if constexpr (S::shared_bands) {
            const Two rhs = at(S::rhs, in);
            to[0] = to[1] = raw.template bands<Whole>(i);
            to[0].rhs = rhs.x, to[1].rhs = rhs.y;
        } else {
            const Two lower = at(0, in && before), diag = at(S::operand, in), upper = at(2 * S::operand, in && after), rhs = at(3 * S::operand, in);
            to[0] = {lower.x, diag.x, upper.x, rhs.x}, to[1] = {lower.y, diag.y, upper.y, rhs.y};
        }
    }
}

/// Rows `first` … of V columns, R of them.
template <bool Whole, int V, class T, int R, int N, class S>
__device__ __forceinline__ void eliminate_dominant(const RawChunk<T, R, S>& raw, int first, int apart, Chunk<T, N> (&rows)[V], Largest<T> (&weight)[V], Largest<T> (&size)[V], Flushed<T> (&flushed)[V]) {
    by_fours<R, Whole>(
        raw.count,
        [&](int i) {
            typename RawChunk<T, R, S>::Row r[V];
            rows_at<Whole>(raw, i, apart, r);
            const int own = first + i;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const T k = rows[v].eliminate_to_check(own, r[v].lower, Whole || i < raw.count ? r[v].diag : T(1), r[v].upper, r[v].rhs);
                flushed[v].add(k);
                weight[v].add(fabs(rows[v].a[own]) + fabs(rows[v].c[own]));
                size[v].add(rows[v].d[own]);
            }
        },
        [&](int i) {
#pragma unroll
            for (int v = 0; v < V; ++v) rows[v].a[first + i] = rows[v].c[first + i] = rows[v].d[first + i] = 0;
        });
}

/// The chunk's `count` rows as a whole one: the last one of them is its last, and what is between says the same. Before `reduce`.
template <class T, int N>
__device__ __forceinline__ void stretch(Chunk<T, N>& rows, int count) {
#pragma unroll
    for (int i = 0; i + 1 < N; ++i) {
        if (i + 1 < count) continue;
        rows.a[i + 1] = rows.a[i], rows.c[i + 1] = rows.c[i], rows.d[i + 1] = rows.d[i];
        rows.a[i] = T(0), rows.c[i] = T(-1), rows.d[i] = T(0);
    }
}

/// A lane has V columns, and P slices one below the other. Most: blocks of a cluster.
template <class T, int R, int L, int V, bool Shifted, int P, ColumnPass Pass = ColumnPass::whole, ColumnBands Bands = ColumnBands::own, int Most = P == 1 ? 16 : 4, bool Adds = false>
__global__ void __launch_bounds__(column_threads<T> / V, 1) solve_dominant_columns(const __grid_constant__ ColumnJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    namespace cg = cooperative_groups;
    constexpr int per_warp = 32 / L, wide = L * V, N = P * R, apart = Shifted ? L : 1;  // columns of a lane
    constexpr bool segmented = Pass == ColumnPass::reduce || Pass == ColumnPass::finish, windowed = Pass == ColumnPass::windows, cut_up = segmented || windowed, closed = Pass == ColumnPass::rings;
    static_assert(P == 1 || per_warp == 1);
    using S = SliceLayout<T, R, L, V, Shifted, Bands>;
    constexpr bool Shared = S::shared_couplings || S::shared_bands;
    static_assert(!Adds || Pass == ColumnPass::whole);
    static_assert(!Shared || (Pass == ColumnPass::whole && L == 32));
    extern __shared__ __align__(128) unsigned char column_memory[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
    job.opening.open();
    if (segmented && job.segments.unsettled) {
        await_the_kernel_before();
        if (windows_do(job)) {
            if (Pass == ColumnPass::finish && blockIdx.x == 0 && thread == 0) *job.segments.few_marked = 0;
            return;
        }
    }
    const ColumnCut& cut = job.cut;
    const int roles = cut.warps / V, slices = P * roles, slots = cut.slots, blocks = cut.blocks, columns = cut.columns, chunks = cut.chunks;
    const int rank = static_cast<int>(cg::this_cluster().block_rank());

    T* const ring = reinterpret_cast<T*>(column_memory);
    T* const links = reinterpret_cast<T*>(column_memory + cut.links_at);
    T* const ends = reinterpret_cast<T*>(column_memory + cut.ends_at);  // of two turns
    T* const answers = reinterpret_cast<T*>(column_memory + cut.answers_at);
    auto* const barriers = reinterpret_cast<unsigned long long*>(column_memory + cut.barriers_at);
    auto* const drawn = reinterpret_cast<unsigned*>(barriers + slots + 2);  // the tiles of four turns
    const auto arrival = [&](int slot) { return Arrival{shared_address(barriers + slot)}; };
    const int ends_words = blocks * wide * 6;  // columns = wide
    const unsigned ends_bytes = static_cast<unsigned>(ends_words) * static_cast<unsigned>(sizeof(T)) + 4u;

    for (int s = thread; s < slots; s += static_cast<int>(blockDim.x)) arrival(s).prepare(S::shared_bands ? 33 : 1);
    if (thread == 0) arrival(slots).prepare(1), arrival(slots + 1).prepare(1);
    T* const table = reinterpret_cast<T*>(column_memory + cut.votes_at);
    if constexpr (S::shared_bands) {
        fill_bands<S>(job, ring, slots);
    } else if constexpr (S::shared_couplings) {
        const auto coupling = [&](int k, int row) { return job.operand[k].data ? job.operand[k].data[row * job.operand[k].row_stride] : job.operand[k].value; };
        for (int i = thread; i < chunks * N; i += static_cast<int>(blockDim.x)) {
            const int row = rank * chunks * N + i;
            table[2 * i] = row > 0 && row < job.rows ? coupling(0, row) : T(0);
            table[2 * i + 1] = row + 1 < job.rows ? coupling(2, row) : T(0);
        }
    } else {
        for (int k = 0; k < 4; ++k)
            if (!job.operand[k].data)
                for (int i = thread; i < slots * S::operand; i += static_cast<int>(blockDim.x))
                    ring[i / S::operand * S::all + k * S::operand + i % S::operand] = job.operand[k].value;
    }
    const unsigned cluster = blockIdx.x / static_cast<unsigned>(blocks), clusters = static_cast<unsigned>(cut.clusters);
    if (thread < 3) drawn[thread] = cluster + static_cast<unsigned>(thread) * clusters;
    __syncthreads();
    if (thread == 0) arrival(slots).expect(ends_bytes), arrival(slots + 1).expect(ends_bytes);
    cg::this_cluster().sync();

    // This warp's place in a tile, and that of the slices which it asks for: `slots` slices later, so always the same.
    const int role = warp, across = cut.across / V, unit = role / across;
    const auto column_of = [&](int slice) { return slice % across * wide; };
    const auto row_of = [&](int slice) { return (rank * chunks + slice % roles / across * per_warp) * N + slice / roles * R; };
    const auto place_of = [&](unsigned tile) {
        if constexpr (Pass == ColumnPass::finish) return segment_place(job, job.tiles - 1 - tile);  // what was read last is in the second-level cache still
        else if constexpr (cut_up) return segment_place(job, tile);
        else return column_place(job, tile);
    };
    const auto fill = [&](unsigned tile, int column, int row, int slot) {
        if (tile >= job.tiles || (lane != 0 && !S::shared_bands)) return;
        const auto place = place_of(tile);
        if constexpr (cut_up) row += place.row;
        if (lane == 0) load_slice<T, R, L, V, Shifted, closed, Bands>(job, place, place.column + column, row, ring + slot * S::all, arrival(slot));
        if constexpr (S::shared_bands) load_bands<T, S>(job, place, row, ring + slot * S::all + S::bands, arrival(slot));
    };
    for (int s = role; s < slots; s += roles) fill(cluster + static_cast<unsigned>(s / slices) * clusters, column_of(s % slices), row_of(s % slices), s);
    unsigned later_turns[P];  // 1 or 2; of several slices also 0
    int later_column[P], later_row[P];
    for (int p = 0; p < P; ++p) {
        const int later = p * roles + role + slots;
        later_turns[p] = static_cast<unsigned>(later / slices);
        later_column[p] = column_of(later % slices), later_row[p] = row_of(later % slices);
    }
    const bool urgent = P > 1 || later_turns[0] == 1;  // what this warp asks for is of the very next tile

    const int chunk = unit * per_warp + lane / L, own_column = lane % L * (Shifted ? 1 : V), mine = column_of(role) + own_column;
    int first_row = (rank * chunks + chunk) * N, rows_left = job.rows - first_row;
    int count = max(min(N, rows_left), 0);  // not compared with R below: see columns_kernel.cuh
    bool top = !closed && first_row == 0, bottom = !closed && rows_left > 0 && rows_left <= N;
    bool whole = __all_sync(~0u, rows_left >= N);
    const JoinRows<T, wide> link{links + mine * 6, wide};
    const int groups = chunks / 4;  // of four chunks: joined by a thread each, and then by one per column
    T* const fours = links + chunks * wide * 6;
    const int filled = closed ? max(min((job.rows - rank * chunks * N + N - 1) / N, chunks), 1) : chunks;  // chunks of the block that have rows
    const auto filled_of = [&](int group) { return closed ? max(min(filled - 4 * group, 4), 1) : 4; };
    const int filled_groups = closed ? (filled + 3) / 4 : groups;
    const T not_a_number = T(__int_as_float(0x7fffffff));

    await_the_kernel_before();
    if constexpr (Pass == ColumnPass::finish || Pass == ColumnPass::whole)
        if (Pass == ColumnPass::finish ? left_to_others(job) : job.beside && *job.beside) {
            for (int s = role; s < slots; s += roles)
                if (cluster + static_cast<unsigned>(s / slices) * clusters < job.tiles) arrival(s).wait(0);
            return;
        }
    int slot = role;
    unsigned phase = 0;
#pragma unroll 1
    for (unsigned turn = 0;; ++turn) {
        const unsigned tile = drawn[turn & 3];
        if (tile >= job.tiles) break;
        unsigned later_tile = cluster + (turn + 3) * clusters;
        if (job.tickets && rank == 0 && thread == 0) {
            if (turn == 0) job.opening.await();
            const unsigned ticket = atomicAdd(job.tickets, 1u);
            job.opening.close(ticket + 1 == job.tiles);  // one per tile
            later_tile = 3 * clusters + ticket;
            if (windowed && *const_cast<volatile unsigned*>(job.segments.unsettled)) later_tile = ~0u;
        }
        const auto place = place_of(tile);
        T* const known = segmented ? answers + (turn & 1) * 4 * wide : answers;
        if constexpr (cut_up) {
            if (Pass == ColumnPass::finish && thread < wide) fetch_around(job, place, thread, known + thread * 4);
            first_row = place.row + (rank * chunks + chunk) * N, rows_left = job.rows - first_row;
            count = max(min(N, rows_left), 0);
            top = first_row == 0, bottom = rows_left > 0 && rows_left <= N;
            whole = __all_sync(~0u, rows_left >= N);
        }
        Chunk<T, N> rows[V];
        Largest<T> weight[V], size[V];
        Flushed<T> flushed[V];
        int at_slot = slot;
        unsigned at_phase = phase;
        const auto refill = [&](int p) { fill(drawn[(turn + later_turns[p]) & 3], later_column[p], later_row[p], at_slot); };
#pragma unroll
        for (int p = 0; p < P; ++p) {
            if (p > 0) {
                __syncthreads();  // another warp's slice of this turn may have been there, whose phase looks like that of the slice after the next
                if ((at_slot += roles) >= slots) at_slot -= slots, at_phase ^= 1;
            }
            arrival(at_slot).wait(at_phase);
            RawChunk<T, R, S> raw{{}, count - p * R, top && p == 0, bottom && (p + 1 == P || !whole), S::shared_bands ? ring + at_slot * S::all + S::bands : table + 2 * (chunk * N + p * R)};
            const T* const at = ring + at_slot * S::all + lane / L * R / S::offsets * S::pitch + own_column;
            const unsigned offset = Shifted ? static_cast<unsigned>(offset_in_vector(column_corner(job.operand[3], place, place.column, 0))) : 0u;
#pragma unroll
            for (unsigned o = 0; o < S::offsets; ++o) raw.at[o] = at + o * S::region + (offset + o * static_cast<unsigned>(job.operand[3].row_stride)) % S::offsets;
            if (whole) eliminate_dominant<true>(raw, p * R, apart, rows, weight, size, flushed);
            else eliminate_dominant<false>(raw, p * R, apart, rows, weight, size, flushed);
            __syncwarp();
            // What the very next tile waits for is asked for first: requests are served in turn, and asking takes a warp some hundred cycles.
            if (urgent) refill(p);
        }
        bool fine[V];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            fine[v] = weight[v].value() <= row_weight<T> && size[v].value() <= join_limit<T> && !flushed[v].any();
            if (closed && !whole) stretch(rows[v], count);
            rows[v].reduce();
        }
        if constexpr (windowed) {
            // Hopeless: what is beyond the window shows through its first chunk by more than a power of what may be left behind the halo. Others are found at the seams.
            constexpr T hopeless = sizeof(T) == 8 ? T(0x1p-22) : T(0x1p-14);
            bool lasts = false;
#pragma unroll
            for (int v = 0; v < V; ++v) lasts = lasts || fabs(rows[v].a[N - 1]) > hopeless;
            if (rank == 0 && chunk == 0 && !top && lasts) *const_cast<volatile unsigned*>(job.segments.unsettled) = 1;
        }

        __syncthreads();  // links of the turn before have been read: costs little, as all wait for each other below
        if (segmented && thread == 0) drawn[(turn + 3) & 3] = later_tile;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            Relation<T> first = rows[v].first(), last = rows[v].last();
            if (!fine[v]) first.d = last.d = not_a_number;
            JoinRows<T, wide>{link.at + v * apart * 6, wide}.set(chunk, first, last);
        }
        __syncthreads();
        if (thread < columns * groups) {
            const int apart = 32 / groups, j = warp * apart + lane % apart, group = lane / apart;
            bool good = true;
            Relation<T> block_first, block_last = reduce_rows<4>(JoinRows<T, wide>{links + (group * 4 * wide + j) * 6, wide}, block_first, good, filled_of(group));
            if (!good) block_first.d = block_last.d = not_a_number;
            if (groups > 1) {
                const JoinRows<T, wide> above{fours + j * 6, wide};
                above.set(group, block_first, block_last);
                __syncwarp();
                if (group == 0) {
                    if constexpr (closed) block_last = reduce_rows<4>(above, block_first, good, filled_groups);
                    else block_last = groups == 2 ? reduce_rows<2>(above, block_first, good) : reduce_rows<4>(above, block_first, good);
                    if (!good) block_first.d = block_last.d = not_a_number;
                }
            }
            if (Shared && blocks == 1) {
                if (thread == 0) drawn[(turn + 3) & 3] = later_tile;
                if (group == 0) known[j * 4] = known[j * 4 + 2] = T(0), known[j * 4 + 1] = block_last.d;
            } else if (closed && blocks == 1) {
                if (thread == 0) drawn[(turn + 3) & 3] = later_tile;
                if (group == 0) {
                    const JoinRows<T, wide> all{ends + j * 6, wide};
                    all.set(0, block_first, block_last);
                    good = true;
                    const Three<T> block = close_rows<1>(all, 1, 0, 0, false, good);
                    known[j * 4] = block.before, known[j * 4 + 1] = good ? block.own : not_a_number;
                }
            } else if constexpr (!segmented) {
                const Arrival news = arrival(slots + static_cast<int>(turn & 1));
                if (rank == 0 && warp == 0) {
                    const unsigned told = __shfl_sync(~0u, later_tile, 0);
                    if (lane < blocks) send(in_block(shared_address(drawn + (turn + 3 & 3)), lane), told, in_block(news.barrier, lane));
                }
                if (closed && group < 2) {
                    const JoinRows<T, wide> all{ends + (turn & 1) * ends_words + j * 6, wide};
                    if (group == 0) send_relations(shared_address(all.of(rank)), news.barrier, rank, blocks, block_first, block_last);
                    news.wait_cluster(turn >> 1 & 1);
                    if (thread == 0) news.expect(ends_bytes);
                    good = true;
                    const Three<T> block = close_rows<P == 1 ? 8 : 2>(all, blocks, rank, groups > 1 ? apart : 0, group == 1, good);
                    if (group == 0) known[j * 4] = block.before, known[j * 4 + 1] = good ? block.own : not_a_number;
                }
                if (!closed && group == 0) {
                    const JoinRows<T, wide> all{ends + (turn & 1) * ends_words + j * 6, wide};
                    send_relations(shared_address(all.of(rank)), news.barrier, rank, blocks, block_first, block_last);
                    news.wait_cluster(turn >> 1 & 1);
                    if (thread == 0) news.expect(ends_bytes);
                    Three<T> block{T(0), T(0), T(0)};
                    T next = 0;
                    good = true;
                    if constexpr (sizeof(T) == 8 && P > 1 && Most > 4) {  // sixteen rows in registers, beside those of two slices, would be too many
                        Relation<T> unused;
                        block.own = reduce_rows<Most>(all, unused, good, blocks).d;
                        block = within(all, rank, blocks, block);
                    } else {
                        solve_few_rows<Most>(all, blocks, good, [&](int i, T x_i) {
                            if (i + 1 == rank) block.before = x_i;
                            if (i == rank) block.own = x_i;
                            if (i - 1 == rank) next = x_i;
                        });
                        if (rank + 1 < blocks) block.after = value(all.first(rank + 1), block.own, next);
                    }
                    if (!good) block.own = not_a_number;
                    T* const answer = known + j * 4;
                    answer[0] = block.before, answer[1] = block.own, answer[2] = block.after;
                }
            } else if constexpr (Pass == ColumnPass::reduce) {
                if (group == 0) tell_segment(job, place, j, block_first, block_last);
            }
        }
        if constexpr (Pass == ColumnPass::finish) await_copies();
        __syncthreads();
        if (!urgent) refill(0);
        if constexpr (Pass != ColumnPass::reduce) {
            Three<T> x[V];
            bool failed[V];
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int own = mine + v * apart;
                x[v] = {known[own * 4], known[own * 4 + 1], known[own * 4 + 2]};
                failed[v] = !(x[v].own == x[v].own);
                if (groups > 1) x[v] = within(JoinRows<T, wide>{fours + own * 6, wide}, chunk / 4, filled_groups, x[v]);
                x[v] = within(JoinRows<T, wide>{links + (chunk / 4 * 4 * wide + own) * 6, wide}, chunk % 4, filled_of(chunk / 4), x[v]);
            }

            const std::int64_t column = place.column + mine;
            const TileOperand<T>& to_x = job.operand[4];
            bool kept = true;
            if constexpr (windowed) {
                const ColumnRows::Stored rows_kept = kept_of(job, place);
                kept = first_row >= rows_kept.from && first_row < rows_kept.to;
                const bool above = first_row == rows_kept.from && place.segment > 0, below = first_row + N == rows_kept.to && place.segment + 1 < job.segments.rows.count;
                if (above || below) {
#pragma unroll
                    for (int v = 0; v < V; ++v) {
                        Largest<T> largest;
#pragma unroll
                        for (int i = 0; i < N; ++i) largest.add(rows[v].x(i, x[v].before, x[v].own));
                        if (above) tell_seam(job, place, mine + v * apart, false, rows[v].x(0, x[v].before, x[v].own), x[v].before, largest.value());
                        else tell_seam(job, place, mine + v * apart, true, x[v].own, x[v].after, largest.value());
                    }
                }
            }
            if (!kept) {
            } else if (V == 2 && !Shifted && job.x_by_twos && whole && column + 1 < job.columns && !failed[0] && !failed[V - 1]) {
                using Two = typename ColumnVector<T>::type;
                T* to = column_corner(to_x, place, column, first_row);
                const auto two = [&](int i) { return Two{rows[0].x(i, x[0].before, x[0].own), rows[V - 1].x(i, x[V - 1].before, x[V - 1].own)}; };
                if constexpr (Adds) {
                    add_pairs_to<N, Two>(to, to_x.row_stride, two);
                } else {
#pragma unroll
                    for (int i = 0; i < N; ++i) __stcs(reinterpret_cast<Two*>(to), two(i)), to += to_x.row_stride;
                }
            } else {
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    if (column + v * apart >= job.columns || failed[v]) continue;
                    T* to = column_corner(to_x, place, column + v * apart, first_row);
                    if constexpr (Adds) {
                        add_rows_to<N>(to, to_x.row_stride, count, [&](int i) { return rows[v].x(i, x[v].before, x[v].own); });
                    } else if (whole) {
#pragma unroll
                        for (int i = 0; i < N; ++i) __stcs(to, rows[v].x(i, x[v].before, x[v].own)), to += to_x.row_stride;
                    } else {
#pragma unroll
                        for (int i = 0; i < N; ++i)
                            if (i < count) __stcs(to, rows[v].x(i, x[v].before, x[v].own)), to += to_x.row_stride;
                    }
                }
            }
            if (windowed && rank == 0 && chunk == 0)
#pragma unroll
                for (int v = 0; v < V; ++v)
                    if (failed[v] && column + v * apart < job.columns) *const_cast<volatile unsigned*>(job.segments.unsettled) = 1;
            if (!cut_up && rank == 0 && chunk == 0)
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    if (column + v * apart >= job.columns) continue;
                    job.marks[(column + v * apart) * job.column_weight + place.outer[0] * job.outer_weight[0] + place.outer[1] * job.outer_weight[1] +
                              place.outer[2] * job.outer_weight[2]] = failed[v];
                    if (failed[v]) atomicAdd(job.handed_over, 1ull);
                }
        }
        for (slot += slices; slot >= slots; slot -= slots) phase ^= 1;
    }
    cg::this_cluster().sync();  // messages still go to blocks
#endif
}

}  // namespace trifold::cuda
