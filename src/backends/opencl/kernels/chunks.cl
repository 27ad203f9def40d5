// SPDX-License-Identifier: BSD-3-Clause
// One system cut into chunks: each is reduced to two rows, or solved between known ends and checked.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1
//
// Arrays: job.h with levels == 0, any row stride; chunks of chunk_rows rows, the last one takes the remainder as well.
// Who does what: vector unit: a lane per chunk, V vectors of neighbouring chunks per block (vectors.h), whose chains of divisions wait at the same time; the first chunk and the last one
//   are blocks of their own, since what lies beyond them is not read. Work items draw blocks by tickets. GPU: chunk_tiles.cl.
// reduce writes, per chunk k, 11 numbers at out[w chunks + k]: coefficients of x[first-1], x[first], x[last], x[last+1] of two rows, two right-hand
//   sides, and the row of the chunk whose column has no pivot, or -1. finish writes x and, per chunk, max|residual|, max|A|, max|x|, max|rhs|,
//   and 1 where it was stored.
// Scratch of finish, per item: three numbers per row and lane of its block (the pivot rows), and x of its chunks one after the other; in the second-level cache.
// Words per row: reduce 4 read; finish 4 read (from cache once more for the residual, along the rows of a chunk), 1 written (one more where the store first reads the line).
// Numerics: chunk_rows.h; chunk_dominant.h where rows are those of diffusion. Groups of chunks: chunk_groups.h.
#include "chunk_groups_dominant.h"

#if LANES > 1

#define CANCEL 1
#define DOMINANT 2
/// What first rows are like. CANCEL: all of some chunk: then it is worth keeping the sums. DOMINANT: all of every chunk, couplings of the other sign.
APART int first_rows(const Block* blocks, const Cut* cut, const Group* g) {
    Vector a[LANES * V], b[LANES * V], c[LANES * V];
    const int count = (int)min((word)LANES, g->rows);
    load_matrix(blocks, cut, g, 0, count, a, b, c);
    Mask some = (Mask)0, dominant = ALL_TRUE;
    EACH(v) {
        Mask every = ALL_TRUE;
        const Vector flip = b[v] < (Vector)0 ? (Vector)(-1) : (Vector)1;
        for (int r = 0; r < count; ++r) {
            const Vector ar = a[r * V + v], br = b[r * V + v], cr = c[r * V + v];
            every &= cancels(ar, br, cr, (ar + cr) + br);
            dominant &= (ar * flip <= (Vector)0) & (cr * flip <= (Vector)0) & (-(ar + cr) * flip <= br * flip * ((REAL)1 + SLACK));
        }
        some |= every;
    }
    return (any(some) ? CANCEL : 0) | (all(dominant) ? DOMINANT : 0);
}

INLINE void reduce_group_as(const Block* blocks, const Cut* cut, const Group* g, int sums, __global REAL* out) {
    Vector a[LANES * V], b[LANES * V], c[LANES * V], f[LANES * V];
    Reducing to[V];
    EACH(v) to[v] = nothing_yet();
    for (word i = 0; i < g->rows; i += LANES) {
        const int count = (int)min((word)LANES, g->rows - i);
        load_rows(blocks, cut, g, i, count, a, b, c, f);
        int r = 0;
        if (i == 0) {
            EACH(v) reduce_first_row(&to[v], a[v], b[v], c[v], f[v]), reduce_second_row(&to[v], a[V + v], b[V + v], c[V + v], f[V + v]);
            r = 2;
        }
        for (; r < count; ++r)
#pragma unroll
            EACH(v) reduce_next_row(&to[v], i + r, a[r * V + v], b[r * V + v], c[r * V + v], f[r * V + v], sums);
    }
    EACH(v) {
        Vector said[11];
        close_chunk(&to[v], g->rows, sums, said);
        for (int w = 0; w < 11; ++w) number_out(out, cut->chunks, g, v, w, said[w]);
    }
}

APART void reduce_group(const Block* blocks, const Cut* cut, const Group* g, __global REAL* out) { reduce_group_as(blocks, cut, g, 0, out); }
APART void reduce_sums(const Block* blocks, const Cut* cut, const Group* g, __global REAL* out) { reduce_group_as(blocks, cut, g, 1, out); }

