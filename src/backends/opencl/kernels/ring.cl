// SPDX-License-Identifier: BSD-3-Clause
// Batches on NVIDIA's GPUs, FP32, systems side by side: as beside.cl, but rows wait for their turn in local memory, where copies bring them without registers, and groups stay.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1 ≤ HALVES P R, for every system
//
// Arrays: job.h with LEVELS 1 or 2, systems of the last one an element apart, one step from row to row for all, rows that begin at multiples of 16 bytes. x may be rhs where HALVES is 1.
// Who does what: a warp has R rows of 32 columns, a lane a column; P warps are a group, and HALVES groups that run side by side share a column: the upper one its first rows, the lower one
//   the others. A group takes one tile after the other, every `at_once`-th. A lane asks for 16 bytes of one operand, so a warp for a row of all four at once, DEPTH rows ahead, those of the next
//   tile too. Warps are joined as items are in beside.cl, by one of them, the lower group's from below. Then either group tells the other how its row at the seam depends on the other's, by
//   two words in global memory that say of which turn they are: nobody waits for more than that.
// Overwritten: x of the systems whose test held; `mail`.
// Words per row: 4 read, 1 written.
// Numerics: those of beside.cl; a group whose partner does not answer (it would have to be kept from running) marks its columns.
#include "lanes.h"

#define W 32  // columns of a group, and a warp's lanes
#define ITEMS (W * P)
#define ROW (4 * W)  // numbers of a row in the ring

INLINE void copy_quad(__local REAL* to, __global const REAL* from, uint bytes) {
    asm volatile("{ .reg .u64 g; cvta.to.global.u64 g, %1; cp.async.cg.shared.global [%0], [g], 16, %2; }" ::"r"((uint)(size_t)to), "l"(from), "r"(bytes) : "memory");
}
#define ASKED_TOGETHER() asm volatile("cp.async.commit_group;" ::: "memory")
// All but the last so many that were asked for together are there, of all lanes; and all lanes have read what they were to read before.
#define AWAIT_ALL_BUT_(n) asm volatile("cp.async.wait_group " #n "; bar.warp.sync -1;" ::: "memory")
#define AWAIT_ALL_BUT(n) AWAIT_ALL_BUT_(n)

/// What one half says of its row at the seam: x = d - c (the other half's). Two words with the turn beside, each of them whole whoever reads it.
INLINE void send_letter(__global ulong* to, REAL c, REAL d, uint turn) {
    const ulong tag = (ulong)turn << 32, first = tag | as_uint(c), second = tag | as_uint(d);
    asm volatile("{ .reg .u64 g; cvta.to.global.u64 g, %0; st.relaxed.gpu.global.v2.b64 [g], {%1, %2}; }" ::"l"(to), "l"(first), "l"(second) : "memory");
}
/// False where it is not there yet.
INLINE int take_letter(__global const ulong* at, uint turn, REAL* c, REAL* d) {
    ulong first, second;
    asm volatile("{ .reg .u64 g; cvta.to.global.u64 g, %2; ld.relaxed.gpu.global.v2.b64 {%0, %1}, [g]; }" : "=l"(first), "=l"(second) : "l"(at) : "memory");
    *c = as_float((uint)first), *d = as_float((uint)second);
    return (uint)(first >> 32) == turn && (uint)(second >> 32) == turn;
}

#define PATIENCE (1 << 19)  // looks, each as long as memory takes: a third of a second

#define PUT(row) box[item] = (row).a, box[ITEMS + item] = (row).c, box[2 * ITEMS + item] = (row).d

/// Row `next` of the tile, or of the next tile from R on.
#define ASK(next) \
    { \
        copy_quad(mine + put * ROW, from, (uint)(row0 + (next) % R - lowest) < rows_there ? bytes : 0); \
        from += stride, put = put + 1 == DEPTH ? 0 : put + 1; \
        if ((next) == R - 1) { \
            from += TO_NEXT_TILE - R * stride; \
            bytes = BYTES_OF(tile + at_once); \
        } \
    }
/// Of a tile, the index of the first of two levels, and its first column in the last one.
#if LEVELS == 2
#define OUTER(tile) ((tile) / per_outer)
#define FIRST_COLUMN(tile) ((tile) % per_outer * W)
#define TO_NEXT_TILE ((OUTER(tile + at_once) - OUTER(tile)) * outer_stride + FIRST_COLUMN(tile + at_once) - FIRST_COLUMN(tile))
#else
#define OUTER(tile) 0
#define FIRST_COLUMN(tile) ((tile) * W)
#define TO_NEXT_TILE ((word)at_once * W)
#endif
/// Of 16 bytes of a row of a tile that lie in the arrays.
#define BYTES_OF(tile) ((tile) < tiles ? (uint)clamp(REAL_BYTES * (lanes - FIRST_COLUMN(tile) - QUAD * (lane % 8)), 0, 16) : 0)

