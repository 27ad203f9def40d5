// SPDX-License-Identifier: BSD-3-Clause
// Batches on a vector unit: LU without pivoting (Thomas), a lane per system, two vectors of systems per work item, four where systems lie side by side.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: job.h, any strides. Systems side by side (stride 1 from one to the next) are loaded as they lie; rows side by side as vectors of
//   rows, transposed in registers; the rest element by element. x may be rhs.
// Who does what: as many work items as the device has compute units, groups of one; an item draws blocks of systems by tickets and
//   keeps c', d' of all their rows in scratch of its own: in the second-level cache (1 MiB) up to some 1000 rows.
// Overwritten: x of the systems whose test held. The test is known before the first store.
// Words per row: 4 read, 1 written (and 1 more where the store first reads the line), while scratch stays in cache.
// Numerics: every |lower c'| is at most 4 (|lower| + |diag|), so that |L||U| is a small multiple of |A| (Higham, 2nd ed., sections 9.3 and
//   9.6): a normwise backward error of a few roundings. Systems where it is not so, or where anything is not finite, are marked for pivoted.cl.
#include "vectors.h"
#include "lines.h"

#define VECTORS 2
#define MOST (LINES > VECTORS ? LINES : VECTORS)
/// More than these would push what is in work out of the second-level cache.
#define ASK_ROWS 128
/// Blocks of up to so many rows are asked for whole while the one before is in work: both and c', d' stay in the second-level cache.
#define ASK_WHOLE 512
/// Lines of each operand per row, eliminated or substituted, so that they come evenly: a processor drops what is asked for faster than it arrives.
#define LINES_A_ROW ((VECTORS + 1) / 2)

INLINE void fetch(const Block* b, word i, int count, word first, word last, word systems, int vectors, int slow, int edge, int ahead, Vector* out) {
    if (slow) load_slowly(b, i, count, first, last, systems, vectors, out);
    else load_tile(b, i, count, first, last, systems, vectors, edge, ahead, out);
}

/// The block after this one: asked for while this one is substituted, which reads nothing new; `rows` of it.
typedef struct {
    Block of[4];
    word rows, systems;
    int evenly;    ///< all of them, by `lines`
    int asked;     ///< this one was, in that way
    Asks lines;
} Next;

/// bad[j] = value of every system j that is not good and not bad yet; it counts only where the answer, or `before`, is not 0.
INLINE int note_bad(const Mask* good, int vectors, uchar value, int before, uchar* bad) {
    int any = before;
    for (int v = 0; v < vectors; ++v) {
        if (all(good[v])) continue;
        if (!any)
            for (int j = 0; j < vectors * LANES; ++j) bad[j] = 0;
        any = 1;
        const Vector mark = good[v] ? (Vector)0 : (Vector)1;
        for (int l = 0; l < LANES; ++l)
            if (((const REAL*)&mark)[l] != 0 && !bad[v * LANES + l]) bad[v * LANES + l] = value;
    }
    return any;
}

