// SPDX-License-Identifier: BSD-3-Clause
// A step of boxes whose planes fit on one multiprocessor, or on those of a cluster, in one pass over memory.
//
//   lines along z backwards, lines along y, u ← u + d, which ends step s;  d ← rhs(u), lines along x, lines along z forwards, which begins step s + 1
//
// What goes backwards through the planes of one step goes forwards through those of the next: steps eliminate along z from the first plane and from the last one in turns.
//
// Arrays: the field before and behind the step, two of them in turns; values, packed, overwritten. Ends of segments along z: ends.cuh joins them between two passes.
// Who does what: a cluster of K blocks, one where it fits, has a segment of H planes of a mesh, and the plane on either side of it, whose solution it finds a second time; a block has as many
//   rows of each. Of these a thread has
//   first R_y rows of two neighbouring columns (lines along z backwards, y), then R points of two neighbouring rows (right-hand side, lines along x, z forwards). Of planes that are no squares
//   some warps have only one of these. Planes come and go whole, by the
//   copy engine, into four places: one that arrives and three that the right-hand side reads, the oldest of which takes what leaves. The warp that leaves a plane last sends what was
//   eliminated of it, and asks for what comes into its place; two others ask for values and send the field. A warp of its own for that would leave 128 registers to each of 13 warps.
// Words per point and step: 2 read, 2 written, and 8 / H for ends and for planes that are read twice.
// Shared memory, words per point: 4 arrive and leave, 2 values and what lies before the segment, 2 the field, 4 right-hand side, 1 out; factors 10 / (2 · vector).
// An H200's multiprocessor moves 128 bytes per clock, some 30 words in the time in which memory moves its share of 4.4.
// Clusters: ends of segments along y go to all blocks (2 (S - S/K) nx words that arrive, of a plane), in two places in turns; rows at a part's end to the block beside it, for the right-hand
//   side of a plane later. Data and the news of it come together; nobody waits for a whole cluster but once, at the beginning, and before every plane of a run's first pass, which has no ends.
// Banks: columns side by side in lanes; rows of R points a lane in vectors, R = 12 floats, 10 floats or doubles free of conflicts (10 floats: every second pair of rows the other way round), 64 bytes
//   where the copy engine exchanges 16 bytes within 128 (layout.hpp).
// Numerics: ../streaming/chip.cuh and lanes.cuh, with the same order of operations; safe or refused by the host.
#pragma once

#include "backends/cuda/mesh/planes/places.cuh"
#include "backends/cuda/mesh/streaming/lanes.cuh"

namespace trifold::cuda::planes {

using streaming::multiply_add;

/// Back: the step before ends here; Ahead: the next one begins.
template <class C, bool Back, bool Ahead>
struct PlanesBlock : PlanesPlaces<C, Back, Ahead> {
    using Places = PlanesPlaces<C, Back, Ahead>;
    using T = typename C::real;
    using Two = Values<T, 2>;
    static constexpr int R = C::R, S = C::S, H = C::H, K = C::K, V = R * sizeof(T) % 16 == 0 ? 16 / static_cast<int>(sizeof(T)) : 8 / static_cast<int>(sizeof(T));
    static constexpr bool asks_early = Places::part_bytes >= 32 * 1024;  // timed: what comes later is waited for longer than what leaves, in large planes
    using Piece = Values<T, V>;
    static_assert(!C::swizzled || V * sizeof(T) == 16);
    using Places::layout, Places::slots, Places::P, Places::nx, Places::R_y, Places::rows, Places::own_segments, Places::has_columns, Places::has_rows, Places::asks_values, Places::sends_field;
    using Places::a, Places::pass, Places::memory, Places::thread, Places::rank, Places::mesh, Places::before_there, Places::behind_there, Places::from, Places::to;
    using Places::full, Places::values_full, Places::ends_full, Places::beside_full, Places::looked, Places::turn_of, Places::turns_before;
    using Places::slot, Places::last, Places::first, Places::beside, Places::plane, Places::values_at;
    using Places::bring_field, Places::bring_values, Places::send, Places::sent, Places::await_read, Places::leave, Places::send_eliminated, Places::put_ends, Places::put_no_ends, Places::await_cluster, Places::send_beside;

