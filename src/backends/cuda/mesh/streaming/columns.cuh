// SPDX-License-Identifier: BSD-3-Clause
// Lines along y or z, one matrix for all, and the update where it is the last line solve of its sweep.
//
//   values = (lower, diag, upper)^-1 values    or    target = update(fields, (lower, diag, upper)^-1 values)
//
// Where C::behind, lines along the other axis have been eliminated forwards (rows.cuh) and their segments' ends are known (joins.cuh): columns go backwards through the rows of a segment,
//   value = y - fill[row] x[below the segment] - upper[row] x[row above], the row above being that of the turn before, in registers.
//
// Arrays: values packed, columns one element apart, `apart` from row to row; fields any strides. Overwritten: values, or the target.
// Who does what: a block has W columns, 256 bytes of every row where registers allow it; a thread R rows of one column in registers, the
//   lanes of a warp side by side; one thread per column joins the segments. Blocks are persistent: while a set of columns is
//   solved, the right-hand sides of the next ones are on their way into shared memory, and what the update reads into registers.
//   Where C::planes, a block has all columns of a plane, whose values lie side by side, as the field's do that the update reads: one thread asks for each of them as a whole, by the copy engine.
// Words per row: 2, or with the update of a field in place 3.
// Numerics: chip.cuh; safe or refused by the host (line_table.hpp). What is not finite reaches the ends of a segment and is reported as its line's.
#pragma once

#include "backends/cuda/mesh/points.cuh"
#include "backends/cuda/mesh/streaming/chip.cuh"
#include "backends/cuda/tridiagonal/block/copy_engine.cuh"

namespace trifold::cuda::streaming {

/// Own values of fields, fetched before.
template <class T, int Fields>
struct NearOwn {
    T value[Fields + 1];

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        static_assert(dx == 0 && dy == 0 && dz == 0, "an update reads no neighbours");
        return value[f];
    }
};

/// Shared memory of a block, in elements.
template <class C>
struct ColumnsLayout {
    using T = typename C::real;
    static constexpr int threads = C::W * C::S;
    static constexpr int held = C::stages * threads * C::R, before = held + C::held_stages * threads * C::R, last = before + (C::behind ? threads * C::R : 0), first = last + C::S * C::W, work = first + (C::S + 1) * C::W;
    static constexpr int factors = C::by_reach ? 5 : 4, pitch = segment_pitch<T, C::R, C::by_reach>, joins = C::S * pitch, closing = joins + 4 * C::S, begins = closing + (C::ring ? closing_words * C::S : 0), kept = begins + (C::alternates ? 2 * C::S : 0);
};

/// Which columns a block has at a turn.
template <class C>
struct SetOfColumns {
    static constexpr std::int64_t apart = C::axis == 1 ? C::nx : std::int64_t{C::nx} * C::ny;
    // Where lines across are solved backwards, a block has columns of a row after those of the row above it, so that their solutions are there.
    static constexpr int inner = C::behind ? C::nx : static_cast<int>(apart), H = C::behind ? C::behind : 1, across = C::axis == 1 ? C::nz : C::ny, segments_across = C::behind ? across / H : 1;
    static constexpr std::int64_t row_apart = C::behind ? C::piece : apart, points = std::int64_t{C::nx} * C::ny * C::nz;
    static constexpr unsigned pieces = static_cast<unsigned>((inner + C::W - 1) / C::W), outers = C::axis == 1 ? C::nz : 1;

    unsigned outer;
    int begin, row = 0, segment_across = 0;

    static __device__ __forceinline__ unsigned tasks(std::int64_t meshes) { return pieces * (C::behind ? segments_across : outers) * static_cast<unsigned>(meshes); }
    static __device__ __forceinline__ unsigned task_of(unsigned turn) { return blockIdx.x + turn / H * gridDim.x; }

