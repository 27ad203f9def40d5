// SPDX-License-Identifier: BSD-3-Clause
// All steps of a sweep problem with every mesh on chip: a mesh is read once and written once for the whole run.
//
//   target = update(fields, (lines)^-1 … rhs(fields)),  sweep after sweep, step after step; a matrix is the same in every step
//
// Who does what: a cluster of blocks, or one block, has a mesh (layout.cuh). Fields lie in shared memory with values beyond the sides
//   around them. The right-hand side of a segment is made as its elimination goes forwards, in registers; between line solves along
//   different axes values change threads through shared memory, all at once or in turns (turns.cuh); the update is stored as the last solve goes backwards. Segments of
//   a line are joined within the block, or, along the slabs' axis, by the blocks, each for some of the lines (lines.cuh).
// Global memory: 2 words per point and run, and 1 for a copy of the target as it was, which is put back where a value of the run
//   turns out not to be finite: kernels that look at every line then start anew.
// On chip, per point and step of the heat equation in d dimensions: 2 d - 1 words for the stencil (a line's own are in registers), 2 per change of
//   axis, 2 for the update; factors, 5 words per axis in loads that all lanes share, cost half a word each and serve all lines of a
//   thread. 2-D, two lines per thread: 9.5 words and 29 instructions, 19 of them arithmetic.
//   Roofs of an H200's multiprocessor, per clock: 128 bytes of shared memory, 128 instructions (64 in doubles): 0.30 clocks per point in floats, 0.60 in
//   doubles, by shared memory: 840 and 420 Gpoint-steps/s on 132 of them at 1.9 GHz.
// Where matrices vary from line to line (varying.cuh) factors are 3 words per point and axis, 2 where they are symmetric, in registers as far as these go, and what divisions of the right-hand side are the same in every
//   step is computed once (invariants.hpp), one value for both sides of a face: heat with conductivity, 2-D, 2 words more per point, 3 that are read where 4 divisions were. 11.25 words with the joins: 0.35 clocks per point in
//   floats, 0.70 in doubles, by shared memory: 710 and 355 Gpoint-steps/s. On chip per point: the field and what lies between (2), factors 4, kept 2.
// Measured: 128², floats, one line per thread: shared memory busy 89 % of the time (ncu); warps wait for it more than for anything else, then for
//   barriers. In a cluster, for the others (docs/algorithms/gpu_resident.md).
// Numerics: matrices are checked when they are factored (factors.hpp). Rounding depends on the mesh's shape alone, not on the batch.
#pragma once

#include "backends/cuda/mesh/resident/ghosts.cuh"
#include "backends/cuda/mesh/resident/lines.cuh"
#include "backends/cuda/mesh/resident/turns.cuh"
#include "backends/cuda/mesh/resident/varying.cuh"

