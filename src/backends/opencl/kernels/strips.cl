// SPDX-License-Identifier: BSD-3-Clause
// One system that forgets, on a vector unit, in one pass: strips with halos side by side in the lanes, growth watched, seams written down.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i]
//
// Arrays: job.h with levels == 0; rows one element apart, or numbers; x is not rhs. Strip s keeps rows first + s m … first + (s + 1) m - 1 and is eliminated from `halo` rows before
//   them to `halo` rows after them, as if what lies beyond were 0. m and halo are multiples of LANES; first > halo, and halo rows and one more follow the last strip.
// Who does what: a lane per strip, V vectors of strips per work item (vectors.h), which draws such groups by tickets (the last two are the rows before and after the strips); tiles of LANES rows are turned in registers. c' and d' stay in
//   scratch of the item's own, in the second-level cache.
// seen, at the start of work: six numbers per strip, number w of strip s at seen[(group * 6 + w) * V LANES + lane]: x before its first row as it solved that, x of its first row, of its last one, of
//   the row after that, largest |x|, and 0 where it is not good. Then eight for the rows before the strips, and eight for those after them.
// Overwritten: x of the strips. Words per row: 4 read, 1 written (one more where the store first reads the line), halos from cache.
// Numerics: |lower c'| ≤ 4 (|lower| + |diag|) in every row, as in columns.cl, so that local equations hold to a few roundings; the host compares what strips say of each other.
#include "vectors.h"

#define WIDTH (V * LANES)

INLINE void load_rows_of_strips(const Block* b, word i, word strips, Vector* out) { load_tile(b, i, LANES, -1, i + LANES, strips, V, 0, TILES_AHEAD, out); }

APART int solve_strips(const Block* o, word m, word halo, word strips, int stream, __global Vector* kept, __global REAL* seen) {
    Vector a[LANES * V], b[LANES * V], c[LANES * V], f[LANES * V], above[V], value[V], most[V];
    Mask good[V];
    const word rows = m + 2 * halo;
#pragma unroll
    for (int v = 0; v < V; ++v) above[v] = value[v] = most[v] = (Vector)0, good[v] = (Mask)(-1);
    for (word i = 0; i < rows; i += LANES) {
        load_rows_of_strips(o + 0, i, strips, a), load_rows_of_strips(o + 1, i, strips, b), load_rows_of_strips(o + 2, i, strips, c), load_rows_of_strips(o + 3, i, strips, f);
#pragma unroll
        for (int r = 0; r < LANES; ++r)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int at = r * V + v;
                const Vector update = a[at] * above[v], inverse = (Vector)1 / (b[at] - update);
                const Vector margin = (REAL)4 * (fabs(a[at]) + fabs(b[at])) - fabs(update);
                good[v] &= (margin >= (Vector)0) & (margin <= (Vector)LARGEST);
                value[v] = (f[at] - a[at] * value[v]) * inverse;
                above[v] = c[at] * inverse;
                kept[(i + r) * 2 * V + v] = above[v];
                kept[(i + r) * 2 * V + V + v] = value[v];
            }
    }
    for (int v = 0; v < V; ++v) value[v] = (Vector)0;
    for (word i = rows - LANES; i >= m + halo; i -= LANES)
        for (int r = LANES - 1; r >= 0; --r)
#pragma unroll
            for (int v = 0; v < V; ++v) value[v] = kept[(i + r) * 2 * V + V + v] - kept[(i + r) * 2 * V + v] * value[v];
    for (int v = 0; v < V; ++v) STORE(value[v], seen + 3 * WIDTH + v * LANES);
    for (word i = m + halo - LANES; i >= halo; i -= LANES) {
#pragma unroll
        for (int r = LANES - 1; r >= 0; --r)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                value[v] = kept[(i + r) * 2 * V + V + v] - kept[(i + r) * 2 * V + v] * value[v];
                most[v] = fmax(most[v], fabs(value[v]));
                a[r * V + v] = value[v];
            }
        if (i == m + halo - LANES)
            for (int v = 0; v < V; ++v) STORE(a[(LANES - 1) * V + v], seen + 2 * WIDTH + v * LANES);
        if (stream) stream_tile(o + 4, i, strips, V, a);
        else store_tile(o + 4, i, LANES, strips, V, 0, a);
    }
    int all_good = 1;
    for (int v = 0; v < V; ++v) {
        // fmax passes over NaN; a value that is not finite lasts up to the first row.
        good[v] &= value[v] * (REAL)0 == (Vector)0;
        const word row = halo - 1;
        STORE(kept[row * 2 * V + V + v] - kept[row * 2 * V + v] * value[v], seen + v * LANES);
        STORE(value[v], seen + WIDTH + v * LANES);
        STORE(most[v], seen + 4 * WIDTH + v * LANES);
        STORE((good[v] ? (Vector)1 : (Vector)0), seen + 5 * WIDTH + v * LANES);
        all_good &= all(good[v]);
    }
    return all_good;
}

