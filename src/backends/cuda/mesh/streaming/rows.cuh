// SPDX-License-Identifier: BSD-3-Clause
// The right-hand side and the lines along x:   values = (lower, diag, upper)^-1 rhs(fields)
// and, where C::ahead, lines along y or z eliminated forwards in segments of so many rows (LinesAhead; joins.cuh and columns.cuh do the rest).
//
// Arrays: fields any strides; values packed, with C::ahead [mesh][along][piece of a row][across][x in it], as columns want them. Overwritten: values, and ends of segments behind them.
// Who does what: a block goes through planes, along z or along y, with a slab of H rows. What the right-hand side reads is brought plane by plane with the rows beside the slab, into a ring of places in shared
//   memory: by a warp of its own, or, where C::bringer is false, by whichever warp leaves a place last. Every (other) warp has K neighbouring rows in each lane, and `lanes` lanes along a
//   row, each R points of it: it makes their right-hand sides, eliminates its segments, joins them with its neighbours by shuffles and writes
//   the solution to the place that is free by then, from where the warp carries its rows out. Warps meet at barriers in memory that
//   they arrive at long before they wait for them: after their last look at a plane, and once they have carried rows out. Where C::apart, warps carry rows out through places of their own and wait for planes alone.
// Words per point: 1 read (and (H + 2 reach) / H of the second-level cache), 1 written, 1 / C::ahead of ends.
// Shared memory, words per point: 1 arrives, (K + 2) / K for neighbours along x and y and 2 along z, 5 / K of factors (less where rows share a warp), 2 for
//   carrying out, 11 / R of shuffles: of the 15.6 that an H200's multiprocessors move while memory moves 2, 10.5 in three dimensions with K = 2 (ncu, 256^3).
//   Instructions: 38.6 per point there, of 62 that are issued in that time in floats; 3 more where it eliminates ahead, and the registers of two values per point: the kernel is as fast as they suffice (cut.cpp).
// Banks: lanes are R points apart, R odd, or as far apart as the host found to be free of conflicts (cut.cpp); vectors an odd number of them apart, or in another order in every second lane (star.cuh).
// Numerics: chip.cuh, the join by lanes.cuh; safe or refused by the host (line_table.hpp).
#pragma once

#include "backends/cuda/mesh/points.cuh"
#include "backends/cuda/mesh/streaming/lanes.cuh"
#include "backends/cuda/mesh/streaming/slab.cuh"
#include "backends/cuda/tridiagonal/block/copy_engine.cuh"

namespace trifold::cuda::streaming {

/// A place of the ring, and whose turn it is.
template <int depth>
struct Turn {
    int place = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void next() {
        if (++place == depth) place = 0, parity ^= 1;
    }
    __device__ __forceinline__ Turn after(int count) const {
        Turn turn{place + count, parity};
        if (turn.place >= depth) turn.place -= depth, turn.parity ^= 1;
        return turn;
    }
};

/// Of a warp's rows to memory, through their place in shared memory.
template <class C>
struct WayOut {
    using T = typename C::real;
    T* rows;
    int own, count, lane;  ///< where a lane's points are; rows that there are
    bool there, last;      ///< whether a lane has a segment, and the last one

