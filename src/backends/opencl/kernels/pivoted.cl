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

inline int finite3(REAL a, REAL b, REAL c, REAL f) { return a * (REAL)0 + b * (REAL)0 + c * (REAL)0 + f * (REAL)0 == (REAL)0; }

inline int solve_line(const Line* lower, const Line* diag, const Line* upper, const Line* rhs, const Line* x, word n, __global REAL* pivot, word step,
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

// only_marked: systems that an unpivoted kernel has marked; else all, and marks and status are set here.
__kernel void pivoted(SOLVER_ARGUMENTS, word slots, word slot_step, word row_step, int only_marked) {
    UNPACK_ARGUMENTS
    const word slot = get_global_id(0);
    if (slot >= slots || (only_marked && found->marked == 0)) return;
    for (word k = slot; k < job.systems; k += slots) {
        if (only_marked && marks[k] != TO_PIVOT) continue;
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
}

// The least number of a system that failed is known: its row and reason.
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

__kernel void reset(__global uchar* found_buffer, word at, Found value) { *(__global Found*)(found_buffer + at) = value; }
