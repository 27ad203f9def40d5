// SPDX-License-Identifier: BSD-3-Clause
// Row by row what a chunk becomes: two rows, or x between known ends, and its residual. A Vector has a chunk per lane; on a GPU it is one number.
// Numerics: the interior unknowns are eliminated from all rows of the chunk with partial pivoting among three, so that a singular interior does no
//   harm. Where every row nearly cancels, the sum of a row's coefficients goes along: in the first pass it takes the place of the largest one at the end, in the second the
//   pivot is what it leaves for it. `sums`: a constant, whether this is done. docs/algorithms/two_pass.md.
// Source: C. Klein and R. Strzodka, Tridiagonal GPU solver with scaled partial pivoting at maximum bandwidth, ICPP 2021.
#include "vectors.h"

#if LANES == 1
#define ALL_TRUE 1
#define INVERSE(p) reciprocal(p)
#define NOT_THESE(m) (!(m))
/// What is kept of an elimination, in memory unless who includes this has it elsewhere.
#ifndef KEPT
#define KEPT_SPACE __global
#define KEPT(row, w) kept[((row) * 4 + (w)) * pitch]
#endif
#else
#define ALL_TRUE ((Mask)(-1))
#define INVERSE(p) ((Vector)1 / (p))
#define NOT_THESE(m) (~(m))
#endif

/// On a queue's state: whether what was found before this kernel asks for it. gate 0: it was not asked.
#define GATE if (gate && ((volatile __global QueueState*)found)->open != gate) return;

INLINE Source defect_source(const ChunkParts* parts) {
    Source s;
    s.is_view = 1, s.offset = parts->defect, s.row_stride = 1;
    return s;
}

/// Over x[-1], x[0], x[j], x[j+1].
typedef struct {
    Vector w0, w1, p, q, sum, rhs;
} Carried;

/// Two rows on their way down a chunk. bad: its first row whose column has no pivot, or -1.
typedef struct {
    Carried c0, c1;
    Mask balanced;
    Vector bad;
} Reducing;

INLINE Reducing nothing_yet() {
    Reducing t;
    const Vector none = (Vector)0;
    const Carried empty = {none, none, none, none, none, none};
    t.c0 = t.c1 = empty, t.balanced = ALL_TRUE, t.bad = (Vector)(-1);
    return t;
}

/// What decays along a chunk. A processor takes a hundred times as long for an operation on numbers below the normal range, as long as these last: some rows of every chunk, where unknowns decay by a few bits a row.
/// The residual shows what this loses of a matrix whose own numbers are there.
INLINE Vector faded(Vector v) {
#if LANES > 1 && REAL_BYTES == 4
    return fabs(v) < 0x1p-126f ? (Vector)0 : v;
#elif LANES > 1
    return fabs(v) < 0x1p-1022 ? (Vector)0 : v;
#else
    return v;
#endif
}

INLINE void lose(Carried* c, Vector inverse, Vector w0, Vector w1, Vector q, Vector r, Vector sum, Vector rhs, int sums) {
    const Vector m = c->p * inverse;
    c->w0 = faded(c->w0 - m * w0), c->w1 = faded(c->w1 - m * w1);
    c->p = faded(c->q - m * q), c->q = faded(-m * r);
    if (sums) c->sum -= m * sum;
    c->rhs -= m * rhs;
}

INLINE Mask cancels(Vector a, Vector b, Vector c, Vector sum) { return fabs(sum) <= (fabs(a) + fabs(b) + fabs(c)) / (REAL)2; }

INLINE void reduce_first_row(Reducing* t, Vector a, Vector b, Vector c, Vector f) {
    const Vector sum = (a + c) + b, none = (Vector)0;
    t->balanced &= cancels(a, b, c, sum);
    t->c0.w0 = a, t->c0.w1 = b, t->c0.p = c, t->c0.q = none, t->c0.sum = sum, t->c0.rhs = f;
}