    T back[2][R_y], ahead[2][R], sum[2][R];  // along z: the solution of the plane before, what is eliminated, what the first row keeps

    __device__ __forceinline__ PlanesBlock(const MeshArguments<T>& a, const Pass<T>& pass, T* memory) : Places{a, pass, memory} {
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
            for (int i = 0; i < R; ++i) ahead[k][i] = 0, sum[k][i] = 0;
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
            for (int i = 0; i < R_y; ++i) back[k][i] = 0;
    }

    /// Lines along z backwards and along y forwards, of plane k. The ends of segments along y are in shared memory then.
    __device__ __forceinline__ void solve_back(int k, T (&y)[2][R_y], unsigned& turn) {
        const ThreadColumns<C> place(anew());
        const int column = place.column, own_y = rank * own_segments + place.own_y;
        if (k < H) values_full().wait(turn++ & 1);
        const T *const before = memory + layout.before(), *const arrived = k < H ? memory + layout.values() : before;
#pragma unroll
        for (int i = 0; i < R_y; ++i) {
            const Two two = *reinterpret_cast<const Two*>(arrived + place.at(i));
            y[0][i] = two.at[0], y[1][i] = two.at[1];
        }
        if constexpr (!C::moves_alone) {
            if (k > 0 && k < H - 1) {
                const T upper = memory[layout.along_z() + 3 * H + k], fill = memory[layout.along_z() + 4 * H + k];
#pragma unroll
                for (int i = 0; i < R_y; ++i) {
                    const Two below = *reinterpret_cast<const Two*>(before + place.at(i));
#pragma unroll
                    for (int c = 0; c < 2; ++c) y[c][i] = multiply_add(-upper, back[c][i], multiply_add(-fill, below.at[c], y[c][i]));
                }
            }
            const T* const table = memory + layout.along_y() + own_y * layout.apart(R_y);
            T inverse[R_y], lower[R_y], reach[R_y], z[2];
            read_row(table, inverse), read_row(table + layout.padded(R_y), lower), read_row(table + 2 * layout.padded(R_y), reach);
#pragma unroll
            for (int i = 0; i < R_y; ++i)
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    back[c][i] = y[c][i];
                    y[c][i] = i ? multiply_add(-lower[i], y[c][i ? i - 1 : 0], y[c][i] * inverse[i]) : y[c][0] * inverse[0];
                    if (i < R_y - 1) z[c] = i ? multiply_add(reach[i], y[c][i], z[c]) : reach[0] * y[c][0];
                }
            put_ends(k, own_y * nx + column, Two{{y[0][R_y - 1], y[1][R_y - 1]}}, Two{{z[0], z[1]}});
        }
    }

