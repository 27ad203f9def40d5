// SPDX-License-Identifier: BSD-3-Clause
// Batches on a GPU: a work group has a few systems on chip, R rows per item in registers; without pivoting, checked.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: job.h, any strides; x may be rhs. `parts` = ceil(rows / R) items share a system, so that a group of G items has G / parts systems of the last level.
// Who does what: operand after operand goes through local memory, read in the order of memory (along rows, or from system to system) and handed to
//   the items in runs of R rows, one word of padding after each run against bank conflicts. An item makes of its rows relations to the last unknown
//   before them and to its own last one (F. A. Wang 1981); the last unknowns of a system's items are solved by parallel cyclic reduction in local memory.
// Overwritten: x of the systems whose check held.
// Words per row: 4 read, 1 written.
// Numerics: nothing is pivoted. Each item compares the residuals of its rows, which are in its registers still, with 16 roundoffs of its max|diag| max|x|;
//   systems where that fails are marked for pivoted.cl, and nothing of them is stored.
#include "common.h"

#ifndef G
#define G 128
#endif
#define R 8

/// Where row i of system s of the group lies in local memory.
#define BOX(s, i) (((s) * parts + (i) / R) * (R + 1) + (i) % R)

/// Element e of a group's rows in the order of memory: of system s, row i.
#define PLACE_OF(e) \
    const uint s = along ? (e) / n : (e) % systems, i = along ? (e) % n : (e) / systems;

static inline int along_rows(const Source* source, word lane_stride) {
    const word rows = source->row_stride < 0 ? -source->row_stride : source->row_stride, lanes = lane_stride < 0 ? -lane_stride : lane_stride;
    return rows < lanes || lanes == 0;
}

/// Barriers stand outside of conditions: a compiler that makes loops of work items (PoCL's) doubles the kernel at each that does not.
#define LOAD_OPERAND(source, buffer, values, first_row, last_row, outside) \
    { \
        const word stride = lane_level < 0 ? 0 : job.source.level_stride[lane_level]; \
        const int along = along_rows(&job.source, stride), is_view = job.source.is_view != 0; \
        __global const REAL* const data = buffer + start_of(&job.source, index); \
        const REAL number = is_view ? (REAL)0 : number_of_bits(job.source.bits); \
        for (uint e = item; e < systems * n; e += G) { \
            PLACE_OF(e) \
            if ((int)i >= first_row && (int)i <= last_row) box[BOX(s, i)] = is_view ? data[(word)i * job.source.row_stride + (word)s * stride] : number; \
        } \
        barrier(CLK_LOCAL_MEM_FENCE); \
        for (int r = 0; r < R; ++r) values[r] = mine && first + r >= first_row && first + r <= last_row ? box[item * (R + 1) + r] : (outside); \
        barrier(CLK_LOCAL_MEM_FENCE); \
    }

