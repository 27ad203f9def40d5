// SPDX-License-Identifier: BSD-3-Clause
// Batches on a GPU, systems side by side: a group has W of them on chip, P items each, R rows per item in registers; without pivoting, growth watched.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1 ≤ P R, for every system
//
// Arrays: job.h, any strides (fast: systems one element apart); x may be rhs.
// Who does what: item part W + column has rows part R … of its column, so that neighbouring items read neighbouring words; nothing is turned. It eliminates them (F. A. Wang 1981:
//   lanes.h), items of a column are joined in local memory, x leaves as the rows came.
// Overwritten: x of the systems whose test held.
// Words per row: 4 read, 1 written. Nothing of the rows is kept beside A, C, D: so many systems of 512 rows fit on chip as memory's lines need.
// Numerics: nothing is pivoted. Tested on the way: that no multiplier, c' of a row, its share of the unknowns beside the item, of items to each other, is beyond 2.
//   So each elimination adds a few roundoffs of max|A| max|x| to a residual. Systems where it is not so, where x is not finite, or where a pivot is infinite, are marked for pivoted.cl, and nothing stored.
#include "lanes.h"

#define ITEMS (W * P)

// Rows that are loaded at a time. Where one group has all of a multiprocessor and registers allow it, of FP32, while those before them are eliminated: half as many then.
#define AHEAD (REAL_BYTES == 4 && P > 8)
#define ROWS_AT_ONCE (AHEAD ? 4 : 8)

/// Few items of a column, of FP32, are joined in order by one of them; up to 8, of FP64, two by two; more by fours, and the fours in order: that takes 6 barriers where two by two takes 20.
#define IN_ORDER (REAL_BYTES == 4 && P <= 8)
#define BY_FOURS (P > 8)

/// Elements from row to row. ALIKE is 1 where that is the same for all that are arrays, and there is nothing else, and a column is shorter than 2^31 elements.
#define STEP(o) (ALIKE ? stride : step[o])

/// Rows first + from … of the four operands. Plain: all there is is to be read, but lower of row 0 and upper of the last row may lie outside of the arrays.
#define LOAD_ROWS(from_row, to) \
    { \
        if (plain) { \
            UNROLL for (int i = 0; i < ROWS_AT_ONCE; ++i) { \
                to[0][i] = from[0][(from_row) + i == 0 && part == 0 ? STEP(0) : ((from_row) + i) * STEP(0)]; \
                to[1][i] = from[1][((from_row) + i) * STEP(1)]; \
                to[2][i] = from[2][(from_row) + i == R - 1 && part == P - 1 ? (R - 2) * STEP(2) : ((from_row) + i) * STEP(2)]; \
                to[3][i] = from[3][((from_row) + i) * STEP(3)]; \
            } \
            if ((from_row) == 0 && part == 0) to[0][0] = (REAL)0; \
            if ((from_row) + ROWS_AT_ONCE == R && part == P - 1) to[2][ROWS_AT_ONCE - 1] = (REAL)0; \
        } else { \
            UNROLL for (int i = 0; i < ROWS_AT_ONCE; ++i) \
                UNROLL for (int o = 0; o < 4; ++o) { \
                    const int row = first + (from_row) + i, there = mine && row < n && (o != 0 || row > 0) && (o != 2 || row < n - 1); \
                    to[o][i] = (REAL)(o == 1); \
                    if (there) to[o][i] = sources[o]->is_view ? from[o][((from_row) + i) * STEP(o)] : number_of_bits(sources[o]->bits); \
                } \
        } \
    }

