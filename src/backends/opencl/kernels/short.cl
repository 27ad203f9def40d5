// SPDX-License-Identifier: BSD-3-Clause
// One short system, on a GPU, by one group in one launch, whether it forgets or not.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, rows <= 32 R P
//
// Arrays: job.h with levels == 0, any row stride, numbers too; DENSE: five arrays, row beside row. x may be rhs.
// Who does what: P parts of 32 lanes (lanes.h) with R rows each, which stay in registers from first to last. Rows come and go lane beside lane and are turned through local memory, an operand at a time.
//   A lane becomes its last unknown, and the lanes of a part join two by two; what is left of each part one part joins for all. On the way back each unknown is found between two that are known, so a lane
//   substitutes between its ends. All parts hear of their ends, of their neighbour's first x and of the verdict at barriers; within a part NVIDIA's lanes need none.
// Overwritten: x, where it holds; IN_TURN (job.h) nothing where one before did not hold.
// Words per row: 4 read, 1 written. What takes its time is a row of latencies: one way to memory, R and 11 divisions one after the other, four barriers; and messages between lanes, of which a multiprocessor passes
//   on one instruction's a cycle.
// Numerics: nothing is pivoted; residuals are weighed for each 32 R rows as those of runs are (runs.cl). What does not hold is left to chunks that pivot; what is not finite anywhere leaves a residual that is not.
// Source: F. A. Wang 1981; R. W. Hockney 1965.
#include "lanes.h"
#include "verdict.h"

#define PART_ROWS (WARP * R)

/// Barrier of a part's lanes; also of all, where lanes have no other.
#ifdef SHUFFLES
#define LANES_MEET() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#else
#define LANES_MEET() barrier(CLK_LOCAL_MEM_FENCE)
#endif

/// Rows first + WARP j + lane of an operand; couplings that lead out of the system are 0, rows that do not exist are x = 0. lower[0] and upper[n - 1] need not be memory. All are to be on their way before any
/// is waited for, which a condition may prevent: NVIDIA's assembler has loads under a predicate, elsewhere some row is read in place of one that does not exist.
INLINE void ask_rows(const Source* s, __global const REAL* buffer, int operand, int first, int n, int lane, REAL rows[R]) {
    const int is_view = DENSE || s->is_view, from = operand == 0, to = operand == 2 ? n - 1 : n;
    const REAL number = is_view ? (REAL)0 : number_of_bits(s->bits);
    const word step = DENSE ? 1 : s->row_stride;
#ifdef PTX
    const int row = first + lane, there = to - row;
    __global const REAL* const data = buffer + s->offset + row * step;
    UNROLL for (int j = 0; j < R; ++j) {
        const int exists = WARP * j < there && (j > 0 || row >= from);
        rows[j] = DENSE || !exists ? (REAL)(operand == 1) : number;
#if REAL_BYTES == 8
        asm volatile("{ .reg .pred p; .reg .u64 g; setp.ne.s32 p, %2, 0; cvta.to.global.u64 g, %1; @p ld.global.f64 %0, [g]; }" : "+d"(rows[j]) : "l"(data + WARP * j * step), "r"(exists && is_view));
#else
        asm volatile("{ .reg .pred p; .reg .u64 g; setp.ne.s32 p, %2, 0; cvta.to.global.u64 g, %1; @p ld.global.f32 %0, [g]; }" : "+f"(rows[j]) : "l"(data + WARP * j * step), "r"(exists && is_view));
#endif
    }
#else
    __global const REAL* const data = buffer + s->offset;
    for (int j = 0; j < R; ++j) rows[j] = number;
    if (is_view)
        for (int j = 0; j < R; ++j) rows[j] = data[clamp(first + WARP * j + lane, from, to - 1) * step];
    for (int j = 0; j < R; ++j) {
        const int row = first + WARP * j + lane;
        if (row < from || row >= to) rows[j] = (REAL)(operand == 1);
    }
#endif
}

/// Lane beside lane becomes row after row.
INLINE void turn_rows(REAL rows[R], __local REAL* box, int lane) {
    __local REAL *const across = box + lane, *const along = box + R * lane;
    LANES_MEET();
    UNROLL for (int j = 0; j < R; ++j) across[WARP * j] = rows[j];
    LANES_MEET();
    UNROLL for (int i = 0; i < R; ++i) rows[i] = along[i];
}

