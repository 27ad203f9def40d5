// SPDX-License-Identifier: BSD-3-Clause
// One array's elements for another's, whatever their strides.
//
// Equation   to[sum of index × to_stride] = from[sum of index × from_stride]; five dimensions, the last one runs fastest
// Arrays     numbers at these offsets of their buffers
// Work       an item per element, strided over the items
// Words      2 per element, more where neighbours of `to` are none of `from`
#include "common.h"

#define DIMENSION(d)                                                                                                      \
    {                                                                                                                     \
        const word before = rest / extent.s##d, index = rest - before * extent.s##d;                                      \
        source += index * from_stride.s##d, target += index * to_stride.s##d, rest = before;                              \
    }

__kernel void copy_strided(word elements, long8 extent, long8 from_stride, long8 to_stride, __global const REAL* from_buffer, word from_at, __global REAL* to_buffer, word to_at) {
    for (word k = get_global_id(0); k < elements; k += get_global_size(0)) {
        word rest = k, source = from_at, target = to_at;
        DIMENSION(4)
        DIMENSION(3)
        DIMENSION(2)
        DIMENSION(1)
        DIMENSION(0)
        to_buffer[target] = from_buffer[source];
    }
}