/// Items of the column `by` above and below; their own where there is none.
INLINE Relation item_above(const __local REAL* box, int item, int by) {
    const int at = item >= by * W ? item - by * W : item;
    const Relation r = {box[at], box[ITEMS + at], box[2 * ITEMS + at]};
    return r;
}
INLINE Relation item_below(const __local REAL* box, int item, int by) {
    const int at = item + by * W < ITEMS ? item + by * W : item;
    const Relation r = {box[at], box[ITEMS + at], box[2 * ITEMS + at]};
    return r;
}
#define PUT(row) box[item] = (row).a, box[ITEMS + item] = (row).c, box[2 * ITEMS + item] = (row).d

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void beside(SOLVER_ARGUMENTS, MAY_BE_ALONE) {
    UNPACK_ARGUMENTS
    TELL_ALONE()
    __local REAL box[3 * ITEMS];
    __local int bad[W];
    const int lane_level = (int)job.levels - 1, item = (int)get_local_id(0), column = item % W, part = item / W, n = (int)job.rows;
    const word lanes = job.extent[lane_level];
    word turn = get_group_id(0), k0 = 0, index[4] = {0, 0, 0, 0};
    if (lane_level > 0) {  // long divisions take as long as memory does
        const word groups = (lanes + W - 1) / W;
        k0 = turn / groups * lanes, turn %= groups;
        indices_of(&job, k0, index);
    }
    k0 += turn * W;
    const int mine = turn * W + column < lanes, first = part * R;
    const Source* const sources[4] = {&job.lower, &job.diag, &job.upper, &job.rhs};
    __global const REAL* const buffers[4] = {lower, diag, upper, rhs};
    __global const REAL* from[4];
    word step[4];
    int views = 1;
    const int stride = (int)job.rhs.row_stride;
    UNROLL for (int o = 0; o < 4; ++o) {
        const Source* const s = sources[o];
        from[o] = buffers[o] + start_of(s, index) + (turn * W + column) * s->level_stride[lane_level] + first * (word)(ALIKE ? stride : s->row_stride);
        step[o] = s->row_stride, views &= ALIKE || s->is_view != 0;
    }
    const int plain = views && n == P * R && turn * W + W <= lanes;
    if (item < W) bad[item] = 0;

    REAL A[R], C[R], D[R];
    Size most = 0, largest = 0;  // sizes: of multipliers, of x
    int good = 1;
    REAL v[1 + AHEAD][4][ROWS_AT_ONCE];
    if (AHEAD) LOAD_ROWS(0, v[0])
    UNROLL for (int at = 0; at < R; at += ROWS_AT_ONCE) {
        const int now = AHEAD ? at / ROWS_AT_ONCE % 2 : 0;
        if (!AHEAD) LOAD_ROWS(at, v[0])
        else if (at + ROWS_AT_ONCE < R) LOAD_ROWS(at + ROWS_AT_ONCE, v[AHEAD - now])
        UNROLL for (int j = 0; j < ROWS_AT_ONCE; ++j) {
            const int i = at + j;
            const REAL a = v[now][0][j], c = v[now][2][j], k = reciprocal(i ? fma(-a, C[i ? i - 1 : 0], v[now][1][j]) : v[now][1][j]);
            good &= !IS_ZERO(k);
            C[i] = c * k;
            D[i] = (i ? fma(-a, D[i ? i - 1 : 0], v[now][3][j]) : v[now][3][j]) * k;
            A[i] = i ? -(a * k) * A[i ? i - 1 : 0] : a * k;
            RAISE(most, C[i]);
        }
    }
    RAISE(most, A[R - 1]);
    UNROLL for (int i = R - 2; i >= 0; --i) {
        if (i < R - 2) {
            D[i] = fma(-C[i], D[i + 1], D[i]);
            A[i] = fma(-C[i], A[i + 1], A[i]);
            C[i] = -C[i] * C[i + 1];
        }
        RAISE(most, A[i]);
        RAISE(most, C[i]);
    }
    good &= SIZE_AT_MOST(most) <= (REAL)2;
    // A value that is not finite lasts up to the first row or down to the last; sizes of FP64 have seen those of A and C.
    good &= (REAL_BYTES == 8 ? D[0] + D[R - 1] : A[0] + C[0] + D[0] + A[R - 1] + C[R - 1] + D[R - 1]) * (REAL)0 == (REAL)0;

    // Last rows of the items of a column, closed with the next one's first.
    Relation row = {A[R - 1], C[R - 1], D[R - 1]}, next = {(REAL)0, (REAL)0, (REAL)0};
    if (!good) row.a = row.c = row.d = (REAL)0;
    if (P > 1) {
        Relation top = {A[0], C[0], D[0]};
        if (!good) top.a = top.c = top.d = (REAL)0;
        PUT(top);
        barrier(CLK_LOCAL_MEM_FENCE);
        next = item_below(box, item, 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (part < P - 1) {
            const REAL k = finite_or_zero(reciprocal(fma(-row.c, next.a, (REAL)1)));
            row.a *= k, row.d = fma(-row.c, next.d, row.d) * k, row.c *= -next.c * k;
            RAISE(most, row.a);
            RAISE(most, row.c);
            good &= k != (REAL)0;
        }
#if IN_ORDER
        // In less time than barriers take.
        PUT(row);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < W) {
            REAL c_of[P], d_of[P];
            UNROLL for (int p = 0; p < P; ++p) {
                const REAL a = box[p * W + item], k = finite_or_zero(reciprocal(p ? fma(-a, c_of[p ? p - 1 : 0], (REAL)1) : (REAL)1));
                c_of[p] = box[ITEMS + p * W + item] * k;
                d_of[p] = (p ? fma(-a, d_of[p ? p - 1 : 0], box[2 * ITEMS + p * W + item]) : box[2 * ITEMS + item]) * k;
                RAISE(most, c_of[p]);
                good &= k != (REAL)0;
            }
            UNROLL for (int p = P - 1; p >= 0; --p) {
                if (p < P - 1) d_of[p] = fma(-c_of[p], d_of[p + 1 < P ? p + 1 : p], d_of[p]);
                box[p * W + item] = d_of[p];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const REAL x_last = P > 1 ? box[item] : row.d, before = P > 1 && part ? box[item - (part ? W : 0)] : (REAL)0;
#elif BY_FOURS
        PUT(row);
        barrier(CLK_LOCAL_MEM_FENCE);
        // The last row of each four is left, in what is before the four and after it.
        const int fours = P / 4, of_four = 4 * part * W + column, last_of_four = of_four + 3 * W;
        Relation left = {(REAL)0, (REAL)0, (REAL)0};
        if (part < fours) {
            REAL a_of[3], c_of[3], d_of[3];
            UNROLL for (int i = 0; i < 4; ++i) {
                const int at = of_four + i * W;
                const REAL a = box[at], k = i ? finite_or_zero(reciprocal(fma(-a, c_of[i ? i - 1 : 0], (REAL)1))) : (REAL)1, c = box[ITEMS + at] * k;
                const REAL d = (i ? fma(-a, d_of[i ? i - 1 : 0], box[2 * ITEMS + at]) : box[2 * ITEMS + at]) * k, before = i ? -(a * k) * a_of[i ? i - 1 : 0] : a;
                RAISE(most, c);
                good &= k != (REAL)0;
                if (i < 3) a_of[i < 3 ? i : 0] = before, c_of[i < 3 ? i : 0] = c, d_of[i < 3 ? i : 0] = d;
                else left.a = before, left.c = c, left.d = d;
            }
            RAISE(most, left.a);
            UNROLL for (int i = 2; i >= 0; --i) {
                if (i < 2) d_of[i] = fma(-c_of[i], d_of[i + 1], d_of[i]), a_of[i] = fma(-c_of[i], a_of[i + 1], a_of[i]), c_of[i] *= -c_of[i + 1];
                RAISE(most, a_of[i]);
                RAISE(most, c_of[i]);
                const int at = of_four + i * W;
                box[at] = a_of[i], box[ITEMS + at] = c_of[i], box[2 * ITEMS + at] = d_of[i];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (part < fours) {
            if (part < fours - 1) {
                const int at = of_four + 4 * W;
                const REAL k = finite_or_zero(reciprocal(fma(-left.c, box[at], (REAL)1)));
                left.a *= k, left.d = fma(-left.c, box[2 * ITEMS + at], left.d) * k, left.c *= -box[ITEMS + at] * k;
                RAISE(most, left.a);
                RAISE(most, left.c);
                good &= k != (REAL)0;
            }
            box[last_of_four] = left.a, box[ITEMS + last_of_four] = left.c, box[2 * ITEMS + last_of_four] = left.d;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < W) {
            REAL c = (REAL)0, d = (REAL)0;
            UNROLL for (int p = 0; p < P / 4; ++p) {
                const int at = (4 * p + 3) * W + item;
                const REAL a = box[at], k = p ? finite_or_zero(reciprocal(fma(-a, c, (REAL)1))) : (REAL)1;
                d = (p ? fma(-a, d, box[2 * ITEMS + at]) : box[2 * ITEMS + at]) * k, c = box[ITEMS + at] * k;
                box[ITEMS + at] = c, box[2 * ITEMS + at] = d;
                RAISE(most, c);
                good &= k != (REAL)0;
            }
            UNROLL for (int p = P / 4 - 2; p >= 0; --p) {
                const int at = (4 * p + 3) * W + item;
                d = fma(-box[ITEMS + at], d, box[2 * ITEMS + at]);
                box[2 * ITEMS + at] = d;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    REAL x_last = row.d, before = (REAL)0;
    if (P > 1) {
        const int four = part / 4, in_four = part % 4;
        const REAL beyond = four ? box[2 * ITEMS + (four ? 4 * four - 1 : 0) * W + column] : (REAL)0, end = box[2 * ITEMS + (4 * four + 3) * W + column];
        x_last = in_four == 3 ? end : fma(-box[ITEMS + item], end, fma(-box[item], beyond, box[2 * ITEMS + item]));
        const int up = item - (in_four ? W : 0);
        before = in_four ? fma(-box[ITEMS + up], end, fma(-box[up], beyond, box[2 * ITEMS + up])) : beyond;
    }
#else
        UNROLL for (int s = 1; s < P; s *= 2) {
            PUT(row);
            barrier(CLK_LOCAL_MEM_FENCE);
            const Relation above = item_above(box, item, s), below = item_below(box, item, s);
            barrier(CLK_LOCAL_MEM_FENCE);
            if ((part & (2 * s - 1)) == 2 * s - 1) {
                const REAL bc = part + s < P ? row.c : (REAL)0, k = finite_or_zero(reciprocal(fma(-bc, below.a, fma(-row.a, above.c, (REAL)1))));
                row.d = fma(-bc, below.d, fma(-row.a, above.d, row.d)) * k;
                row.a = -(row.a * k) * above.a, row.c = -(bc * k) * below.c;
                RAISE(most, row.a);
                RAISE(most, row.c);
                good &= k != (REAL)0;
            }
        }
    }
    REAL x_last = part == P - 1 ? row.d : (REAL)0, before = (REAL)0;
    UNROLL for (int s = P / 2; s > 0; s /= 2) {
        box[item] = x_last;
        barrier(CLK_LOCAL_MEM_FENCE);
        const REAL over = part >= s ? box[item - (part >= s ? s * W : 0)] : (REAL)0, under = box[item + s * W < ITEMS ? item + s * W : item];
        barrier(CLK_LOCAL_MEM_FENCE);
        if ((part & (2 * s - 1)) == s - 1) x_last = fma(-row.c, under, fma(-row.a, over, row.d));
    }
    if (P > 1) {
        box[item] = x_last;
        barrier(CLK_LOCAL_MEM_FENCE);
        before = part ? box[item - (part ? W : 0)] : (REAL)0;
    }
#endif
    D[R - 1] = x_last;
    RAISE(largest, x_last);
    // Of a NaN that is met here the other item's x is the cause, or numbers near the largest, which are not accepted.

    UNROLL for (int i = 0; i < R - 1; ++i) {
        D[i] = fma(-C[i], x_last, fma(-A[i], before, D[i]));
        RAISE(largest, D[i]);
    }
    if (mine && !(good && SIZE_AT_MOST(most) <= (REAL)2 && (REAL_BYTES == 8 || x_last * (REAL)0 == (REAL)0) && SIZE_AT_MOST(largest) <= (REAL)LARGEST / 8)) bad[column] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);

    if (mine && !bad[column]) {
        __global REAL* const to = x + start_of(&job.x, index) + (turn * W + column) * job.x.level_stride[lane_level] + first * job.x.row_stride;
        const word x_step = ALIKE ? stride : job.x.row_stride;
        if (n == P * R) {
            UNROLL for (int i = 0; i < R; ++i) to[i * x_step] = D[i];
        } else {
            UNROLL for (int i = 0; i < R; ++i) if (first + i < n) to[i * x_step] = D[i];
        }
    }
    if (item < W && turn * W + item < lanes) {
        judge_system(trusted, bad[item], marks + k0 + item, found);
        if (status) status[number_at(&job, index) + (turn * W + item) * job.number_stride[lane_level]] = GOOD;
    }
}