/// `last` closed with the first row of who comes next: x = d - a x[before] - c x[next].
INLINE Relation closed(Relation last, Relation next) {
    const REAL k = reciprocal(fma(-last.c, next.a, (REAL)1));
    const Relation r = {last.a * k, -last.c * next.c * k, fma(-last.c, next.d, last.d) * k};
    return r;
}

/// x[first] in what lies behind x: x = w.d - w.a x[before] - w.c x[behind].
INLINE void compose(Relation* first, Relation w) { first->d = fma(-first->c, w.d, first->d), first->a = fma(-first->c, w.a, first->a), first->c = -first->c * w.c; }

/// Every other one of the lanes that are left is put into its neighbours at distance s, and stays as it is. Returns the reciprocal.
INLINE REAL join_lanes(Relation* row, int s, int lane, __local REAL* meeting) {
    Relation above, below;
    neighbours(row, s, &above, &below, lane, meeting);
    const REAL k = reciprocal(fma(-row->c, below.a, fma(-row->a, above.c, (REAL)1)));
    if ((lane & (2 * s - 1)) == 2 * s - 1) {
        row->d = fma(-row->c, below.d, fma(-row->a, above.d, row->d)) * k;
        row->a = -(row->a * k) * above.a, row->c = -(row->c * k) * below.c;
    }
    return k;
}

/// And back: x of lanes between those whose x is known. Without a lane above, row.a is 0.
INLINE REAL part_lanes(REAL x, Relation row, int s, int lane, __local REAL* meeting) {
    REAL above, below;
    numbers_beside(x, s, &above, &below, lane, meeting);
    return (lane & (2 * s - 1)) == s - 1 ? fma(-row.c, below, fma(-row.a, above, row.d)) : x;
}

/// What parts say of themselves, seven relations: x[first] in x[before] and in that of its lane; lanes 0, 1, 3, 7 and 15, each in x[before] and in that of the next of these; the last one in x[before] and x[after].
#define SAID 7
INLINE void put(__local REAL* said, int k, Relation r) { said[3 * k * P] = r.a, said[(3 * k + 1) * P] = r.c, said[(3 * k + 2) * P] = r.d; }
INLINE Relation taken(__local const REAL* said, int k) {
    const Relation r = {said[3 * k * P], said[(3 * k + 1) * P], said[(3 * k + 2) * P]};
    return r;
}