INLINE void reduce_second_row(Reducing* t, Vector a, Vector b, Vector c, Vector f) {
    const Vector sum = (a + c) + b, none = (Vector)0;
    t->balanced &= cancels(a, b, c, sum);
    t->c1.w0 = none, t->c1.w1 = a, t->c1.p = b, t->c1.q = c, t->c1.sum = sum, t->c1.rhs = f;
}

INLINE void reduce_next_row(Reducing* t, word at, Vector a, Vector b, Vector c, Vector f, int sums) {
    const Vector none = (Vector)0, sum = sums ? (a + c) + b : none;
    Carried c0 = t->c0, c1 = t->c1;
    if (sums) t->balanced &= cancels(a, b, c, sum);
    const Vector s0 = fabs(c0.p), s1 = fabs(c1.p), s2 = fabs(a);
    const Mask t0 = (s0 >= s1) & (s0 > s2), t1 = (s0 < s1) & (s1 > s2);
    const Vector p = t0 ? c0.p : t1 ? c1.p : a, q = t0 ? c0.q : t1 ? c1.q : b, rr = (t0 | t1) ? none : c;
    const Vector w0 = t0 ? c0.w0 : t1 ? c1.w0 : none, w1 = t0 ? c0.w1 : t1 ? c1.w1 : none;
    const Vector s = t0 ? c0.sum : t1 ? c1.sum : sum, y = t0 ? c0.rhs : t1 ? c1.rhs : f;
    // The row that joins takes the place of the one that leaves.
    const Vector j0 = t0 ? c : none, j1 = t1 ? c : none;
    c0.w0 = t0 ? none : c0.w0, c0.w1 = t0 ? none : c0.w1, c0.p = t0 ? a : c0.p, c0.q = t0 ? b : c0.q;
    c0.sum = t0 ? sum : c0.sum, c0.rhs = t0 ? f : c0.rhs;
    c1.w0 = t1 ? none : c1.w0, c1.w1 = t1 ? none : c1.w1, c1.p = t1 ? a : c1.p, c1.q = t1 ? b : c1.q;
    c1.sum = t1 ? sum : c1.sum, c1.rhs = t1 ? f : c1.rhs;
    t->bad = ((t->bad < (Vector)0) & (p == none)) ? (Vector)((REAL)(at - 1)) : t->bad;
    const Vector inverse = INVERSE(p);
    lose(&c0, inverse, w0, w1, q, rr, s, y, sums), c0.q += j0;
    lose(&c1, inverse, w0, w1, q, rr, s, y, sums), c1.q += j1;
    t->c0 = c0, t->c1 = c1;
}

INLINE void reduce_row(Reducing* t, word at, Vector a, Vector b, Vector c, Vector f) {
    if (at == 0) reduce_first_row(t, a, b, c, f);
    else if (at == 1) reduce_second_row(t, a, b, c, f);
    else reduce_next_row(t, at, a, b, c, f, 1);
}

INLINE void close_row(Carried* c, Mask balanced, Vector* row) {
    const Vector s0 = fabs(c->w0), s1 = fabs(c->w1), s2 = fabs(c->p), s3 = fabs(c->q), most = fmax(fmax(s0, s1), fmax(s2, s3));
    const Mask is0 = balanced & (s0 == most), is1 = balanced & ~is0 & (s1 == most), is2 = balanced & ~is0 & ~is1 & (s2 == most),
               is3 = balanced & ~is0 & ~is1 & ~is2;
    row[0] = is0 ? ((c->sum - c->w1) - c->p) - c->q : c->w0;
    row[1] = is1 ? ((c->sum - c->w0) - c->p) - c->q : c->w1;
    row[2] = is2 ? ((c->sum - c->w0) - c->w1) - c->q : c->p;
    row[3] = is3 ? ((c->sum - c->w0) - c->w1) - c->p : c->q;
}

/// What `reduce` says of a chunk.
INLINE void close_chunk(Reducing* t, word rows, int sums, Vector said[11]) {
    if (rows <= 2 || !sums) t->balanced = NOT_THESE(ALL_TRUE);
    close_row(&t->c0, t->balanced, said);
    close_row(&t->c1, t->balanced, said + 4);
    said[8] = t->c0.rhs, said[9] = t->c1.rhs, said[10] = t->bad;
}