    /// Joins segments along y, each thread for itself, and goes back; the field of plane k becomes that behind the step. Which of the thread's columns are not finite.
    __device__ __forceinline__ int update(int k, T (&y)[2][R_y]) const {
        const ThreadColumns<C> place(anew());
        const int column = place.column, own_y = rank * own_segments + place.own_y;
        int bad = 0;
        if constexpr (!C::moves_alone) {
            const T *const table = memory + layout.along_y() + own_y * layout.apart(R_y), *const joins = memory + layout.along_y() + S * layout.apart(R_y);
            const int of = turn_of(k);
            if constexpr (K > 1) ends_full(of).wait_cluster(turns_before(k));
            const T *const firsts = first(of) + column, *const lasts = last(of) + column;
            T gamma[2][S], x[2] = {}, x_last[2] = {}, x_before[2] = {};
#pragma unroll
            for (int s = 0; s < S; ++s) {
                const Two first = *reinterpret_cast<const Two*>(firsts + (s + 1) * nx), last = *reinterpret_cast<const Two*>(lasts + s * nx);
#pragma unroll
                for (int c = 0; c < 2; ++c) gamma[c][s] = multiply_add(-joins[4 * s + 1], s ? gamma[c][s ? s - 1 : 0] : T(0), multiply_add(-joins[4 * s], first.at[c], last.at[c]) * joins[4 * s + 2]);
            }
#pragma unroll
            for (int s = S - 1; s >= 0; --s)
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    x[c] = multiply_add(-joins[4 * s + 3], x[c], gamma[c][s]);
                    if (s == own_y) x_last[c] = x[c];
                    if (s == own_y - 1) x_before[c] = x[c];
                }
            T upper[R_y], fill[R_y];
            read_row(table + 3 * layout.padded(R_y), upper), read_row(table + 4 * layout.padded(R_y), fill);
#pragma unroll
            for (int i = R_y - 1; i >= 0; --i)
#pragma unroll
                for (int c = 0; c < 2; ++c) y[c][i] = i == R_y - 1 ? x_last[c] : multiply_add(-upper[i], y[c][i < R_y - 1 ? i + 1 : 0], multiply_add(-fill[i], x_before[c], y[c][i]));
            bad = (streaming::finite(y[0][0], x_last[0]) ? 0 : 1) + (streaming::finite(y[1][0], x_last[1]) ? 0 : 2);
        }
        T* const field = slot(k);
        Two low, high;
#pragma unroll
        for (int i = 0; i < R_y; ++i) {
            Two two = *reinterpret_cast<const Two*>(field + place.at(i));
            two.at[0] = two.at[0] + y[0][i], two.at[1] = two.at[1] + y[1][i];
            *reinterpret_cast<Two*>(field + place.at(i)) = two;
            if (i == 0) low = two;
            if (i == R_y - 1) high = two;
        }
        if constexpr (K > 1 && Ahead && !C::moves_alone)
            if (k >= 0 && k < H) send_beside(k, place, low, high);
        return bad;
    }

    /// Rare: lines along y that are not finite, once each, by the threads of their first segments. By all threads.
    __device__ __forceinline__ void report_back(int k, int bad) const {
        const ThreadColumns<C> place(anew());
        const int column = place.column, own_y = place.own_y;
        T* const marks = first(turn_of(k)) + rank * own_segments * nx + column;  // of this block's segments: others may not have looked at theirs yet
        __syncthreads();
        if (own_y == 0) *reinterpret_cast<Two*>(marks) = Two{};
        __syncthreads();
        if (bad & 1) marks[0] = 1;
        if (bad & 2) marks[1] = 1;
        __syncthreads();
        if (own_y == 0 && rank == 0 && k >= 0 && k < H)
#pragma unroll
            for (int c = 0; c < 2; ++c)
                if (marks[c] != T(0)) {
                    *reinterpret_cast<volatile unsigned char*>(&pass.failed_before[mesh]) = static_cast<unsigned char>(C::line_y + 1);
                    report_line(a.state, a.sweep - 1, MeshState::key(C::line_y, values_at(k) + column + c, false, C::not_finite));
                }
        __syncthreads();
    }

    /// The plane beyond a side, from plane k beside it, into the place of another.
    __device__ __forceinline__ void mirror(int k, int to_place) const {
        const ThreadColumns<C> place(anew());
        const int side = (k == 0) == pass.up ? 0 : 1;
        const bool odd = C::edge(C::target, 2, 0) == C::edge(C::target, 2, 1) ? C::edge(C::target, 2, 0) == edge_odd : C::edge(C::target, 2, side) == edge_odd;
        const T twice = a.field[C::target].twice[2][side];
        const T* const inside = slot(k);
        T* const beyond = slot(to_place);
#pragma unroll
        for (int i = 0; i < R_y; ++i) {
            Two two = *reinterpret_cast<const Two*>(inside + place.at(i));
            if (odd) two.at[0] = twice - two.at[0], two.at[1] = twice - two.at[1];
            *reinterpret_cast<Two*>(beyond + place.at(i)) = two;
        }
    }

    /// Right-hand side of plane k, from that and the ones beside it.
    template <class Parameters>
    __device__ __forceinline__ void right_hand_side(int k, const Parameters& p, T (&d)[2][R]) const {
        const ThreadRows<C> place(anew());
        const int own_x = place.own_x, row = place.row, turned = place.turned;
        const T *const here = slot(k), *const below = slot(pass.up ? k - 1 : k + 1), *const above = slot(pass.up ? k + 1 : k - 1);
        // Beside a side of y the pair's own row takes the place of the one that is not there: times sign, plus offset. -0 leaves every value what it is.
        T sign[2], offset[2];
        const T* row_beside[2];
        int begin[2], begin_beside[2];
        if constexpr (K > 1 && !C::moves_alone) beside_full(k & 1).wait_cluster(static_cast<unsigned>(k) >> 1 & 1);
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const int r = c ^ turned;
            const bool inside = r ? row + 2 < rows : row > 0, other = K > 1 && !C::moves_alone && !inside && (r ? rank < K - 1 : rank > 0), odd = !inside && !other && C::edge(C::target, 1, r) == edge_odd;
            begin[c] = place.begin(row + r);
            begin_beside[c] = place.begin(other ? 0 : inside ? r ? row + 2 : row - 1 : row + r);
            row_beside[c] = other ? beside(k & 1, r) : here;
            sign[c] = odd ? T(-1) : T(1), offset[c] = odd ? a.field[C::target].twice[1][r] : -T(0);
        }
        T own[2][R], side[2][2];