INLINE void solve_block(const Block* lower, const Block* diag, const Block* upper, const Block* rhs, const Block* x, word n, word systems, int vectors, int slow, int edge, int stream,
                        Next* next, __global Vector* kept, uchar* bad, int* any_bad) {
    Vector a[LANES * VECTORS], b[LANES * VECTORS], c[LANES * VECTORS], f[LANES * VECTORS], above[VECTORS], value[VECTORS];
    Mask good[VECTORS];
    const int ahead = next->asked ? TILES_AGAIN : TILES_AHEAD;
    for (int v = 0; v < vectors; ++v) above[v] = value[v] = (Vector)0, good[v] = (Mask)(-1);
    for (word i = 0; i < n; i += LANES) {
        const int count = (int)min((word)LANES, n - i);
        fetch(lower, i, count, 1, n - 1, systems, vectors, slow, edge, ahead, a);
        fetch(diag, i, count, 0, n - 1, systems, vectors, slow, edge, ahead, b);
        fetch(upper, i, count, 0, n - 2, systems, vectors, slow, edge, ahead, c);
        fetch(rhs, i, count, 0, n - 1, systems, vectors, slow, edge, ahead, f);
        for (int r = 0; r < count; ++r) {
            if (next->evenly)
                for (int l = 0; l < LINES_A_ROW; ++l) ask_lines(&next->lines);
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
    }
    for (int v = 0; v < vectors; ++v) good[v] &= value[v] * (REAL)0 == (Vector)0;
    *any_bad = note_bad(good, vectors, 1, 0, bad);
    for (int v = 0; v < vectors; ++v) value[v] = (Vector)0;
    word asked = 0;
    for (word i = (n - 1) / LANES * LANES; i >= 0; i -= LANES) {
        const int count = (int)min((word)LANES, n - i);
        if (!next->evenly && asked < next->rows) {
            for (int o = 0; o < 4; ++o) ask_tile(next->of + o, asked, next->systems);
            asked += LANES;
        }
        if (!stream && !slow && x->rows == 1 && i >= LANES)
            for (word j = 0; j < systems; ++j) ASK_TO_STORE(x->data + j * x->lanes + i - LANES);
        for (int r = count - 1; r >= 0; --r) {
            if (next->evenly)
                for (int l = 0; l < LINES_A_ROW; ++l) ask_lines(&next->lines);
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                if (v >= vectors) break;
                const __global Vector* const row = kept + (i + r) * 2 * vectors;
                value[v] = row[vectors + v] - row[v] * value[v];
                a[r * vectors + v] = value[v];
            }
        }
        if (slow) store_slowly(x, i, count, systems, vectors, *any_bad ? bad : 0, a);
        else if (stream && !*any_bad && count == LANES) stream_tile(x, i, systems, vectors, a);
        else store_tile(x, i, count, systems, vectors, *any_bad ? bad : 0, a);
    }
    // What overflows on the way back stays NaN or infinite up to the first row.
    for (int v = 0; v < vectors; ++v) good[v] = value[v] * (REAL)0 == (Vector)0;
    *any_bad = note_bad(good, vectors, 2, *any_bad, bad);
}

APART void solve_wide(const Block* o, word n, word systems, int edge, int stream, Next* next, __global Vector* kept, uchar* bad, int* any_bad) {
    solve_block(o, o + 1, o + 2, o + 3, o + 4, n, systems, VECTORS, 0, edge, stream, next, kept, bad, any_bad);
}

/// Up to LANES systems, any layout.
APART void solve_narrow(const Block* o, word n, word systems, Next* next, __global Vector* kept, uchar* bad, int* any_bad) {
    solve_block(o, o + 1, o + 2, o + 3, o + 4, n, systems, 1, 1, 1, 0, next, kept, bad, any_bad);
}

APART word first_bad_row(const Block* x, word n, word j) {
    for (word i = 0; i < n; ++i)
        if (!(x->data[i * x->rows + j * x->lanes] * (REAL)0 == (REAL)0)) return i;
    return 0;
}

/// Systems first … first+count-1 of the last level, from system k on: how a block went.
APART void settle(const Job* job, word k, word first, word count, const Block* x, const uchar* bad, volatile __global Found* found, __global uchar* marks, __global word* verdicts,
                  __global char* status) {
    word index[4];
    indices_of(job, k + first, index);
    const word number = number_at(job, index), step = job->number_stride[job->levels - 1];
    for (word j = 0; j < count; ++j) {
        const int why = bad ? bad[j] : 0;
        marks[k + first + j] = why == 1 ? TO_PIVOT : why == 2 ? FAILED : SOLVED;
        if (status) status[number + j * step] = GOOD;
        if (why == 1) atomic_inc(&found->marked);
        if (why == 2) {
            verdicts[k + first + j] = first_bad_row(x, job->rows, j) * 8 - NOT_FINITE;
            report_failure(found, status, number + j * step, NOT_FINITE);
        }
    }
}

/// First system of a block.
#define FIRST_OF(turn) (shift == 0 ? (turn) * width : (turn) == 0 ? 0 : shift + ((turn) - 1) * width)

