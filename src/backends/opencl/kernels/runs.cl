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
// MEETS: two launches in all, for systems of few runs, where groups see each other's numbers (meet.h): of 32 runs the group that comes last joins them, the last of all solves what is left and deals
//   down to the runs' own level; there each group of `finish` solves for the 32 that its run is one of, and the last of them tells the outcome.
// Source: F. A. Wang 1981; docs/algorithms/opencl.md.
// A pivot of a thousand times its row's numbers is what was lost of them, ten bits of a residual that may lose three: such rows would not hold. A row in four is looked at: what has many is seen soon.
#define GROWTH_BITS 10
#define SEE_PIVOT(i, pivot, a, b, c) \
    if ((i) % 4 == 3) grown |= size_of(pivot) > max(max(size_of(a), size_of(b)), size_of(c)) + (GROWTH_BITS << EXPONENT_AT)
#include "lanes.h"
#include "meet.h"
#include "verdict.h"

#if REAL_BYTES == 8
#define EXPONENT_AT 20
#else
#define EXPONENT_AT 23
#endif
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
// Where one run has failed, the rest would be in vain. One lane looks, so that all go the same way.
#define GOES_ON \
    __local int goes_on; \
    if (lane == 0) goes_on = !state->given_up; \
    barrier(CLK_LOCAL_MEM_FENCE); \
    if (!goes_on) return;
#define BRING_RUN \
    const word first = run * RUN_ROWS; \
    int pad[4] = {0, 0, 0, 0}; \
    bring_rows(&job, buffers, first, n, lane, box, &arrived, pad); \
    barrier(CLK_LOCAL_MEM_FENCE);

INLINE void put(__global REAL* to, word count, Relation r) { to[0] = r.a, to[count] = r.c, to[2 * count] = r.d; }
INLINE Relation taken(__global const REAL* from, word count) {
    const Relation r = {by_another(from), by_another(from + count), by_another(from + 2 * count)};
    return r;
}

/// 32 of `count` runs at `at`, lane by lane; where there are none, x = 0.
typedef struct {
    Relation begin, end;
    Joined joined;
} Runs;
INLINE Runs runs_of_group(__global REAL* at, word count, word group, int lane, __local REAL* meeting) {
    const word run = group * WARP + lane;
    const Relation none = {(REAL)0, (REAL)0, (REAL)0};
    Runs r;
    r.begin = run < count ? taken(at + run, count) : none, r.end = run < count ? taken(at + 3 * count + run, count) : none;
    r.joined = close_lanes(r.begin, r.end, lane, meeting);
    return r;
}

/// They become run `group` of those above.
INLINE void gather_runs(Runs* runs, word group, __global REAL* above, word count_above, int lane, __local REAL* meeting) {
    Relation head = runs->begin;
    const Relation whole = reduce_lanes(&runs->joined, &head, lane, meeting);
    if (lane == 0) put(above + group, count_above, head);
    if (lane == WARP - 1) put(above + 3 * count_above + group, count_above, whole);
}

/// Their unknowns, between those of what they became; count_above == 0: these are all there are. Returns x[first] of the lane's run, x[last] is joined.mine.
INLINE REAL deal_runs(Runs* runs, word group, __global const REAL* above, word count_above, int lane, __local REAL* meeting) {
    if (count_above) {
        __global const REAL *const firsts = above + 6 * count_above, *const lasts = firsts + count_above;
        solve_lanes_between(&runs->joined, group > 0 ? by_another(lasts + group - 1) : (REAL)0, by_another(lasts + group), group + 1 < count_above ? by_another(firsts + group + 1) : (REAL)0, lane, meeting);
    } else {
        solve_lanes(&runs->joined, lane, meeting);
    }
    // The first one of all as those above have it: so has who solves for the runs before them.
    return lane == 0 && count_above ? by_another(above + 6 * count_above + group) : fma(-runs->begin.c, runs->joined.mine, fma(-runs->begin.a, runs->joined.left, runs->begin.d));
}
INLINE void put_ends(__global REAL* at, word count, word run, REAL first, REAL last) {
    if (run < count) at[6 * count + run] = first, at[7 * count + run] = last;
}

#ifdef MEETS
#define MOST_LEVELS 4
/// By the group that has put run `own` of `count` at `at`: as long as it is the last of 32 it joins them; what all runs became it solves, and deals to all levels but the lowest.
INLINE void join_upwards(volatile __global QueueState* state, __global REAL* at, word count, word own, int lane, __local REAL* meeting, __local int* last) {
    __global REAL* level[MOST_LEVELS];
    word counts[MOST_LEVELS], places = 0;
    level[0] = at, counts[0] = count;
    int l = 0;
    Runs runs;
    for (;; ++l) {
        const word group = own / WARP, groups = (counts[l] + WARP - 1) / WARP;
        if (!group_comes_last(&state->met[places + group], (uint)(min((word)WARP, counts[l] - group * WARP) - 1), last)) return;
        runs = runs_of_group(level[l], counts[l], group, lane, meeting);
        if (runs.joined.broken) give_up(state);
        if (groups == 1) break;
        level[l + 1] = level[l] + 8 * counts[l], counts[l + 1] = groups;
        gather_runs(&runs, group, level[l + 1], groups, lane, meeting);
        places += groups, own = group;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    REAL first = deal_runs(&runs, 0, level[l], 0, lane, meeting);
    put_ends(level[l], counts[l], lane, first, runs.joined.mine);
    for (; l > 1; --l) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (word group = 0; group < counts[l]; ++group) {
            runs = runs_of_group(level[l - 1], counts[l - 1], group, lane, meeting);
            first = deal_runs(&runs, group, level[l], counts[l], lane, meeting);
            put_ends(level[l - 1], counts[l - 1], group * WARP + lane, first, runs.joined.mine);
        }
    }
}
#endif

