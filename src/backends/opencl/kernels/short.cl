// SPDX-License-Identifier: BSD-3-Clause
// One short system, on a GPU, by one group in one launch, whether it forgets or not.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, rows <= 32 R P
//
// Arrays: job.h with levels == 0, any row stride, numbers too; x may be rhs.
// Who does what: P times 32 lanes (lanes.h) with R rows each; what 32 lanes are reduced to is joined by the same lanes once more, by each of the P for itself. Rows come and go lane beside lane and
//   are turned through local memory, an operand at a time; they come once more for the residual, from the cache.
// Overwritten: x, where it holds.
// Words per row: 4 read, 4 read from cache, 1 written. What takes its time is a row of latencies: two ways to memory, R and 20 divisions one after the other, some 20 barriers.
// Numerics: nothing is pivoted; residuals are weighed for each 32 R rows as those of runs are (runs.cl). What does not hold is left to chunks that pivot.
// Source: F. A. Wang 1981; R. W. Hockney 1965.
#include "lanes.h"
#include "verdict.h"

#define PART_ROWS (WARP * R)

/// Rows first + WARP j + lane of an operand; couplings that lead out of the system are 0, rows that do not exist are x = 0. Read without a condition, so that all are on their way at once.
INLINE void ask_rows(const Source* s, __global const REAL* buffer, int operand, int first, int n, int lane, REAL rows[R]) {
    const int from = operand == 0, to = operand == 2 ? n - 1 : n, is_view = s->is_view != 0;
    const REAL number = is_view ? (REAL)0 : number_of_bits(s->bits);
    __global const REAL* const data = buffer + s->offset;
    UNROLL for (int j = 0; j < R; ++j) rows[j] = data[(is_view ? clamp(first + WARP * j + lane, from, to - 1) : 0) * s->row_stride];
    UNROLL for (int j = 0; j < R; ++j) {
        const int row = first + WARP * j + lane;
        rows[j] = row < from || row >= to ? (REAL)(operand == 1) : is_view ? rows[j] : number;
    }
}

/// Lane beside lane becomes row after row.
INLINE void turn_rows(REAL rows[R], __local REAL* box, int lane) {
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int j = 0; j < R; ++j) box[WARP * j + lane] = rows[j];
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int i = 0; i < R; ++i) rows[i] = box[R * lane + i];
}

