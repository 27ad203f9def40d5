// SPDX-License-Identifier: BSD-3-Clause
// The right-hand side and the lines along x:   values = (lower, diag, upper)^-1 rhs(fields)
// and, where C::ahead, lines along y eliminated forwards in segments of so many rows (LinesAhead; joins.cuh and columns.cuh do the rest).
//
// Arrays: fields any strides; values packed. Overwritten: values, and ends of segments behind them.
// Who does what: a block goes through planes, along z or, where it eliminates ahead, along y, with a slab of H rows. One warp brings what the right-hand side reads, plane by plane with the
//   rows beside the slab, into a ring of places in shared memory. Every other warp has K neighbouring rows in each lane, and `lanes` lanes along a
//   row, each R points of it: it makes their right-hand sides, eliminates its segments, joins them with its neighbours by shuffles and writes
//   the solution to the place that is free by then, from where the warp carries its rows out. Warps meet at barriers in memory that
//   they arrive at long before they wait for them: after their last look at a plane, and once they have carried rows out.
// Words per point: 1 read (and (H + 2 reach) / H of the second-level cache), 1 written, 1 / C::ahead of ends.
// Shared memory, words per point: 1 arrives, (K + 2) / K for neighbours along x and y and 2 along z, 5 / K of factors (less where rows share a warp), 2 for
//   carrying out, 11 / R of shuffles: of the 15.6 that an H200's multiprocessors move while memory moves 2, 10.5 in three dimensions with K = 2 (ncu, 256^3).
//   Instructions: 38.6 per point there, of 62 that are issued in that time in floats; 3 more where lines along y are eliminated, and the registers of two values per point.
// Banks: lanes are R points apart, R odd, or as far apart as the host found to be free of conflicts (cut.cpp).
// Numerics: chip.cuh, the join by lanes.cuh; safe or refused by the host (line_table.hpp).
#pragma once

#include "backends/cuda/mesh/points.cuh"
#include "backends/cuda/mesh/streaming/chip.cuh"
#include "backends/cuda/mesh/streaming/lanes.cuh"
#include "backends/cuda/tridiagonal/block/copy_engine.cuh"

namespace trifold::cuda::streaming {

template <class C>
__device__ __forceinline__ int mirror_index(int f, int axis, int i, int n) {
    if (i < 0) return C::edge(f, axis, 0) == edge_periodic ? i + n : -1 - i;
    if (i >= n) return C::edge(f, axis, 1) == edge_periodic ? i - n : 2 * n - 1 - i;
    return i;
}

/// The axis along which blocks go, and that across it, of which they have a slab.
template <class C>
struct RowsAxes {
    static constexpr int across = 3 - C::along;
    static constexpr int n_along = C::along == 2 ? C::nz : C::ny, n_across = C::along == 2 ? C::ny : C::nz;
    static constexpr int reach_along = C::along == 2 ? C::reach_z : C::reach_y, reach_across = C::along == 2 ? C::reach_y : C::reach_z;
    static constexpr int along_apart = C::along == 2 ? C::nx * C::ny : C::nx, across_apart = C::along == 2 ? C::nx : C::nx * C::ny;  // of values

    static __device__ __forceinline__ int y(int at_along, int at_across) { return C::along == 2 ? at_across : at_along; }
    static __device__ __forceinline__ int z(int at_along, int at_across) { return C::along == 2 ? at_along : at_across; }
};

/// Shared memory of a block, in elements: rows of a place have room for values beyond their ends.
template <class C>
struct RowsLayout {
    using T = typename C::real;
    static constexpr int V = vector_values<T>, beside = (2 * C::reach_x + V - 1) / V * V;
    static constexpr int warp_rows = 32 / C::lanes * C::K, H = C::warps * warp_rows, rows = H + 2 * RowsAxes<C>::reach_across;
    static constexpr int field = beside + rows * C::pitch, place = field * C::staged_count;
    static constexpr int ring = C::depth * place, factors = LaneFactors<T, C::R, C::lanes>::in_memory, kept = factors + 2 * (C::depth + C::warps) * 8 / static_cast<int>(sizeof(T));

