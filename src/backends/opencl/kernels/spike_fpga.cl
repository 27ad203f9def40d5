// SPDX-License-Identifier: BSD-3-Clause
// One dominant system, one work item: Thomas with cached blocks, and truncated SPIKE as a stream (spike.h has the system).
//
// Words per row: tdma 10, spktrunc 5. Operations per partition of m rows: tdma 3 m additions, 3 m multiplications, 2 m divisions; spktrunc 5 m + 3,
//   5 m + 3, 3 m + 3 (tests/opencl/spike_counts.cpp counts them by -DCOUNTING).
// Truncation: what is cut off at a partition's end has decayed by d^-(m/2) at the rows whose elimination is used, where d = min |D| / (|L| + |U|). Nothing
//   is pivoted; the host checks the residual of what comes out.
// Source: oclspkt (truncated SPIKE on FPGA, GPU and CPU), figures 2 and 3, table 1.
#include "common.h"

#ifdef COUNTING
#define COUNTED(which, value) (++counts[which], (value))
#define COUNTS , __global ulong* counts
#else
#define COUNTED(which, value) (value)
#define COUNTS
#endif
#define ADD(a, b) COUNTED(0, (a) + (b))
#define SUB(a, b) COUNTED(0, (a) - (b))
#define MUL(a, b) COUNTED(1, (a) * (b))
#define DIV(a, b) COUNTED(2, (a) / (b))
#define WORD(x) COUNTED(3, x)

#include "spike.h"

/// Rows of a block or a partition of the kernels for one work item.
#ifndef M
#define M 32
#endif

/// Thomas, a block of M rows at a time in local storage, p = ceil(n / M) blocks; D' and Y' go through memory: `kept`, two words per row of p M.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void tdma(SYSTEM, __global REAL* restrict kept_buffer, word kept_at COUNTS) {
    __global REAL* const kept_d = kept_buffer + kept_at;
    const word p = (at.n + M - 1) / M;
    __global REAL* const kept_y = kept_d + p * M;
    REAL l[M], d[M], u[M], y[M], before_d = 1, before_u = 0, before_y = 0;
    for (word k = 0; k < p; ++k) {
        for (int i = 0; i < M; ++i) l[i] = LOWER(k * M + i), d[i] = DIAG(k * M + i), u[i] = UPPER(k * M + i), y[i] = RHS(k * M + i);
        for (int i = 0; i < M; ++i) {
            const REAL q = DIV(l[i], before_d);
            d[i] = SUB(d[i], MUL(q, before_u)), y[i] = SUB(y[i], MUL(q, before_y));
            before_d = d[i], before_u = u[i], before_y = y[i];
        }
        for (int i = 0; i < M; ++i) kept_d[k * M + i] = WORD(d[i]), kept_y[k * M + i] = WORD(y[i]);
    }
    REAL next = 0;
    for (word k = p - 1; k >= 0; --k) {
        for (int i = 0; i < M; ++i) d[i] = WORD(kept_d[k * M + i]), u[i] = UPPER(k * M + i), y[i] = WORD(kept_y[k * M + i]);
        for (int i = M - 1; i >= 0; --i) next = y[i] = DIV(SUB(y[i], MUL(u[i], next)), d[i]);
        for (int i = 0; i < M; ++i)
            if (k * M + i < at.n) x[at.x + k * M + i] = WORD(y[i]);
    }
}

/// The boundary between two partitions: db xb + ub xt = yb (last LU row above), lt xb + dt xt = yt (first UL row below).
#define BOUNDARY(db, ub, yb, lt, dt, yt, xb, xt) \
    { \
        const REAL q = DIV(lt, db); \
        xt = DIV(SUB(yt, MUL(q, yb)), SUB(dt, MUL(q, ub))); \
        xb = DIV(SUB(yb, MUL(ub, xt)), db); \
    }

/// FPGA: one work item, a partition per trip, p = ceil(n / M) + 1 trips; x leaves half a partition after its rows came in.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void spktrunc(SYSTEM COUNTS) {
    const word p = (at.n + M - 1) / M + 1;
    REAL l[M], u[M], d_lu[M], y_lu[M], d_ul[M], y_ul[M], kept_d[M / 2], kept_u[M / 2], kept_y[M / 2], out[M];
    for (int i = 0; i < M / 2; ++i) kept_d[i] = 1, kept_u[i] = 0, kept_y[i] = 0;
    for (word k = 0; k < p; ++k) {
        for (int i = 0; i < M; ++i) {
            l[i] = LOWER(k * M + i), u[i] = UPPER(k * M + i);
            d_lu[i] = d_ul[i] = DIAG(k * M + i), y_lu[i] = y_ul[i] = RHS(k * M + i);
        }
        REAL d = 1, y = 0, beside = 0;
        for (int i = 0; i < M; ++i) {
            // Nothing is above a partition here, but its first lower entry is wanted below.
            const REAL q = DIV(i > 0 ? l[i] : (REAL)0, d);
            d = d_lu[i] = SUB(d_lu[i], MUL(q, beside)), y = y_lu[i] = SUB(y_lu[i], MUL(q, y)), beside = u[i];
        }
        d = 1, y = 0, beside = 0;
        for (int i = M - 1; i >= 0; --i) {
            const REAL q = DIV(i < M - 1 ? u[i] : (REAL)0, d);
            d = d_ul[i] = SUB(d_ul[i], MUL(q, beside)), y = y_ul[i] = SUB(y_ul[i], MUL(q, y)), beside = l[i];
        }
        REAL xb, xt;
        BOUNDARY(kept_d[M / 2 - 1], kept_u[M / 2 - 1], kept_y[M / 2 - 1], l[0], d_ul[0], y_ul[0], xb, xt)
        REAL next = xt;
        for (int i = M / 2 - 1; i >= 0; --i) next = out[i] = DIV(SUB(kept_y[i], MUL(kept_u[i], next)), kept_d[i]);
        REAL before = xb;
        for (int i = 0; i < M / 2; ++i) before = out[M / 2 + i] = DIV(SUB(y_ul[i], MUL(l[i], before)), d_ul[i]);
        for (int i = 0; i < M; ++i) {
            const word row = k * M - M / 2 + i;
            if (row >= 0 && row < at.n) x[at.x + row] = WORD(out[i]);
        }
        for (int i = 0; i < M / 2; ++i) kept_d[i] = d_lu[M / 2 + i], kept_u[i] = u[M / 2 + i], kept_y[i] = y_lu[M / 2 + i];
    }
}
