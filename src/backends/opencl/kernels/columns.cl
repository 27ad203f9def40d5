// SPDX-License-Identifier: BSD-3-Clause
// Batches on a vector unit: LU without pivoting (Thomas), a lane per system, four vectors of systems per work item.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: job.h, any strides. Systems side by side (stride 1 from one to the next) are loaded as they lie; rows side by side as vectors of
//   rows, transposed in registers; the rest element by element. x may be rhs.
// Who does what: as many work items as the device has compute units, groups of one; an item draws blocks of 4 × LANES systems by tickets and
//   keeps c', d' of all their rows in scratch of its own: in the second-level cache (1 MiB) up to some 1500 rows.
// Overwritten: x of the systems whose test held. The test is known before the first store.
// Words per row: 4 read, 1 written (and 1 more where the store first reads the line), while scratch stays in cache.
// Numerics: every |lower c'| is at most 4 (|lower| + |diag|), so that |L||U| is a small multiple of |A| (Higham, 2nd ed., sections 9.3 and
//   9.6): a normwise backward error of a few roundings. Systems where it is not so, or where anything is not finite, are marked for pivoted.cl.
#include "vectors.h"

#define VECTORS 4

INLINE void fetch(const Block* b, word i, int count, word first, word last, word systems, int vectors, int slow, int edge, Vector* out) {
    if (slow) load_slowly(b, i, count, first, last, systems, vectors, out);
    else load_tile(b, i, count, first, last, systems, vectors, edge, out);
}

INLINE void solve_block(const Block* lower, const Block* diag, const Block* upper, const Block* rhs, const Block* x, word n, word systems, int vectors, int slow, int edge,
                        __global Vector* kept, uchar* bad, int* any_bad) {
    Vector a[LANES * VECTORS], b[LANES * VECTORS], c[LANES * VECTORS], f[LANES * VECTORS], above[VECTORS], value[VECTORS];
    Mask good[VECTORS];
    for (int v = 0; v < vectors; ++v) above[v] = value[v] = (Vector)0, good[v] = (Mask)(-1);
    for (word i = 0; i < n; i += LANES) {
        const int count = (int)min((word)LANES, n - i);
        fetch(lower, i, count, 1, n - 1, systems, vectors, slow, edge, a);
        fetch(diag, i, count, 0, n - 1, systems, vectors, slow, edge, b);
        fetch(upper, i, count, 0, n - 2, systems, vectors, slow, edge, c);
        fetch(rhs, i, count, 0, n - 1, systems, vectors, slow, edge, f);
        for (int r = 0; r < count; ++r)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                if (v >= vectors) break;
                const int at = r * vectors + v;
                const Vector update = a[at] * above[v], inverse = (Vector)1 / (b[at] - update);
                const Vector margin = (REAL)4 * (fabs(a[at]) + fabs(b[at])) - fabs(update);
                good[v] &= (margin >= (Vector)0) & (margin <= (Vector)LARGEST);
                value[v] = (f[at] - a[at] * value[v]) * inverse;
                above[v] = c[at] * inverse;
                kept[(i + r) * 2 * vectors + v] = above[v];
                kept[(i + r) * 2 * vectors + vectors + v] = value[v];
            }
    }
    *any_bad = 0;
    for (int v = 0; v < vectors; ++v) {
        good[v] &= value[v] * (REAL)0 == (Vector)0;
        if (all(good[v])) continue;
        *any_bad = 1;
    }
    if (*any_bad)
        for (int v = 0; v < vectors; ++v) {
            const Vector mark = good[v] ? (Vector)0 : (Vector)1;
            for (int l = 0; l < LANES; ++l) bad[v * LANES + l] = ((const REAL*)&mark)[l] != 0;
        }
    for (int v = 0; v < vectors; ++v) value[v] = (Vector)0;
    for (word i = (n - 1) / LANES * LANES; i >= 0; i -= LANES) {
        const int count = (int)min((word)LANES, n - i);
        for (int r = count - 1; r >= 0; --r)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                if (v >= vectors) break;
                const __global Vector* const row = kept + (i + r) * 2 * vectors;
                value[v] = row[vectors + v] - row[v] * value[v];
                a[r * vectors + v] = value[v];
            }
        if (slow) store_slowly(x, i, count, systems, vectors, *any_bad ? bad : 0, a);
        else store_tile(x, i, count, systems, vectors, *any_bad ? bad : 0, a);
    }
    // What overflows on the way back stays NaN or infinite up to the first row.
    for (int v = 0; v < vectors; ++v) {
        const Mask fine = value[v] * (REAL)0 == (Vector)0;
        if (all(fine)) continue;
        if (!*any_bad)
            for (int j = 0; j < vectors * LANES; ++j) bad[j] = 0;
        *any_bad = 1;
        const Vector mark = fine ? (Vector)0 : (Vector)1;
        for (int l = 0; l < LANES; ++l)
            if (((const REAL*)&mark)[l] != 0 && !bad[v * LANES + l]) bad[v * LANES + l] = 2;
    }
}

