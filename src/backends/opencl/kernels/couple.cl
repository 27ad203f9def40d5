// SPDX-License-Identifier: BSD-3-Clause
// The ends of all chunks of one system (chunks.cl), from the two rows that each of them is reduced to; and the verdict on what finish has stored.
//
//   a0 x[last before] + a1 x[first] + a2 x[last] + a3 x[first after] = rhs,   two such rows per chunk
//
// Up to RUN neighbouring chunks become one of the next level, until one is left; on the way back runs are solved between known ends.
// Arrays: chunks as `reduce` leaves them, 11 REAL each; a level above: count chunks, word w of chunk k at level[w count + k], w < 10, behind them x[first] and x[last] of its chunks.
// Who does what: an item per run; the levels that are left of a long system are one group's. So few items wait for memory and for divisions: a level takes some 10 µs whatever its size.
// Words per row: with chunks of 32 rows 0.34 for the first level each way, a sixteenth of that for each of the others.
// Numerics: COUPLE, which is double where the device has it; partial pivoting among the four rows of two chunks, then among three. A column of zeros: given_up.
// Source: docs/algorithms/two_pass.md, "Coupling".
#include "verdict.h"

#if COUPLE_BYTES == 8
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#ifndef RUN
#define RUN 16
#endif
#define MOST_LEVELS 16

typedef struct {
    COUPLE a[2][4], rhs[2];
} TwoRows;

/// in: x[last k], x[first k+1], which leave; next: x[last k+1], x[first k+2]; outer: x[last before the run], x[first of it].
typedef struct {
    COUPLE in0, in1, next0, next1, outer0, outer1, rhs;
} Row;

INLINE TwoRows chunk_rows(const __global REAL* out, word chunks, word k) {
    TwoRows r;
    for (int w = 0; w < 4; ++w) r.a[0][w] = (COUPLE)out[w * chunks + k], r.a[1][w] = (COUPLE)out[(4 + w) * chunks + k];
    r.rhs[0] = (COUPLE)out[8 * chunks + k], r.rhs[1] = (COUPLE)out[9 * chunks + k];
    return r;
}

INLINE TwoRows level_rows(const __global COUPLE* level, word count, word k) {
    TwoRows r;
    for (int w = 0; w < 4; ++w) r.a[0][w] = level[w * count + k], r.a[1][w] = level[(4 + w) * count + k];
    r.rhs[0] = level[8 * count + k], r.rhs[1] = level[9 * count + k];
    return r;
}

/// out: chunks as `reduce` leaves them; null: `level` has them.
#define ROWS_OF(k) (out ? chunk_rows(out, count, k) : level_rows(level, count, k))

INLINE void start_run(const TwoRows* rows, Row carried[2]) {
    for (int k = 0; k < 2; ++k) {
        const Row r = {(COUPLE)0, (COUPLE)0, rows->a[k][2], rows->a[k][3], rows->a[k][0], rows->a[k][1], rows->rhs[k]};
        carried[k] = r;
    }
}

INLINE void subtract(Row* lost, const Row* pivot, COUPLE m) {
    lost->in1 -= m * pivot->in1;
    lost->next0 -= m * pivot->next0, lost->next1 -= m * pivot->next1;
    lost->outer0 -= m * pivot->outer0, lost->outer1 -= m * pivot->outer1;
    lost->rhs -= m * pivot->rhs;
}

INLINE void larger_first(Row* a, Row* b, int second) {
    const Row kept = *a;
    const int exchange = second ? fabs(b->in1) > fabs(a->in1) : fabs(b->in0) > fabs(a->in0);
    if (exchange) *a = *b, *b = kept;
}

/// The next chunk joins: two rows lose two unknowns. The pivot rows' in0 and in1 then hold 1 / pivot. 0: a column has no pivot.
INLINE int join(Row carried[2], const TwoRows* rows, Row pivots[2]) {
    Row w[4];
    for (int k = 0; k < 2; ++k) {
        const Row own = {carried[k].next0, carried[k].next1, (COUPLE)0, (COUPLE)0, carried[k].outer0, carried[k].outer1, carried[k].rhs};
        const Row other = {rows->a[k][0], rows->a[k][1], rows->a[k][2], rows->a[k][3], (COUPLE)0, (COUPLE)0, rows->rhs[k]};
        w[k] = own, w[2 + k] = other;
    }
    for (int k = 1; k < 4; ++k) larger_first(w, w + k, 0);
    int regular = w[0].in0 != (COUPLE)0;
    const COUPLE one = (COUPLE)1 / w[0].in0;
    for (int k = 1; k < 4; ++k) subtract(w + k, w, w[k].in0 * one);
    for (int k = 2; k < 4; ++k) larger_first(w + 1, w + k, 1);
    regular &= w[1].in1 != (COUPLE)0;
    const COUPLE two = (COUPLE)1 / w[1].in1;
    for (int k = 2; k < 4; ++k) {
        subtract(w + k, w + 1, w[k].in1 * two);
        carried[k - 2] = w[k];
    }
    pivots[0] = w[0], pivots[1] = w[1];
    pivots[0].in0 = one, pivots[1].in1 = two;
    return regular;
}