/// x[-1], x[0], x[m-1], x[m] of a chunk.
typedef struct {
    Vector before, first, last, after;
} Ends;

/// What is stored is the rounded sum, the same for both chunks that see it; eliminated is what leads there.
INLINE void correct_ends(const Ends* before, const Ends* added, Ends* stored, Ends* known) {
    stored->before = before->before + added->before, stored->first = before->first + added->first;
    stored->last = before->last + added->last, stored->after = before->after + added->after;
    known->before = stored->before - before->before, known->first = stored->first - before->first;
    known->last = stored->last - before->last, known->after = stored->after - before->after;
}

/// Two rows between known ends. s0, s1: the sums of their coefficients, where these are kept.
typedef struct {
    Vector p0, q0, f0, s0, p1, q1, f1, s1;
} Eliminating;

INLINE void eliminate_first_row(Eliminating* t, const Ends* e, Vector a, Vector b, Vector c, Vector f) {
    t->p0 = t->s0 = c, t->q0 = (Vector)0, t->f0 = f - a * e->before - b * e->first;
}

INLINE void eliminate_second_row(Eliminating* t, const Ends* e, Vector a, Vector b, Vector c, Vector f) {
    t->p1 = b, t->q1 = c, t->s1 = b + c, t->f1 = f - a * e->first;
}

/// Of the row that is left behind: p x[i] + q x[i+1] + rr x[i+2] = y.
typedef struct {
    Vector inverse, q, rr, y;
} PivotRow;

/// Where a row's two coefficients nearly cancel, the first one is what the sum leaves for it: pivots 1 + 1/k of Poisson's equation would collect k/3 roundings.
INLINE Vector first_of_sum(Vector p, Vector q, Vector sum) { return fabs(sum) <= fabs(q) / (REAL)2 ? sum - q : p; }

INLINE PivotRow eliminate_next_row(Eliminating* t, Vector a, Vector b, Vector c, Vector f, int sums) {
    const Vector none = (Vector)0;
    const Vector p0 = t->p0, q0 = t->q0, f0 = t->f0, p1 = t->p1, q1 = t->q1, f1 = t->f1, s0 = fabs(p0), s1 = fabs(p1), s2 = fabs(a);
    const Mask t0 = (s0 >= s1) & (s0 > s2), t1 = (s0 < s1) & (s1 > s2);
    const Vector p = t0 ? p0 : t1 ? p1 : a, q = t0 ? q0 : t1 ? q1 : b, rr = (t0 | t1) ? none : c, y = t0 ? f0 : t1 ? f1 : f;
    const Vector inverse = INVERSE(p), r0 = t0 ? c : none, r1 = t1 ? c : none;
    const Vector m0 = (t0 ? a : p0) * inverse, m1 = (t1 ? a : p1) * inverse;
    t->p0 = faded((t0 ? b : q0) - m0 * q), t->q0 = faded(r0 - m0 * rr), t->f0 = (t0 ? f : f0) - m0 * y;
    t->p1 = faded((t1 ? b : q1) - m1 * q), t->q1 = faded(r1 - m1 * rr), t->f1 = (t1 ? f : f1) - m1 * y;
    if (sums) {
        const Vector joins = (a + c) + b, left = t0 ? t->s0 : t1 ? t->s1 : joins;
        t->s0 = (t0 ? joins : t->s0) - m0 * left, t->s1 = (t1 ? joins : t->s1) - m1 * left;
        t->p0 = first_of_sum(t->p0, t->q0, t->s0), t->p1 = first_of_sum(t->p1, t->q1, t->s1);
    }
    const PivotRow row = {inverse, q, rr, y};
    return row;
}

#if LANES == 1
// Chunks of few rows need no sums between known ends.
#ifndef SUMS
#define SUMS 0
#endif