#pragma unroll
        for (int c = 0; c < 2; ++c) {
#pragma unroll
            for (int i = 0; i < R; i += V) {
                const Piece piece = *reinterpret_cast<const Piece*>(here + place.piece(begin[c], i));
#pragma unroll
                for (int v = 0; v < V; ++v) own[c][i + v] = piece.at[v];
            }
            // Beyond the ends of a row its end, mirrored; else the next lane's.
            const bool low_end = own_x == 0, high_end = own_x == S - 1;
            side[c][0] = here[place.next_to(begin[c], row + (c ^ turned), low_end ? 0 : -1)], side[c][1] = here[place.next_to(begin[c], row + (c ^ turned), high_end ? R - 1 : R)];
            if (low_end && C::edge(C::target, 0, 0) == edge_odd) side[c][0] = a.field[C::target].twice[0][0] - side[c][0];
            if (high_end && C::edge(C::target, 0, 1) == edge_odd) side[c][1] = a.field[C::target].twice[0][1] - side[c][1];
        }
#pragma unroll
        for (int i = 0; i < R; i += V) {
            Piece outer[2], low[2], high[2];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const int at = place.piece(begin[c], i);
                low[c] = *reinterpret_cast<const Piece*>(below + at), high[c] = *reinterpret_cast<const Piece*>(above + at);
                outer[c] = *reinterpret_cast<const Piece*>(row_beside[c] + place.piece(begin_beside[c], i));
#pragma unroll
                for (int v = 0; v < V; ++v) outer[c].at[v] = multiply_add(sign[c], outer[c].at[v], offset[c]);
            }