/// Rows first … last, before the strips or after them, one by one with the same arithmetic: eliminated from row `from` to row `to`. seen: six numbers.
APART int solve_end(const Block* o, word n, word from, word first, word last, word to, __global REAL* kept, __global REAL* seen) {
    REAL above = 0, value = 0, most = 0, x_first = 0;
    int good = 1;
    for (word i = from; i <= to; ++i) {
        const REAL a = i == from || i == 0 ? (REAL)0 : o[0].is_view ? o[0].data[i] : o[0].value, b = o[1].is_view ? o[1].data[i] : o[1].value;
        const REAL c = i + 1 == n ? (REAL)0 : o[2].is_view ? o[2].data[i] : o[2].value, f = o[3].data[i];
        const REAL update = a * above, inverse = (REAL)1 / (b - update);
        const REAL margin = (REAL)4 * (fabs(a) + fabs(b)) - fabs(update);
        good &= margin >= (REAL)0 && margin <= (REAL)LARGEST;
        value = (f - a * value) * inverse;
        above = c * inverse;
        kept[2 * (i - from)] = above, kept[2 * (i - from) + 1] = value;
    }
    value = 0;
    for (word i = to; i >= from && i >= first - 1; --i) {
        value = kept[2 * (i - from) + 1] - kept[2 * (i - from)] * value;
        if (i == last + 1) seen[3] = value;
        if (i == last) seen[2] = value;
        if (i == first) seen[1] = x_first = value;
        if (i == first - 1) seen[0] = value;
        if (i < first || i > last) continue;
        most = fmax(most, fabs(value));
        o[4].data[i] = value;
    }
    good &= x_first * (REAL)0 == (REAL)0;
    seen[4] = most, seen[5] = good ? (REAL)1 : (REAL)0;
    return good;
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void strips(SOLVER_ARGUMENTS, word first, word count, word m, word halo, word kept_at, int stream) {
    UNPACK_ARGUMENTS
    const word groups = (count + WIDTH - 1) / WIDTH;
    __global Vector* const kept = (__global Vector*)(work + kept_at + get_global_id(0) * (m + 2 * halo) * 2 * WIDTH);
    const Source* const sources[5] = {&job.lower, &job.diag, &job.upper, &job.rhs, &job.x};
    __global REAL* const buffers[5] = {lower, diag, upper, rhs, x};
    const word index[4] = {0, 0, 0, 0};
    Block of[5];
    for (word g = atomic_inc(&found->tickets); g < groups + 2; g = atomic_inc(&found->tickets)) {
        if (found->marked) return;
        if (g >= groups) {
            for (int o = 0; o < 5; ++o) of[o] = block_of(sources[o], buffers[o], index, 0);
            const word end = first + count * m, n = job.rows;
            __global REAL* const seen = work + groups * 6 * WIDTH + (g - groups) * 8;
            const int good = g == groups ? solve_end(of, n, 0, 0, first - 1, first - 1 + halo, (__global REAL*)kept, seen)
                                         : solve_end(of, n, end - halo, end, n - 1, n - 1, (__global REAL*)kept, seen);
            if (!good) atomic_inc(&found->marked);
            continue;
        }
        for (int o = 0; o < 5; ++o) {
            of[o] = block_of(sources[o], buffers[o], index, m);
            of[o].data += first - halo + g * WIDTH * m;
        }
        if (!solve_strips(of, m, halo, min((word)WIDTH, count - g * WIDTH), stream, kept, work + g * 6 * WIDTH)) atomic_inc(&found->marked);
    }
}
