// SPDX-License-Identifier: BSD-3-Clause
// The roof: reads 1 to 4 arrays of 16-byte vectors and writes one more, or the last of them again (out is that one then).
// GPU: neighbouring items read neighbouring vectors. Vector unit: an item has a part of the arrays to itself.
__kernel void stream(__global const float4* a, __global const float4* b, __global const float4* c, __global const float4* d, __global float4* out, int reads,
                     ulong vectors) {
    const size_t item = get_global_id(0), items = get_global_size(0);
#if LANES > 1
    const size_t first = vectors * item / items, last = vectors * (item + 1) / items, step = 1;
#else
    const size_t first = item, last = vectors, step = items;
#endif
    for (size_t i = first; i < last; i += step) {
        float4 sum = a[i];
        if (reads > 1) sum += b[i];
        if (reads > 2) sum += c[i];
        if (reads > 3) sum += d[i];
        out[i] = sum;
    }
}
