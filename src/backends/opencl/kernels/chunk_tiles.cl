// SPDX-License-Identifier: BSD-3-Clause
// reduce and finish of chunks.cl on a GPU: an item per chunk, operands through local memory.
//
// Arrays, results, scratch: chunks.cl. What is kept of an elimination lies chunk beside chunk; the last chunk, which is longer, has its own behind the others.
// Who does what: G chunks of a group follow each other in memory. STEP rows of each at a time are brought by all items, 64 bytes beside 64 bytes, and taken by the item whose chunk they are.
//   Rows of 32-row chunks read where they lie come once for every eight of them, since what all chunks of a multiprocessor need is more than its cache has.
// `finish` is for who has no room for chunk_chip.cl, and for longer chunks.
// Words per row: reduce 4 read; finish 4 + 4 read, 1 written, and of scratch 4 written, 5 read, 1 written.
#include "arrivals.h"
#include "chunk_rows.h"

#define STEP (64 / REAL_BYTES)
#define TILE(o, s, r) tile[((o) * G + (s)) * (STEP + 1) + (r)]

/// The group's first chunk.
#define FIRST ((word)get_group_id(0) * G)

/// Most rows of any chunk of this group.
INLINE word rounds_of(const Cut* cut) {
    const word first = FIRST, last = min(first + G, cut->chunks) - 1;
    return rows_of(cut, last);
}

/// Rows i … of the group's chunks are asked for; what lies outside of the system is 0.
INLINE void ask_rows(const Line* lines, const Cut* cut, word i, __local REAL* tile) {
    const word first = FIRST;
    const int item = (int)get_local_id(0);
    for (int o = 0; o < 4; ++o) {
        const word from = o == 0, to = o == 2 ? cut->rows - 1 : cut->rows;
        for (int e = item; e < G * STEP; e += G) {
            const int s = e / STEP, r = e % STEP;
            const word k = first + s, row = k * cut->chunk_rows + i + r;
            if (i + r < rows_of(cut, k) && row >= from && row < to) ask_number(&TILE(o, s, r), lines + o, row);
            else TILE(o, s, r) = (REAL)0;
        }
    }
    close_lot();
}

INLINE void bring(const Line* lines, const Cut* cut, word i, __local REAL* tile) {
    barrier(CLK_LOCAL_MEM_FENCE);
    ask_rows(lines, cut, i, tile);
    await_all();
    barrier(CLK_LOCAL_MEM_FENCE);
}

#define LINES_OF(right, right_buffer) \
    const word index[4] = {0, 0, 0, 0}; \
    Line lines[4] = {line_of(&job.lower, lower, index), line_of(&job.diag, diag, index), line_of(&job.upper, upper, index), line_of(right, right_buffer, index)};

#define TILE_NUMBERS (4 * G * (STEP + 1))
#define OWN_ROWS \
    const word k = FIRST + get_local_id(0), m = rows_of(&cut, k), rounds = rounds_of(&cut); \
    const int own = (int)get_local_id(0);

__attribute__((reqd_work_group_size(G, 1, 1)))
__kernel void reduce(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct, unsigned gate) {
    UNPACK_ARGUMENTS
    __local REAL tiles[(1 + ASKED_AHEAD) * TILE_NUMBERS];
    OWN_ROWS
    GATE
    const Source right = correct ? defect_source(&parts) : job.rhs;
    LINES_OF(&right, correct ? work : rhs)
    Reducing to = nothing_yet();
    // A tile is on its way while the one before is in work, where the device can.
    ask_rows(lines, &cut, 0, tiles);
    for (word i = 0; i < rounds; i += STEP) {
        __local REAL *const tile = tiles + (ASKED_AHEAD ? i / STEP % 2 : 0) * TILE_NUMBERS, *const next = tiles + (ASKED_AHEAD ? 1 - i / STEP % 2 : 0) * TILE_NUMBERS;
        const int more = i + STEP < rounds;
        if (ASKED_AHEAD && more) ask_rows(lines, &cut, i + STEP, next), await_all_but_one();
        else await_all();
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < STEP; ++r)
            if (i + r < m) reduce_row(&to, i + r, TILE(0, own, r), TILE(1, own, r), TILE(2, own, r), TILE(3, own, r));
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!ASKED_AHEAD && more) ask_rows(lines, &cut, i + STEP, next);
    }
    if (k >= cut.chunks) return;
    REAL said[11];
    close_chunk(&to, m, 1, said);
    for (int w = 0; w < 11; ++w) work[parts.out + w * cut.chunks + k] = said[w];
}

__attribute__((reqd_work_group_size(G, 1, 1)))
__kernel void finish(SOLVER_ARGUMENTS, Cut cut, ChunkParts parts, int correct, REAL accept, word kept_pitch, unsigned gate) {
    UNPACK_ARGUMENTS
    __local REAL tile[TILE_NUMBERS];
    OWN_ROWS
    __local int stores[G];
    GATE
    const Source right = correct ? defect_source(&parts) : job.rhs;
    LINES_OF(&right, correct ? work : rhs)
    const Line v = line_of(&job.x, x, index);
    const int longer = k > 0 && k == cut.chunks - 1;
    __global REAL* const kept = work + parts.kept + (longer ? 4 * cut.chunk_rows * kept_pitch : k);
    const word pitch = longer ? 1 : kept_pitch;

    const Ends added = ends_of(work + parts.add, cut.chunks, k);
    Ends known = added, stored = added;
    if (correct) {
        const Ends before = ends_of(work + parts.old, cut.chunks, k);
        correct_ends(&before, &added, &stored, &known);
    }
    Eliminating to;
    for (word i = 0; i < rounds; i += STEP) {
        bring(lines, &cut, i, tile);
        for (int r = 0; r < STEP; ++r)
            if (i + r < m) eliminate_row(&to, &known, i + r, TILE(0, own, r), TILE(1, own, r), TILE(2, own, r), TILE(3, own, r), kept, pitch);
    }
    if (m > 0) {
        substitute(&known, m, kept, pitch);
        if (correct) {
            for (word i = 1; i + 1 < m; ++i) KEPT(i, 3) += get(&v, k * cut.chunk_rows + i);
            KEPT(0, 3) = stored.first, KEPT(m - 1, 3) = stored.last;
        }
    }
    lines[3] = line_of(&job.rhs, rhs, index);
    Checking seen = {(REAL)0, (REAL)0, fmax(fabs(stored.before), fabs(stored.after)), (REAL)0, (REAL)0};
    REAL above = stored.before, here = stored.first;
    for (word i = 0; i < rounds; i += STEP) {
        bring(lines, &cut, i, tile);
        for (int r = 0; r < STEP; ++r)
            if (i + r < m) {
                const REAL below = i + r + 1 < m ? KEPT(i + r + 1, 3) : stored.after;
                check_row(&seen, TILE(0, own, r), TILE(1, own, r), TILE(2, own, r), TILE(3, own, r), above, here, below);
                above = here, here = below;
            }
    }
    const int good = is_good(&seen, accept);
    if (m > 0) say_checked(&seen, good, cut.chunks, k, work + parts.out);
    stores[own] = m > 0 && good;
    for (word i = 0; i < rounds; i += STEP) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < STEP; ++r)
            if (i + r < m) TILE(0, own, r) = KEPT(i + r, 3);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = own; e < G * STEP; e += G) {
            const int s = e / STEP, r = e % STEP;
            const word chunk = FIRST + s;
            if (stores[s] && i + r < rows_of(&cut, chunk)) v.data[(chunk * cut.chunk_rows + i + r) * v.stride] = TILE(0, s, r);
        }
    }
}
