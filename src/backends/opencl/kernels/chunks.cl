// SPDX-License-Identifier: BSD-3-Clause
// One system cut into chunks: each is reduced to two rows, or solved between known ends and checked.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1
//
// Arrays: job.h with levels == 0, any row stride; chunks of chunk_rows rows, the last one takes the remainder as well.
// Who does what: vector unit: a lane per chunk, LANES neighbouring chunks per block; the first chunk and the last one are blocks of their
//   own, since what lies beyond them is not read. As many work items as compute units draw blocks by tickets. GPU: an item per chunk.
// reduce writes, per chunk k, 11 numbers at out[w chunks + k]: coefficients of x[first-1], x[first], x[last], x[last+1] of two rows, two right-hand
//   sides, and the row of the chunk whose column has no pivot, or -1. finish writes x and, per chunk, max|residual|, max|A|, max|x|, max|rhs|,
//   and 1 where it was stored.
// Scratch of finish: 4 numbers per row of the chunks in work. Words per row: reduce 4 read; finish 4 read (twice, from cache the second time), 1 written.
// Numerics: the interior unknowns are eliminated from all rows of the chunk with partial pivoting among three, so that a singular interior does no
//   harm; the sum of a row's coefficients goes along and takes the place of the largest one where every row nearly cancels. docs/algorithms/two_pass.md.
// Source: C. Klein and R. Strzodka, Tridiagonal GPU solver with scaled partial pivoting at maximum bandwidth, ICPP 2021.
#include "vectors.h"

typedef struct {
    word first, count, rows;  ///< chunks first … first+count-1 of equally many rows
    int edge;
} Group;

INLINE word groups_of(const Cut* cut) { return cut->chunks <= 2 ? cut->chunks : 2 + (cut->chunks - 2 + LANES - 1) / LANES; }

INLINE Group group_of(const Cut* cut, word g) {
    Group out;
    out.edge = g == 0 || g == groups_of(cut) - 1;
    out.first = g == 0 ? 0 : out.edge ? cut->chunks - 1 : 1 + (g - 1) * LANES;
    out.count = out.edge ? 1 : min((word)LANES, cut->chunks - 1 - out.first);
    out.rows = out.first == cut->chunks - 1 ? cut->rows - out.first * cut->chunk_rows : cut->chunk_rows;
    return out;
}

INLINE Block chunk_block(const Source* s, __global REAL* buffer, const Cut* cut, const Group* g) {
    Block b;
    b.is_view = s->is_view != 0;
    b.data = buffer + s->offset + g->first * cut->chunk_rows * s->row_stride;
    b.rows = s->row_stride;
    b.lanes = cut->chunk_rows * s->row_stride;
    b.value = b.is_view ? (REAL)0 : number_of_bits(s->bits);
    return b;
}

/// Rows i … of the four operands; those that lie outside of the system are 0.
INLINE void load_rows(const Block* blocks, const Cut* cut, const Group* g, word i, int count, Vector* a, Vector* b, Vector* c, Vector* f) {
    const word top = g->first == 0 ? 1 : 0, bottom = g->first + g->count == cut->chunks ? g->rows - 2 : g->rows - 1;
    load_tile(blocks + 0, i, count, top, g->rows - 1, g->count, 1, g->edge, a);
    load_tile(blocks + 1, i, count, 0, g->rows - 1, g->count, 1, g->edge, b);
    load_tile(blocks + 2, i, count, 0, bottom, g->count, 1, g->edge, c);
    load_tile(blocks + 3, i, count, 0, g->rows - 1, g->count, 1, g->edge, f);
    // A number is outside too.
    if (i < top) a[0] = (Vector)0;
    if (i + count - 1 > bottom) c[count - 1] = (Vector)0;
}

APART void number_out(__global REAL* out, word chunks, const Group* g, int w, Vector value) {
    for (word l = 0; l < g->count; ++l) out[w * chunks + g->first + l] = ((const REAL*)&value)[l];
}

APART Vector number_in(const __global REAL* in, word chunks, const Group* g, word shift) {
    Vector value;
    for (word l = 0; l < LANES; ++l) {
        const word k = g->first + min(l, g->count - 1) + shift;
        ((REAL*)&value)[l] = k >= 0 && k < chunks ? in[k] : (REAL)0;
    }
    return value;
}