    /// Pieces of C::piece points of a row are `pieces_apart` from each other in memory, and those of the next row `apart`.
    template <int apart, int pieces_apart>
    __device__ __forceinline__ void carry(const T (&value)[C::K][C::R], T* out) const {
        constexpr int missing = (C::nx + C::R - 1) / C::R * C::R - C::nx, each = C::vectors ? vector_values<T> : 1, pieces = C::nx / each;
        if constexpr (C::star) {
            using Vectors = LaneVectors<T, C::R>;
            static_assert(missing == 0 && C::vectors);
            const Vectors vectors(lane % C::lanes);
#pragma unroll
            for (int k = 0; k < C::K; ++k)
#pragma unroll
                for (int i = 0; i < C::R; i += Vectors::points) {
                    typename Vectors::Points points;
#pragma unroll
                    for (int v = 0; v < Vectors::points; ++v) points.at[v] = value[k][i + v];
                    vectors.store(points, rows + own + k * C::pitch + i);
                }
        } else if (there)
#pragma unroll
            for (int i = 0; i < C::R; ++i)
                if (i >= missing || !last)
#pragma unroll
                    for (int k = 0; k < C::K; ++k) rows[own + k * C::pitch + i] = value[k][i];
        __syncwarp();
        // As many lanes side by side as leave none idle, and no division.
        constexpr int warp_rows = RowsLayout<C>::warp_rows, most = 32 / warp_rows > 8 ? 32 / warp_rows : 8;
        constexpr int wide = pieces % 32 == 0 ? 32 : pieces % 16 == 0 && most <= 16 ? 16 : pieces % 8 == 0 && most <= 8 ? 8 : 32, at_once = 32 / wide;
        const int column = lane % wide * each, row = lane / wide;
        constexpr int P = C::piece;
        constexpr bool whole = P == C::nx, even = P % (wide * each) == 0 || wide * each % P == 0;  // then every step of a lane is as far as any other lane's
        const T* const from = rows + row * C::pitch + column;
        T* const to = out + row * apart + (whole ? column : even ? column / P * pieces_apart + column % P : 0);
        const auto at = [&](int q) { return whole ? q : even ? q / P * pieces_apart + q % P : (column + q) / P * pieces_apart + (column + q) % P; };
#pragma unroll
        for (int r = 0; r < warp_rows; r += at_once)
            if (row + r < count)
#pragma unroll
                for (int q = 0; q < pieces; q += wide)
                    if (pieces % wide == 0 || lane % wide + q < pieces) {
                        if constexpr (C::vectors) *reinterpret_cast<typename Vector16<T>::type*>(to + r * apart + at(q * each)) = *reinterpret_cast<const typename Vector16<T>::type*>(from + r * C::pitch + q * each);
                        else to[r * apart + at(q)] = from[r * C::pitch + q];
                    }
    }
};

/// What a block does one after another.
template <class C>
struct RowsTask {
    static constexpr int H = RowsLayout<C>::H, slabs = (RowsAxes<C>::n_across + H - 1) / H, chunks = (RowsAxes<C>::n_along + C::chunk - 1) / C::chunk;
    std::int64_t mesh;
    int first_row, from, to;

    // Slabs side by side are done at about the same time.
    __device__ __forceinline__ RowsTask(std::int64_t task, std::int64_t first_mesh) {
        first_row = static_cast<int>(task % slabs) * H;
        from = static_cast<int>(task / slabs % chunks) * C::chunk;
        to = from + C::chunk < RowsAxes<C>::n_along ? from + C::chunk : RowsAxes<C>::n_along;
        mesh = first_mesh + task / slabs / chunks;
    }
};

/// The warp that brings a plane (it may lie beyond a side) of a slab with the rows beside it.
template <class C>
__device__ __forceinline__ void bring(const MeshArguments<typename C::real>& a, const RowsTask<C>& task, int at_along, typename C::real* place, const Arrival& full, int lane) {
    using T = typename C::real;
    using L = RowsLayout<C>;
    using Axes = RowsAxes<C>;
    constexpr int reach = Axes::reach_across, n = Axes::n_across;
    const int first = task.first_row - reach, rows = (task.first_row + L::H < n ? task.first_row + L::H : n) + reach - first;
    if constexpr (C::bulk) {
        if (lane == 0) full.expect(static_cast<unsigned>(rows * C::nx * C::staged_count) * sizeof(T));
        __syncwarp();
    }
#pragma unroll
    for (int f = 0; f < C::fields; ++f)
        if (C::staged >> f & 1) {
            const T* const from = a.field[f].data + task.mesh * C::stride(f, 3) + mirror_index<C>(f, C::along, at_along, Axes::n_along) * C::stride(f, C::along);
            T* const to = place + L::origin(f) - reach * C::pitch;
            if constexpr (C::bulk) {
#pragma unroll
                for (int more = 0; more < L::rows; more += 32)
                    if (const int r = more + lane; r < rows) full.copy(shared_address(to + r * C::pitch), from + mirror_index<C>(f, Axes::across, first + r, n) * C::stride(f, Axes::across), C::nx * static_cast<unsigned>(sizeof(T)));
            } else {
#pragma unroll 4
                for (int q = lane; q < rows * C::nx; q += 32) {
                    const int r = q / C::nx, x = q % C::nx;
                    copy_element(shared_address(to + r * C::pitch + x), from + mirror_index<C>(f, Axes::across, first + r, n) * C::stride(f, Axes::across) + x * C::stride(f, 0));
                }
            }
        }
    if constexpr (!C::bulk) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full.barrier) : "memory");
}