    /// Of a staged field in a place: its row 0 of the slab.
    static constexpr int origin(int f) {
        int before = 0;
        for (int g = 0; g < f; ++g) before += static_cast<int>(C::staged >> g & 1);
        return before * field + beside + RowsAxes<C>::reach_across * C::pitch;
    }
};

/// Rows and points around those of a lane: `at_across` and `at_along` are where its first row is. Inside: no neighbour lies beyond a side of y or z.
template <class C, bool Inside>
struct NearStaged {
    using T = typename C::real;
    const MeshArguments<T>& a;
    const T* const (&plane)[5];  ///< of planes -2 … 2 away: where the lane's first point would be in row 0 of a place
    int k, i, at_across, at_along;
    bool first, last;             ///< whether the lane's points are the first or the last of their row

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        using Axes = RowsAxes<C>;
        const T* const row = plane[(C::along == 2 ? dz : dy) + 2] + RowsLayout<C>::origin(f) + (k + (C::along == 2 ? dy : dz)) * C::pitch;
        const int j = i + dx;
        T value;
        if (dx < 0 && j < 0) value = beyond<f, 0>(row, j, -1 - j, first, C::nx);
        else if (dx > 0 && j >= C::R) value = beyond<f, 1>(row, j, 2 * C::R - 1 - j, last, -C::nx);
        else value = row[j];
        if constexpr (!Inside) {
            value = mirrored<f, 1, dy>(Axes::y(at_along, at_across + k), C::ny, value);
            value = mirrored<f, 2, dz>(Axes::z(at_along, at_across + k), C::nz, value);
        }
        return value;
    }

private:
    /// Of the next lane, or beyond a side of x.
    template <int f, int side>
    __device__ __forceinline__ T beyond(const T* row, int j, int mirror, bool outside, int around) const {
        if constexpr (C::edge(f, 0, side) == edge_periodic) return row[outside ? j + around : j];
        const T next = row[j], image = row[mirror];
        return !outside ? next : C::edge(f, 0, side) == edge_odd ? a.field[f].twice[0][side] - image : image;
    }

    /// A value beyond an odd side.
    template <int f, int axis, int d>
    __device__ __forceinline__ T mirrored(int at, int n, T value) const {
        if (d < 0 && C::edge(f, axis, 0) == edge_odd) return at + d < 0 ? a.field[f].twice[axis][0] - value : value;
        if (d > 0 && C::edge(f, axis, 1) == edge_odd) return at + d >= n ? a.field[f].twice[axis][1] - value : value;
        return value;
    }
};