/// Chunks first … last as one, chunk k of the level above.
INLINE int merge_run(const __global REAL* out, const __global COUPLE* level, word count, word first, word last, __global COUPLE* above, word count_above, word k_above) {
    Row carried[2], pivots[2];
    const TwoRows begin = ROWS_OF(first);
    start_run(&begin, carried);
    int regular = 1;
    for (word k = first + 1; k <= last; ++k) {
        const TwoRows next = ROWS_OF(k);
        regular &= join(carried, &next, pivots);
    }
    for (int k = 0; k < 2; ++k) {
        const COUPLE a[4] = {carried[k].outer0, carried[k].outer1, carried[k].next0, carried[k].next1};
        for (int w = 0; w < 4; ++w) above[(4 * k + w) * count_above + k_above] = a[w];
        above[(8 + k) * count_above + k_above] = carried[k].rhs;
    }
    return regular;
}

/// x[first] and x[last] of chunks first … last between x[last before], x[first], x[last], x[first after] of them all; to `add` where out is there.
INLINE void spread_run(const __global REAL* out, __global COUPLE* level, word count, word first, word last, const COUPLE known[4], __global REAL* add) {
    __global COUPLE* const ends = level + 10 * count;
#define END(at, value) \
    { \
        if (out) add[at] = (REAL)(value); \
        else ends[at] = value; \
    }
    Row carried[2];
    const TwoRows begin = ROWS_OF(first);
    start_run(&begin, carried);
    for (int k = 0; k < 2; ++k) {
        carried[k].rhs -= carried[k].outer0 * known[0] + carried[k].outer1 * known[1];
        carried[k].outer0 = carried[k].outer1 = (COUPLE)0;
    }
    COUPLE kept[RUN - 1][9];
    for (int j = 0; first + j < last; ++j) {
        Row p[2];
        const TwoRows next = ROWS_OF(first + j + 1);
        join(carried, &next, p);
        kept[j][0] = p[0].in0, kept[j][1] = p[0].in1, kept[j][2] = p[0].next0, kept[j][3] = p[0].next1, kept[j][4] = p[0].rhs;
        kept[j][5] = p[1].in1, kept[j][6] = p[1].next0, kept[j][7] = p[1].next1, kept[j][8] = p[1].rhs;
    }
    COUPLE next0 = known[2], next1 = known[3];
    END(first, known[1])
    END(count + last, known[2])
    for (int j = (int)(last - first) - 1; j >= 0; --j) {
        const COUPLE front = (kept[j][8] - kept[j][6] * next0 - kept[j][7] * next1) * kept[j][5];
        const COUPLE back = (kept[j][4] - kept[j][1] * front - kept[j][2] * next0 - kept[j][3] * next1) * kept[j][0];
        END(first + j + 1, front)
        END(count + first + j, back)
        next0 = back, next1 = front;
    }
#undef END
}

INLINE word runs_of(word count) { return (count + RUN - 1) / RUN; }

/// What lies beside run k of the level above, whose ends are known.
INLINE void known_of(const __global COUPLE* above, word count_above, word k, COUPLE known[4]) {
    const __global COUPLE* const ends = above + 10 * count_above;
    known[0] = k > 0 ? ends[count_above + k - 1] : (COUPLE)0, known[1] = ends[k];
    known[2] = ends[count_above + k], known[3] = k + 1 < count_above ? ends[k + 1] : (COUPLE)0;
}

#define STATE volatile __global QueueState* const state = (volatile __global QueueState*)found

/// They begin `from` bytes into work; places of levels are COUPLE words from there.
#define LEVELS (__global COUPLE*)(scratch_buffer + where.work + from)