    __device__ __forceinline__ SetOfColumns(unsigned turn, unsigned tasks, bool backwards, std::int64_t first_mesh) {
        unsigned task = task_of(turn);
        if (backwards) task = tasks - 1 - task;
        begin = static_cast<int>(task % pieces) * C::W;
        task /= pieces;
        if constexpr (C::behind != 0) row = H - 1 - static_cast<int>(turn % H), segment_across = static_cast<int>(task % segments_across), task /= segments_across;
        outer = task + (C::behind ? 1 : outers) * static_cast<unsigned>(first_mesh);
    }

    __device__ __forceinline__ int at() const { return segment_across * H + row; }
    /// In values, of the set's first column in row 0.
    __device__ __forceinline__ std::int64_t offset() const {
        if constexpr (C::behind != 0) return outer * points + std::int64_t{at()} * (std::int64_t{C::rows} * C::nx) + of_piece(begin);
        return std::int64_t{outer} * (apart * C::rows) + begin;
    }
    /// Of a plane, C::piece points of all its rows after another.
    static __device__ __forceinline__ int of_piece(int begin) { return C::piece == C::W ? begin * C::rows : begin; }
    /// Among the ends of segments (joins.cuh).
    static __device__ __forceinline__ std::int64_t end_offset(std::int64_t mesh, int segment, int begin) { return (mesh * segments_across + segment) * (std::int64_t{C::rows} * C::nx) + of_piece(begin); }
    /// Whether something is known of the row below a segment, and where: of rings, below the first one too.
    static __device__ __forceinline__ bool has_below(int segment) { return C::ring_across || segment > 0; }
    static __device__ __forceinline__ std::int64_t below_offset(std::int64_t meshes, std::int64_t mesh, int segment, int begin) {
        if (C::ring_across && segment == 0) return meshes * (points / H) + end_offset(mesh, 0, begin);
        return end_offset(mesh, segment - 1, begin);
    }
};

/// C: real, fields, R (rows of a thread), S (segments), W (columns of a block), rows, axis (1, 2), line (number in its sweep), nx, ny, nz, stride(field, axis), vectors,
/// has_update, target, used (bit f: the update reads field f), prefetch, planes (whole planes of values and of the field `used` are copied at once; `held_stages` of the field's), whole (part of a kernel with more threads), behind (rows of a segment of lines across that are to be solved
/// backwards first; 0), ring (lines are), ring_across (those across are), piece (as rows.cuh), by_reach (as rows.cuh eliminates ahead), alternates (in odd steps lines are eliminated from their last row to the first: their matrix is its own mirror image), moves_alone, Parameters, update(near, p, out, x, y, z, mesh, step).
template <class C>
__device__ __forceinline__ void columns_barrier() {
    if constexpr (C::whole) asm volatile("barrier.cta.sync 1, %0;" ::"n"(ColumnsLayout<C>::threads) : "memory");
    else __syncthreads();
}

template <class C>
__device__ __forceinline__ bool any_of_columns(bool bad) {
    if constexpr (C::whole) {
        int any;
        asm volatile("{.reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.cta.red.or.pred q, 1, %2, p; selp.s32 %0, 1, 0, q;}" : "=r"(any) : "r"(static_cast<int>(bad)), "n"(ColumnsLayout<C>::threads) : "memory");
        return any != 0;
    } else {
        return __syncthreads_or(bad);
    }
}

/// Factors, kept from pass to pass. By as many threads as columns have; there after the next barrier.
template <class C>
__device__ __forceinline__ void keep_columns(typename C::real* kept, const typename C::real* table, int thread) {
    using T = typename C::real;
    using L = ColumnsLayout<C>;
    if (thread >= L::threads) return;
    T* const joins = kept + L::joins;
    constexpr int each = L::factors * C::R;
    for (int i = thread; i < C::S * each; i += L::threads) kept[i / each * L::pitch + i % each] = table[i];
    for (int i = thread; i < L::kept - L::joins; i += L::threads) joins[i] = table[C::S * each + i];
}