/// x[i] = d - u1 x[i+1] - u2 x[i+2] of row i: number w is one of u1, u2, d.
#define PIVOT_ROW(i, w, v) kept[((i) * 3 + (w)) * V + (v)]

INLINE void eliminate_as(const Block* blocks, const Cut* cut, const Group* g, const Ends* e, int sums, __global Vector* kept) {
    Vector a[LANES * V], b[LANES * V], c[LANES * V], f[LANES * V];
    Eliminating to[V];
    for (word i = 0; i < g->rows; i += LANES) {
        const int count = (int)min((word)LANES, g->rows - i);
        load_rows(blocks, cut, g, i, count, a, b, c, f);
        int r = 0;
        if (i == 0) {
            EACH(v) eliminate_first_row(&to[v], &e[v], a[v], b[v], c[v], f[v]), eliminate_second_row(&to[v], &e[v], a[V + v], b[V + v], c[V + v], f[V + v]);
            r = 2;
        }
        for (; r < count; ++r)
#pragma unroll
            EACH(v) {
                const PivotRow left = eliminate_next_row(&to[v], a[r * V + v], b[r * V + v], c[r * V + v], f[r * V + v], sums);
                PIVOT_ROW(i + r - 1, 0, v) = left.q * left.inverse, PIVOT_ROW(i + r - 1, 1, v) = left.rr * left.inverse, PIVOT_ROW(i + r - 1, 2, v) = left.y * left.inverse;
            }
    }
}

APART void eliminate(const Block* blocks, const Cut* cut, const Group* g, const Ends* e, __global Vector* kept) { eliminate_as(blocks, cut, g, e, 0, kept); }
APART void eliminate_sums(const Block* blocks, const Cut* cut, const Group* g, const Ends* e, __global Vector* kept) { eliminate_as(blocks, cut, g, e, 1, kept); }

APART void substitute(const Group* g, const Ends* e, const __global Vector* kept, __global REAL* solutions) {
    const word m = g->rows, pitch = solution_pitch(m);
    Vector x[LANES * V], near[V], far[V];
    EACH(v) near[v] = e[v].last, far[v] = e[v].after;
    for (word i = (m - 1) / LANES * LANES; i >= 0; i -= LANES) {
        int r = (int)min((word)LANES, m - i) - 1;
        if (i + r == m - 1) {
            EACH(v) x[r * V + v] = near[v];
            --r;
        }
        for (; r >= 0; --r)
            if (i + r > 0)
#pragma unroll
                EACH(v) {
                    const Vector now = PIVOT_ROW(i + r, 2, v) - PIVOT_ROW(i + r, 1, v) * far[v] - PIVOT_ROW(i + r, 0, v) * near[v];
                    far[v] = near[v], x[r * V + v] = near[v] = now;
                }
        if (i == 0) EACH(v) x[v] = e[v].first;
        put_solutions(x, i, pitch, solutions);
    }
}

/// Chunk j of the group. s: its x, with that of its neighbours' rows around.
APART Checked check_chunk(const Block* blocks, const Cut* cut, const Group* g, word j, const __global REAL* s) {
    const word m = g->rows, top = top_of(g), bottom = bottom_of(cut, g);
    Checked all = {(REAL)0, (REAL)0, fmax(fabs(s[-1]), fabs(s[m])), (REAL)0, (REAL)0};
    word i = 0;
    if (!g->edge && lies_along(blocks) && lies_along(blocks + 1) && lies_along(blocks + 2) && lies_along(blocks + 3)) {
        Checking seen = {(Vector)0, (Vector)0, (Vector)0, (Vector)0, (Vector)0};
        for (; i + LANES <= m; i += LANES)
            check_row(&seen, along(blocks, j, i), along(blocks + 1, j, i), along(blocks + 2, j, i), along(blocks + 3, j, i), LOAD(s + i - 1), LOAD(s + i), LOAD(s + i + 1));
        for (int l = 0; l < LANES; ++l) {
            all.residual = fmax(all.residual, ((const REAL*)&seen.residual)[l]), all.matrix = fmax(all.matrix, ((const REAL*)&seen.matrix)[l]);
            all.size = fmax(all.size, ((const REAL*)&seen.size)[l]), all.right = fmax(all.right, ((const REAL*)&seen.right)[l]), all.sum += ((const REAL*)&seen.sum)[l];
        }
    }
    for (; i < m; ++i) {
        const REAL a = i < top ? (REAL)0 : at_row(blocks, j, i), b = at_row(blocks + 1, j, i), c = i > bottom ? (REAL)0 : at_row(blocks + 2, j, i), f = at_row(blocks + 3, j, i);
        const REAL rest = ((f - a * s[i - 1]) - b * s[i]) - c * s[i + 1];
        all.residual = fmax(all.residual, fabs(rest)), all.size = fmax(all.size, fabs(s[i])), all.right = fmax(all.right, fabs(f));
        all.matrix = fmax(all.matrix, fmax(fabs(b), fmax(fabs(a), fabs(c))));
        all.sum += rest * (REAL)0;
    }
    return all;
}