/// level: its place, or -1: the chunks of `reduce`. above: the next one's place.
__kernel void merge(SOLVER_ARGUMENTS, ChunkParts parts, word from, word level, word count, word above, unsigned gate) {
    UNPACK_ARGUMENTS
    STATE;
    const word k = get_global_id(0), runs = runs_of(count);
    if ((gate && state->open != gate) || k >= runs) return;
    const __global REAL* const out = level < 0 ? work + parts.out : (__global REAL*)0;
    __global COUPLE* const all = LEVELS;
    const word first = k * RUN, last = min(first + RUN, count) - 1;
    int regular = merge_run(out, all + level, count, first, last, all + above, runs, k);
    if (out)
        for (word c = first; c <= last; ++c) regular &= out[10 * count + c] < (REAL)0;
    if (!regular) give_up(state);
}

__kernel void spread(SOLVER_ARGUMENTS, ChunkParts parts, word from, word level, word count, word above, unsigned gate) {
    UNPACK_ARGUMENTS
    STATE;
    const word k = get_global_id(0), runs = runs_of(count);
    if ((gate && state->open != gate) || k >= runs) return;
    __global COUPLE* const all = LEVELS;
    COUPLE known[4];
    known_of(all + above, runs, k, known);
    spread_run(level < 0 ? work + parts.out : (__global REAL*)0, all + level, count, k * RUN, min(k * RUN + RUN, count) - 1, known, work + parts.add);
}

/// One group: from the level at `level` upwards, or from the chunks of `reduce` (-1), and back to its ends. above: where the next level begins.
__kernel void top(SOLVER_ARGUMENTS, ChunkParts parts, word from, word level, word chunks, word above, unsigned gate) {
    UNPACK_ARGUMENTS
    STATE;
    if (get_group_id(0) || (gate && state->open != gate)) return;
    __global COUPLE* const all = LEVELS;
    __global REAL* const reduced = level < 0 ? work + parts.out : (__global REAL*)0;
    const word item = get_local_id(0), items = get_local_size(0);
    word at[MOST_LEVELS], count[MOST_LEVELS];
    int l = 0, regular = 1;
    at[0] = level, count[0] = chunks;
    if (reduced)
        for (word k = item; k < chunks; k += items) regular &= reduced[10 * chunks + k] < (REAL)0;
    for (; count[l] > 1 || (l == 0 && reduced); ++l) {
        at[l + 1] = l ? at[l] + 12 * count[l] : above, count[l + 1] = runs_of(count[l]);
        for (word k = item; k < count[l + 1]; k += items)
            regular &= merge_run(l ? (__global REAL*)0 : reduced, all + at[l], count[l], k * RUN, min(k * RUN + RUN, count[l]) - 1, all + at[l + 1], count[l + 1], k);
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    if (item == 0) {
        const TwoRows rows = level_rows(all + at[l], 1, 0);
        const int one = fabs(rows.a[1][1]) > fabs(rows.a[0][1]) ? 1 : 0, other = 1 - one;
        const COUPLE pivot = rows.a[one][1], m = rows.a[other][1] / pivot, rest = rows.a[other][2] - m * rows.a[one][2];
        const COUPLE x_last = (rows.rhs[other] - m * rows.rhs[one]) / rest;
        all[at[l] + 10] = (rows.rhs[one] - rows.a[one][2] * x_last) / pivot, all[at[l] + 11] = x_last;
        regular &= pivot != (COUPLE)0 && rest != (COUPLE)0;
    }
    if (!regular) give_up(state);
    barrier(CLK_GLOBAL_MEM_FENCE);
    while (l-- > 0) {
        for (word k = item; k < count[l + 1]; k += items) {
            COUPLE known[4];
            known_of(all + at[l + 1], count[l + 1], k, known);
            spread_run(l ? (__global REAL*)0 : reduced, all + at[l], count[l], k * RUN, min(k * RUN + RUN, count[l]) - 1, known, work + parts.add);
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

/// What `finish` has said of the chunks, for kernels that do not tell it themselves. The last group tells the outcome.
__kernel void verdict(SOLVER_ARGUMENTS, ChunkParts parts, word chunks, unsigned gate, VERDICT_ARGUMENTS) {
    UNPACK_ARGUMENTS
    STATE;
    __local int last;
    if (gate && state->open != gate) return;
    const __global REAL* const out = work + parts.out;
    Weighed weighed = nothing_weighed();
    for (word k = get_global_id(0); k < chunks; k += get_global_size(0))
        weigh(&weighed, out[k], out[chunks + k], out[2 * chunks + k], out[3 * chunks + k], out[4 * chunks + k] != (REAL)0);
    say_weighed(state, &weighed);
    if (last_group(state, &last) && get_local_id(0) == 0) tell_verdict(state, &job, status, accept, whole, next, trusted, reason, &telling, outcome_buffer);
}
