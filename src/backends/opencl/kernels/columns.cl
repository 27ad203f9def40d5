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

inline void solve_block(const Block* lower, const Block* diag, const Block* upper, const Block* rhs, const Block* x, word n, word systems, int vectors, int edge,
                        __global Vector* kept, uchar* bad, int* any_bad) {
    Vector a[LANES * VECTORS], b[LANES * VECTORS], c[LANES * VECTORS], f[LANES * VECTORS], above[VECTORS], value[VECTORS];
    Mask good[VECTORS];
    for (int v = 0; v < vectors; ++v) above[v] = value[v] = (Vector)0, good[v] = (Mask)(-1);
    for (word i = 0; i < n; i += LANES) {
        const int count = (int)min((word)LANES, n - i);
        load_tile(lower, i, count, 1, n - 1, systems, vectors, edge, a);
        load_tile(diag, i, count, 0, n - 1, systems, vectors, edge, b);
        load_tile(upper, i, count, 0, n - 2, systems, vectors, edge, c);
        load_tile(rhs, i, count, 0, n - 1, systems, vectors, edge, f);
        for (int r = 0; r < count; ++r)
            for (int v = 0; v < vectors; ++v) {
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
            for (int v = 0; v < vectors; ++v) {
                const __global Vector* const row = kept + (i + r) * 2 * vectors;
                value[v] = row[vectors + v] - row[v] * value[v];
                a[r * vectors + v] = value[v];
            }
        store_tile(x, i, count, systems, vectors, *any_bad ? bad : 0, a);
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

inline word first_bad_row(const Block* x, word n, word j) {
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
    for (word ticket = atomic_inc(&found->tickets); ticket < outer * blocks; ticket = atomic_inc(&found->tickets)) {
        const word k = ticket / blocks * lanes, first = ticket % blocks * width, count = min(width, lanes - first);
        word index[4];
        indices_of(&job, k + first, index);
        const Block a = block_of(&job.lower, lower, index, job.lower.level_stride[level]), b = block_of(&job.diag, diag, index, job.diag.level_stride[level]),
                    c = block_of(&job.upper, upper, index, job.upper.level_stride[level]), f = block_of(&job.rhs, rhs, index, job.rhs.level_stride[level]),
                    to = block_of(&job.x, x, index, job.x.level_stride[level]);
        const int edge = first == 0 || first + count == lanes;
        int any_bad = 0;
        if (count > LANES) solve_block(&a, &b, &c, &f, &to, job.rows, count, VECTORS, edge, kept, bad, &any_bad);
        else solve_block(&a, &b, &c, &f, &to, job.rows, count, 1, edge, kept, bad, &any_bad);
        const word number = number_at(&job, index), step = job.number_stride[level];
        for (word j = 0; j < count; ++j) {
            const int why = any_bad ? bad[j] : 0;
            marks[k + first + j] = why == 1 ? TO_PIVOT : why == 2 ? FAILED : SOLVED;
            if (status) status[number + j * step] = GOOD;
            if (why == 1) atomic_inc(&found->marked);
            if (why == 2) {
                verdicts[k + first + j] = first_bad_row(&to, job.rows, j) * 8 - NOT_FINITE;
                report_failure(found, status, number + j * step, NOT_FINITE);
            }
        }
    }
}