APART void solve_wide(const Block* o, word n, word systems, int edge, __global Vector* kept, uchar* bad, int* any_bad) {
    solve_block(o, o + 1, o + 2, o + 3, o + 4, n, systems, VECTORS, 0, edge, kept, bad, any_bad);
}

/// Up to LANES systems, any layout.
APART void solve_narrow(const Block* o, word n, word systems, __global Vector* kept, uchar* bad, int* any_bad) {
    solve_block(o, o + 1, o + 2, o + 3, o + 4, n, systems, 1, 1, 1, kept, bad, any_bad);
}

APART word first_bad_row(const Block* x, word n, word j) {
    for (word i = 0; i < n; ++i)
        if (!(x->data[i * x->rows + j * x->lanes] * (REAL)0 == (REAL)0)) return i;
    return 0;
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void columns(SOLVER_ARGUMENTS) {
    UNPACK_ARGUMENTS
    const int level = (int)job.levels - 1;
    const word lanes = job.extent[level], width = VECTORS * LANES, blocks = (lanes + width - 1) / width, outer = job.systems / lanes;
    __global Vector* const kept = (__global Vector*)(work + get_global_id(0) * job.rows * 2 * width);
    uchar bad[VECTORS * LANES];
    const Source* const sources[5] = {&job.lower, &job.diag, &job.upper, &job.rhs, &job.x};
    __global REAL* const buffers[5] = {lower, diag, upper, rhs, x};
    word next = atomic_inc(&found->tickets);
    while (next < outer * blocks) {
        const word ticket = next, k = ticket / blocks * lanes, first = ticket % blocks * width, count = min(width, lanes - first);
        word index[4];
        Block of[5];
        indices_of(&job, k + first, index);
        for (int o = 0; o < 5; ++o) of[o] = block_of(sources[o], buffers[o], index, sources[o]->level_stride[level]);
        next = atomic_inc(&found->tickets);
        if (next < outer * blocks) {
            word later[4];
            const word start = next % blocks * width;
            indices_of(&job, next / blocks * lanes + start, later);
            for (int o = 0; o < 4; ++o) {
                const Block b = block_of(sources[o], buffers[o], later, sources[o]->level_stride[level]);
                ask_first_rows(&b, job.rows, min(width, lanes - start));
            }
        }
        int any_bad = 0;
        if (count > LANES) solve_wide(of, job.rows, count, first == 0 || first + count == lanes, kept, bad, &any_bad);
        else solve_narrow(of, job.rows, count, kept, bad, &any_bad);
        const word number = number_at(&job, index), step = job.number_stride[level];
        for (word j = 0; j < count; ++j) {
            const int why = any_bad ? bad[j] : 0;
            marks[k + first + j] = why == 1 ? TO_PIVOT : why == 2 ? FAILED : SOLVED;
            if (status) status[number + j * step] = GOOD;
            if (why == 1) atomic_inc(&found->marked);
            if (why == 2) {
                verdicts[k + first + j] = first_bad_row(of + 4, job.rows, j) * 8 - NOT_FINITE;
                report_failure(found, status, number + j * step, NOT_FINITE);
            }
        }
    }
}