/// shift: systems before the first one that begins a cache line, a block of their own. lines: 1 where all operands have systems side by side, or are numbers. stream: x is better stored past the caches.
/// tells: where nothing is left to do for pivoted.cl, the outcome is told by the last group, as there.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void columns(SOLVER_ARGUMENTS, int lines, int stream, word shift, int tells, Telling telling, __global uchar* outcome_buffer) {
    UNPACK_ARGUMENTS
    const int level = (int)job.levels - 1;
    const word lanes = job.extent[level], width = (lines ? LINES : VECTORS) * LANES, blocks = (shift > 0) + (lanes - shift + width - 1) / width, outer = job.systems / lanes, n = job.rows;
    __global Vector* const kept = (__global Vector*)(work + get_global_id(0) * (n + 2) * 2 * MOST * LANES);
    uchar bad[VECTORS * LANES], done_bad[LINES * LANES];
    const Source* const sources[5] = {&job.lower, &job.diag, &job.upper, &job.rhs, &job.x};
    __global REAL* const buffers[5] = {lower, diag, upper, rhs, x};
    Lines done_lines;
    Block done_x;
    word done_k = 0, done_first = 0;
    int waits = 0, backwards = 0, done_any = 0;
    Next after;
    after.evenly = 0;
    word next = atomic_inc(&found->tickets);
    while (next < outer * blocks || waits) {
        const int there = next < outer * blocks;
        const word turn = next % blocks, k = next / blocks * lanes, first = FIRST_OF(turn), count = turn == 0 && shift > 0 ? shift : min(width, lanes - first);
        const int in_lines = there && lines && count == width;
        word index[4];
        Block of[5];
        after.asked = after.evenly, after.rows = 0, after.evenly = 0;
        if (there) {
            indices_of(&job, k + first, index);
            for (int o = 0; o < 5; ++o) of[o] = block_of(sources[o], buffers[o], index, sources[o]->level_stride[level]);
            next = atomic_inc(&found->tickets);
        }
        if (there && next < outer * blocks) {
            word later[4];
            const word start = FIRST_OF(next % blocks);
            indices_of(&job, next / blocks * lanes + start, later);
            after.rows = min(n, (word)ASK_ROWS), after.systems = min(width, lanes - start);
            for (int o = 0; o < 4; ++o) after.of[o] = block_of(sources[o], buffers[o], later, sources[o]->level_stride[level]);
            after.evenly = n <= ASK_WHOLE && !lines && asks_of(after.of, n, after.systems, &after.lines);
        }
        Mask good[LINES], sound[LINES];
        Lines now, following;
        if (in_lines) {
            now = lines_of(of, kept + n * 2 * LINES), following = lines_of(after.rows ? after.of : of, kept + n * 2 * LINES);
            now.x = of[4].data, now.x_step = of[4].rows;
            const int past = stream && (size_t)(waits ? done_lines.x : now.x) % 64 == 0 && now.x_step % LANES == 0;
            const word ahead = now.step[3] * (word)sizeof(REAL) % 4096 ? 64 : 12;
            if (waits) sweep_both(&now, &done_lines, after.rows ? &following : 0, done_any ? done_bad : 0, past, n, backwards, ahead, kept, good, sound);
            else sweep_now(&now, after.rows ? &following : 0, n, backwards, ahead, kept, good);
        } else if (waits) {
            sweep_done(&done_lines, done_any ? done_bad : 0, 0, n, backwards, kept, sound);
        }
        if (waits) {
            done_any = note_bad(sound, LINES, 2, done_any, done_bad);
            settle(&job, done_k, done_first, width, &done_x, done_any ? done_bad : 0, found, marks, verdicts, status);
            waits = 0;
        }
        if (in_lines) {
            done_any = note_bad(good, LINES, 1, 0, done_bad);
            done_lines = now, done_x = of[4], done_k = k, done_first = first, waits = 1, backwards = !backwards;
        } else if (there) {
            // What is left of lines may be more than one block of these.
            for (word done = 0; done < count; done += VECTORS * LANES) {
                const word some = min((word)(VECTORS * LANES), count - done), at = first + done;
                int any_bad = 0;
                if (some > LANES) solve_wide(of, n, some, at == 0 || at + some == lanes, stream && of[4].rows == 1 && ((size_t)of[4].data | of[4].lanes * sizeof(REAL)) % 64 == 0, &after, kept, bad, &any_bad);
                else solve_narrow(of, n, some, &after, kept, bad, &any_bad);
                settle(&job, k, at, some, of + 4, any_bad ? bad : 0, found, marks, verdicts, status);
                for (int o = 0; o < 5; ++o) of[o].data += VECTORS * LANES * of[o].lanes;
            }
        }
    }
    if (!tells) return;
    volatile __global QueueState* const state = (volatile __global QueueState*)found;
    STORED_FOR_ALL();
    if (atomic_inc(&state->groups_done) + 1 != get_num_groups(0)) return;
    STORED_FOR_ALL();
    state->groups_done = 0;
    if (as_found(&found->marked) == 0 && as_found(&found->failures) == 0) *(__global Found*)(outcome_buffer + telling.at) = telling.fresh, state->found.tickets = 0;
}
