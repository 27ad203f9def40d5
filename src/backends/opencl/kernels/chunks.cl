// SPDX-License-Identifier: BSD-3-Clause
// One system cut into chunks: each is reduced to two rows, or solved between known ends and checked.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1
//
// Arrays: job.h with levels == 0, any row stride; chunks of chunk_rows rows, the last one takes the remainder as well.
// Who does what: vector unit: a lane per chunk, LANES neighbouring chunks per block; the first chunk and the last one are blocks of their
//   own, since what lies beyond them is not read. As many work items as compute units draw blocks by tickets. GPU: chunk_tiles.cl.
// reduce writes, per chunk k, 11 numbers at out[w chunks + k]: coefficients of x[first-1], x[first], x[last], x[last+1] of two rows, two right-hand
//   sides, and the row of the chunk whose column has no pivot, or -1. finish writes x and, per chunk, max|residual|, max|A|, max|x|, max|rhs|,
//   and 1 where it was stored.
// Scratch of finish: 4 numbers per row of the chunks in work. Words per row: reduce 4 read; finish 4 read (twice, from cache the second time), 1 written.
// Numerics: chunk_rows.h.
#include "chunk_rows.h"

#if LANES > 1

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
    load_tile(blocks + 0, i, count, top, g->rows - 1, g->count, 1, g->edge, TILES_AHEAD, a);
    load_tile(blocks + 1, i, count, 0, g->rows - 1, g->count, 1, g->edge, TILES_AHEAD, b);
    load_tile(blocks + 2, i, count, 0, bottom, g->count, 1, g->edge, TILES_AHEAD, c);
    load_tile(blocks + 3, i, count, 0, g->rows - 1, g->count, 1, g->edge, TILES_AHEAD, f);
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

APART void reduce_group(const Block* blocks, const Cut* cut, const Group* g, __global REAL* out) {
    Vector a[LANES], b[LANES], c[LANES], f[LANES];
    Reducing to = nothing_yet();
    for (word i = 0; i < g->rows; i += LANES) {
        const int count = (int)min((word)LANES, g->rows - i);
        load_rows(blocks, cut, g, i, count, a, b, c, f);
        for (int r = 0; r < count; ++r) {
            reduce_row(&to, i + r, a[r], b[r], c[r], f[r]);
        }
    }
    Vector said[11];
    close_chunk(&to, g->rows, said);
    for (int w = 0; w < 11; ++w) number_out(out, cut->chunks, g, w, said[w]);
}

INLINE Ends ends_of(const __global REAL* ends, const Cut* cut, const Group* g) {
    Ends e;
    e.before = number_in(ends + cut->chunks, cut->chunks, g, -1), e.first = number_in(ends, cut->chunks, g, 0);
    e.last = number_in(ends + cut->chunks, cut->chunks, g, 0), e.after = number_in(ends, cut->chunks, g, 1);
    return e;
}

/// Leaves x of row i in KEPT(i, 3).
INLINE void eliminate_between(const Block* blocks, const Cut* cut, const Group* g, const Ends* e, __global Vector* kept, word pitch) {
    Vector a[LANES], b[LANES], c[LANES], f[LANES];
    Eliminating to;
    const word m = g->rows;
    for (word i = 0; i < m; i += LANES) {
        const int count = (int)min((word)LANES, m - i);
        load_rows(blocks, cut, g, i, count, a, b, c, f);
        for (int r = 0; r < count; ++r) {
            eliminate_row(&to, e, i + r, a[r], b[r], c[r], f[r], kept, pitch);
        }
    }
    substitute(e, m, kept, pitch);
}

APART void finish_group(const Block* blocks, const Block* rhs, const Block* x, const Cut* cut, const Group* g, const __global REAL* add, const __global REAL* old,
                         int correct, REAL accept, __global Vector* kept, word pitch, __global REAL* out) {
    Vector a[LANES], b[LANES], c[LANES], f[LANES], t[LANES];
    const Ends added = ends_of(add, cut, g);
    Ends known = added, stored = added;
    if (correct) {
        const Ends before = ends_of(old, cut, g);
        correct_ends(&before, &added, &stored, &known);
    }
    eliminate_between(blocks, cut, g, &known, kept, pitch);
    const word m = g->rows;
    if (correct) {
        for (word i = 0; i < m; i += LANES) {
            const int count = (int)min((word)LANES, m - i);
            load_tile(x, i, count, 0, m - 1, g->count, 1, g->edge, TILES_AHEAD, t);
            for (int r = 0; r < count; ++r) KEPT(i + r, 3) = KEPT(i + r, 3) + t[r];
        }
        KEPT(0, 3) = stored.first, KEPT(m - 1, 3) = stored.last;
    }
    Block with_rhs[4] = {blocks[0], blocks[1], blocks[2], *rhs};
    Checking seen = nothing_seen(&stored);
    for (word i = 0; i < m; i += LANES) {
        const int count = (int)min((word)LANES, m - i);
        load_rows(with_rhs, cut, g, i, count, a, b, c, f);
        for (int r = 0; r < count; ++r) {
            check_row(&seen, a[r], b[r], c[r], f[r], KEPT(i + r, 3), i + r + 1 < m ? KEPT(i + r + 1, 3) : stored.after);
        }
    }
    const Mask good = is_good(&seen, accept);
    const Vector flag = good ? (Vector)1 : (Vector)0;
    uchar skip[LANES];
    for (int l = 0; l < LANES; ++l) skip[l] = ((const REAL*)&flag)[l] == (REAL)0;
    const int some = !all(good);
    for (word i = 0; i < m; i += LANES) {
        const int count = (int)min((word)LANES, m - i);
        for (int r = 0; r < count; ++r) t[r] = KEPT(i + r, 3);
        store_tile(x, i, count, g->count, 1, some ? skip : 0, t);
    }
    Vector said[5];
    say_checked(&seen, good, said);
    for (int w = 0; w < 5; ++w) number_out(out, cut->chunks, g, w, said[w]);
}

#define EACH_GROUP(g) for (word g = atomic_inc(&found->tickets); g < groups_of(&cut); g = atomic_inc(&found->tickets))

#define CHUNK_BLOCKS(right, right_buffer) \
    const Group group = group_of(&cut, g); \
    const Block blocks[4] = {chunk_block(&job.lower, lower, &cut, &group), chunk_block(&job.diag, diag, &cut, &group), chunk_block(&job.upper, upper, &cut, &group), \
                             chunk_block(right, right_buffer, &cut, &group)};

__kernel void reduce(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    const Source right = correct ? defect_source(&parts) : job.rhs;
    __global REAL* const right_buffer = correct ? work : rhs;
    EACH_GROUP(g) {
        CHUNK_BLOCKS(&right, right_buffer)
        reduce_group(blocks, &cut, &group, work + parts.out);
    }
}

__kernel void finish(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct, REAL accept, word kept_step, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    const Source right = correct ? defect_source(&parts) : job.rhs;
    __global REAL* const right_buffer = correct ? work : rhs;
    __global Vector* const kept = (__global Vector*)(work + parts.kept + get_global_id(0) * kept_step);
    EACH_GROUP(g) {
        CHUNK_BLOCKS(&right, right_buffer)
        const Block true_rhs = chunk_block(&job.rhs, rhs, &cut, &group), to = chunk_block(&job.x, x, &cut, &group);
        finish_group(blocks, &true_rhs, &to, &cut, &group, work + parts.add, work + parts.old, correct, accept, kept, 1, work + parts.out);
    }
}

#endif

/// defect = rhs - A x, row by row.
__kernel void defect(SOLVER_ARGUMENTS, ChunkParts parts, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
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