#pragma unroll
            for (int v = 0; v < V; ++v)
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    const NearStar<C, V> near{own, side, outer, low, high, c, i + v, (c ^ turned) != 0};
                    T result[1];
                    if constexpr (C::moves_alone) result[0] = T(0x1p-20) * ((own[c][i + v] + low[c].at[v]) + (high[c].at[v] + outer[c].at[v]));
                    else C::rhs(near, p, result, std::int64_t{own_x * R + i + v}, std::int64_t{rank * rows + row + (c ^ turned)}, std::int64_t{plane(k)}, mesh, a.step);
                    d[c][i + v] = result[0];
                }
        }
    }

    /// Lines along x.
    template <class Join>
    __device__ __forceinline__ void solve_x(int k, const Join& join, T (&d)[2][R]) const {
        const ThreadRows<C> place(anew());
        const int own_x = place.own_x;
        if constexpr (!C::moves_alone) {
            const T* const table = memory + layout.along_x() + own_x * layout.apart(R);
            T z[2], x_last[2], before[2];
            {
                T inverse[R], lower[R], reach[R];
                read_row(table, inverse), read_row(table + layout.padded(R), lower), read_row(table + 2 * layout.padded(R), reach);
#pragma unroll
                for (int i = 0; i < R; ++i)
#pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        d[c][i] = i ? multiply_add(-lower[i], d[c][i ? i - 1 : 0], d[c][i] * inverse[i]) : d[c][0] * inverse[0];
                        if (i < R - 1) z[c] = i ? multiply_add(reach[i], d[c][i], z[c]) : reach[0] * d[c][0];
                    }
            }
#pragma unroll
            for (int c = 0; c < 2; ++c) join.solve(d[c][R - 1], z[c], x_last[c], before[c]);
            {
                T upper[R], fill[R];
                read_row(table + 3 * layout.padded(R), upper), read_row(table + 4 * layout.padded(R), fill);
#pragma unroll
                for (int i = R - 1; i >= 0; --i)
#pragma unroll
                    for (int c = 0; c < 2; ++c) d[c][i] = i == R - 1 ? x_last[c] : multiply_add(-upper[i], d[c][i < R - 1 ? i + 1 : 0], multiply_add(-fill[i], before[c], d[c][i]));
            }
            const bool good[2] = {streaming::finite(d[0][0], d[0][R - 1]), streaming::finite(d[1][0], d[1][R - 1])};
            if (__any_sync(~0u, !good[0] || !good[1])) report_x(k, good);
        }
    }

    __device__ __forceinline__ void report_x(int k, const bool (&good)[2]) const {
        const ThreadRows<C> place(anew());
        const int own_x = place.own_x, row = place.row, turned = place.turned;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const unsigned which = __ballot_sync(~0u, !good[c]) >> (thread % 32 & ~(S - 1));
            if (own_x != 0 || !(S == 32 ? which : which & ((1u << S % 32) - 1))) continue;
            *reinterpret_cast<volatile unsigned char*>(&pass.failed[mesh]) = static_cast<unsigned char>(C::line_x + 1);
            report_line(a.state, a.sweep, MeshState::key(C::line_x, values_at(k) + (rank * rows + row + (c ^ turned)) * nx, false, C::not_finite));
        }
    }

    __device__ __forceinline__ void store(T* to, const T (&d)[2][R]) const {
        const ThreadRows<C> place(anew());
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const int begin = place.begin(place.row + (c ^ place.turned));
#pragma unroll
            for (int i = 0; i < R; i += V) {
                Piece piece;
#pragma unroll
                for (int v = 0; v < V; ++v) piece.at[v] = d[c][i + v];
                *reinterpret_cast<Piece*>(to + place.piece(begin, i)) = piece;
            }
        }
    }

    template <class Parameters>
    __device__ __forceinline__ void run(const Parameters& p) {
        this->begin();
        const streaming::LaneJoin<T, S> join(memory + layout.along_x() + S * layout.apart(R), thread % S);
        unsigned values_turn = 0;
        bool last_left = false;  // this thread has sent what was eliminated of the plane before
#pragma unroll 1
        for (int j = from; j <= (Ahead ? H : H - 1); ++j) {
            T y[2][R_y];
            int bad = 0;
            // Of planes as they have come.
            if constexpr (!Back && K > 1 && !C::moves_alone)
                if (j > 0) await_cluster(), send_beside(j - 1);
            if (j <= to) {
                // Of a place its planes come so many apart, the first of them from `from` on.
                full(j).wait((j - from) / slots & 1);
                if (Back && has_columns()) solve_back(j, y, values_turn);
                else if (Back && K > 1 && !C::moves_alone) put_no_ends(j);
            }
            const auto ask = [&] {
                if (!Ahead || !last_left) return;
                await_read();
                bring_field(j + 1);
            };
            if (asks_early) ask();
            __syncwarp();
            __syncthreads();
            if (thread == asks_values) bring_values(j + 1);
            if (!asks_early) ask();
            __syncwarp();
            if constexpr (Back)
                if (j <= to && has_columns()) bad = update(j, y);
            if (Ahead && j == 0 && !before_there && has_columns()) mirror(0, -1);
            if (Ahead && j == H && !behind_there && has_columns()) mirror(H - 1, H);
            if (Back && thread == sends_field) {
                await_read();
                if (!Ahead) bring_field(j + 3);
            }
            streaming::before_bulk_copies();
            const bool any_bad = __syncthreads_or(bad);
            if (Back && thread == sends_field && j >= 0 && j < H) {
                if (!any_bad) send(pass.to, pass.map_to, std::int64_t{plane(j)} * P, slot(j), mesh, pass.to_apart);
                sent();
            }
            __syncwarp();
            if (Back && any_bad) report_back(j, bad);
            const int k = j - 1;
            if (!Ahead || k < 0 || !has_rows()) continue;
            T d[2][R];
            right_hand_side(k, p, d);
            __syncwarp();
            if (thread % 32 == 0) looked().arrive();
            solve_x(k, join, d);
            if constexpr (!C::moves_alone) {
                const T inverse = memory[layout.along_z() + k], lower = memory[layout.along_z() + H + k], reach = memory[layout.along_z() + 2 * H + k];
#pragma unroll
                for (int c = 0; c < 2; ++c)
#pragma unroll
                    for (int i = 0; i < R; ++i) {
                        ahead[c][i] = d[c][i] = multiply_add(-lower, ahead[c][i], d[c][i] * inverse);
                        sum[c][i] = multiply_add(reach, d[c][i], sum[c][i]);
                    }
            }
            looked().wait(k & 1);
            store(slot(k - 1), d);
            if (k == H - 1) store(slot(k), sum);  // its field has been read on its way out before the last barrier
            last_left = leave(k);
            if (last_left) send_eliminated(k);
        }
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
};

