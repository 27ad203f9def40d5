// SPDX-License-Identifier: BSD-3-Clause
// Parts' own solutions and their two spikes: their ends, and x made of them.
//
// Equation   of part k: x_i += alpha_k g_i + beta_k h_i;  sizes[2 k] = max(|x_i| + |alpha_k g_i| + |beta_k h_i|) before, sizes[2 k + 1] = max|x_i| after
// Arrays     numbers at these offsets of their buffers; factors: alpha and beta of every part; sizes: doubles, of which the upper halves are written (to 20 bits), the lower ones are 0
// Work       `items` items per part, a multiple of a group's, strided over it; one maximum per group goes to memory. Ends: an item per part
// Words      4 per row (read x, g, h; write x)
// Numerics   in the type of the arrays, two fused multiply-adds; upper halves of nonnegative doubles compare as integers. what is not finite counts as infinite in sizes[2 k], not in sizes[2 k + 1]
#include "common.h"

/// Of |x| as a double: without any in FP32, which may be all that the device has.
INLINE int upper_half(REAL x) {
#if REAL_BYTES == 8
    return as_int2(x).y & 0x7fffffff;
#else
    const int bits = as_int(x) & 0x7fffffff;
    return bits == 0 ? 0 : bits >= 0x7f800000 ? 0x7ff00000 : (bits >> 3) + (896 << 20);
#endif
}

__kernel void gather_ends(word count, word rows, __global const REAL* y_buffer, word y_at, __global const REAL* g_buffer, word g_at, __global const REAL* h_buffer, word h_at, __global REAL* ends_buffer,
                          word ends_at) {
    const word k = get_global_id(0);
    if (k >= count) return;
    const word first = k * rows, last = first + rows - 1;
    __global REAL* const ends = ends_buffer + ends_at + 6 * k;
    ends[0] = y_buffer[y_at + first], ends[1] = y_buffer[y_at + last];
    ends[2] = g_buffer[g_at + first], ends[3] = g_buffer[g_at + last];
    ends[4] = h_buffer[h_at + first], ends[5] = h_buffer[h_at + last];
}

__kernel void combine(word rows, word items, __global REAL* x_buffer, word x_at, __global const REAL* g_buffer, word g_at, __global const REAL* h_buffer, word h_at, __global const REAL* factors_buffer,
                      word factors_at, __global int* sizes_buffer, word sizes_at) {
    const word part = get_global_id(0) / items, at = part * rows;
    __global REAL* const x = x_buffer + x_at + at;
    __global const REAL *const g = g_buffer + g_at + at, *const h = h_buffer + h_at + at;
    const REAL alpha = factors_buffer[factors_at + 2 * part], beta = factors_buffer[factors_at + 2 * part + 1];
    volatile __global int* const sizes = sizes_buffer + sizes_at + 4 * part;
    __local int most[2];
    if (get_local_id(0) < 2) most[get_local_id(0)] = 0;
    if (get_local_size(0) == 1) most[1] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int terms = 0, size = 0;
    for (word i = get_global_id(0) % items; i < rows; i += items) {
        const REAL own = x[i], left = g[i], right = h[i], sum = fma(beta, right, fma(alpha, left, own));
        x[i] = sum;
        terms = max(terms, upper_half(fabs(own) + fabs(alpha * left) + fabs(beta * right)));
        if (sum * (REAL)0 == (REAL)0) size = max(size, upper_half(sum));
    }
    atomic_max(most, terms), atomic_max(most + 1, size);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) atomic_max(sizes + 1, most[0]), atomic_max(sizes + 3, most[1]);
}