/// Over x[-1], x[0], x[j], x[j+1].
typedef struct {
    Vector w0, w1, p, q, sum, rhs;
} Carried;

INLINE void lose(Carried* c, Vector inverse, Vector w0, Vector w1, Vector q, Vector r, Vector sum, Vector rhs) {
    const Vector m = c->p * inverse;
    c->w0 -= m * w0, c->w1 -= m * w1;
    c->p = c->q - m * q, c->q = -m * r;
    c->sum -= m * sum, c->rhs -= m * rhs;
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

#if LANES == 1
#define ALL_TRUE 1
#define NOT_THESE(m) (!(m))
#else
#define ALL_TRUE ((Mask)(-1))
#define NOT_THESE(m) (~(m))
#endif

APART void reduce_group(const Block* blocks, const Cut* cut, const Group* g, __global REAL* out) {
    Vector a[LANES], b[LANES], c[LANES], f[LANES];
    Carried c0, c1;
    Mask balanced = ALL_TRUE;
    Vector bad = (Vector)(-1);
    const Vector none = (Vector)0;
    for (word i = 0; i < g->rows; i += LANES) {
        const int count = (int)min((word)LANES, g->rows - i);
        load_rows(blocks, cut, g, i, count, a, b, c, f);
        for (int r = 0; r < count; ++r) {
            const Vector sum = (a[r] + c[r]) + b[r];
            balanced &= fabs(sum) <= (fabs(a[r]) + fabs(b[r]) + fabs(c[r])) / (REAL)2;
            if (i + r == 0) {
                c0.w0 = a[r], c0.w1 = b[r], c0.p = c[r], c0.q = none, c0.sum = sum, c0.rhs = f[r];
            } else if (i + r == 1) {
                c1.w0 = none, c1.w1 = a[r], c1.p = b[r], c1.q = c[r], c1.sum = sum, c1.rhs = f[r];
            } else {
                const Vector s0 = fabs(c0.p), s1 = fabs(c1.p), s2 = fabs(a[r]);
                const Mask t0 = (s0 >= s1) & (s0 > s2), t1 = (s0 < s1) & (s1 > s2);
                const Vector p = t0 ? c0.p : t1 ? c1.p : a[r], q = t0 ? c0.q : t1 ? c1.q : b[r], rr = (t0 | t1) ? none : c[r];
                const Vector w0 = t0 ? c0.w0 : t1 ? c1.w0 : none, w1 = t0 ? c0.w1 : t1 ? c1.w1 : none;
                const Vector s = t0 ? c0.sum : t1 ? c1.sum : sum, y = t0 ? c0.rhs : t1 ? c1.rhs : f[r];
                // The row that joins takes the place of the one that leaves.
                const Vector j0 = t0 ? c[r] : none, j1 = t1 ? c[r] : none;
                c0.w0 = t0 ? none : c0.w0, c0.w1 = t0 ? none : c0.w1, c0.p = t0 ? a[r] : c0.p, c0.q = t0 ? b[r] : c0.q;
                c0.sum = t0 ? sum : c0.sum, c0.rhs = t0 ? f[r] : c0.rhs;
                c1.w0 = t1 ? none : c1.w0, c1.w1 = t1 ? none : c1.w1, c1.p = t1 ? a[r] : c1.p, c1.q = t1 ? b[r] : c1.q;
                c1.sum = t1 ? sum : c1.sum, c1.rhs = t1 ? f[r] : c1.rhs;
                bad = ((bad < (Vector)0) & (p == none)) ? (Vector)((REAL)(i + r - 1)) : bad;
                const Vector inverse = (Vector)1 / p;
                lose(&c0, inverse, w0, w1, q, rr, s, y), c0.q += j0;
                lose(&c1, inverse, w0, w1, q, rr, s, y), c1.q += j1;
            }
        }
    }
    if (g->rows <= 2) balanced = NOT_THESE(ALL_TRUE);
    Vector row[4];
    close_row(&c0, balanced, row);
    for (int w = 0; w < 4; ++w) number_out(out, cut->chunks, g, w, row[w]);
    close_row(&c1, balanced, row);
    for (int w = 0; w < 4; ++w) number_out(out, cut->chunks, g, 4 + w, row[w]);
    number_out(out, cut->chunks, g, 8, c0.rhs), number_out(out, cut->chunks, g, 9, c1.rhs), number_out(out, cut->chunks, g, 10, bad);
}

/// x[-1], x[0], x[m-1], x[m] of the chunks of a group.
typedef struct {
    Vector before, first, last, after;
} Ends;

INLINE Ends ends_of(const __global REAL* ends, const Cut* cut, const Group* g) {
    Ends e;
    e.before = number_in(ends + cut->chunks, cut->chunks, g, -1), e.first = number_in(ends, cut->chunks, g, 0);
    e.last = number_in(ends + cut->chunks, cut->chunks, g, 0), e.after = number_in(ends, cut->chunks, g, 1);
    return e;
}

#if LANES == 1
#define KEPT(row, w) kept[((row) * 4 + (w)) * pitch]
#else
#define KEPT(row, w) kept[(row) * 4 + (w)]
#endif

/// Leaves x of row i in KEPT(i, 3).
INLINE void eliminate_between(const Block* blocks, const Cut* cut, const Group* g, const Ends* e, __global Vector* kept, word pitch) {
    Vector a[LANES], b[LANES], c[LANES], f[LANES];
    Vector p0, q0, f0, p1, q1, f1;
    const word m = g->rows;
    const Vector none = (Vector)0;
    for (word i = 0; i < m; i += LANES) {
        const int count = (int)min((word)LANES, m - i);
        load_rows(blocks, cut, g, i, count, a, b, c, f);
        for (int r = 0; r < count; ++r) {
            const word at = i + r;
            if (at == 0) {
                p0 = c[r], q0 = none, f0 = f[r] - a[r] * e->before - b[r] * e->first;
            } else if (at == 1) {
                p1 = b[r], q1 = c[r], f1 = f[r] - a[r] * e->first;
            } else {
                const Vector s0 = fabs(p0), s1 = fabs(p1), s2 = fabs(a[r]);
                const Mask t0 = (s0 >= s1) & (s0 > s2), t1 = (s0 < s1) & (s1 > s2);
                const Vector p = t0 ? p0 : t1 ? p1 : a[r], q = t0 ? q0 : t1 ? q1 : b[r], rr = (t0 | t1) ? none : c[r], y = t0 ? f0 : t1 ? f1 : f[r];
                const Vector inverse = (Vector)1 / p, r0 = t0 ? c[r] : none, r1 = t1 ? c[r] : none;
                const Vector m0 = (t0 ? a[r] : p0) * inverse, m1 = (t1 ? a[r] : p1) * inverse;
                p0 = (t0 ? b[r] : q0) - m0 * q, q0 = r0 - m0 * rr, f0 = (t0 ? f[r] : f0) - m0 * y;
                p1 = (t1 ? b[r] : q1) - m1 * q, q1 = r1 - m1 * rr, f1 = (t1 ? f[r] : f1) - m1 * y;
                KEPT(at - 1, 0) = inverse, KEPT(at - 1, 1) = q, KEPT(at - 1, 2) = rr, KEPT(at - 1, 3) = y;
            }
        }
    }
    Vector next = e->last, beyond = e->after;
    for (word j = m - 2; j >= 1; --j) {
        const Vector now = (KEPT(j, 3) - KEPT(j, 1) * next - KEPT(j, 2) * beyond) * KEPT(j, 0);
        KEPT(j, 3) = now;
        beyond = next, next = now;
    }
    KEPT(0, 3) = e->first, KEPT(m - 1, 3) = e->last;
}

APART void finish_group(const Block* blocks, const Block* rhs, const Block* x, const Cut* cut, const Group* g, const __global REAL* add, const __global REAL* old,
                         int correct, REAL accept, __global Vector* kept, word pitch, __global REAL* out) {
    Vector a[LANES], b[LANES], c[LANES], f[LANES], t[LANES];
    const Ends added = ends_of(add, cut, g);
    Ends known = added, stored = added;
    if (correct) {
        // What is stored is the rounded sum, the same for both chunks that see it; eliminated is what leads there.
        const Ends before = ends_of(old, cut, g);
        stored.before = before.before + added.before, stored.first = before.first + added.first;
        stored.last = before.last + added.last, stored.after = before.after + added.after;
        known.before = stored.before - before.before, known.first = stored.first - before.first;
        known.last = stored.last - before.last, known.after = stored.after - before.after;
    }
    eliminate_between(blocks, cut, g, &known, kept, pitch);
    const word m = g->rows;
    if (correct) {
        for (word i = 0; i < m; i += LANES) {
            const int count = (int)min((word)LANES, m - i);
            load_tile(x, i, count, 0, m - 1, g->count, 1, g->edge, t);
            for (int r = 0; r < count; ++r) KEPT(i + r, 3) = KEPT(i + r, 3) + t[r];
        }
        KEPT(0, 3) = stored.first, KEPT(m - 1, 3) = stored.last;
    }
    Block with_rhs[4] = {blocks[0], blocks[1], blocks[2], *rhs};
    Vector residual = (Vector)0, matrix = fabs(stored.before), size = fmax(matrix, fabs(stored.after)), right = (Vector)0, sum = (Vector)0, above = stored.before;
    matrix = (Vector)0;
    for (word i = 0; i < m; i += LANES) {
        const int count = (int)min((word)LANES, m - i);
        load_rows(with_rhs, cut, g, i, count, a, b, c, f);
        for (int r = 0; r < count; ++r) {
            const Vector here = KEPT(i + r, 3), below = i + r + 1 < m ? KEPT(i + r + 1, 3) : stored.after;
            const Vector rest = ((f[r] - a[r] * above) - b[r] * here) - c[r] * below;
            residual = fmax(residual, fabs(rest)), size = fmax(size, fabs(here)), right = fmax(right, fabs(f[r]));
            matrix = fmax(matrix, fmax(fabs(b[r]), fmax(fabs(a[r]), fabs(c[r]))));
            sum += rest * (REAL)0;
            above = here;
        }
    }
    // An accepted residual of infinity stands for "whatever it is"; NaN never is.
    const Vector scale = matrix * size + right;
    const Vector ratio = scale <= (Vector)LARGEST ? residual / scale : (residual / matrix) / size;
    const Mask good = (sum == (Vector)0) & ((residual <= (Vector)(8 * SMALLEST)) | (ratio <= (Vector)accept));
    const Vector flag = good ? (Vector)1 : (Vector)0;
    uchar skip[LANES];
    for (int l = 0; l < LANES; ++l) skip[l] = ((const REAL*)&flag)[l] == (REAL)0;
    const int some = !all(good);
    for (word i = 0; i < m; i += LANES) {
        const int count = (int)min((word)LANES, m - i);
        for (int r = 0; r < count; ++r) t[r] = KEPT(i + r, 3);
        store_tile(x, i, count, g->count, 1, some ? skip : 0, t);
    }
    const Vector lost = sum == (Vector)0 ? residual : (Vector)NAN;
    number_out(out, cut->chunks, g, 0, lost), number_out(out, cut->chunks, g, 1, matrix), number_out(out, cut->chunks, g, 2, size);
    number_out(out, cut->chunks, g, 3, right), number_out(out, cut->chunks, g, 4, flag);
}

#if LANES == 1
#define EACH_GROUP(g) for (word g = get_global_id(0); g < groups_of(&cut); g += get_global_size(0))
#else
#define EACH_GROUP(g) for (word g = atomic_inc(&found->tickets); g < groups_of(&cut); g = atomic_inc(&found->tickets))
#endif

#define CHUNK_BLOCKS(right, right_buffer) \
    const Group group = group_of(&cut, g); \
    const Block blocks[4] = {chunk_block(&job.lower, lower, &cut, &group), chunk_block(&job.diag, diag, &cut, &group), chunk_block(&job.upper, upper, &cut, &group), \
                             chunk_block(right, right_buffer, &cut, &group)};

INLINE Source defect_source(const ChunkParts* parts) {
    Source s;
    s.is_view = 1, s.offset = parts->defect, s.row_stride = 1;
    return s;
}

__kernel void reduce(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct) {
    UNPACK_ARGUMENTS
    const Source right = correct ? defect_source(&parts) : job.rhs;
    __global REAL* const right_buffer = correct ? work : rhs;
    EACH_GROUP(g) {
        CHUNK_BLOCKS(&right, right_buffer)
        reduce_group(blocks, &cut, &group, work + parts.out);
    }
}

__kernel void finish(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct, REAL accept, word kept_step, word pitch) {
    UNPACK_ARGUMENTS
    const Source right = correct ? defect_source(&parts) : job.rhs;
    __global REAL* const right_buffer = correct ? work : rhs;
    __global Vector* const kept = (__global Vector*)(work + parts.kept + get_global_id(0) * kept_step);
    EACH_GROUP(g) {
        CHUNK_BLOCKS(&right, right_buffer)
        const Block true_rhs = chunk_block(&job.rhs, rhs, &cut, &group), to = chunk_block(&job.x, x, &cut, &group);
        finish_group(blocks, &true_rhs, &to, &cut, &group, work + parts.add, work + parts.old, correct, accept, kept, pitch, work + parts.out);
    }
}

/// defect = rhs - A x, row by row.
__kernel void defect(SOLVER_ARGUMENTS, ChunkParts parts) {
    UNPACK_ARGUMENTS
    const word index[4] = {0, 0, 0, 0};
    const Line a = line_of(&job.lower, lower, index), b = line_of(&job.diag, diag, index), c = line_of(&job.upper, upper, index), f = line_of(&job.rhs, rhs, index),
               v = line_of(&job.x, x, index);
    const word items = get_global_size(0), item = get_global_id(0);
#if LANES > 1
    const word from = job.rows * item / items, to = job.rows * (item + 1) / items, step = 1;
#else
    const word from = item, to = job.rows, step = items;
#endif
    for (word i = from; i < to; i += step) {
        REAL rest = get(&f, i);
        if (i > 0) rest -= get(&a, i) * get(&v, i - 1);
        rest -= get(&b, i) * get(&v, i);
        if (i + 1 < job.rows) rest -= get(&c, i) * get(&v, i + 1);
        work[parts.defect + i] = rest;
    }
}

/// In place: x of stored chunks becomes A x with the ends in `add`; `write` 0: only max|A| and max|x| are found. An item per chunk.
__kernel void restore(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int write) {
    UNPACK_ARGUMENTS
    const word index[4] = {0, 0, 0, 0};
    const Line a = line_of(&job.lower, lower, index), b = line_of(&job.diag, diag, index), c = line_of(&job.upper, upper, index), v = line_of(&job.x, x, index);
    __global REAL* const out = work + parts.out;
    const __global REAL* const ends = work + parts.add;
    for (word k = get_global_id(0); k < cut.chunks; k += get_global_size(0)) {
        const word first = k * cut.chunk_rows, end = k + 1 == cut.chunks ? cut.rows : first + cut.chunk_rows;
        if (write && out[4 * cut.chunks + k] == (REAL)0) continue;
        REAL above = write && k > 0 ? ends[cut.chunks + k - 1] : (REAL)0, matrix = 0, size = 0;
        for (word i = first; i < end; ++i) {
            const REAL here = v.data[i * v.stride], below = i + 1 < end ? v.data[(i + 1) * v.stride] : write && k + 1 < cut.chunks ? ends[k + 1] : (REAL)0;
            const REAL ai = i > 0 ? get(&a, i) : (REAL)0, bi = get(&b, i), ci = i + 1 < cut.rows ? get(&c, i) : (REAL)0;
            matrix = fmax(matrix, fmax(fabs(bi), fmax(fabs(ai), fabs(ci)))), size = fmax(size, fabs(here));
            if (write) v.data[i * v.stride] = ai * above + bi * here + ci * below;
            above = here;
        }
        if (!write) out[cut.chunks + k] = matrix, out[2 * cut.chunks + k] = size;
    }
}