template <class C, bool Inside>
__device__ __forceinline__ void right_hand_sides(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const typename C::real* const (&plane)[5], int x, int at_across, int at_along, std::int64_t mesh,
                                                 bool first, bool last, typename C::real (&d)[C::K][C::R]) {
#pragma unroll
    for (int i = 0; i < C::R; ++i)
#pragma unroll
        for (int k = 0; k < C::K; ++k) {
            const NearStaged<C, Inside> near{a, plane, k, i, at_across, at_along, first, last};
            typename C::real result[1];
            if constexpr (C::has_rhs) C::rhs(near, p, result, std::int64_t{x + i}, std::int64_t{RowsAxes<C>::y(at_along, at_across + k)}, std::int64_t{RowsAxes<C>::z(at_along, at_across + k)}, mesh, a.step);
            else result[0] = near.template at<C::target, 0, 0, 0>();
            d[k][i] = result[0];
        }
}

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

    /// Rows are `apart` from each other in memory.
    template <int apart>
    __device__ __forceinline__ void carry(const T (&value)[C::K][C::R], T* out) const {
        constexpr int missing = (C::nx + C::R - 1) / C::R * C::R - C::nx, each = C::vectors ? vector_values<T> : 1, pieces = C::nx / each;
        if (there)
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
        const T* const from = rows + row * C::pitch + column;
        T* const to = out + row * apart + column;
#pragma unroll
        for (int r = 0; r < warp_rows; r += at_once)
            if (row + r < count)
#pragma unroll
                for (int q = 0; q < pieces; q += wide)
                    if (pieces % wide == 0 || lane % wide + q < pieces) {
                        if constexpr (C::vectors) *reinterpret_cast<typename Vector16<T>::type*>(to + r * apart + q * each) = *reinterpret_cast<const typename Vector16<T>::type*>(from + r * C::pitch + q * each);
                        else to[r * apart + q] = from[r * C::pitch + q];
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
    __device__ __forceinline__ explicit RowsTask(std::int64_t task) {
        first_row = static_cast<int>(task % slabs) * H;
        from = static_cast<int>(task / slabs % chunks) * C::chunk;
        to = from + C::chunk < RowsAxes<C>::n_along ? from + C::chunk : RowsAxes<C>::n_along;
        mesh = task / slabs / chunks;
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
/// task), staged (bit f: field f), staged_count, bulk (rows are copied whole, 16 bytes at a time), vectors (rows of values are), has_rhs, target, reach_x, reach_y,
/// reach_z, Parameters, rhs(near, …), ends_x, line_x, along (the axis that blocks go along: 1, 2), ahead (rows of a segment of lines along y; 0), ends_y.
/// What a thread keeps from pass to pass: factors in `kept`, the barriers behind them and where their phases are.
template <class C>
struct Rows {
    using T = typename C::real;
    using L = RowsLayout<C>;
    static constexpr int threads = (C::warps + 1) * 32;
    const unsigned barriers;
    const LaneFactors<T, C::R, C::lanes> factors;
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
            for (int place = 0; place < C::depth; ++place) at(place).prepare(C::bulk ? 1 : 32), at(C::depth + place).prepare(C::warps);
            for (int one = 0; one < 2 * C::warps; ++one) at(2 * C::depth + one).prepare(1);
        }
        return barriers;
    }
};

/// Lines along y, eliminated forwards in segments of C::ahead rows while blocks go along them: every lane has the points of its own rows one after another.
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
        if constexpr (C::ahead != 0) {
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

    /// Whether z is done, and somebody wants it.
    __device__ __forceinline__ bool ends(int at) const { return C::ahead != 0 && segments > 1 && at >= H && at % H == H - 1; }
};

/// All tasks of the grid. `memory`: the ring of places.
template <class C>
__device__ __forceinline__ void rows_tasks(Rows<C>& own_rows, const MeshArguments<typename C::real>& a, const typename C::Parameters& p, typename C::real* memory, typename C::real low, typename C::real high,
                                           const typename C::real* table_y = nullptr) {
    using T = typename C::real;
    using L = RowsLayout<C>;
    using Axes = RowsAxes<C>;
    constexpr int K = C::K, R = C::R, nx = C::nx, n = Axes::n_across, n_along = Axes::n_along, reach = Axes::reach_along, beside = Axes::reach_across, segments = (nx + R - 1) / R,
                  missing = segments * R - nx;
    static_assert(C::ahead == 0 || (C::along == 1 && C::chunk % C::ahead == 0 && n_along % C::ahead == 0), "lines along y are eliminated in whole segments");
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    const auto full = [&](int place) { return own_rows.full(place); };
    const auto empty = [&](int place) { return own_rows.empty(place); };
    const auto looked = [&](int one, unsigned at) { return own_rows.looked(one, at); };
    Turn<C::depth>& turn = own_rows.turn;

    using Task = RowsTask<C>;
    const std::int64_t tasks = std::int64_t{Task::slabs} * Task::chunks * a.extent[3], points = std::int64_t{nx} * C::ny * C::nz;
    if (warp > C::warps) return;
    if (warp == C::warps) {
        bool& again = own_rows.again;
        for (std::int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
            const Task task(a.backwards ? tasks - 1 - number : number);
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
    const LaneJoin<T, C::lanes> join(factors.joins, segment);
    unsigned& step = own_rows.step;
#pragma unroll 1
    for (std::int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
        const Task task(a.backwards ? tasks - 1 - number : number);
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
                lines.begin(table_y, at);
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
                if (lane == 0) looked(warp, step).arrive();
                if (!idle) {
                    T x_last[K], before[K];
#pragma unroll
                    for (int k = 0; k < K; ++k) {
                        if (C::ends_x && segment == 0) d[k][0] -= low;
                        if (C::ends_x && segment == segments - 1) d[k][R - 1] -= high;
                    }
                    T z_first[K];
                    factors.forwards(d, z_first, segment);
                    bool bad = false;
#pragma unroll
                    for (int k = 0; k < K; ++k) join.solve(d[k][R - 1], z_first[k], x_last[k], before[k]);
                    factors.backwards(d, before, x_last, segment);
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
                    // Out: through the oldest place of the ring, which nobody looks at any more.
                    neighbours_looked();
                    T* const rows = memory + turn.place * L::place + L::beside + (beside + warp_row) * C::pitch;
                    const int first = task.first_row + warp_row, there_are = n - first < L::warp_rows ? n - first : L::warp_rows;
                    const WayOut<C> way{rows, (row - warp_row) * C::pitch + x, there_are, lane, there, segment == segments - 1};
                    way.template carry<Axes::across_apart>(d, a.values + task.mesh * points + at * std::int64_t{Axes::along_apart} + first * std::int64_t{Axes::across_apart});
                    if (lines.ends(at)) {
                        __syncwarp();
                        way.template carry<nx>(lines.z, a.values + a.extent[3] * points + ((task.mesh * LinesAhead<C>::segments + at / C::ahead) * n + first) * nx);
                    }
                    before_bulk_copies();
                } else {
                    neighbours_looked();
                }
                __syncwarp();
                if (lane == 0) empty(turn.place).arrive();
                turn.next();
            }
        }
        // Planes that the next task does not want.
#pragma unroll 1
        for (int left = 0; left < 2 * reach; ++left) {
            if (lane == 0) empty(turn.place).arrive();
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
    __syncthreads();
    if (runs(a.state, a.sweep)) rows_tasks(rows, a, p, memory, low, high, table + LaneFactors<T, C::R, C::lanes>::in_memory);
}

}  // namespace trifold::cuda::streaming