__attribute__((reqd_work_group_size(WARP * P, 1, 1)))
__kernel void solve(SOLVER_ARGUMENTS, VERDICT_ARGUMENTS) {
    UNPACK_ARGUMENTS
    volatile __global QueueState* const state = (volatile __global QueueState*)found;
    __local REAL solution[P * PART_ROWS + 2], exchange[P * EXCHANGE_WORDS], reduced[6 * P];
    __local int most[4 * P], weighed[4];
    const int item = (int)get_local_id(0), lane = item % WARP, part = item / WARP, n = (int)job.rows, first = part * PART_ROWS;
    __local REAL *const box = solution + 1 + first, *const meeting = exchange + part * EXCHANGE_WORDS;
    if (item < 4 * P) most[item] = 0;
    if (item < 4) weighed[item] = 0;
    REAL a[R], b[R], c[R], f[R];
    ask_rows(&job.lower, lower, 0, first, n, lane, a), ask_rows(&job.diag, diag, 1, first, n, lane, b);
    ask_rows(&job.upper, upper, 2, first, n, lane, c), ask_rows(&job.rhs, rhs, 3, first, n, lane, f);
    turn_rows(a, box, lane), turn_rows(b, box, lane), turn_rows(c, box, lane), turn_rows(f, box, lane);
    ELIMINATE_ROWS(joined)
    Relation head = first_row;
    const Relation whole_part = reduce_lanes(&joined, &head, lane, meeting);
    if (lane == 0) reduced[part] = head.a, reduced[P + part] = head.c, reduced[2 * P + part] = head.d;
    if (lane == WARP - 1) reduced[3 * P + part] = whole_part.a, reduced[4 * P + part] = whole_part.c, reduced[5 * P + part] = whole_part.d;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int own = lane < P ? lane : 0;
    const Relation none = {(REAL)0, (REAL)0, (REAL)0}, begin = {reduced[own], reduced[P + own], reduced[2 * P + own]}, end = {reduced[3 * P + own], reduced[4 * P + own], reduced[5 * P + own]};
    Joined parts = close_lanes(lane < P ? begin : none, lane < P ? end : none, lane, meeting);
    solve_lanes(&parts, lane, meeting);
    // The ends of all parts, for those of one's own; `reduced` has been read.
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == part) reduced[part] = fma(-begin.c, parts.mine, fma(-begin.a, parts.left, begin.d)), reduced[P + part] = parts.mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    const REAL x_before = part > 0 ? reduced[P + (part > 0 ? part - 1 : 0)] : (REAL)0, x_after = part + 1 < P ? reduced[part + 1 < P ? part + 1 : part] : (REAL)0;
    solve_lanes_between(&joined, x_before, reduced[P + part], x_after, lane, meeting);
    UNROLL for (int i = 0; i < R - 1; ++i) box[R * lane + i] = fma(-C[i], joined.mine, fma(-A[i], joined.left, D[i]));
    box[R * lane + R - 1] = joined.mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) box[0] = reduced[part];
    if (item == 0) solution[0] = solution[P * PART_ROWS + 1] = (REAL)0;
    barrier(CLK_LOCAL_MEM_FENCE);

    ask_rows(&job.lower, lower, 0, first, n, lane, a), ask_rows(&job.diag, diag, 1, first, n, lane, b);
    ask_rows(&job.upper, upper, 2, first, n, lane, c), ask_rows(&job.rhs, rhs, 3, first, n, lane, f);
    Size rest = 0, matrix = 0, size = 0, right = 0;
    REAL strange = 0;
    UNROLL for (int j = 0; j < R; ++j) {
        const int at = WARP * j + lane;
        const REAL above = box[at - 1], here = box[at], below = box[at + 1], aj = a[j], bj = b[j], cj = c[j], fj = f[j];
        const REAL r = fma(-cj, below, fma(-aj, above, fma(-bj, here, fj)));
        RAISE_REST(rest, strange, r);
        RAISE(matrix, aj);
        if (first + at < n) RAISE(matrix, bj);
        RAISE(matrix, cj);
        RAISE(size, here);
        RAISE(right, fj);
    }
    RAISE(size, box[-1]);
    RAISE(size, box[PART_ROWS]);
    const int bad = joined.broken || parts.broken || !(strange == (REAL)0);
    __local int* const of_part = most + 4 * part;
    atomic_max(of_part, AS_INT(rest)), atomic_max(of_part + 1, AS_INT(matrix)), atomic_max(of_part + 2, AS_INT(size)), atomic_max(of_part + 3, AS_INT(right));
    if (bad) atomic_max(weighed + 3, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0 && first < n) {
        Weighed w = nothing_weighed();
        weigh(&w, SIZE_AT_MOST(OF_INT(of_part[0])), SIZE_AT_LEAST(OF_INT(of_part[1])), SIZE_AT_LEAST(OF_INT(of_part[2])), SIZE_AT_LEAST(OF_INT(of_part[3])), 1);
        atomic_max(weighed, as_int(w.ratio)), atomic_max(weighed + 1, as_int(w.rest)), atomic_max(weighed + 2, as_int(w.largest)), atomic_max(weighed + 3, w.bad);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const Weighed all = {as_float(weighed[0]), as_float(weighed[1]), as_float(weighed[2]), weighed[3]};
    if (item == 0) tell(state, &all, &job, status, accept, whole, next, trusted, reason, &telling, outcome_buffer);
    if (holds(&all, accept, whole))
        UNROLL for (int j = 0; j < R; ++j) {
            const int at = WARP * j + lane;
            if (first + at < n) x[job.x.offset + (first + at) * job.x.row_stride] = box[at];
        }
}
