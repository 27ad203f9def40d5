// SPDX-License-Identifier: BSD-3-Clause
// Batches on a GPU, rows side by side: 32 items have a run of systems on chip, one after the other, R rows per item; without pivoting, checked.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: job.h, any strides; x may be rhs. DENSE is 1 where all lie with rows one element and systems `rows` apart, and are no numbers: then little is to be computed of addresses. Systems of the last level follow each other as one long system whose couplings are 0 at the
//   seams, per_group of them: rows × per_group ≤ 32 R.
// Who does what: operands come in the order of memory, item beside item, into local memory, from where a lane takes R rows (R is odd: no two lanes in one bank) and
//   eliminates them; lanes are joined (lanes.h). x leaves in the order of memory.
// Overwritten: x of the systems whose check held.
// Words per row: 4 read, 1 written. The roof is memory's; some 60 instructions per row and lane.
// Numerics: of every lane and system in it max|rhs - A x| ≤ 16 roundoffs max|diag| max|x| is seen, else the system is marked for pivoted.cl and nothing of it stored.
#include "lanes.h"

/// Systems of at least R rows: no lane has the ends of two, and no lane has to look after two systems.
#ifndef LONG
#define LONG 0
#endif
/// One system in a group.
#ifndef ALONE
#define ALONE 0
#endif
#define EACH_SYSTEM(s) for (uint s = (uint)lane; s < systems; s = LONG ? ~0u : s + WARP)

/// From system to system of the last level.
#define PITCH_OF(source) (DENSE ? (word)n : lane_level < 0 ? 0 : (source)->level_stride[lane_level])

/// x of row i of a lane, what is left of it, and sizes. HOLDS: what was seen of a system's rows.
#define LOOK_AT_ROW(i) \
    const REAL above = i ? D[i ? i - 1 : 0] : joined.left, below = i + 1 < R ? D[i + 1 < R ? i + 1 : i] : joined.after, own = D[i], bi = b[i]; \
    const REAL r = fma(-c[i], below, fma(-a[i], above, fma(-bi, own, f[i]))); \
    RAISE_REST(rest, strange, r); \
    RAISE(entry, bi); \
    RAISE(size, own);
#define ALLOWED(entry, size) ((REAL)16 * (REAL)UNIT * SIZE_AT_LEAST(entry) * SIZE_AT_LEAST(size))
#define HOLDS(rest, entry, size, strange) \
    (!joined.broken && SIZE_AT_MOST(rest) <= ALLOWED(entry, size) && ALLOWED(entry, size) <= (REAL)LARGEST && (strange) == (REAL)0)

/// Element e of the group, in the order of memory: of system s, row i. inverse: 2^32 / rows, rounded up.
#define PLACE_OF(e) const uint s = mul_hi((uint)(e), inverse), i = (uint)(e) - s * n;