/// mail: of every pair of groups [turn % 2][half][column] letters. first_turn: larger than all that are in there.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void ring(SOLVER_ARGUMENTS, MAY_BE_ALONE, __global ulong* mail, uint first_turn) {
    UNPACK_ARGUMENTS
    TELL_ALONE()
    __local REAL box[3 * ITEMS];
    __local REAL rows[P * DEPTH * ROW] __attribute__((aligned(128)));
    __local REAL seam[W];
    __local int bad[W], patience;
    const int item = (int)get_local_id(0), column = item % W, part = item / W, lane = column, n = (int)job.rows;
    const int lower_half = HALVES == 2 && get_group_id(0) % 2, pair = (int)get_group_id(0) / HALVES, at_once = (int)get_num_groups(0) / HALVES;
    const int lanes = (int)job.extent[LEVELS - 1], per_outer = (lanes + W - 1) / W, tiles = LEVELS == 2 ? (int)job.extent[0] * per_outer : per_outer;
    int row0 = (HALVES == 2 ? (n + 1) / 2 + (lower_half - 1) * P * R : 0) + part * R;
    word stride = (int)job.rhs.row_stride;
    int tile = pair;
    if (item == 0) patience = PATIENCE;

    const int operand = lane / 8, lowest = operand == 0;
    const uint rows_there = (uint)(n - (operand == 0 || operand == 2));
    uint bytes = BYTES_OF(tile);