namespace trifold::cuda::resident {

/// `visit`(x in the block, element of the packed mesh, place in shared memory) for every point of field f of this block.
template <class P, int f, class Visit>
__device__ __forceinline__ void each_kept(const Place<P>& place, Visit visit) {
    constexpr FieldPlan field = P::plan.field[f];
    constexpr int nx = field.one[0] ? 1 : P::plan.local(0), ny = field.one[1] ? 1 : P::plan.local(1), nz = field.one[2] ? 1 : P::plan.local(2);
    constexpr bool cut = P::plan.cluster > 1 && !field.one[P::plan.slab()];
#pragma unroll 4
    for (int q = thread_number(); q < nx * ny * nz; q += P::plan.threads) {
        int x[3] = {q % nx, q / nx % ny, q / (nx * ny)};
        const int at = P::plan.origin(f) + x[0] * P::plan.stride(f, 0) + x[1] * P::plan.stride(f, 1) + x[2] * P::plan.stride(f, 2);
        if (cut && !P::plan.even_slabs() && place.along(P::plan.slab()) == P::plan.slabs() - 1 && x[P::plan.slab()] >= P::plan.last_rows()) continue;
        if (cut) x[P::plan.slab()] += place.first(P::plan.slab());
        if (P::plan.abreast > 1 && !field.one[P::plan.slab() - 1]) x[P::plan.slab() - 1] += place.first(P::plan.slab() - 1);
        visit(x, (static_cast<std::int64_t>(x[2]) * P::plan.mesh[1] + x[1]) * P::plan.mesh[0] + x[0], at);
    }
}

template <class P, int f>
__device__ __forceinline__ void load_fields(const Place<P>& place, const Arguments<typename P::real>& a) {
    if constexpr (f < P::plan.fields) {
        constexpr FieldPlan field = P::plan.field[f];
        if constexpr (field.kept) {
            const auto& view = a.field[f];
            const auto* const data = view.data + place.mesh * view.stride[3];
            constexpr std::int64_t points = std::int64_t{P::plan.mesh[0]} * P::plan.mesh[1] * P::plan.mesh[2];
            each_kept<P, f>(place, [&](const int (&x)[3], std::int64_t element, int at) {
                const auto value = data[x[0] * view.stride[0] + x[1] * view.stride[1] + x[2] * view.stride[2]];
                place.memory[at] = value;
                if (field.target) a.before[f][place.mesh * points + element] = value;
            });
        }
        load_fields<P, f + 1>(place, a);
    }
}

template <class P, int f>
__device__ __forceinline__ void store_targets(const Place<P>& place, const Arguments<typename P::real>& a, bool& bad) {
    if constexpr (f < P::plan.fields) {
        constexpr FieldPlan field = P::plan.field[f];
        if constexpr (field.target) {
            const auto& view = a.field[f];
            auto* const data = view.data + place.mesh * view.stride[3];
            each_kept<P, f>(place, [&](const int (&x)[3], std::int64_t, int at) {
                const auto value = place.memory[at];
                bad = bad || !(value * 0 == 0);
                data[x[0] * view.stride[0] + x[1] * view.stride[1] + x[2] * view.stride[2]] = value;
            });
        }
        store_targets<P, f + 1>(place, a, bad);
    }
}

template <class P, int f>
__device__ __forceinline__ void fill_all_ghosts(const Place<P>& place, const Arguments<typename P::real>& a) {
    if constexpr (f < P::plan.fields) {
        fill_ghosts<P, f>(place, a.field[f]);
        fill_all_ghosts<P, f + 1>(place, a);
    }
}

template <class P, int l>
__device__ __forceinline__ void load_factors(const Place<P>& place, const typename P::real* table) {
    if constexpr (l < P::plan.lines && P::plan.varies(l)) {
        load_factors<P, l + 1>(place, table);
    } else if constexpr (l < P::plan.lines) {
        constexpr int axis = P::plan.line[l].axis, own = P::plan.own_factors(l) * P::plan.segment_size(axis), join = P::plan.join_size(axis);
        const auto* const from = table + P::plan.table(l) + (P::plan.blocks_along(axis) > 1 && !P::plan.alike(l) ? place.along(axis) * own : 0);
        const auto* const from_join = table + P::plan.table(l) + P::plan.all_factors(l) * P::plan.segment_size(axis);
        auto* const to = place.memory + P::plan.factors(l);
        for (int q = thread_number(); q < own + join; q += P::plan.threads) to[q] = q < own ? from[q] : from_join[q - own];
        load_factors<P, l + 1>(place, table);
    }
}

#ifdef __CUDACC__
__device__ __forceinline__ void give_up(MeshState* state, unsigned long long from) { atomicMin(&state->refused_at, from); }
__device__ __forceinline__ bool gave_up(const MeshState* state, unsigned long long from) {
    return *reinterpret_cast<const volatile unsigned long long*>(&state->refused_at) <= from;
}
#endif

template <class P>
__device__ __forceinline__ void every_block_is_there() {
    if (P::plan.cluster > 1) cluster_barrier();
    else block_barrier();
}

template <class P, int l, class Own>
__device__ __forceinline__ auto solver_of(const Place<P>& place, const Own& own, const Numbers<typename P::real>& numbers, const Kept<P, 0>& kept) {
    if constexpr (P::plan.varies(l)) return VaryingSolver<P, l>(place, own, kept.template of<l>());
    else return LineSolver<P, l>(place, own, numbers);
}

/// Where the arrays of a sweep have a point of the block.
template <class P, int s>
__device__ __forceinline__ int kept_place(const int (&x)[3]) {
    return P::plan.invariants(s) + x[0] + x[1] * P::plan.kept_stride(s, 1) + x[2] * P::plan.kept_stride(s, 2);
}

/// Line solve k of sweep s, and those after it; at last the update. `before`: what the line solve before it left, where that is in registers.
template <class P, int s, int k, class Before>
__device__ __forceinline__ void solve_lines(const Place<P>& place, const Numbers<typename P::real>& numbers, const Kept<P, 0>& kept, const Before& before) {
    using real = typename P::real;
    constexpr SweepPlan sweep = P::plan.sweep[s];
    constexpr bool solves = sweep.lines > 0, final = k + 1 >= sweep.lines;
    constexpr int l = sweep.first_line + k, axis = P::plan.axis_of(solves ? l : -1);
    using Own = Segment<P, axis>;
    constexpr int R = Own::rows, K = Own::count, V = P::plan.vector;
    const Own own(place.rank);
    int at[K];  // of the first point between line solves
#pragma unroll
    for (int m = 0; m < K; ++m) at[m] = P::plan.between() + own.x[m][0] + own.x[m][1] * P::plan.between_stride(1) + own.x[m][2] * P::plan.between_stride(2);
    // Where functions are.
    std::int64_t x[K][3];
#pragma unroll
    for (int m = 0; m < K; ++m) {
        for (int b = 0; b < 3; ++b) x[m][b] = own.x[m][b];
        for (int b = 0; b < 3; ++b)
            if (P::plan.blocks_along(b) > 1) x[m][b] += place.first(b);
    }
    const auto where = [&](int m, int i, int b) { return x[m][b] + (b == axis ? i : 0); };

    real d[K][R];
    const auto right = [&](int m, int i) -> real {
        if constexpr (k > 0 && P::plan.turn_rows > 0) return before.value[m][i];
        else if constexpr (k > 0) return place.memory[at[m] + i * P::plan.between_stride(axis)];
        const NearKept<P, s> near{near_point<P, axis>(place, own.x[m], i, real(0)), place.memory + kept_place<P, s>(own.x[m]) + i * P::plan.kept_stride(s, axis)};
        return P::template rhs<s>(near, numbers.parameters, where(m, i, 0), where(m, i, 1), where(m, i, 2), place.mesh, place.step);
    };
    // The last one to read what is overwritten below has read it.
    constexpr bool apart = final && k == 0 && sweep.looks_away;
    const auto update = [&](int c) {
        real value[K][V];
#pragma unroll
        for (int v = 0; v < V; ++v)
#pragma unroll
            for (int m = 0; m < K; ++m) {
                const int i = c + v;
                if (i >= R || !own.has(m, i)) continue;
                const Near<P> near = near_point<P, axis>(place, own.x[m], i, d[m][i]);
                value[m][v] = P::template update<s>(near, numbers.parameters, where(m, i, 0), where(m, i, 1), where(m, i, 2), place.mesh, place.step);
            }
#pragma unroll
        for (int v = 0; v < V; ++v)
#pragma unroll
            for (int m = 0; m < K; ++m) {
                const int i = c + v;
                if (i >= R) continue;
                constexpr int f = sweep.target;
                const int to = P::plan.origin(f) + own.x[m][0] * P::plan.stride(f, 0) + own.x[m][1] * P::plan.stride(f, 1) + own.x[m][2] * P::plan.stride(f, 2) + i * P::plan.stride(f, axis);
                if (own.has(m, i)) place.memory[to] = value[m][v];
            }
    };
    const auto hand_over = [&](int c) {
#pragma unroll
        for (int v = 0; v < V; ++v)
#pragma unroll
            for (int m = 0; m < K; ++m) {
                const int i = c + v;
                if (i < R && own.has(m, i)) place.memory[at[m] + i * P::plan.between_stride(axis)] = d[m][i];
            }
    };

    if constexpr (solves) {
        auto solver = solver_of<P, l>(place, own, numbers, kept);
        solver.forwards(d, right);
        solver.join(d);
        // Others read the target through ghosts of theirs, or values that this thread is about to overwrite.
        if (apart && !P::plan.joined(l)) block_barrier();
        if (P::plan.cluster > 1 && final && !P::plan.crosses_slabs(s)) cluster_barrier();
        if (!final && P::plan.crosses(axis) && P::plan.turn_rows == 0) block_barrier();  // what the join gave back lies where values are handed over
#pragma unroll
        for (int c = (R - 1) / V * V; c >= 0; c -= V) {
            solver.backwards(d, c);
            if constexpr (final) update(c);
            else if constexpr (P::plan.turn_rows == 0) hand_over(c);
        }
        // Whatever is not finite in a segment has reached its first row.
#pragma unroll
        for (int m = 0; m < K; ++m)
            if (own.has(m, 0)) place.check = multiply_add(d[m][0], real(0), place.check);
    } else {
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
            for (int m = 0; m < K; ++m) d[m][i] = own.has(m, i) ? right(m, i) : real(0);
        every_block_is_there<P>();
#pragma unroll
        for (int c = 0; c < R; c += V) update(c);
    }
    if constexpr (!final && P::plan.turn_rows > 0) {
        constexpr int next = P::plan.axis_of(l + 1);
        InRegisters<P, next> after;
        change_threads<P, axis, next>(place, own, d, after);
        solve_lines<P, s, k + 1>(place, numbers, kept, after);
    } else if constexpr (!final) {
        block_barrier();
        solve_lines<P, s, k + 1>(place, numbers, kept, before);
    }
}

/// A value that neighbours share is stored by the point that has it as its own; beyond the block, by the last one that has it.
template <class P, int s, int v>
__device__ __forceinline__ void keep_values(const Place<P>& place, const int (&first)[3], int axis, int i, const typename P::real* out) {
    if constexpr (v < P::plan.sweep[s].kept) {
        constexpr ValuePlan value = P::plan.sweep[s].value[v];
        bool stores = true;
        if constexpr (value.axis >= 0) stores = first[value.axis] + (axis == value.axis ? i : 0) == place.points(value.axis) - 1;
        if (stores) place.memory[kept_place<P, s>(first) + i * P::plan.kept_stride(s, axis) + P::plan.invariant(s, v)] = out[v];
        keep_values<P, s, v + 1>(place, first, axis, i, out);
    }
}

/// What right-hand sides are cut at, before the first step.
template <class P, int s>
__device__ __forceinline__ void keep_invariants(const Place<P>& place, const Numbers<typename P::real>& numbers) {
    if constexpr (s < P::plan.sweeps) {
        if constexpr (P::plan.sweep[s].kept > 0) {
            constexpr int axis = P::plan.axis_of_sweep(s), kept = P::plan.sweep[s].kept;
            using Own = Segment<P, axis>;
            const Own own(place.rank);
#pragma unroll
            for (int m = 0; m < Own::count; ++m)
#pragma unroll 1
                for (int i = 0; i < Own::rows; ++i) {
                    typename P::real out[kept] = {};
                    std::int64_t x[3] = {own.x[m][0], own.x[m][1], own.x[m][2]};
                    for (int b = 0; b < 3; ++b)
                        if (P::plan.blocks_along(b) > 1) x[b] += place.first(b);
                    x[axis] += i;
                    if (own.has(m, i)) P::template keep<s>(near_point<P, axis>(place, own.x[m], i, typename P::real(0)), numbers.parameters, out, x[0], x[1], x[2], place.mesh, place.step);
                    if (own.has(m, i)) keep_values<P, s, 0>(place, own.x[m], axis, i, out);
                }
        }
        keep_invariants<P, s + 1>(place, numbers);
    }
}

template <class P, int s>
__device__ __forceinline__ void run_sweeps(const Place<P>& place, const Arguments<typename P::real>& a, const Kept<P, 0>& kept) {
    if constexpr (s < P::plan.sweeps) {
        constexpr int f = P::plan.sweep[s].target;
        solve_lines<P, s, 0>(place, a.numbers, kept, InSharedMemory{});
        if constexpr (P::plan.sends_rows(s)) send_rows<P, s>(place, a.field[f], static_cast<unsigned>(place.step - a.first_step));
        else fill_ghosts<P, f>(place, a.field[f]);
        run_sweeps<P, s + 1>(place, a, kept);
    }
}

/// P: real, plan (layout.cuh); rhs<s> and update<s>(near, parameters, x, y, z, mesh, step) -> real; where a sweep keeps values, keep<s>(near, parameters, out, x, …); where matrices
/// vary, coefficients<l>(near, parameters, out, x, …).
/// `shared`: P::plan.elements, aligned to 16 bytes. A cluster per mesh.
template <class P>
__device__ __forceinline__ void run(const Arguments<typename P::real>& a, typename P::real* shared, std::int64_t mesh) {
    Place<P> place{shared, P::plan.cluster > 1 ? rank_in_cluster() : 0, mesh, a.first_step, 0};
    load_factors<P, 0>(place, a.table);
    load_fields<P, 0>(place, a);
    open_letterboxes<P, 0>(place);
    fill_all_ghosts<P, 0>(place, a);
    keep_invariants<P, 0>(place, a.numbers);
    Kept<P, 0> kept;
    const bool good = make_factors<P, 0>(place, a.numbers, kept);
    block_barrier();  // what has been read once makes room
#pragma unroll 1
    for (std::int64_t done = 0; done < a.steps; ++done, ++place.step) run_sweeps<P, 0>(place, a, kept);
    bool bad = !good || !(place.check == 0);
    store_targets<P, 0>(place, a, bad);
    if (bad) give_up(a.state, a.from);
    if (P::plan.cluster > 1) cluster_barrier();  // no block leaves while another reads from it
}

/// Puts the targets back where a run gave up.
template <class P>
__device__ __forceinline__ void put_back(const Arguments<typename P::real>& a, std::int64_t points, std::int64_t first, std::int64_t apart) {
    if (!gave_up(a.state, a.from)) return;
    for (int f = 0; f < P::plan.fields; ++f) {
        if (!a.before[f]) continue;
        const auto& view = a.field[f];
        for (std::int64_t q = first; q < points; q += apart) {
            const std::int64_t x = q % P::plan.mesh[0], y = q / P::plan.mesh[0] % P::plan.mesh[1], z = q / (P::plan.mesh[0] * P::plan.mesh[1]) % P::plan.mesh[2], mesh = q / (std::int64_t{P::plan.mesh[0]} * P::plan.mesh[1] * P::plan.mesh[2]);
            view.data[x * view.stride[0] + y * view.stride[1] + z * view.stride[2] + mesh * view.stride[3]] = a.before[f][q];
        }
    }
}

}  // namespace trifold::cuda::resident