/// C: real, fields, nx, ny, nz, edge(field, axis, side), stride(field, axis), K, R, lanes, warps, pitch (of rows in shared memory), depth (places of the ring), chunk (planes of a
/// task), staged (bit f: field f), any_staged (one of them), staged_count, star (the right-hand side reads its target alone, as star.cuh has it; lanes have two rows, whole segments of vectors), bringer (a warp besides brings planes; or who leaves a place last does), bulk (rows are copied whole, 16 bytes at a time), vectors (rows of values are), has_rhs, target, reach_x, reach_y,
/// reach_z, Parameters, rhs(near, …), ends_x, ring_x, line_x, along (the axis that blocks go along: 1, 2), alike (lanes.cuh), apart (rows go out through places of their own), ahead (rows of a segment of lines along y; 0), piece (points of a row that lie side by side, those of all rows of a plane before the next ones; nx), ends_y, ring_y (these lines are rings), moves_alone (nothing is
/// computed: what a benchmark calls the ceiling).
/// What a thread keeps from pass to pass: factors in `kept`, the barriers behind them and where their phases are.
template <class C>
struct Rows {
    using T = typename C::real;
    using L = RowsLayout<C>;
    static constexpr int threads = (C::warps + (C::bringer ? 1 : 0)) * 32;
    static_assert(C::bringer || C::bulk, "planes are brought by bulk copies, or by a warp of their own");
    const unsigned barriers;
    const LaneFactors<T, C::R, C::lanes, C::alike, C::ring_x> factors;
    Turn<C::depth> turn;
    bool again = false;
    unsigned step = 0;

    /// By `threads` threads; there after their next barrier.
    __device__ __forceinline__ Rows(T* kept, const T* table, int thread) : barriers(prepared(shared_address(kept + L::factors), thread)), factors(kept, table, thread, threads) {}

    __device__ __forceinline__ Arrival full(int place) const { return {barriers + 8 * static_cast<unsigned>(place)}; }
    __device__ __forceinline__ Arrival empty(int place) const { return {barriers + 8 * static_cast<unsigned>(C::depth + place)}; }
    // Of every other step each, since a neighbour may be a step ahead.
    __device__ __forceinline__ Arrival looked(int one, unsigned at) const { return {barriers + 8 * (2 * static_cast<unsigned>(C::depth + one) + (at & 1))}; }

private:
    static __device__ __forceinline__ unsigned prepared(unsigned barriers, int thread) {
        const auto at = [&](int k) { return Arrival{barriers + 8 * static_cast<unsigned>(k)}; };
        if (thread == 0) {
            for (int place = 0; place < C::depth; ++place) {
                at(place).prepare(C::bulk ? 1 : 32);
                if constexpr (C::bringer) at(C::depth + place).prepare(C::warps);
                else asm volatile("st.shared.u32 [%0], 0;" ::"r"(at(C::depth + place).barrier) : "memory");
            }
            for (int one = 0; one < 2 * C::warps; ++one) at(2 * C::depth + one).prepare(1);
        }
        return barriers;
    }
};

/// Lines along the way of blocks, eliminated forwards in segments of C::ahead rows: every lane has the points of its own rows one after another.
/// What a segment's first row keeps is a sum, as in lanes.cuh. Nothing where C::ahead = 0.
template <class C>
struct LinesAhead {
    using T = typename C::real;
    static constexpr int H = C::ahead ? C::ahead : 1, segments = RowsAxes<C>::n_along / H;
    T y[C::K][C::R], z[C::K][C::R], inverse, lower, reach, low, high;

