// SPDX-License-Identifier: BSD-3-Clause
// One dominant system as the kernels of truncated SPIKE take it.
//
//   L[i] x[i-1] + D[i] x[i] + U[i] x[i+1] = Y[i],   i = 0 … n-1; L[0] and U[n-1] are not read; rows beyond n are those of the identity
//
// Arrays: rows side by side; `at` says where each begins in its buffer.
#ifndef WORD
#define WORD(x) (x)
#endif
#define SYSTEM \
    __global const REAL *restrict lower, __global const REAL *restrict diag, __global const REAL *restrict upper, __global const REAL *restrict rhs, \
        __global REAL *restrict x, SpikeSystem at
#define LOWER(i) ((i) > 0 && (i) < at.n ? WORD(lower[at.lower + (i)]) : (REAL)0)
#define DIAG(i) ((i) < at.n ? WORD(diag[at.diag + (i)]) : (REAL)1)
#define UPPER(i) ((i) + 1 < at.n ? WORD(upper[at.upper + (i)]) : (REAL)0)
#define RHS(i) ((i) < at.n ? WORD(rhs[at.rhs + (i)]) : (REAL)0)
