// SPDX-License-Identifier: BSD-3-Clause
// A chunk's own solution and its two spikes become x.
//
// Equation   x_i += alpha g_i + beta h_i;  sizes[0] = max(|x_i| + |alpha g_i| + |beta h_i|) before, sizes[1] = max|x_i| after
// Arrays     rows numbers each, x, g and h at these offsets of their buffers; sizes: two doubles, of which the upper halves are written (to 20 bits), the lower ones are 0
// Work       an item per row, strided over the device; one maximum per group goes to memory
// Words      4 per row (read x, g, h; write x)
// Numerics   in the type of the arrays, two fused multiply-adds; upper halves of nonnegative doubles compare as integers. what is not finite counts as infinite in sizes[0], not in sizes[1]
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

__kernel void combine(word rows, __global REAL* x_buffer, word x_at, __global const REAL* g_buffer, word g_at, __global const REAL* h_buffer, word h_at, REAL alpha, REAL beta,
                      __global int* sizes_buffer, word sizes_at) {
    __global REAL* const x = x_buffer + x_at;
    __global const REAL *const g = g_buffer + g_at, *const h = h_buffer + h_at;
    volatile __global int* const sizes = sizes_buffer + sizes_at;
    __local int most[2];
    if (get_local_id(0) < 2) most[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int terms = 0, size = 0;
    for (word i = get_global_id(0); i < rows; i += get_global_size(0)) {
        const REAL own = x[i], left = g[i], right = h[i], sum = fma(beta, right, fma(alpha, left, own));
        x[i] = sum;
        terms = max(terms, upper_half(fabs(own) + fabs(alpha * left) + fabs(beta * right)));
        if (sum * (REAL)0 == (REAL)0) size = max(size, upper_half(sum));
    }
    atomic_max(most, terms), atomic_max(most + 1, size);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) < 2) atomic_max(sizes + 2 * get_local_id(0) + 1, most[get_local_id(0)]);
}
