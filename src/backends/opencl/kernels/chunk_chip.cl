// SPDX-License-Identifier: BSD-3-Clause
// finish of chunks.cl on a GPU, where all of a chunk fits on chip: an item per chunk of 32 rows, G of them in a group's local memory.
//
// Arrays, results: chunks.cl. For whole groups of chunks before the last chunk, which is longer: that is chunk_tiles.cl's, with those beside it.
// Who does what: rows come and go item beside item, 32 of a chunk. What an item keeps of a row takes the place of the row before it, x that of the right-hand side; then the rows come once more.
// Words per row: 4 read, 4 read from cache, 1 written. An item's 30 divisions, one after the other, take the time that memory does not.
#define CHUNK 32
#define PITCH (G + 1)
#define KEPT_SPACE __local
#define KEPT(row, w) kept[((w) * CHUNK + (row)) * PITCH]
#include "chunk_rows.h"

/// A line into plane `plane`.
INLINE void bring(const Line* line, int plane, word first, int has_first_row, __local REAL* planes) {
#pragma unroll 8
    for (int e = (int)get_local_id(0); e < G * CHUNK; e += G) {
        const int s = e / CHUNK, r = e % CHUNK;
        planes[(plane * CHUNK + r) * PITCH + s] = has_first_row && e == 0 ? (REAL)0 : get(line, first * CHUNK + e);
    }
}

__attribute__((reqd_work_group_size(G, 1, 1)))
__kernel void finish(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct, REAL accept, unsigned gate) {
    UNPACK_ARGUMENTS
    __local REAL planes[5 * CHUNK * PITCH];
    __local int stores[G];
    GATE
    const int own = (int)get_local_id(0);
    // From the last one to the first: what was reduced last is in the cache still.
    const word first = (word)(get_num_groups(0) - 1 - get_group_id(0)) * G, k = first + own, index[4] = {0, 0, 0, 0};
    const Source right = correct ? defect_source(&parts) : job.rhs;
    const Line a = line_of(&job.lower, lower, index), b = line_of(&job.diag, diag, index), c = line_of(&job.upper, upper, index), f = line_of(&right, correct ? work : rhs, index);
    const Line v = line_of(&job.x, x, index), given = line_of(&job.rhs, rhs, index);
    bring(&a, 0, first, first == 0, planes), bring(&b, 1, first, 0, planes), bring(&c, 2, first, 0, planes), bring(&f, 3, first, 0, planes);
    const Ends added = ends_of(work + parts.add, cut.chunks, k);
    Ends known = added, stored = added;
    if (correct) {
        const Ends before = ends_of(work + parts.old, cut.chunks, k);
        correct_ends(&before, &added, &stored, &known);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __local REAL* const kept = planes + own;
    Eliminating to;
    for (int i = 0; i < CHUNK; ++i) eliminate_row(&to, &known, i, KEPT(i, 0), KEPT(i, 1), KEPT(i, 2), KEPT(i, 3), kept, 0);
    substitute(&known, CHUNK, kept, 0);
    if (correct) {
        for (int i = 1; i + 1 < CHUNK; ++i) KEPT(i, 3) += get(&v, k * CHUNK + i);
        KEPT(0, 3) = stored.first, KEPT(CHUNK - 1, 3) = stored.last;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    bring(&a, 0, first, first == 0, planes), bring(&b, 1, first, 0, planes), bring(&c, 2, first, 0, planes), bring(&given, 4, first, 0, planes);
    barrier(CLK_LOCAL_MEM_FENCE);
    Checking seen = {(REAL)0, (REAL)0, fmax(fabs(stored.before), fabs(stored.after)), (REAL)0, (REAL)0};
    REAL above = stored.before, here = stored.first;
    for (int i = 0; i < CHUNK; ++i) {
        const REAL below = i + 1 < CHUNK ? KEPT(i + 1 < CHUNK ? i + 1 : i, 3) : stored.after;
        check_row(&seen, KEPT(i, 0), KEPT(i, 1), KEPT(i, 2), KEPT(i, 4), above, here, below);
        above = here, here = below;
    }
    const int good = is_good(&seen, accept);
    say_checked(&seen, good, cut.chunks, k, work + parts.out);
    stores[own] = good;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 8
    for (int e = own; e < G * CHUNK; e += G) {
        const int s = e / CHUNK, r = e % CHUNK;
        if (stores[s]) v.data[(first * CHUNK + e) * v.stride] = planes[(3 * CHUNK + r) * PITCH + s];
    }
}
