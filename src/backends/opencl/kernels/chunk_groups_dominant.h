// SPDX-License-Identifier: BSD-3-Clause
// Both passes over groups of chunks whose rows are those of diffusion. One that is not dominant enough somewhere is left to three rows (chunks.cl).
#include "chunk_dominant.h"
#include "chunk_groups.h"

#if LANES > 1

/// 0: some row is not dominant enough.
APART int reduce_dominant(const Block* blocks, const Cut* cut, const Group* g, __global REAL* out) {
    Vector a[LANES * V], b[LANES * V], c[LANES * V], f[LANES * V];
    DominantReducing to[V];
    for (word i = 0; i < g->rows; i += LANES) {
        const int count = (int)min((word)LANES, g->rows - i);
        load_rows(blocks, cut, g, i, count, a, b, c, f);
        if (i == 0) EACH(v) start_dominant_reducing(&to[v], a[v], b[v], c[v], f[v]);
        else EACH(v) gather_tile(&to[v]), forget(&to[v].row);
        for (int r = i == 0 ? 1 : 0; r < count; ++r)
#pragma unroll
            EACH(v) reduce_dominant_row(&to[v], a[r * V + v], b[r * V + v], c[r * V + v], f[r * V + v]);
    }
    EACH(v) if (!is_dominant(&to[v].row)) return 0;
    EACH(v) {
        Vector said[11];
        gather_tile(&to[v]);
        close_dominant(&to[v], said);
        for (int w = 0; w < 11; ++w) number_out(out, cut->chunks, g, v, w, said[w]);
    }
    return 1;
}

/// x[i] = v + w x[i+1], or x[i+1] + (v + w x[i+1]) where w is below zero: one of both numbers.
#define DOMINANT_ROW(i, w, v) kept[((i) * 2 + (w)) * V + (v)]

/// 0, and nothing stored: some row is not dominant enough, or what is known twice does not fit.
APART int finish_dominant(const Block* blocks, const Block* x, const Cut* cut, const Group* g, const Ends* e, REAL accept, int stream, __global Vector* kept, __global REAL* out) {
    Vector a[LANES * V], b[LANES * V], c[LANES * V], f[LANES * V];
    Dominant to[V];
    const word m = g->rows, pitch = solution_pitch(m);
    for (word i = 0; i < m; i += LANES) {
        const int count = (int)min((word)LANES, m - i);
        load_rows(blocks, cut, g, i, count, a, b, c, f);
        if (i == 0) EACH(v) start_dominant(&to[v], a[v], b[v], c[v], f[v]);
        else EACH(v) forget(&to[v]);
        for (int r = i == 0 ? 1 : 0; r < count; ++r)
#pragma unroll
            EACH(v) {
                const DominantPivot of = pivot_of(&to[v]);
                DOMINANT_ROW(i + r - 1, 0, v) = of.w, DOMINANT_ROW(i + r - 1, 1, v) = of.before * e[v].before + of.r;
                join_dominant(&to[v], &of, a[r * V + v], b[r * V + v], c[r * V + v], f[r * V + v]);
            }
    }
    EACH(v) if (!is_dominant(&to[v])) return 0;

    __global REAL* const solutions = (__global REAL*)(kept + 3 * V * m);
    Vector turned[LANES * V], size[V];
    Substituting on[V];
    EACH(v) on[v].near = e[v].last, on[v].lost = (Vector)0, size[v] = fmax(fabs(e[v].last), fmax(fabs(e[v].before), fabs(e[v].after)));
    for (word i = (m - 1) / LANES * LANES; i >= 0; i -= LANES) {
        int r = (int)min((word)LANES, m - i) - 1;
        if (i + r == m - 1) {
            EACH(v) turned[r * V + v] = e[v].last;
            --r;
        }
        for (; r >= 0; --r)
#pragma unroll
            EACH(v) {
                const Vector now = substitute_dominant(&on[v], DOMINANT_ROW(i + r, 0, v), DOMINANT_ROW(i + r, 1, v));
                size[v] = fmax(size[v], fabs(now)), turned[r * V + v] = now;
            }
        if (i == 0) EACH(v) turned[v] = e[v].first;
        put_solutions(turned, i, pitch, solutions);
    }

    // x[0] and the last equation are known twice.
    Vector off[V];
    EACH(v) {
        const Vector left = fabs(to[v].p * e[v].last - (to[v].r + to[v].before * e[v].before + to[v].next * e[v].after)), moved = fabs(on[v].near + on[v].lost - e[v].first) * to[v].most;
        off[v] = (left > moved ? left : moved) + (left + moved) * (Vector)0;
    }
    for (word j = 0; j < g->count; ++j) {
        const int v = (int)(j / LANES), l = (int)(j % LANES);
        const REAL by = ((const REAL*)&off[v])[l], of = ((const REAL*)&to[v].most)[l] * ((const REAL*)&size[v])[l];
        if (!(by <= of * MOST_OFF) || of > LARGEST) return 0;
    }
    for (word j = 0; j < g->count; ++j) {
        const int v = (int)(j / LANES), l = (int)(j % LANES);
        const Checked seen = {((const REAL*)&off[v])[l], ((const REAL*)&to[v].most)[l], ((const REAL*)&size[v])[l], (REAL)0, (REAL)0};
        const int good = is_good(&seen, accept);
        if (good) store_chunk(x, j, m, stream, solutions + j * pitch + LANES);
        say_checked(&seen, good, cut->chunks, g->first + j, out);
    }
    return 1;
}

#endif
