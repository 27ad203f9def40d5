// SPDX-License-Identifier: BSD-3-Clause
// Systems side by side on a vector unit: row i of a block of LINES lines of systems is eliminated together with the substitution of row n-1-i of the block before, so that
// memory is read all the time. That one gives up its c' and d' where this one stores its own: slots are gone through forwards and backwards by turns.
//
//   kept + slot 2 LINES: c' of the lines, then d'
#define LINES 4

/// Pointers to the lines of row 0; a number has a row of its own and stride 0.
typedef struct {
    __global const REAL* p[4];
    word step[4];
    __global REAL* x;
    word x_step;
} Lines;

/// Of the operands of a block; numbers lie at `numbers`, 4 LINES vectors.
INLINE Lines lines_of(const Block* of, __global Vector* numbers) {
    Lines l;
    for (int o = 0; o < 4; ++o) {
        l.p[o] = of[o].data, l.step[o] = of[o].rows;
        if (of[o].is_view) continue;
        for (int v = 0; v < LINES; ++v) numbers[o * LINES + v] = (Vector)of[o].value;
        l.p[o] = (__global const REAL*)(numbers + o * LINES), l.step[o] = 0;
    }
    l.x = 0, l.x_step = 0;
    return l;
}

/// Row `row` of this block, or as far behind its last one in the next.
INLINE void ask_row(const Lines* now, const Lines* next, word n, word row) {
    const Lines* const from = row < n ? now : next;
    if (!from) return;
    if (row >= n) row -= n;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        __global const REAL* const asked = from->p[k] + row * from->step[k];
#pragma unroll
        for (int v = 0; v < LINES; ++v) ASK(asked + v * LANES);
    }
}

/// `now` is eliminated where Now, `done` substituted where Done; bad: systems of `done` that are not stored; null: none. good: of `now`. sound: of `done`, what is finite.
INLINE void sweep_lines(const int Now, const int Done, const Lines* now, const Lines* done, const Lines* next, const uchar* bad, int stream, word n, int backwards, word ahead,
                        __global Vector* kept, Mask* good, Mask* sound) {
    Vector above[LINES], value[LINES], x[LINES];
#pragma unroll
    for (int v = 0; v < LINES; ++v) above[v] = value[v] = x[v] = (Vector)0, good[v] = (Mask)(-1);
    __global Vector* slot = kept + (backwards ? n - 1 : 0) * 2 * LINES;
    const word slots = backwards ? -2 * LINES : 2 * LINES;
    __global const REAL *pa, *pb, *pc, *pf;
    word sa, sb, sc, sf;
    if (Now) pa = now->p[0], pb = now->p[1], pc = now->p[2], pf = now->p[3], sa = now->step[0], sb = now->step[1], sc = now->step[2], sf = now->step[3];
    __global REAL* to = Done ? done->x + (n - 1) * done->x_step : 0;
    const word to_step = Done ? done->x_step : 0;
    for (word i = 0; i < n; ++i) {
        if (Done) {
#pragma unroll
            for (int v = 0; v < LINES; ++v) {
                x[v] = slot[LINES + v] - slot[v] * x[v];
                if (!bad && stream) STREAM(x[v], to + v * LANES);
                else if (!bad) STORE(x[v], to + v * LANES);
            }
            if (bad)
                for (int j = 0; j < LINES * LANES; ++j)
                    if (!bad[j]) to[j] = ((const REAL*)x)[j];
            to -= to_step;
        }
        if (Now) {
            ask_row(now, next, n, i + ahead);
            ask_row(now, next, n, i + ahead * 3 / 8);
#pragma unroll
            for (int v = 0; v < LINES; ++v) {
                const Vector a = i > 0 ? LOAD(pa + v * LANES) : (Vector)0, b = LOAD(pb + v * LANES), c = i + 1 < n ? LOAD(pc + v * LANES) : (Vector)0, f = LOAD(pf + v * LANES);
                const Vector update = a * above[v], inverse = (Vector)1 / (b - update);
                const Vector margin = (REAL)4 * (fabs(a) + fabs(b)) - fabs(update);
                good[v] &= (margin >= (Vector)0) & (margin <= (Vector)LARGEST);
                value[v] = (f - a * value[v]) * inverse;
                above[v] = c * inverse;
                slot[v] = above[v];
                slot[LINES + v] = value[v];
            }
            pa += sa, pb += sb, pc += sc, pf += sf;
        }
        slot += slots;
    }
#pragma unroll
    for (int v = 0; v < LINES; ++v) good[v] &= value[v] * (REAL)0 == (Vector)0, sound[v] = x[v] * (REAL)0 == (Vector)0;
}

APART void sweep_both(const Lines* now, const Lines* done, const Lines* next, const uchar* bad, int stream, word n, int backwards, word ahead, __global Vector* kept, Mask* good,
                      Mask* sound) {
    sweep_lines(1, 1, now, done, next, bad, stream, n, backwards, ahead, kept, good, sound);
}
APART void sweep_now(const Lines* now, const Lines* next, word n, int backwards, word ahead, __global Vector* kept, Mask* good) {
    Mask unused[LINES];
    sweep_lines(1, 0, now, 0, next, 0, 0, n, backwards, ahead, kept, good, unused);
}
APART void sweep_done(const Lines* done, const uchar* bad, int stream, word n, int backwards, __global Vector* kept, Mask* sound) {
    Mask unused[LINES];
    sweep_lines(0, 1, 0, done, 0, bad, stream, n, backwards, 0, kept, unused, sound);
}