#define OF_OPERAND(a, b, c, d) (operand == 0 ? (a) : operand == 1 ? (b) : operand == 2 ? (c) : (d))
    const word outer_stride = LEVELS == 2 ? OF_OPERAND(job.lower.level_stride[0], job.diag.level_stride[0], job.upper.level_stride[0], job.rhs.level_stride[0]) : 0;
    __global const REAL* from = OF_OPERAND(lower + job.lower.offset, diag + job.diag.offset, upper + job.upper.offset, rhs + job.rhs.offset) + OUTER(tile) * outer_stride + row0 * stride +
                                FIRST_COLUMN(tile) + QUAD * (lane % 8);
    __local REAL *const mine = rows + part * DEPTH * ROW + QUAD * lane, *const of_column = rows + part * DEPTH * ROW + column;
    int put = 0, take = 0;
    UNROLL for (int i = 0; i < DEPTH; i += STEP) {
        UNROLL for (int j = 0; j < STEP; ++j) ASK(i + j)
        ASKED_TOGETHER();
    }
    for (uint turn = first_turn; tile < tiles; ++turn, tile += at_once) {
        asm volatile("" : "+r"(row0), "+l"(stride));  // else what is made of them for every row is kept in registers from tile to tile
        REAL A[R], C[R], D[R];
        Size most = 0, largest = 0;  // sizes: of multipliers, of x
        int good = 1;
        UNROLL for (int i = 0; i < R; i += STEP) {
            AWAIT_ALL_BUT(BEHIND);
            if (i > 0 || turn != first_turn) {  // in place of the rows before these
                UNROLL for (int j = 0; j < STEP; ++j) ASK(i + j + DEPTH - STEP)
                ASKED_TOGETHER();
            }
            REAL v[STEP][4];
            UNROLL for (int j = 0; j < STEP; ++j) {
                UNROLL for (int o = 0; o < 4; ++o) v[j][o] = of_column[take * ROW + o * W];
                take = take + 1 == DEPTH ? 0 : take + 1;
            }
            UNROLL for (int j = 0; j < STEP; ++j) {
                const int r = i + j;
                const REAL a = v[j][0], b = (uint)(row0 + r) < (uint)n ? v[j][1] : (REAL)1, c = v[j][2], k = reciprocal(r ? fma(-a, C[r ? r - 1 : 0], b) : b);
                good &= !IS_ZERO(k);
                C[r] = c * k;
                D[r] = (r ? fma(-a, D[r ? r - 1 : 0], v[j][3]) : v[j][3]) * k;
                A[r] = r ? -(a * k) * A[r ? r - 1 : 0] : a * k;
                RAISE(most, C[r]);
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
        good &= SIZE_AT_MOST(most) <= (REAL)2 && (A[0] + C[0] + D[0] + A[R - 1] + C[R - 1] + D[R - 1]) * (REAL)0 == (REAL)0;

        // Last rows of the warps, closed with the next one's first.
        Relation row = {A[R - 1], C[R - 1], D[R - 1]}, top = {A[0], C[0], D[0]};
        if (!good) row.a = row.c = row.d = top.a = top.c = top.d = (REAL)0;
        PUT(top);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < W) bad[item] = 0;
        const int under = part < P - 1 ? item + W : item;
        const Relation next = {box[under], box[ITEMS + under], box[2 * ITEMS + under]};
        barrier(CLK_LOCAL_MEM_FENCE);
        if (part < P - 1) {
            const REAL k = finite_or_zero(reciprocal(fma(-row.c, next.a, (REAL)1)));
            row.a *= k, row.d = fma(-row.c, next.d, row.d) * k, row.c *= -next.c * k;
            RAISE(most, row.a);
            RAISE(most, row.c);
            good &= k != (REAL)0;
        }
        PUT(row);
        barrier(CLK_LOCAL_MEM_FENCE);
        // Towards the seam, and back; upwards a and c are exchanged.
        const int a_at = lower_half ? ITEMS : 0, c_at = lower_half ? 0 : ITEMS;
        if (item < W) {
            REAL c = 0, d = 0;
            const int start = lower_half ? (P - 1) * W + item : item, on = lower_half ? -W : W;
            UNROLL for (int p = 0; p < P; ++p) {
                const int at = start + p * on;
                const REAL a = box[a_at + at], k = p ? finite_or_zero(reciprocal(fma(-a, c, (REAL)1))) : (REAL)1;
                d = (p ? fma(-a, d, box[2 * ITEMS + at]) : box[2 * ITEMS + at]) * k, c = box[c_at + at] * k;
                if (p < P - 1) box[c_at + at] = c, box[2 * ITEMS + at] = d;
                RAISE(most, c);
                good &= k != (REAL)0;
            }
#if HALVES == 2
            const REAL own_c = lower_half ? fma(-top.c, c, top.a) : c, own_d = lower_half ? fma(-top.c, d, top.d) : d;
            RAISE(most, own_c);
            REAL other_c, other_d;
            __global ulong* const letters = mail + (((word)pair * 2 + turn % 2) * 2 * W + item) * 2;
            send_letter(letters + lower_half * 2 * W, own_c, own_d, turn);
            int looks = patience, came;
            do came = take_letter(letters + (1 - lower_half) * 2 * W, turn, &other_c, &other_d);
            while (!came && --looks > 0);
            if (!came) patience = 0, other_c = other_d = (REAL)0;
            // The upper half's last unknown, by the same operations in both.
            const REAL up_c = lower_half ? other_c : own_c, up_d = lower_half ? other_d : own_d, low_c = lower_half ? own_c : other_c, low_d = lower_half ? own_d : other_d;
            const REAL k = finite_or_zero(reciprocal(fma(-up_c, low_c, (REAL)1))), u = fma(-up_c, low_d, up_d) * k;
            good &= came && k != (REAL)0;
            seam[item] = u;
            d = lower_half ? fma(-c, u, d) : u;
#endif
            UNROLL for (int p = P - 1; p >= 0; --p) {
                if (p < P - 1) d = fma(-box[c_at + start + p * on], d, box[2 * ITEMS + start + p * on]);
                box[a_at + start + p * on] = d;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const REAL x_last = box[a_at + item], before = part ? box[a_at + item - (part ? W : 0)] : lower_half ? seam[column] : (REAL)0;
        D[R - 1] = x_last;
        RAISE(largest, x_last);
        UNROLL for (int i = 0; i < R - 1; ++i) {
            D[i] = fma(-C[i], x_last, fma(-A[i], before, D[i]));
            RAISE(largest, D[i]);
        }
        if (!(good && SIZE_AT_MOST(most) <= (REAL)2 && x_last * (REAL)0 == (REAL)0 && SIZE_AT_MOST(largest) <= (REAL)LARGEST / 8)) bad[column] = 1;
        barrier(CLK_LOCAL_MEM_FENCE);

        const int outer = OUTER(tile), own = FIRST_COLUMN(tile) + column;  // of the last level
        const word k = (word)outer * lanes + own;
        if (own < lanes && !bad[column]) {
            __global REAL* to = x + job.x.offset + (LEVELS == 2 ? outer * job.x.level_stride[0] : 0) + row0 * stride + own;
            UNROLL for (int i = 0; i < R; ++i) {
                if ((uint)(row0 + i) < (uint)n) *to = D[i];
                to += stride;
            }
        }
        if (own < lanes && item < W) {
            // What the lower half marks lies where verdicts of systems will.
            judge_system(trusted, bad[item], lower_half ? (__global uchar*)(verdicts + k) : marks + k, found);
            if (status && !lower_half) status[job.number + (LEVELS == 2 ? outer * job.number_stride[0] : 0) + own * job.number_stride[LEVELS - 1]] = GOOD;
        }
    }
}