__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void rows(SOLVER_ARGUMENTS, MAY_BE_ALONE, uint per_group, uint inverse) {
    UNPACK_ARGUMENTS
    TELL_ALONE()
    __local REAL box[4 * BOX] __attribute__((aligned(128)));
    __local REAL meeting[EXCHANGE_WORDS];
    __local ulong arrived;
    __local uchar bad[WARP * R];
    __local int any_bad;
    const int lane_level = DENSE ? 0 : (int)job.levels - 1, lane = (int)get_local_id(0);
    const uint n = (uint)job.rows;
    const word lanes = lane_level < 0 ? 1 : job.extent[lane_level];
    word groups = 0, turn = get_group_id(0), k0 = 0, index[4] = {0, 0, 0, 0};
    if (!DENSE && lane_level > 0) {  // long divisions take as long as memory does
        groups = (lanes + per_group - 1) / per_group, k0 = turn / groups * lanes, turn %= groups;
        indices_of(&job, k0, index);
    }
    k0 += turn * per_group;
    const uint systems = (uint)min((word)per_group, lanes - turn * per_group), count = systems * n;

    // What follows a run is the next one's, and may be read, where there is enough of it: not where all systems share an array.
    const int inside = turn > 0 && turn * per_group * n >= QUAD && turn * per_group * n + BOX < lanes * n;
    const Source* const sources[4] = {&job.lower, &job.diag, &job.upper, &job.rhs};
    __global const REAL* const buffers[4] = {lower, diag, upper, rhs};
    __global const REAL* data[4];
    int dense = 1;
    UNROLL for (int o = 0; o < 4; ++o) {
        const word pitch = PITCH_OF(sources[o]);
        data[o] = buffers[o] + (!DENSE && lane_level > 0 ? start_of(sources[o], index) : sources[o]->offset) + turn * per_group * pitch;
        dense &= DENSE || (sources[o]->is_view && sources[o]->row_stride == 1 && (pitch == n || (systems == 1 && pitch > n)));
    }
    int pad[4] = {0, 0, 0, 0};
    if (dense && inside) {
        load_run(data, count, lane, box, &arrived, pad);
    } else {
        // lower of a first row and upper of a last one may lie outside of the arrays: of every system, where an operand's rows lie farther apart than its systems do.
        UNROLL for (int o = 0; o < 4; ++o) {
            const REAL number = DENSE || sources[o]->is_view ? (REAL)0 : number_of_bits(sources[o]->bits);
            const word pitch = PITCH_OF(sources[o]), step = DENSE ? 1 : sources[o]->row_stride;
            const uint from_row = o == 0, to_row = o == 2 ? n - 1 : n;
            const int is_view = DENSE || sources[o]->is_view != 0;
            __global const REAL* const from = data[o];
#pragma unroll 4
            for (uint e = (uint)lane; e < count; e += WARP) {
                PLACE_OF(e)
                box[o * BOX + e] = is_view ? i >= from_row && i < to_row ? from[(word)i * step + (word)s * pitch] : (REAL)0 : number;
            }
        }
    }
    EACH_SYSTEM(s) bad[s] = 0;
    if (lane == 0) any_bad = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    // What fills the lanes must not count among the entries of a system that is alone: normal, and so is its reciprocal.
#if REAL_BYTES == 8
    const REAL filling = 0x1p-1000;
#else
    const REAL filling = 0x1p-120f;
#endif
#pragma unroll 1
    for (uint e = count + (uint)lane; e < WARP * R; e += WARP) IN_BOX(0, e) = IN_BOX(2, e) = IN_BOX(3, e) = (REAL)0, IN_BOX(1, e) = filling;
    EACH_SYSTEM(s) IN_BOX(0, s * n) = (REAL)0, IN_BOX(2, s * n + n - 1) = (REAL)0;
    barrier(CLK_LOCAL_MEM_FENCE);
    ELIMINATE_LANES(joined)
    solve_lanes(&joined, lane, meeting);

    SUBSTITUTE_ROWS(joined)
    uint s = mul_hi((uint)(lane * R), inverse), p = (uint)(lane * R) - s * n;
    Size rest = 0, entry = 0, size = 0;
    REAL strange = 0;
    if (p) RAISE(size, joined.left);
#if LONG
    // Without branches, and nothing is stored before all is read: loads go ahead of each other. `first`: the system that ends in this lane.
#if !ALONE
    const uint end = n - p;
    Size first_rest = 0, first_entry = 0, first_size = 0;
    REAL first_strange = 0;
#endif
    UNROLL for (int i = 0; i < R; ++i) {
        LOOK_AT_ROW(i)
#if !ALONE
        const int ends = i + 1 == (int)end;
        first_rest = ends ? rest : first_rest, first_entry = ends ? entry : first_entry, first_size = ends ? size : first_size, first_strange = ends ? strange : first_strange;
        rest = ends ? 0 : rest, entry = ends ? 0 : entry, size = ends ? 0 : size, strange = ends ? (REAL)0 : strange;
#endif
    }
#if ALONE
    RAISE(size, joined.after);
    if (s == 0 && !HOLDS(rest, entry, size, strange)) bad[0] = 1, any_bad = 1;
#else
    if (end <= R) {
        if (s < systems && !HOLDS(first_rest, first_entry, first_size, first_strange)) bad[s] = 1, any_bad = 1;
        ++s;
    }
    if (end != R) {
        RAISE(size, joined.after);
        if (s < systems && !HOLDS(rest, entry, size, strange)) bad[s] = 1, any_bad = 1;
    }
#endif
    UNROLL for (int i = 0; i < R; ++i) f[i] = D[i];
#else
    UNROLL for (int i = 0; i < R; ++i) {
        LOOK_AT_ROW(i)
        const int ends = ++p == n;
        if (ends || i == R - 1) {
            if (!ends) RAISE(size, below);
            if (s < systems && !HOLDS(rest, entry, size, strange)) bad[s] = 1, any_bad = 1;
            rest = entry = size = 0, strange = 0;
            if (ends) p = 0, ++s;
        }
        f[i] = own;
    }
#endif
    stored_here();
    barrier(CLK_LOCAL_MEM_FENCE);

    const word x_pitch = PITCH_OF(&job.x), x_step = DENSE ? 1 : job.x.row_stride;
    __global REAL* const to = x + (!DENSE && lane_level > 0 ? start_of(&job.x, index) : job.x.offset) + turn * per_group * x_pitch;
    __local const REAL* const out = &IN_BOX(3, 0);
    const int together = !any_bad && x_step == 1 && (DENSE || x_pitch == n || systems == 1);
#ifdef BULK
    const int whole = together && ((uint)(size_t)to | (uint)(size_t)out | count * REAL_BYTES) % 16 == 0;
    if (whole && lane == 0) copy_out(to, out, count * REAL_BYTES);
#else
    const int whole = 0;
#endif
    if (together && !whole) {
        UNROLL for (int j = 0; j < R; ++j) {
            const uint e = (uint)(j * WARP + lane);
            if (e < count) to[e] = out[e];
        }
    } else if (!whole) {
        for (uint e = (uint)lane; e < count; e += WARP) {
            PLACE_OF(e)
            if (!bad[s]) to[(word)i * x_step + (word)s * x_pitch] = out[e];
        }
    }
    EACH_SYSTEM(s) {
        judge_system(trusted, bad[s], marks + k0 + s, found);
        if (status) status[number_at(&job, index) + (lane_level < 0 ? 0 : (turn * per_group + s) * job.number_stride[lane_level])] = GOOD;
    }
}
