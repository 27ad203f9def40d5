// SPDX-License-Identifier: BSD-3-Clause
// Batches on a GPU, systems side by side: a group has W of them on chip, P items each, R rows per item in registers; without pivoting, growth watched.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1 ≤ P R, for every system
//
// Arrays: job.h, any strides (fast: systems one element apart); x may be rhs.
// Who does what: item part W + column has rows part R … of its column, so that neighbouring items read neighbouring words; nothing is turned. It eliminates them (F. A. Wang 1981:
//   lanes.h), items of a column are joined by cyclic reduction in local memory, x leaves as the rows came.
// Overwritten: x of the systems whose test held.
// Words per row: 4 read, 1 written. Nothing of the rows is kept beside A, C, D: so many systems of 512 rows fit on chip as memory's lines need.
// Numerics: nothing is pivoted. Tested on the way: that no multiplier, c' of a row, its share of the unknowns beside the item, of items to each other, is beyond 2.
//   So each elimination adds a few roundoffs of max|A| max|x| to a residual. Systems where it is not so, or where x is not finite, are marked for pivoted.cl, and nothing stored.
#include "lanes.h"

#define ITEMS (W * P)
#define ROWS_AT_ONCE 8

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
__kernel void beside(SOLVER_ARGUMENTS) {
    UNPACK_ARGUMENTS
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
    UNROLL for (int o = 0; o < 4; ++o) {
        const Source* const s = sources[o];
        from[o] = buffers[o] + start_of(s, index) + (turn * W + column) * s->level_stride[lane_level] + first * s->row_stride;
        step[o] = s->row_stride, views &= s->is_view != 0;
    }
    // All there is is to be read: but lower of row 0 and upper of the last row may lie outside of the arrays.
    const int plain = views && n == P * R && turn * W + W <= lanes;
    if (item < W) bad[item] = 0;

    REAL A[R], C[R], D[R];
    int most = 0, largest = 0;  // sizes: of multipliers, of x
    UNROLL for (int at = 0; at < R; at += ROWS_AT_ONCE) {
        REAL v[4][ROWS_AT_ONCE];
        if (plain) {
            UNROLL for (int i = 0; i < ROWS_AT_ONCE; ++i) {
                v[0][i] = from[0][at + i == 0 && part == 0 ? step[0] : (at + i) * step[0]];
                v[1][i] = from[1][(at + i) * step[1]];
                v[2][i] = from[2][at + i == R - 1 && part == P - 1 ? (R - 2) * step[2] : (at + i) * step[2]];
                v[3][i] = from[3][(at + i) * step[3]];
            }
            if (at == 0 && part == 0) v[0][0] = (REAL)0;
            if (at + ROWS_AT_ONCE == R && part == P - 1) v[2][ROWS_AT_ONCE - 1] = (REAL)0;
        } else {
            UNROLL for (int i = 0; i < ROWS_AT_ONCE; ++i)
                UNROLL for (int o = 0; o < 4; ++o) {
                    const int row = first + at + i, there = mine && row < n && (o != 0 || row > 0) && (o != 2 || row < n - 1);
                    v[o][i] = (REAL)(o == 1);
                    if (there) v[o][i] = sources[o]->is_view ? from[o][(at + i) * step[o]] : number_of_bits(sources[o]->bits);
                }
        }
        UNROLL for (int j = 0; j < ROWS_AT_ONCE; ++j) {
            const int i = at + j;
            const REAL a = v[0][j], c = v[2][j], k = reciprocal(i ? fma(-a, C[i ? i - 1 : 0], v[1][j]) : v[1][j]);
            C[i] = c * k;
            D[i] = (i ? fma(-a, D[i ? i - 1 : 0], v[3][j]) : v[3][j]) * k;
            A[i] = i ? -(a * k) * A[i ? i - 1 : 0] : a * k;
            most = max(most, size_of(C[i]));
        }
    }
    most = max(most, size_of(A[R - 1]));
    UNROLL for (int i = R - 2; i >= 0; --i) {
        if (i < R - 2) {
            D[i] = fma(-C[i], D[i + 1], D[i]);
            A[i] = fma(-C[i], A[i + 1], A[i]);
            C[i] = -C[i] * C[i + 1];
        }
        most = max(most, max(size_of(A[i]), size_of(C[i])));
    }
    int good = at_most(most) <= (REAL)2;
    good &= (D[0] + D[R - 1]) * (REAL)0 == (REAL)0;

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
            most = max(most, max(size_of(row.a), size_of(row.c)));
            good &= k != (REAL)0;
        }
        UNROLL for (int s = 1; s < P; s *= 2) {
            PUT(row);
            barrier(CLK_LOCAL_MEM_FENCE);
            const Relation above = item_above(box, item, s), below = item_below(box, item, s);
            barrier(CLK_LOCAL_MEM_FENCE);
            if ((part & (2 * s - 1)) == 2 * s - 1) {
                const REAL bc = part + s < P ? row.c : (REAL)0, k = finite_or_zero(reciprocal(fma(-bc, below.a, fma(-row.a, above.c, (REAL)1))));
                row.d = fma(-bc, below.d, fma(-row.a, above.d, row.d)) * k;
                row.a = -(row.a * k) * above.a, row.c = -(bc * k) * below.c;
                most = max(most, max(size_of(row.a), size_of(row.c)));
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
    D[R - 1] = x_last;
    largest = size_of(x_last);
    UNROLL for (int i = 0; i < R - 1; ++i) {
        D[i] = fma(-C[i], x_last, fma(-A[i], before, D[i]));
        largest = max(largest, size_of(D[i]));
    }
    if (mine && !(good && at_most(most) <= (REAL)2 && at_most(largest) <= (REAL)LARGEST)) bad[column] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);

    if (mine && !bad[column]) {
        __global REAL* const to = x + start_of(&job.x, index) + (turn * W + column) * job.x.level_stride[lane_level] + first * job.x.row_stride;
        const word x_step = job.x.row_stride;
        if (n == P * R) {
            UNROLL for (int i = 0; i < R; ++i) to[i * x_step] = D[i];
        } else {
            UNROLL for (int i = 0; i < R; ++i) if (first + i < n) to[i * x_step] = D[i];
        }
    }
    if (item < W && turn * W + item < lanes) {
        marks[k0 + item] = bad[item] ? TO_PIVOT : SOLVED;
        if (bad[item]) atomic_inc(&found->marked);
        if (status) status[number_at(&job, index) + (turn * W + item) * job.number_stride[lane_level]] = GOOD;
    }
}