/// All columns of the grid. `memory`: what is on its way, and the ends of segments.
template <class C>
__device__ __forceinline__ void columns_tasks(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, typename C::real* memory, const typename C::real* factors, typename C::real low,
                                              typename C::real high, const typename C::real* table_across = nullptr) {
    using T = typename C::real;
    using L = ColumnsLayout<C>;
    constexpr int R = C::R, S = C::S, W = C::W, V = vector_values<T>, n = C::rows;
    using Set = SetOfColumns<C>;
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, segment = thread / W, column = thread % W;
    if (thread >= L::threads) return;
    const unsigned tasks = Set::tasks(a.meshes);
    T* const staged = memory + (thread & ~31) * R;
    const T* const joins = factors + L::joins;
    static_assert(!C::ring || (S > 1 && S * R == n && !C::alternates), "rings have no rest");
    static_assert(!C::alternates || (C::axis == 2 && C::by_reach && C::S > 1 && C::S * R == n && !C::behind && !C::ends && !C::has_update && !C::to_target), "lines without a rest, whose solutions another pass takes");
    // Row e of the elimination is row n - 1 - e of memory where it begins at the last one.
    const bool turned = C::alternates && (a.step & 1) != 0;
    const std::int64_t row_apart = turned ? -Set::row_apart : Set::row_apart, row_0 = turned ? (n - 1) * Set::row_apart : 0;
    T *const last = memory + L::last + column, *const first = memory + L::first + column;
    const bool failed_before = *reinterpret_cast<const volatile unsigned long long*>(&a.state->failed_at) == a.sweep;

    // Vectors: a lane copies for others of its warp, in its own or a later row.
    constexpr int each = C::vectors ? V : 1;
    const int rows_on = lane * each >> 5, other = (thread & ~31) + (lane * each & 31), across = other % W, first_row = other / W * R + rows_on;
    const auto copy = [&](const T* from, T* place) {
        const unsigned to = shared_address(place) + static_cast<unsigned>(lane * each * static_cast<int>(sizeof(T)));
        from += across + row_0 + first_row * row_apart;
#pragma unroll
        for (int i = 0; i < R; i += each)
            if ((S * R == n || first_row + i < n) && (R % each == 0 || i + rows_on < R)) {
                if constexpr (C::vectors) copy_vector<C::used != 0 && !C::prefetch>(to + static_cast<unsigned>(i * 32 * static_cast<int>(sizeof(T))), from + i * row_apart);
                else copy_element(to + static_cast<unsigned>(i * 32 * static_cast<int>(sizeof(T))), from + i * row_apart);
            }
    };
    // Whole planes: barriers of values, of fields, and of the rows below a segment.
    const auto full = [&](int which) { return Arrival{shared_address(memory + L::work) + 8 * static_cast<unsigned>(which)}; };
    const auto bring = [&](const T* from, int place, int which) {
        constexpr unsigned bytes = L::threads * R * static_cast<unsigned>(sizeof(T));
        full(which).expect(bytes);
        full(which).copy(shared_address(memory + place), from, bytes);
    };
    constexpr unsigned held_stages = C::planes ? C::held_stages : 1;
    const auto bring_field = [&](unsigned turn) {
        if constexpr (C::planes) {
            if (Set::task_of(turn) >= tasks) return;
            const Set set(turn, tasks, a.backwards, a.first_mesh);
            const int stage = static_cast<int>(turn % held_stages);
            bring(a.field[C::held].data + set.at() * C::stride(C::held, 3 - C::axis) + set.outer * C::stride(C::held, 3), L::held + stage * (L::threads * R), C::stages + stage);
        }
    };
    const T* const ends = a.values + a.extent[3] * (std::int64_t{C::nx} * C::ny * C::nz);
    const auto load = [&](unsigned turn, int stage) {
        if (Set::task_of(turn) < tasks) {
            const Set set(turn, tasks, a.backwards, a.first_mesh);
            if constexpr (C::planes) return bring(set.row == Set::H - 1 ? ends + Set::end_offset(set.outer, set.segment_across, 0) : a.values + set.offset(), stage * (L::threads * R), stage);
            T* const place = staged + stage * (L::threads * R);
            if (set.begin + across < Set::inner) {
                // The solution of a segment's last row is known.
                if (C::behind && set.row == Set::H - 1) copy(ends + Set::end_offset(set.outer, set.segment_across, set.begin), place);
                else copy(a.values + set.offset(), place);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    if (segment == 0) first[S * W] = 0;
    unsigned below_parity = 0;
    if constexpr (C::planes) {
        if (thread == 0)
            for (int k = 0; k <= C::stages + C::held_stages; ++k) full(k).prepare(1);
        __syncthreads();
        if (thread == 0) {
            for (unsigned k = 0; k < C::stages; ++k) load(k, static_cast<int>(k));
            for (unsigned k = 0; k < C::held_stages; ++k) bring_field(k);
        }
    } else {
#pragma unroll
        for (int stage = 0; stage < C::stages; ++stage) load(static_cast<unsigned>(stage), stage);
    }

    const T* const own = factors + segment * L::pitch;
    int stage = 0;
    T above[C::behind ? R : 1];  // solutions of the row above
#pragma unroll 1
    for (unsigned turn = 0; Set::task_of(turn) < tasks; ++turn) {
        const Set set(turn, tasks, a.backwards, a.first_mesh);
        const int at_column = set.begin + column;
        const bool there = at_column < Set::inner;
        const std::int64_t mesh = C::axis == 1 && !C::behind ? set.outer / C::nz : set.outer;
        const int x = C::axis == 1 || C::behind ? at_column : at_column % C::nx, y0 = C::axis == 1 ? 0 : C::behind ? set.at() : at_column / C::nx,
                  z0 = C::axis == 2 ? 0 : C::behind ? set.at() : static_cast<int>(set.outer % C::nz), row0 = segment * R;
        T upper_across = 0, fill_across = 0;
        if constexpr (C::behind != 0) upper_across = table_across[2 * set.at()], fill_across = table_across[2 * set.at() + 1];
        // Where a field has row 0 of this column.
        const auto place = [&](int f) {
            return a.field[f].data + x * C::stride(f, 0) + y0 * C::stride(f, 1) + z0 * C::stride(f, 2) + mesh * C::stride(f, 3) + row0 * C::stride(f, C::axis);
        };
        T fetched[C::prefetch ? C::fields : 1][C::prefetch ? R : 1];
        if constexpr (C::prefetch) {
#pragma unroll
            for (int f = 0; f < C::fields; ++f)
                if (C::used >> f & 1) {
                    const T* const from = place(f);
#pragma unroll
                    for (int i = 0; i < R; ++i)
                        if (there && (S * R == n || row0 + i < n)) fetched[f][i] = from[i * C::stride(f, C::axis)];
                }
        }

        if constexpr (C::used != 0 && !C::prefetch && !C::planes) {
            // What the update will read comes nearer while the lines are solved; earlier, it would be gone again.
            if (there && lane % (128 / static_cast<int>(sizeof(T))) == 0)
#pragma unroll
                for (int f = 0; f < C::fields; ++f)
                    if (C::used >> f & 1)
#pragma unroll
                        for (int i = 0; i < R; ++i)
                            if (S * R == n || row0 + i < n) asm volatile("prefetch.global.L2 [%0];" ::"l"(place(f) + i * C::stride(f, C::axis)));
        }

        T d[R];
        // Solutions of the row below a segment were asked for a turn ago, before the last set.
        if constexpr (C::planes) full(stage).wait(turn / C::stages & 1);
        else if (C::behind && C::stages > 2 && set.row == Set::H - 2) asm volatile("cp.async.wait_group 1;" ::: "memory");
        else asm volatile("cp.async.wait_group %0;" ::"n"(C::stages - 1) : "memory");
        __syncwarp();
        constexpr int next_row = C::planes ? W : 32;
        const int own_first = C::planes ? row0 * W + column : (thread & ~31) * R + lane;  // of a plane as it lies in memory, or by lanes
        const T* const arrived = memory + stage * (L::threads * R) + own_first;
#pragma unroll
        for (int i = 0; i < R; ++i) d[i] = arrived[i * next_row];
        __syncwarp();
        if constexpr (C::behind != 0) {
            T* const before = memory + L::before;
            if constexpr (C::planes)
                if (set.row == Set::H - 2 && Set::has_below(set.segment_across)) full(C::stages + C::held_stages).wait(below_parity), below_parity ^= 1;
            if (C::planes && set.row == Set::H - 1) {
            } else if (set.row == Set::H - 1) {
                // Solutions of the row below the segment: wanted at the next turn.
                if (Set::has_below(set.segment_across) && set.begin + across < Set::inner) copy(ends + Set::below_offset(a.extent[3], mesh, set.segment_across, set.begin), before + (thread & ~31) * R);
                asm volatile("cp.async.commit_group;" ::: "memory");
            } else if constexpr (!C::moves_alone) {
#pragma unroll
                for (int i = 0; i < R; ++i) {
                    const T below = Set::has_below(set.segment_across) ? before[own_first + i * next_row] : T(0);
                    d[i] = multiply_add(-upper_across, above[i], multiply_add(-fill_across, below, d[i]));
                }
            }
#pragma unroll
            for (int i = 0; i < R; ++i) above[i] = d[i];
        }
        const int own_stage = stage;
        if constexpr (!C::planes) load(turn + C::stages, stage);
        if (++stage == C::stages) stage = 0;
        // Whole planes, once all threads have left this turn's values and the fields of the turn before.
        const auto ask = [&] {
            if (thread != 0) return;
            load(turn + C::stages, own_stage);
            if (turn > 0) bring_field(turn - 1 + held_stages);
            if (set.row == Set::H - 1 && Set::has_below(set.segment_across)) bring(ends + Set::below_offset(a.extent[3], mesh, set.segment_across, 0), L::before, C::stages + C::held_stages);
        };
        if constexpr (C::planes && C::moves_alone) __syncthreads(), ask();
        if (C::ends) {
            if (segment == 0) d[0] -= low;
#pragma unroll
            for (int i = 0; i < R; ++i)
                if (row0 + i == n - 1) d[i] -= high;
        }

        T x_last = 0, before = 0;
        if constexpr (!C::moves_alone) {
            const T z = forwards<T, R, C::by_reach>(own, d, S > 1);
            if (S > 1) {
                last[segment * W] = d[R - 1], first[segment * W] = z;
                columns_barrier<C>();
                if constexpr (C::planes) ask();
                if (segment == 0) {
                    join<T, S>(joins, last, first, W);
                    if constexpr (C::ring) first[0] = close_ring<S, 4>(factors + L::closing, first[0], [&](int k) -> T& { return last[k * W]; });
                }
                columns_barrier<C>();
                x_last = last[segment * W];
                if (segment) before = last[(segment - 1) * W];
                else if constexpr (C::ring) before = first[0];
            } else {
                x_last = d[R - 1] * joins[2];
            }
            backwards<T, R>(own, d, before, x_last);
            // As where a line's rows come one after another, and the first of each segment is wanted before those behind it (planes.cuh). `first` saves a register.
            if constexpr (C::alternates) d[0] = multiply_add(-factors[L::begins + 2 * segment + 1], x_last, multiply_add(-factors[L::begins + 2 * segment], before, first[segment * W]));
        }

        bool store = there;
        const bool bad = there && !finite(d[0], x_last);
        if (!C::moves_alone && any_of_columns<C>(bad || failed_before)) {  // threads that began beside a failure elsewhere may differ in having seen it
            // Rare: lines that failed are reported once each, by their first segment's thread.
            if (segment == 0) first[0] = 0;
            columns_barrier<C>();
            if (bad) first[0] = T(1) / T(0);
            columns_barrier<C>();
            const int in_line = *reinterpret_cast<const volatile unsigned char*>(&a.failed[mesh]);
            const bool failed_mesh = failed_before && in_line != 0 && in_line != C::line + 1;
            if (there && segment == 0 && !finite(first[0], T(0)) && !failed_mesh) {
                *reinterpret_cast<volatile unsigned char*>(&a.failed[mesh]) = static_cast<unsigned char>(C::line + 1);
                const std::int64_t point = (((mesh * C::nz + z0) * C::ny + y0) * C::nx) + x;
                report_line(a.state, a.sweep, MeshState::key(C::line, point, false, C::not_finite));
            }
            store = store && finite(first[0], T(0)) && !failed_mesh;
            columns_barrier<C>();
        }

        if constexpr (C::planes) full(C::stages + static_cast<int>(turn % held_stages)).wait(turn / held_stages & 1);
        const T* const held = memory + L::held + static_cast<int>(turn % held_stages) * (L::threads * R) + own_first;
        if (!store) continue;
        if constexpr (!C::has_update && !C::to_target) {
            T* const to = a.values + set.offset() + column + row_0 + row0 * row_apart;
#pragma unroll
            for (int i = 0; i < R; ++i)
                if (S * R == n || row0 + i < n) to[i * row_apart] = d[i];
        } else {
            T* const to = place(C::target);
            constexpr int at_once = C::prefetch || C::planes ? 1 : R < 8 ? R : 8;
#pragma unroll
            for (int i = 0; i < R; i += at_once) {
                NearOwn<T, C::fields> near[at_once];
#pragma unroll
                for (int k = 0; k < at_once; ++k) {
                    near[k].value[C::fields] = d[i + k < R ? i + k : 0];
#pragma unroll
                    for (int f = 0; f < C::fields; ++f)
                        if (C::used >> f & 1) {
                            if constexpr (C::prefetch) near[k].value[f] = fetched[f][i + k];
                            else if constexpr (C::planes) near[k].value[f] = held[(i + k) * next_row];
                            else if (i + k < R && (S * R == n || row0 + i + k < n)) near[k].value[f] = place(f)[(i + k) * C::stride(f, C::axis)];
                        }
                }
#pragma unroll
                for (int k = 0; k < at_once; ++k) {
                    if (i + k >= R || !(S * R == n || row0 + i + k < n)) continue;
                    T result[1] = {near[k].value[C::fields]};
                    if constexpr (C::has_update)
                        C::update(near[k], p, result, std::int64_t{x}, std::int64_t{C::axis == 1 ? row0 + i + k : y0}, std::int64_t{C::axis == 2 ? row0 + i + k : z0}, mesh, a.step);
                    to[(i + k) * C::stride(C::target, C::axis)] = result[0];
                }
            }
        }
    }
}

/// A pass of its own.
template <class C>
__device__ __forceinline__ void columns_pass(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const typename C::real* table, typename C::real low, typename C::real high) {
    using T = typename C::real;
    using L = ColumnsLayout<C>;
    extern __shared__ int4 shared[];
    T *const kept = reinterpret_cast<T*>(shared), *const memory = kept + aligned<T>(L::kept);
    const int thread = static_cast<int>(threadIdx.x);
    static_assert(!C::planes || (C::behind && C::S > 1 && C::S * C::R == C::rows && C::W == C::nx && C::piece == C::nx), "whole planes have no rest");
    if constexpr (!C::planes)
        for (int i = thread; i < L::last; i += L::threads) memory[i] = 0;  // what no copy reaches is read too
    let_next_begin();
    keep_columns<C>(kept, table, thread);
    await_previous();
    // One answer for all: the sweep before may fail meanwhile, in another group of meshes.
    if (__syncthreads_and(runs(a.state, a.sweep))) columns_tasks<C>(a, p, memory, kept, low, high, table + C::S * L::factors * C::R + (L::kept - L::joins));
}

}  // namespace trifold::cuda::streaming