__attribute__((reqd_work_group_size(WARP * P, 1, 1)))
__kernel void solve(SOLVER_ARGUMENTS, VERDICT_ARGUMENTS) {
    UNPACK_ARGUMENTS
    volatile __global QueueState* const state = (volatile __global QueueState*)found;
    __local REAL solution[P * PART_ROWS + 1], said[3 * SAID * P], lasts[P + 1];
    __local int most[4 * P], weighed[4], idle;
    const int item = (int)get_local_id(0), lane = item % WARP, part = item / WARP, n = (int)job.rows, first = part * PART_ROWS;
    // Rows are in registers when lanes meet, and in local memory before and after.
    __local REAL *const box = solution + first, *const meeting = box;
    REAL a[R], b[R], c[R], f[R], k[R], u[R];
    ask_rows(&job.lower, lower, 0, first, n, lane, a), ask_rows(&job.diag, diag, 1, first, n, lane, b);
    ask_rows(&job.upper, upper, 2, first, n, lane, c), ask_rows(&job.rhs, rhs, 3, first, n, lane, f);
    if (item < 4 * P) most[item] = 0;
    if (item < 4) weighed[item] = 0;
    if (item == 0) lasts[0] = solution[P * PART_ROWS] = (REAL)0, idle = trusted >= IN_TURN && state->broken;
    turn_rows(a, box, lane), turn_rows(b, box, lane), turn_rows(c, box, lane), turn_rows(f, box, lane);
    LANES_MEET();

    // The lane's first unknown, from row to row in the next one, and its last one; k: reciprocals of pivots.
    Relation head, row, above, below;
    UNROLL for (int i = 0; i < R; ++i) {
        k[i] = reciprocal(i ? fma(-a[i], row.c, b[i]) : b[i]);
        row.d = (i ? fma(-a[i], row.d, f[i]) : f[i]) * k[i];
        row.a = i ? -(a[i] * k[i]) * row.a : a[i] * k[i];
        row.c = c[i] * k[i];
        if (i == 0) head = row;
        else if (i < R - 1) compose(&head, row);
    }
    neighbours(&head, 1, &above, &below, lane, meeting);
    REAL out = row.c;  // the last lane's: it leads out of the part
    if (lane == WARP - 1) row.c = (REAL)0;
    row = closed(row, below);
    for (int s = 1; s < WARP; s *= 2) out *= join_lanes(&row, s, lane, meeting);
    const int in_turn = (lane & (lane + 1)) == 0 ? popcount(lane) : -1;
    if (lane == 0) put(said + part, 0, head);
    if (lane == WARP - 1) row.c = out;
    if (in_turn >= 0) put(said + part, 1 + in_turn, row);
    barrier(CLK_LOCAL_MEM_FENCE);

    // All parts, one a lane: couplings that lead out of the system are 0, and stay it. Where lanes need no barrier, one part does it for all.
#ifdef SHUFFLES
    if (part == 0)
#endif
    {
        __local const REAL* const by_part = said + min(lane, P - 1);
        Relation begin = taken(by_part, 0), next;
        UNROLL for (int m = 1; m < SAID - 1; ++m) compose(&begin, taken(by_part, m));
        neighbours(&begin, 1, &above, &next, lane, meeting);
        Relation whole_part = closed(taken(by_part, SAID - 1), next);
        for (int s = 1; s < P; s *= 2) join_lanes(&whole_part, s, lane, meeting);
        REAL x_last = whole_part.d;
        for (int s = P / 2; s > 0; s /= 2) x_last = part_lanes(x_last, whole_part, s, lane, meeting);
        if (part == 0 && lane < P) lasts[lane + 1] = x_last;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const REAL before = lasts[part], last = lasts[part + 1];
    if (in_turn >= 0) row.d = fma(-row.a, before, row.d), row.a = (REAL)0;
    REAL mine = last, over, under;
    for (int s = WARP / 2; s > 0; s /= 2) mine = part_lanes(mine, row, s, lane, meeting);
    numbers_beside(mine, 1, &over, &under, lane, meeting);
    const REAL left = lane ? over : before;

    __local REAL *const across = box + lane, *const along = box + R * lane;
    REAL down = left;
    UNROLL for (int i = 0; i < R - 1; ++i) down = u[i] = fma(-a[i], down, f[i]) * k[i];
    along[R - 1] = u[R - 1] = mine;
    UNROLL for (int i = R - 2; i >= 0; --i) along[i] = u[i] = fma(-c[i] * k[i], u[i + 1], u[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const REAL after = along[R];
    const int there = n - first - R * lane;  // rows that only fill the part say nothing of the matrix
    Size rest = 0, matrix = 0, size = 0, right = 0;
    REAL strange = 0;
    RAISE(size, left);
    RAISE(size, after);
    UNROLL for (int i = 0; i < R; ++i) {
        const REAL r = fma(-c[i], i + 1 < R ? u[i + 1 < R ? i + 1 : i] : after, fma(-a[i], i ? u[i ? i - 1 : 0] : left, fma(-b[i], u[i], f[i])));
        RAISE_REST(rest, strange, r);
        RAISE(matrix, a[i]);
        if (i < there) RAISE(matrix, b[i]);
        RAISE(matrix, c[i]);
        RAISE(size, u[i]);
        RAISE(right, f[i]);
    }
    int sizes[4] = {AS_INT(rest), AS_INT(matrix), AS_INT(size), AS_INT(right)};
    largest_of_lanes(sizes, most + 4 * part);
    if (!(strange == (REAL)0)) atomic_max(weighed + 3, 1);
    if (lane == 0 && first < n) {
        Weighed w = nothing_weighed();
        weigh(&w, SIZE_AT_MOST(OF_INT(sizes[0])), SIZE_AT_LEAST(OF_INT(sizes[1])), SIZE_AT_LEAST(OF_INT(sizes[2])), SIZE_AT_LEAST(OF_INT(sizes[3])), 1);
        atomic_max(weighed, as_int(w.ratio)), atomic_max(weighed + 1, as_int(w.rest)), atomic_max(weighed + 2, as_int(w.largest)), atomic_max(weighed + 3, w.bad);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const Weighed all = {as_float(weighed[0]), as_float(weighed[1]), as_float(weighed[2]), weighed[3]};
    if (idle) return;
    if (item == 0) tell(state, &all, &job, status, accept, whole, next, trusted, reason, &telling, outcome_buffer);
    if (!holds(&all, accept, whole)) return;
    const word step = DENSE ? 1 : job.x.row_stride;
    __global REAL* const to = x + job.x.offset + (first + lane) * step;
    UNROLL for (int j = 0; j < R; ++j)
        if (WARP * j < n - first - lane) to[WARP * j * step] = across[WARP * j];
}