__attribute__((reqd_work_group_size(G, 1, 1)))
__kernel void tiles(SOLVER_ARGUMENTS, word parts_per_system) {
    UNPACK_ARGUMENTS
    __local REAL box[G * (R + 1)], la[G], lc[G], ld[G];
    __local int bad[G];
    const int lane_level = (int)job.levels - 1;
    const uint item = get_local_id(0), parts = (uint)parts_per_system, n = (uint)job.rows, most = G / parts;
    const word lanes = lane_level < 0 ? 1 : job.extent[lane_level], groups = (lanes + most - 1) / most, group = get_group_id(0), turn = group % groups;
    const word k0 = group / groups * lanes + turn * most;
    const uint systems = (uint)min((word)most, lanes - turn * most);
    word index[4];
    indices_of(&job, k0, index);
    const uint own = item / parts, part = item % parts;
    const int mine = own < systems, first = (int)(part * R), last_row = (int)n - 1;
    REAL a[R], b[R], c[R], f[R], A[R], C[R], D[R];
    LOAD_OPERAND(lower, lower, a, 1, last_row, (REAL)0)
    LOAD_OPERAND(diag, diag, b, 0, last_row, (REAL)1)
    LOAD_OPERAND(upper, upper, c, 0, last_row - 1, (REAL)0)
    LOAD_OPERAND(rhs, rhs, f, 0, last_row, (REAL)0)

    // x[i] = D[i] - A[i] x[before] - C[i] x[i+1], then - C[i] x[last].
    REAL inverse = (REAL)1 / b[0];
    A[0] = a[0] * inverse, C[0] = c[0] * inverse, D[0] = f[0] * inverse;
    for (int i = 1; i < R; ++i) {
        inverse = (REAL)1 / (b[i] - a[i] * C[i - 1]);
        D[i] = (f[i] - a[i] * D[i - 1]) * inverse, A[i] = -(a[i] * inverse) * A[i - 1], C[i] = c[i] * inverse;
    }
    for (int i = R - 3; i >= 0; --i) D[i] -= C[i] * D[i + 1], A[i] -= C[i] * A[i + 1], C[i] = -C[i] * C[i + 1];

    // The last unknowns: that of the next item's first row is replaced.
    la[item] = A[0], lc[item] = C[0], ld[item] = D[0], bad[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int has_next = mine && part + 1 < parts;
    const REAL na = has_next ? la[item + 1] : (REAL)0, nc = has_next ? lc[item + 1] : (REAL)0, nd = has_next ? ld[item + 1] : (REAL)0;
    barrier(CLK_LOCAL_MEM_FENCE);
    inverse = (REAL)1 / ((REAL)1 - C[R - 1] * na);
    REAL ra = A[R - 1] * inverse, rc = -C[R - 1] * nc * inverse, rd = (D[R - 1] - C[R - 1] * nd) * inverse;
    for (uint h = 1; h < parts; h *= 2) {
        la[item] = ra, lc[item] = rc, ld[item] = rd;
        barrier(CLK_LOCAL_MEM_FENCE);
        const int up = mine && part >= h, down = mine && part + h < parts;
        const REAL ua = up ? la[item - h] : (REAL)0, uc = up ? lc[item - h] : (REAL)0, ud = up ? ld[item - h] : (REAL)0;
        const REAL wa = down ? la[item + h] : (REAL)0, wc = down ? lc[item + h] : (REAL)0, wd = down ? ld[item + h] : (REAL)0;
        barrier(CLK_LOCAL_MEM_FENCE);
        inverse = (REAL)1 / ((REAL)1 - ra * uc - rc * wa);
        rd = (rd - ra * ud - rc * wd) * inverse, ra = -ra * ua * inverse, rc = -rc * wc * inverse;
    }
    ld[item] = rd;
    barrier(CLK_LOCAL_MEM_FENCE);
    const REAL before = part > 0 ? ld[item - 1] : (REAL)0, last = rd;
    REAL x_of[R];
    for (int i = 0; i + 1 < R; ++i) x_of[i] = D[i] - A[i] * before - C[i] * last;
    x_of[R - 1] = last;
    la[item] = x_of[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    const REAL after = has_next ? la[item + 1] : (REAL)0;

    REAL entry = 0, size = 0, rest = 0, sum = 0;
    for (int i = 0; i < R; ++i) {
        const REAL above = i > 0 ? x_of[i - 1] : before, below = i + 1 < R ? x_of[i + 1] : after;
        const REAL r = ((f[i] - a[i] * above) - b[i] * x_of[i]) - c[i] * below;
        rest = fmax(rest, fabs(r)), sum += r * (REAL)0;
        if (first + i <= last_row) entry = fmax(entry, fabs(b[i])), size = fmax(size, fabs(x_of[i]));
    }
    if (mine && !(sum == (REAL)0 && rest <= (REAL)16 * (REAL)UNIT * entry * size)) bad[own] = 1;
    for (int r = 0; r < R; ++r) box[item * (R + 1) + r] = x_of[r];
    barrier(CLK_LOCAL_MEM_FENCE);

    const word x_stride = lane_level < 0 ? 0 : job.x.level_stride[lane_level];
    __global REAL* const to = x + start_of(&job.x, index);
    const int along = along_rows(&job.x, x_stride);
    for (uint e = item; e < systems * n; e += G) {
        PLACE_OF(e)
        if (!bad[s]) to[(word)i * job.x.row_stride + (word)s * x_stride] = box[BOX(s, i)];
    }
    if (item < systems) {
        marks[k0 + item] = bad[item] ? TO_PIVOT : SOLVED;
        if (bad[item]) atomic_inc(&found->marked);
        if (status) status[number_at(&job, index) + (lane_level < 0 ? 0 : item * job.number_stride[lane_level])] = GOOD;
    }
}