    /// `table`: by row 1/pivot, lower, reach; then what is to be subtracted from the first and the last right-hand side.
    __device__ __forceinline__ void begin(const T* table, int at) {
        if constexpr (C::ahead != 0) {
            inverse = table[3 * at], lower = table[3 * at + 1], reach = table[3 * at + 2];
            if constexpr (C::ends_y) low = table[3 * RowsAxes<C>::n_along], high = table[3 * RowsAxes<C>::n_along + 1];
        }
    }

    __device__ __forceinline__ void begin_segment() {
        if constexpr (C::ahead != 0)
#pragma unroll
            for (int k = 0; k < C::K; ++k)
#pragma unroll
                for (int i = 0; i < C::R; ++i) y[k][i] = 0, z[k][i] = 0;
    }

    __device__ __forceinline__ void forwards(T (&d)[C::K][C::R], int at) {
        if constexpr (C::ahead != 0 && C::moves_alone) {
#pragma unroll
            for (int k = 0; k < C::K; ++k)
#pragma unroll
                for (int i = 0; i < C::R; ++i) z[k][i] = d[k][i];
        } else if constexpr (C::ahead != 0) {
            const T first = C::ends_y && at == 0 ? low : T(0), last = C::ends_y && at == RowsAxes<C>::n_along - 1 ? high : T(0);
#pragma unroll
            for (int k = 0; k < C::K; ++k)
#pragma unroll
                for (int i = 0; i < C::R; ++i) {
                    T right = d[k][i];
                    if constexpr (C::ends_y) right = right - first - last;
                    y[k][i] = d[k][i] = multiply_add(-lower, y[k][i], right * inverse);  // lower is 0 in a segment's first row, reach in its last
                    if constexpr (segments > 1) z[k][i] = multiply_add(reach, y[k][i], z[k][i]);
                }
        }
    }

    /// Whether this is the last row of a segment, and whether somebody wants z.
    __device__ __forceinline__ bool ends(int at) const { return C::ahead != 0 && at % H == H - 1; }
    __device__ __forceinline__ bool joins_before(int at) const { return segments > 1 && (C::ring_y || at >= H); }
};

/// All tasks of the grid. `memory`: the ring of places.
template <class C>
__device__ __forceinline__ void rows_tasks(Rows<C>& own_rows, const MeshArguments<typename C::real>& a, const typename C::Parameters& p, typename C::real* memory, typename C::real low, typename C::real high,
                                           const typename C::real* table_along = nullptr) {
    using T = typename C::real;
    using L = RowsLayout<C>;
    using Axes = RowsAxes<C>;
    constexpr int K = C::K, R = C::R, nx = C::nx, n = Axes::n_across, n_along = Axes::n_along, reach = Axes::reach_along, beside = Axes::reach_across, segments = (nx + R - 1) / R,
                  missing = segments * R - nx;
    static_assert(C::ahead == 0 || (C::chunk % C::ahead == 0 && n_along % C::ahead == 0), "lines along y are eliminated in whole segments");
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    const auto full = [&](int place) { return own_rows.full(place); };
    const auto empty = [&](int place) { return own_rows.empty(place); };
    const auto looked = [&](int one, unsigned at) { return own_rows.looked(one, at); };
    Turn<C::depth>& turn = own_rows.turn;

    using Task = RowsTask<C>;
    const std::int64_t tasks = std::int64_t{Task::slabs} * Task::chunks * a.meshes, points = std::int64_t{nx} * C::ny * C::nz;
    // Without a warp for it, who leaves a place last brings what comes there next: planes of the block's tasks, one after another.
    std::int64_t coming_task = blockIdx.x;
    int coming = 0;  // planes of that task
    const auto bring_next = [&](int place, bool here) {
        if (coming_task >= tasks) return;
        const Task task(a.backwards ? tasks - 1 - coming_task : coming_task, a.first_mesh);
        if (here) bring<C>(a, task, task.from - reach + coming, memory + place * L::place, full(place), lane);
        if (++coming == task.to - task.from + 2 * reach) coming = 0, coming_task += gridDim.x;
    };
    const auto leave = [&](int place) {
        if constexpr (C::bringer) {
            if (lane == 0) empty(place).arrive();
        } else {
            unsigned others = 0;
            if (lane == 0) {
                asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], 1;" : "=r"(others) : "r"(empty(place).barrier) : "memory");
                if (others == C::warps - 1) asm volatile("st.shared.u32 [%0], 0;" ::"r"(empty(place).barrier) : "memory");
            }
            const bool last = __shfl_sync(~0u, others, 0) == C::warps - 1;
            if (last) before_bulk_copies();
            __syncwarp();
            bring_next(place, last);
        }
    };
    if (warp >= C::warps + (C::bringer ? 1 : 0)) return;
    if constexpr (!C::bringer) {
#pragma unroll 1
        for (int place = 0; place < C::depth; ++place) bring_next(place, warp == 0);
    }
    if (warp == C::warps) {
        bool& again = own_rows.again;
        for (std::int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
            const Task task(a.backwards ? tasks - 1 - number : number, a.first_mesh);
            for (int at = task.from - reach; at < task.to + reach; ++at) {
                if (again) empty(turn.place).wait(turn.parity ^ 1);
                bring<C>(a, task, at, memory + turn.place * L::place, full(turn.place), lane);
                again = again || turn.place == C::depth - 1;
                turn.next();
            }
        }
        if constexpr (!C::bulk) asm volatile("cp.async.wait_all;" ::: "memory");
        return;
    }

    const int segment = lane % C::lanes, warp_row = warp * L::warp_rows, row = warp_row + lane / C::lanes * K;
    const bool there = segment < segments;
    // The last segment of a row begins where it has R points: what belongs to the one before is left out by its factors. Idle lanes do what the
    // first one does, and store nothing.
    const int x = !there ? 0 : segment == segments - 1 ? nx - R : segment * R;
    const auto& factors = own_rows.factors;
    const int own_table = factors.table_of(segment, segments);
    const LaneJoin<T, C::lanes, C::ring_x ? segments : 0> join(factors.joins, segment);
    unsigned& step = own_rows.step;
