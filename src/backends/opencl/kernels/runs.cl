// SPDX-License-Identifier: BSD-3-Clause
// One system that does not forget, on a GPU, in two passes without pivots: runs of rows become two relations each, these are joined 32 to one and dealt their ends again, and each run is solved
// between its ends, checked.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1
//
// Arrays: job.h with levels == 0, any row stride, numbers too; x is not rhs. Relations of `count` runs from work + at on: word w of run k at [w count + k], w < 3: x[first] = d - a x[before] -
//   c x[last], a, c, d; w < 6: x[last] = d - a x[before] - c x[after]; then, w = 6, 7, x[first] and x[last].
// Who does what: a group of 32 lanes has a run of 32 R rows (lanes.h), in the second pass from the last one to the first, since what was read last is in the cache still. Between
//   them a group has 32 runs, or 32 of what 32 became.
// Overwritten: x.
// Words per row: 4 read; 4 read, 1 written; between them 20 per run. The roof is memory's; what is between them takes a launch or two for every power of 32.
// Numerics: nothing is pivoted. Of every run `verdict` (couple.cl) is told the largest residual, with the very ends that neighbours store, and what it is to be small beside. What does not
//   hold is left to chunks that pivot.
// Source: F. A. Wang 1981; docs/algorithms/opencl.md.
#include "lanes.h"

#define RUN_ROWS (WARP * R)
#define GATE \
    volatile __global QueueState* const state = (volatile __global QueueState*)found; \
    if (gate && state->open != gate) return;
#define BOXES \
    __local REAL box[4 * BOX] __attribute__((aligned(128))); \
    __local REAL meeting[EXCHANGE_WORDS]; \
    __local ulong arrived; \
    const int lane = (int)get_local_id(0); \
    const word n = job.rows; \
    __global const REAL* const buffers[4] = {lower, diag, upper, rhs};
#define BRING_RUN \
    const word first = run * RUN_ROWS; \
    int pad[4] = {0, 0, 0, 0}; \
    bring_rows(&job, buffers, first, n, lane, box, &arrived, pad); \
    barrier(CLK_LOCAL_MEM_FENCE);

INLINE void put(__global REAL* to, word count, Relation r) { to[0] = r.a, to[count] = r.c, to[2 * count] = r.d; }
INLINE Relation taken(__global const REAL* from, word count) {
    const Relation r = {from[0], from[count], from[2 * count]};
    return r;
}

__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void reduce(SOLVER_ARGUMENTS, word at, word count, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    BOXES
    const word run = get_group_id(0);
    BRING_RUN
    ELIMINATE_LANES(joined)
    Relation begin = first_row;
    const Relation end = reduce_lanes(&joined, &begin, lane, meeting);
    if (joined.broken) give_up(state);
    if (lane == 0) put(work + at + run, count, begin);
    if (lane == WARP - 1) put(work + at + 3 * count + run, count, end);
}

/// Lane by lane 32 of `count` runs at `at`; where there are none, x = 0.
#define OWN_RUNS \
    __local REAL meeting[EXCHANGE_WORDS]; \
    const int lane = (int)get_local_id(0); \
    const word group = get_group_id(0), run = group * WARP + lane; \
    __global REAL* const own = work + at + run; \
    const Relation none = {(REAL)0, (REAL)0, (REAL)0}, begin = run < count ? taken(own, count) : none, end = run < count ? taken(own + 3 * count, count) : none; \
    Joined joined = close_lanes(begin, end, lane, meeting);

/// 32 runs become one of those at `above`.
__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void gather(SOLVER_ARGUMENTS, word at, word count, word above, word count_above, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    OWN_RUNS
    Relation head = begin;
    const Relation whole = reduce_lanes(&joined, &head, lane, meeting);
    if (joined.broken) give_up(state);
    if (lane == 0) put(work + above + group, count_above, head);
    if (lane == WARP - 1) put(work + above + 3 * count_above + group, count_above, whole);
}

/// And back: the ends of 32 runs between those of what they became; count_above == 0: these are all there are.
__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void deal(SOLVER_ARGUMENTS, word at, word count, word above, word count_above, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    OWN_RUNS
    if (joined.broken) give_up(state);
    if (count_above) {
        __global const REAL* const firsts = work + above + 6 * count_above;
        __global const REAL* const lasts = firsts + count_above;
        solve_lanes_between(&joined, group > 0 ? lasts[group - 1] : (REAL)0, lasts[group], group + 1 < count_above ? firsts[group + 1] : (REAL)0, lane, meeting);
    } else {
        solve_lanes(&joined, lane, meeting);
    }
    if (run < count) own[6 * count] = fma(-begin.c, joined.mine, fma(-begin.a, joined.left, begin.d)), own[7 * count] = joined.mine;
}