__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void reduce(SOLVER_ARGUMENTS, word at, word count, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    BOXES
    GOES_ON
    __local int is_last;
    const word run = get_group_id(0);
    int grown = 0;
    BRING_RUN
    ELIMINATE_LANES(joined)
    Relation begin = first_row;
    const Relation end = reduce_lanes(&joined, &begin, lane, meeting);
    if (joined.broken || grown) give_up(state);
    if (lane == 0) put(work + at + run, count, begin);
    if (lane == WARP - 1) put(work + at + 3 * count + run, count, end);
#ifdef MEETS
    join_upwards(state, work + at, count, run, lane, meeting, &is_last);
#endif
}

#define THIRTY_TWO_RUNS \
    __local REAL meeting[EXCHANGE_WORDS]; \
    const int lane = (int)get_local_id(0); \
    const word group = get_group_id(0); \
    Runs runs = runs_of_group(work + at, count, group, lane, meeting); \
    if (runs.joined.broken) give_up(state);

/// 32 runs become one of those at `above`.
__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void gather(SOLVER_ARGUMENTS, word at, word count, word above, word count_above, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    THIRTY_TWO_RUNS
    gather_runs(&runs, group, work + above, count_above, lane, meeting);
}

/// And back: the ends of 32 runs between those of what they became; count_above == 0: these are all there are.
__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void deal(SOLVER_ARGUMENTS, word at, word count, word above, word count_above, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    THIRTY_TWO_RUNS
    const REAL first = deal_runs(&runs, group, work + above, count_above, lane, meeting);
    put_ends(work + at, count, group * WARP + lane, first, runs.joined.mine);
}

/// What is found takes the place of the relations, or is told. accept: what is asked of each run.
__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void finish(SOLVER_ARGUMENTS, word at, word count, unsigned gate, VERDICT_ARGUMENTS) {
    UNPACK_ARGUMENTS
    GATE
    BOXES
    __local int most[4], goes_on;
#ifdef MEETS
    __local int is_last;
    __local REAL ends[2 * WARP];
#endif
    // Where one run has failed, the rest would be in vain. One lane looks, so that all go the same way.
    if (lane == 0) goes_on = !state->given_up;
    barrier(CLK_LOCAL_MEM_FENCE);
    // A loop, since PoCL takes barriers in one as they are meant, and not behind a condition.
    for (int once = 1; once; once = 0) {
        if (!goes_on) break;
        int grown = 0;
        const word run = count - 1 - get_group_id(0);
        __global const REAL *const known_firsts = work + at + 6 * count, *const known_lasts = known_firsts + count;
        REAL before = run > 0 ? known_lasts[run - 1] : (REAL)0, begin = known_firsts[run], last = known_lasts[run], after = run + 1 < count ? known_firsts[run + 1] : (REAL)0;
#ifdef MEETS
        // Of many runs only those of what 32 became are known.
        for (int deals = count > WARP; deals; deals = 0) {
            const word group = run / WARP, count_above = (count + WARP - 1) / WARP, own = run % WARP;
            __global const REAL *const above = work + at + 8 * count, *const firsts = above + 6 * count_above, *const lasts = firsts + count_above;
            Runs runs = runs_of_group(work + at, count, group, lane, meeting);
            ends[lane] = deal_runs(&runs, group, above, count_above, lane, meeting), ends[WARP + lane] = runs.joined.mine;
            barrier(CLK_LOCAL_MEM_FENCE);
            before = own > 0 ? ends[WARP + own - 1] : group > 0 ? lasts[group - 1] : (REAL)0, begin = ends[own], last = ends[WARP + own];
            after = run + 1 == count ? (REAL)0 : own + 1 < WARP ? ends[own + 1] : firsts[group + 1];
        }
#endif
        if (lane < 4) most[lane] = 0;
        BRING_RUN
        ELIMINATE_LANES(joined)
        solve_lanes_between(&joined, before, last, after, lane, meeting);
        SUBSTITUTE_ROWS(joined)
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
        stored_here();
        barrier(CLK_LOCAL_MEM_FENCE);
        atomic_max(most, AS_INT(rest)), atomic_max(most + 1, AS_INT(matrix)), atomic_max(most + 2, AS_INT(size)), atomic_max(most + 3, AS_INT(right));
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) {
            const REAL residual = SIZE_AT_MOST(OF_INT(most[0])), entry = SIZE_AT_LEAST(OF_INT(most[1])), largest = SIZE_AT_LEAST(OF_INT(most[2])), given = SIZE_AT_LEAST(OF_INT(most[3])), scale = entry * largest + given;
#ifdef MEETS
            Weighed weighed = nothing_weighed();
            weigh(&weighed, residual, entry, largest, given, 1);
            say_weighed(state, &weighed);
#else
            __global REAL* const out = work + at + run;
            out[0] = residual, out[count] = entry, out[2 * count] = largest, out[3 * count] = given, out[4 * count] = (REAL)1;
#endif
            // So far off that the verdict, which rounds, will find it too.
            if (scale <= (REAL)LARGEST && !(residual <= (REAL)2 * accept * scale + (REAL)(16 * SMALLEST))) give_up(state);
        }
        store_x(&job, x, first, &IN_BOX(3, 0), rows, lane);
    }
#ifdef MEETS
    if (!last_group(state, &is_last) || lane != 0) return;
    forget_meetings(state, count);
    tell_verdict(state, &job, status, accept, whole, next, trusted, reason, &telling, outcome_buffer);
#endif
}