#pragma unroll 1
    for (std::int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
        const Task task(a.backwards ? tasks - 1 - number : number, a.first_mesh);
        const bool idle = task.first_row + warp_row >= n;
        const int across = task.first_row + row;
#pragma unroll 1
        for (int ahead = 0; ahead < 2 * reach; ++ahead) {
            const Turn<C::depth> one = turn.after(ahead);
            full(one.place).wait(one.parity);
        }
        LinesAhead<C> lines;
        constexpr int part = C::ahead ? C::ahead : C::chunk;
#pragma unroll 1
        for (int from = task.from; from < task.to; from += part) {
            lines.begin_segment();
            const int to = C::ahead || from + part < task.to ? from + part : task.to;
#pragma unroll 1
            for (int at = from; at < to; ++at, ++step) {
                lines.begin(table_along, at);
                const Turn<C::depth> newest = turn.after(2 * reach);
                full(newest.place).wait(newest.parity);
                // Whose rows these are beside.
                const auto neighbours_looked = [&] {
                    constexpr int away = (beside + L::warp_rows - 1) / L::warp_rows;
                    for (int other = warp - away < 0 ? 0 : warp - away; other <= warp + away && other < C::warps; ++other) looked(other, step).wait(step >> 1 & 1);
                };
                T d[K][R];
                if (!idle) {
                    const T* plane[5];
#pragma unroll
                    for (int away = -2; away <= 2; ++away) plane[away + 2] = memory + (away < -reach || away > reach ? 0 : turn.after(reach + away).place * L::place) + row * C::pitch + x;
                    if (across >= beside && across + K + beside <= n && at >= reach && at + reach < n_along) right_hand_sides<C, true>(a, p, plane, x, across, at, task.mesh, x == 0, x == nx - R, d);
                    else right_hand_sides<C, false>(a, p, plane, x, across, at, task.mesh, x == 0, x == nx - R, d);
                }
                __syncwarp();
                if constexpr (C::apart) leave(turn.place);
                else if (lane == 0) looked(warp, step).arrive();
                if (!idle) {
                    T x_last[K], before[K];
#pragma unroll
                    for (int k = 0; k < K; ++k) {
                        if (C::ends_x && segment == 0) d[k][0] -= low;
                        if (C::ends_x && segment == segments - 1) d[k][R - 1] -= high;
                    }
                    T z_first[K];
                    bool bad = false;
                    if constexpr (C::moves_alone) {
#pragma unroll
                        for (int k = 0; k < K; ++k) x_last[k] = d[k][R - 1];
                    } else {
                        factors.forwards(d, z_first, own_table);
#pragma unroll
                        for (int k = 0; k < K; ++k) join.solve(d[k][R - 1], z_first[k], x_last[k], before[k]);
                        factors.backwards(d, before, x_last, own_table);
                    }
#pragma unroll
                    for (int k = 0; k < K; ++k) bad = bad || !finite(d[k][missing], x_last[k]);
                    if (__any_sync(~0u, there && bad)) {
#pragma unroll
                        for (int k = 0; k < K; ++k) {
                            const unsigned which = __ballot_sync(~0u, there && !finite(d[k][missing], x_last[k])) >> (lane & ~(C::lanes - 1));
                            if (segment == 0 && (C::lanes == 32 ? which : which & ((1u << C::lanes % 32) - 1)) && across + k < n) {
                                *reinterpret_cast<volatile unsigned char*>(&a.failed[task.mesh]) = static_cast<unsigned char>(C::line_x + 1);
                                report_line(a.state, a.sweep, MeshState::key(C::line_x, task.mesh * points + at * std::int64_t{Axes::along_apart} + (across + k) * std::int64_t{Axes::across_apart}, false, C::not_finite));
                            }
                        }
                    }
                    lines.forwards(d, at);
                    // Out: through places of the warp's own, or the oldest place of the ring, which nobody looks at any more.
                    if constexpr (!C::apart) neighbours_looked();
                    T* const rows = memory + (C::apart ? L::out + warp_row * C::pitch : turn.place * L::place + L::beside + (beside + warp_row) * C::pitch);
                    const int first = task.first_row + warp_row, there_are = n - first < L::warp_rows ? n - first : L::warp_rows;
                    const WayOut<C> way{rows, (row - warp_row) * C::pitch + x, there_are, lane, there, segment == segments - 1};
                    if constexpr (C::ahead == 0) {
                        way.template carry<Axes::across_apart, 0>(d, a.values + task.mesh * points + at * std::int64_t{Axes::along_apart} + first * std::int64_t{Axes::across_apart});
                    } else if (!lines.ends(at)) {
                        way.template carry<C::piece, n * C::piece>(d, a.values + task.mesh * points + at * (std::int64_t{n} * nx) + first * C::piece);
                    } else {
                        // Side by side, as joins.cuh reads them.
                        T* const begins = a.values + a.extent[3] * points + (task.mesh * LinesAhead<C>::segments + at / C::ahead) * (std::int64_t{n} * nx) + first * C::piece;
                        way.template carry<C::piece, n * C::piece>(d, begins + a.extent[3] * (points / C::ahead));
                        if (lines.joins_before(at)) {
                            __syncwarp();
                            way.template carry<C::piece, n * C::piece>(lines.z, begins);
                        }
                    }
                    if constexpr (!C::apart) before_bulk_copies();
                } else if constexpr (!C::apart) {
                    neighbours_looked();
                }
                __syncwarp();
                if constexpr (!C::apart) leave(turn.place);
                turn.next();
            }
        }
        // Planes that the next task does not want.
#pragma unroll 1
        for (int left = 0; left < 2 * reach; ++left) {
            leave(turn.place);
            turn.next();
        }
    }
}

/// A pass of its own.
template <class C>
__device__ __forceinline__ void rows_pass(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const typename C::real* table, typename C::real low, typename C::real high) {
    using T = typename C::real;
    extern __shared__ int4 shared[];
    T* const memory = reinterpret_cast<T*>(shared);
    let_next_begin();
    Rows<C> rows(memory + RowsLayout<C>::ring, table, static_cast<int>(threadIdx.x));
    await_previous();
    // One answer for all: the sweep before may fail meanwhile, in another group of meshes.
    if (__syncthreads_and(runs(a.state, a.sweep))) rows_tasks(rows, a, p, memory, low, high, table + LaneFactors<T, C::R, C::lanes, C::alike, C::ring_x>::in_memory);
}

}  // namespace trifold::cuda::streaming
