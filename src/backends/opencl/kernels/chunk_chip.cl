// SPDX-License-Identifier: BSD-3-Clause
// finish of chunks.cl on a GPU, where all of a chunk fits on chip: G chunks in a group's local memory, ITEMS items, of which the first G have a chunk each.
//
// Arrays, results: chunks.cl; chunks of 32 rows, from `from` on. MOST: rows of the longest one, 32 where the last chunk is not among them.
// Who does what: rows come and go by all items, item beside item. What an item keeps of a row takes the place of the row before it, x that of the right-hand side; then the rows come once more.
// TELLS: what is found of the chunks is weighed at once (verdict.h), and where the last chunk is among them the last group tells the outcome; else it is told chunk by chunk, as chunks.cl does.
// Words per row: 4 read, 4 read from cache, 1 written. An item's 30 divisions, one after the other, take the time that memory does not.
#include "arrivals.h"

#define CHUNK 32
#define PITCH (G + 1)
#define KEPT_SPACE __local
#define KEPT(row, w) kept[((w) * MOST + (row)) * PITCH]
#include "chunk_rows.h"
#include "verdict.h"

#define LAST_IS_HERE (MOST > CHUNK)

/// A line into plane `plane`; a coupling that leads out of the system is 0.
INLINE void ask_line(const Line* line, const Cut* cut, int plane, word first, __local REAL* planes) {
#pragma unroll 8
    for (int e = (int)get_local_id(0); e < G * MOST; e += ITEMS) {
        const int s = e / MOST, r = e % MOST;
        const word row = (first + s) * CHUNK + r;
        __local REAL* const to = &planes[(plane * MOST + r) * PITCH + s];
        if (LAST_IS_HERE && r >= rows_of(cut, first + s)) continue;
        if ((plane == 0 && row == 0) || (LAST_IS_HERE && plane == 2 && row == cut->rows - 1)) *to = (REAL)0;
        else ask_number(to, line, row);
    }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void finish(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct, word from, unsigned gate, VERDICT_ARGUMENTS) {
    UNPACK_ARGUMENTS
    __local REAL planes[5 * MOST * PITCH];
    __local int stores[G];
#ifdef TELLS
    __local int most[4];
    volatile __global QueueState* const state = (volatile __global QueueState*)found;
    if (get_local_id(0) < 4) most[get_local_id(0)] = 0;
#endif
    GATE
    const int own = (int)get_local_id(0);
    // From the last one to the first: what was reduced last is in the cache still.
    const word first = from + (word)(get_num_groups(0) - 1 - get_group_id(0)) * G, k = first + own, index[4] = {0, 0, 0, 0};
    const int rows = own >= G ? 0 : LAST_IS_HERE ? (int)rows_of(&cut, k) : CHUNK;
    const Source right = correct ? defect_source(&parts) : job.rhs;
    const Line a = line_of(&job.lower, lower, index), b = line_of(&job.diag, diag, index), c = line_of(&job.upper, upper, index), f = line_of(&right, correct ? work : rhs, index);
    const Line v = line_of(&job.x, x, index), given = line_of(&job.rhs, rhs, index);
    ask_line(&a, &cut, 0, first, planes), ask_line(&b, &cut, 1, first, planes), ask_line(&c, &cut, 2, first, planes), ask_line(&f, &cut, 3, first, planes);
    Ends known = {(REAL)0, (REAL)0, (REAL)0, (REAL)0}, stored = known;
    if (rows) {
        known = stored = ends_of(work + parts.add, cut.chunks, k);
        if (correct) {
            const Ends before = ends_of(work + parts.old, cut.chunks, k), added = known;
            correct_ends(&before, &added, &stored, &known);
        }
    }
    await_all();
    barrier(CLK_LOCAL_MEM_FENCE);
    __local REAL* const kept = planes + own;
    const word pitch = 0;
    if (rows) {
        Eliminating to;
        eliminate_first_row(&to, &known, KEPT(0, 0), KEPT(0, 1), KEPT(0, 2), KEPT(0, 3));
        eliminate_second_row(&to, &known, KEPT(1, 0), KEPT(1, 1), KEPT(1, 2), KEPT(1, 3));
        REAL ai = KEPT(2, 0), bi = KEPT(2, 1), ci = KEPT(2, 2), fi = KEPT(2, 3);
        for (int i = 2; i < rows; ++i) {
            const int below = i + 1 < rows ? i + 1 : i;
            const REAL a_below = KEPT(below, 0), b_below = KEPT(below, 1), c_below = KEPT(below, 2), f_below = KEPT(below, 3);
            const PivotRow left = eliminate_next_row(&to, ai, bi, ci, fi, SUMS);
            KEPT(i - 1, 0) = left.inverse, KEPT(i - 1, 1) = left.q, KEPT(i - 1, 2) = left.rr, KEPT(i - 1, 3) = left.y;
            ai = a_below, bi = b_below, ci = c_below, fi = f_below;
        }
        substitute(&known, rows, kept, pitch);
        if (correct) {
            for (int i = 1; i + 1 < rows; ++i) KEPT(i, 3) += get(&v, k * CHUNK + i);
            KEPT(0, 3) = stored.first, KEPT(rows - 1, 3) = stored.last;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ask_line(&a, &cut, 0, first, planes), ask_line(&b, &cut, 1, first, planes), ask_line(&c, &cut, 2, first, planes), ask_line(&given, &cut, 4, first, planes);
    await_all();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (rows) {
        Checking seen = {(REAL)0, (REAL)0, fmax(fabs(stored.before), fabs(stored.after)), (REAL)0, (REAL)0};
        REAL above = stored.before, here = stored.first;
#pragma unroll 4
        for (int i = 0; i < rows; ++i) {
            const REAL below = i + 1 < rows ? KEPT(i + 1 < rows ? i + 1 : i, 3) : stored.after;
            check_row(&seen, KEPT(i, 0), KEPT(i, 1), KEPT(i, 2), KEPT(i, 4), above, here, below);
            above = here, here = below;
        }
#ifdef TELLS
        Weighed weighed = nothing_weighed();
        weigh(&weighed, seen.residual, seen.matrix, seen.size, seen.right, seen.sum == (REAL)0);
        stores[own] = !weighed.bad;
        atomic_max(most, as_int(weighed.ratio)), atomic_max(most + 1, as_int(weighed.rest)), atomic_max(most + 2, as_int(weighed.largest)), atomic_max(most + 3, weighed.bad);
#else
        const int good = is_good(&seen, accept);
        say_checked(&seen, good, cut.chunks, k, work + parts.out);
        stores[own] = good;
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 8
    for (int e = own; e < G * MOST; e += ITEMS) {
        const int s = e / MOST, r = e % MOST;
        if (LAST_IS_HERE && r >= rows_of(&cut, first + s)) continue;
        if (stores[s]) v.data[((first + s) * CHUNK + r) * v.stride] = planes[(3 * MOST + r) * PITCH + s];
    }
#ifdef TELLS
    if (own == 0) {
        const Weighed weighed = {as_float(most[0]), as_float(most[1]), as_float(most[2]), most[3]};
        say_weighed(state, &weighed);
    }
    if (LAST_IS_HERE && last_group(state, most) && own == 0) tell_verdict(state, &job, status, accept, whole, next, trusted, reason, &telling, outcome_buffer);
#endif
}