INLINE void eliminate_row(Eliminating* t, const Ends* e, word at, Vector a, Vector b, Vector c, Vector f, KEPT_SPACE Vector* kept, word pitch) {
    if (at == 0) {
        eliminate_first_row(t, e, a, b, c, f);
    } else if (at == 1) {
        eliminate_second_row(t, e, a, b, c, f);
    } else {
        const PivotRow left = eliminate_next_row(t, a, b, c, f, SUMS);
        KEPT(at - 1, 0) = left.inverse, KEPT(at - 1, 1) = left.q, KEPT(at - 1, 2) = left.rr, KEPT(at - 1, 3) = left.y;
    }
}

/// Leaves x of row i in KEPT(i, 3). What is kept of a row is asked for before the row below it is stored.
INLINE void substitute(const Ends* e, word rows, KEPT_SPACE Vector* kept, word pitch) {
    Vector next = e->last, beyond = e->after;
    Vector inverse = KEPT(rows - 2, 0), q = KEPT(rows - 2, 1), rr = KEPT(rows - 2, 2), y = KEPT(rows - 2, 3);
    for (word j = rows - 2; j >= 1; --j) {
        const word above = j > 1 ? j - 1 : j;
        const Vector inverse_above = KEPT(above, 0), q_above = KEPT(above, 1), rr_above = KEPT(above, 2), y_above = KEPT(above, 3);
        const Vector now = (y - q * next - rr * beyond) * inverse;
        KEPT(j, 3) = now;
        beyond = next, next = now;
        inverse = inverse_above, q = q_above, rr = rr_above, y = y_above;
    }
    KEPT(0, 3) = e->first, KEPT(rows - 1, 3) = e->last;
}
#endif

#if LANES == 1
/// Rows of chunk k; 0: there is none.
INLINE word rows_of(const Cut* cut, word k) { return k >= cut->chunks ? 0 : k == cut->chunks - 1 ? cut->rows - k * cut->chunk_rows : cut->chunk_rows; }

/// Of chunk k, as the coupling has left them: all first unknowns, then all last ones.
INLINE Ends ends_of(const __global REAL* ends, word chunks, word k) {
    Ends e = {(REAL)0, (REAL)0, (REAL)0, (REAL)0};
    if (k < chunks) {
        if (k > 0) e.before = ends[chunks + k - 1];
        e.first = ends[k], e.last = ends[chunks + k];
        if (k + 1 < chunks) e.after = ends[k + 1];
    }
    return e;
}
#endif

/// Largest |residual|, |A|, |x|, |rhs|; sum: 0, or NaN once a residual was not finite.
typedef struct {
    Vector residual, matrix, size, right, sum;
} Checking;

INLINE void check_row(Checking* t, Vector a, Vector b, Vector c, Vector f, Vector above, Vector here, Vector below) {
    const Vector rest = ((f - a * above) - b * here) - c * below;
    t->residual = fmax(t->residual, fabs(rest)), t->size = fmax(t->size, fabs(here)), t->right = fmax(t->right, fabs(f));
    t->matrix = fmax(t->matrix, fmax(fabs(b), fmax(fabs(a), fabs(c))));
    t->sum += rest * (REAL)0;
}

/// The same of a whole chunk.
#if LANES == 1
typedef Checking Checked;
#else
typedef struct {
    REAL residual, matrix, size, right, sum;
} Checked;
#endif

/// An accepted residual of infinity stands for "whatever it is"; NaN never is.
INLINE int is_good(const Checked* t, REAL accept) {
    const REAL scale = t->matrix * t->size + t->right;
    const REAL ratio = scale <= LARGEST ? t->residual / scale : (t->residual / t->matrix) / t->size;
    return t->sum == (REAL)0 && (t->residual <= (REAL)(8 * SMALLEST) || ratio <= accept);
}

/// What `finish` says of chunk k.
INLINE void say_checked(const Checked* t, int good, word chunks, word k, __global REAL* out) {
    const REAL said[5] = {t->sum == (REAL)0 ? t->residual : (REAL)NAN, t->matrix, t->size, t->right, good ? (REAL)1 : (REAL)0};
    for (int w = 0; w < 5; ++w) out[w * chunks + k] = said[w];
}
