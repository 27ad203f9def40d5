// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting between neighbouring rows, one work item per system, any layout.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: job.h; strides may be zero or negative, a coefficient may be a number. x may be rhs. lower[0] and upper[rows-1] are not read.
// Scratch: four arrays of rows for each slot. GPU: rows first, so that neighbouring items write neighbouring words; else slot after
//   slot. A slot is an item's; with fewer slots than systems an item solves one after another.
// Overwritten: x of the systems that are solved, and nothing of one that fails: it is stored last, when all of it is known.
// Words per row: 4 read + 4 stored + 4 read + 1 stored and read + 1 stored = 15: the path for what no other takes.
// Numerics: backward stable (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 9.6). A column without a pivot is
//   `singular` at its row; a value that is not finite is `not_finite` at the first row that has one, in the input, else in x.
// Source: the scheme of LAPACK's ?gtsv.
#include "common.h"

static inline int finite3(REAL a, REAL b, REAL c, REAL f) { return a * (REAL)0 + b * (REAL)0 + c * (REAL)0 + f * (REAL)0 == (REAL)0; }

static inline int solve_line(const Line* lower, const Line* diag, const Line* upper, const Line* rhs, const Line* x, word n, __global REAL* pivot, word step,
                      word* row) {
    __global REAL* const above = pivot + n * step;
    __global REAL* const above2 = above + n * step;
    __global REAL* const value = above2 + n * step;
    REAL d = get(diag, 0), u = n > 1 ? get(upper, 0) : (REAL)0, y = get(rhs, 0);
    word bad = finite3(0, d, u, y) ? -1 : 0, singular = -1;
    for (word i = 0; i + 1 < n; ++i) {
        const REAL a = get(lower, i + 1), b = get(diag, i + 1), c = i + 2 < n ? get(upper, i + 1) : (REAL)0, f = get(rhs, i + 1);
        if (bad < 0 && !finite3(a, b, c, f)) bad = i + 1;
        const int exchange = fabs(a) > fabs(d);
        const REAL p = exchange ? a : d;
        if (p == (REAL)0 && singular < 0) singular = i;
        const REAL m = (exchange ? d : a) / p;
        pivot[i * step] = p;
        above[i * step] = exchange ? b : u;
        above2[i * step] = exchange ? c : (REAL)0;
        value[i * step] = exchange ? f : y;
        if (exchange) {
            d = u - m * b, u = -m * c, y = y - m * f;
        } else {
            d = b - m * u, u = c, y = f - m * y;
        }
    }
    *row = bad;
    if (bad >= 0) return NOT_FINITE;
    if (singular < 0 && d == (REAL)0) singular = n - 1;
    *row = singular;
    if (singular >= 0) return SINGULAR;
    REAL next = y / d, after = 0;
    if (!(next * (REAL)0 == (REAL)0)) bad = n - 1;
    value[(n - 1) * step] = next;
    for (word i = n - 2; i >= 0; --i) {
        const REAL now = (value[i * step] - above[i * step] * next - above2[i * step] * after) / pivot[i * step];
        if (!(now * (REAL)0 == (REAL)0)) bad = i;
        value[i * step] = now;
        after = next, next = now;
    }
    *row = bad;
    if (bad >= 0) return NOT_FINITE;
    for (word i = 0; i < n; ++i) x->data[i * x->stride] = value[i * step];
    return GOOD;
}

// Tells the outcome; `found` is of the queue's state. Only then are there failures where the item that counted them wrote the verdict, and only the last group reads it.
INLINE void tell(const Job* job, volatile __global QueueState* state, const volatile __global uchar* marks, const volatile __global word* verdicts, __global Found* outcome,
                 const Found* fresh, __local word* verdict) {
    const unsigned failures = state->found.failures, first = state->found.first;
    if (failures)
        for (word k = get_local_id(0); k < job->systems; k += get_local_size(0)) {
            if (marks[k] != FAILED) continue;
            word index[4];
            indices_of(job, k, index);
            if (number_at(job, index) == first) *verdict = verdicts[k];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) != 0) return;
    Found out = *fresh;
    out.failures = failures, out.rescued = state->found.rescued;
    if (failures) out.first = first, out.row = *verdict / 8, out.reason = -(int)(*verdict % 8);
    *outcome = out;
    state->found.first = ~0u, state->found.failures = state->found.rescued = state->found.marked = state->found.tickets = 0, state->groups_done = 0;
}

// The last kernel of a batch. only_marked: systems that an unpivoted kernel has marked (2: in either of two places, ring.cl); else all, and marks and status are set here.
__kernel void pivoted(SOLVER_ARGUMENTS, word slots, word slot_step, word row_step, int only_marked, Telling telling, __global uchar* outcome_buffer) {
    UNPACK_ARGUMENTS
    volatile __global QueueState* const state = (volatile __global QueueState*)found;
    __global Found* const outcome = (__global Found*)(outcome_buffer + telling.at);
    __local int last;
    __local word verdict;
    const word slot = get_global_id(0);
    // Nobody has anything to do, and what is said here changes nothing of that.
    if (only_marked && found->marked == 0 && found->failures == 0) {
        if (slot == 0) *outcome = telling.fresh, state->found.tickets = 0;
        return;
    }
    for (word k = slot; k < job.systems && slot < slots; k += slots) {
        if (only_marked && marks[k] != TO_PIVOT && !(only_marked == 2 && *(__global uchar*)(verdicts + k) == TO_PIVOT)) continue;
        word index[4], row;
        indices_of(&job, k, index);
        const Line a = line_of(&job.lower, lower, index), b = line_of(&job.diag, diag, index), c = line_of(&job.upper, upper, index),
                   f = line_of(&job.rhs, rhs, index), to = line_of(&job.x, x, index);
        const int reason = solve_line(&a, &b, &c, &f, &to, job.rows, work + slot * slot_step, row_step, &row);
        const word number = number_at(&job, index);
        if (reason == GOOD) {
            marks[k] = SOLVED;
            if (only_marked) atomic_inc(&found->rescued);
            else if (status) status[number] = GOOD;
        } else {
            marks[k] = FAILED;
            verdicts[k] = row * 8 - reason;
            report_failure(found, status, number, reason);
        }
    }
    if (last_group(state, &last)) tell(&job, state, marks, verdicts, outcome, &telling.fresh, &verdict);
}

// The least number of a system that failed is known: its row and reason. For what no pivoted kernel follows.
__kernel void name_failure(SOLVER_ARGUMENTS) {
    UNPACK_ARGUMENTS
    if (found->failures == 0) return;
    for (word k = get_global_id(0); k < job.systems; k += get_global_size(0)) {
        if (marks[k] != FAILED) continue;
        word index[4];
        indices_of(&job, k, index);
        if (number_at(&job, index) != found->first) continue;
        found->row = verdicts[k] / 8;
        found->reason = -(int)(verdicts[k] % 8);
    }
}

__kernel void reset_state(__global QueueState* state) {
    const Found nothing = {~0u, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    state->found = nothing;
    state->given_up = state->largest = state->excess = state->groups_done = state->rest = state->open = 0;
    for (int k = 0; k < MEETINGS; ++k) state->met[k] = 0;
}

__kernel void reset(__global uchar* found_buffer, word at, Found value) { *(__global Found*)(found_buffer + at) = value; }