APART void finish_group(const Block* blocks, const Block* rhs, const Block* x, const Cut* cut, const Group* g, const __global REAL* add, const __global REAL* old,
                        int correct, REAL accept, int stream, __global Vector* kept, __global REAL* out) {
    Ends known[V], stored[V];
    EACH(v) {
        const Ends added = ends_of(add, cut, g, v);
        known[v] = stored[v] = added;
        if (correct) {
            const Ends before = ends_of(old, cut, g, v);
            correct_ends(&before, &added, &stored[v], &known[v]);
        }
    }
    const word m = g->rows, pitch = solution_pitch(m);
    __global REAL* const solutions = (__global REAL*)(kept + 3 * V * m);
    const int like = first_rows(blocks, cut, g);
    if ((like & DOMINANT) && !correct && finish_dominant(blocks, x, cut, g, known, accept, stream, kept, out)) return;
    if (like & CANCEL) eliminate_sums(blocks, cut, g, known, kept);
    else eliminate(blocks, cut, g, known, kept);
    substitute(g, known, kept, solutions);
    const Block with_rhs[4] = {blocks[0], blocks[1], blocks[2], *rhs};
    for (word j = 0; j < g->count; ++j) {
        __global REAL* const s = solutions + j * pitch + LANES;
        const Ends* const ends = &stored[j / LANES];
        const int l = (int)(j % LANES);
        if (correct) {
            for (word i = 1; i < m - 1; ++i) s[i] += at_row(x, j, i);
            s[0] = ((const REAL*)&ends->first)[l], s[m - 1] = ((const REAL*)&ends->last)[l];
        }
        s[-1] = ((const REAL*)&ends->before)[l], s[m] = ((const REAL*)&ends->after)[l];
        const Checked seen = check_chunk(with_rhs, cut, g, j, s);
        const int good = is_good(&seen, accept);
        if (good) store_chunk(x, j, m, stream, s);
        say_checked(&seen, good, cut->chunks, g->first + j, out);
    }
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
        const int like = first_rows(blocks, &cut, &group);
        if ((like & DOMINANT) && !correct && reduce_dominant(blocks, &cut, &group, work + parts.out)) continue;
        if (like & CANCEL) reduce_sums(blocks, &cut, &group, work + parts.out);
        else reduce_group(blocks, &cut, &group, work + parts.out);
    }
}

__kernel void finish(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct, REAL accept, word kept_step, int stream, unsigned gate) {
    UNPACK_ARGUMENTS
    GATE
    const Source right = correct ? defect_source(&parts) : job.rhs;
    __global REAL* const right_buffer = correct ? work : rhs;
    __global Vector* const kept = (__global Vector*)(work + parts.kept + get_global_id(0) * kept_step);
    EACH_GROUP(g) {
        CHUNK_BLOCKS(&right, right_buffer)
        const Block true_rhs = chunk_block(&job.rhs, rhs, &cut, &group), to = chunk_block(&job.x, x, &cut, &group);
        finish_group(blocks, &true_rhs, &to, &cut, &group, work + parts.add, work + parts.old, correct, accept, stream, kept, work + parts.out);
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