/// Of a lane into the group's: sizes are ordered like integers.
#if REAL_BYTES == 8
#define AS_INT(size) (size)
#define OF_INT(size) (size)
#else
#define AS_INT(size) as_int(size)
#define OF_INT(size) as_float(size)
#endif

/// What is found takes the place of the relations. accept: what `verdict` will ask of each run.
__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void finish(SOLVER_ARGUMENTS, word at, word count, REAL accept, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    BOXES
    __local int most[4], goes_on;
    // Where one run has failed, the rest would be in vain. One lane looks, so that all go the same way.
    if (lane == 0) goes_on = !state->given_up;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!goes_on) return;
    __global const REAL* const firsts = work + at + 6 * count;
    __global const REAL* const lasts = firsts + count;
    const word run = count - 1 - get_group_id(0);
    const REAL before = run > 0 ? lasts[run - 1] : (REAL)0, begin = firsts[run], last = lasts[run], after = run + 1 < count ? firsts[run + 1] : (REAL)0;
    if (lane < 4) most[lane] = 0;
    BRING_RUN
    ELIMINATE_LANES(joined)
    solve_lanes_between(&joined, before, last, after, lane, meeting);
    UNROLL for (int i = 0; i < R - 1; ++i) D[i] = fma(-C[i], joined.mine, fma(-A[i], joined.left, D[i]));
    D[R - 1] = joined.mine;
    if (lane == 0) D[0] = begin;
    const int rows = (int)min((word)RUN_ROWS, n - first), there = rows - lane * R;  // rows that only fill the run say nothing of the matrix
    Size rest = 0, matrix = 0, size = 0, right = 0;
    REAL strange = 0;
    RAISE(size, joined.left);
    RAISE(size, joined.after);
    UNROLL for (int i = 0; i < R; ++i) {
        const REAL above = i ? D[i ? i - 1 : 0] : joined.left, below = i + 1 < R ? D[i + 1 < R ? i + 1 : i] : joined.after, own = D[i], ai = a[i], bi = b[i], ci = c[i], fi = f[i];
        const REAL r = fma(-ci, below, fma(-ai, above, fma(-bi, own, fi)));
        RAISE_REST(rest, strange, r);
        RAISE(matrix, ai);
        if (i < there) RAISE(matrix, bi);
        RAISE(matrix, ci);
        RAISE(size, own);
        RAISE(right, fi);
        f[i] = own;
    }
    if (joined.broken || !(strange == (REAL)0)) give_up(state);
#ifdef BULK
    stored_here();
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_max(most, AS_INT(rest)), atomic_max(most + 1, AS_INT(matrix)), atomic_max(most + 2, AS_INT(size)), atomic_max(most + 3, AS_INT(right));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        __global REAL* const out = work + at + run;
        const REAL residual = SIZE_AT_MOST(OF_INT(most[0])), entry = SIZE_AT_LEAST(OF_INT(most[1])), largest = SIZE_AT_LEAST(OF_INT(most[2])), given = SIZE_AT_LEAST(OF_INT(most[3])), scale = entry * largest + given;
        out[0] = residual, out[count] = entry, out[2 * count] = largest, out[3 * count] = given, out[4 * count] = (REAL)1;
        // So far off that `verdict`, which rounds, will find it too.
        if (scale <= (REAL)LARGEST && !(residual <= (REAL)2 * accept * scale + (REAL)(16 * SMALLEST))) give_up(state);
    }

    __global REAL* const to = x + job.x.offset + first * job.x.row_stride;
    __local const REAL* const from = &IN_BOX(3, 0);
#ifdef BULK
    const int whole = job.x.row_stride == 1 && ((uint)(size_t)to | (uint)(size_t)from | (uint)rows * REAL_BYTES) % 16 == 0;
    if (whole && lane == 0) copy_out(to, from, (uint)rows * REAL_BYTES);
#else
    const int whole = 0;
#endif
    for (int i = lane; !whole && i < rows; i += WARP) to[i * job.x.row_stride] = from[i];
}