/// C: real, nx, ny, nz, H (planes of a segment), S (segments of a line along x or y), R, R_y (rows of each), K (blocks of a cluster, each with a part of a plane's rows), swizzled (layout.hpp), target, edge(field, axis, side), line_x, line_y, line_z, not_finite, moves_alone,
/// Parameters, rhs(near, p, out, x, y, z, mesh, step). A cluster per segment of a mesh.
template <class C, bool Back, bool Ahead>
__device__ __forceinline__ void planes_pass(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const Pass<typename C::real>& pass) {
    using T = typename C::real;
    extern __shared__ __align__(1024) int4 shared[];
    streaming::let_next_begin();
    PlanesBlock<C, Back, Ahead> block(a, pass, reinterpret_cast<T*>(shared));
    block.prepare();
    streaming::await_previous();
    // One answer for all: other meshes, and other blocks of this one, may fail meanwhile.
    bool on = runs(a.state, a.sweep - (Back ? 1 : 0));
    if (Back) {
        const int failed = *reinterpret_cast<const volatile unsigned char*>(&pass.failed_before[block.mesh]);
        on = on && (failed == 0 || failed == C::line_y + 1);
    }
    on = __syncthreads_and(on);
    if constexpr (C::K > 1) on = block.all_run(on);
    if (on) block.run(p);
}

}  // namespace trifold::cuda::planes
