// SPDX-License-Identifier: BSD-3-Clause
// Pieces of a chunk that others have reduced: closed before they are solved as a batch, judged behind.
//
// Equation   rhs[first] -= lower[first] x_before,  rhs[last] -= upper[last] x_after;      worst = max |x[end] - known| / max|x| of the piece
// Arrays     numbers at these offsets of their buffers; known: 2 count + 2 of them; worst: a float, of nonnegative ones the largest as integers
// Work       an item per piece
// Words      closing 6 per piece; judging 1 per row
#include "common.h"

__kernel void close_pieces(word count, word rows, __global const REAL* lower_buffer, word lower_at, REAL lower_value, int lower_is_array, __global const REAL* upper_buffer, word upper_at,
                           REAL upper_value, int upper_is_array, __global REAL* rhs_buffer, word rhs_at, __global const REAL* known_buffer, word known_at) {
    const word k = get_global_id(0);
    if (k >= count) return;
    const word first = k * rows, last = first + rows - 1;
    __global const REAL* const known = known_buffer + known_at;
    __global REAL* const rhs = rhs_buffer + rhs_at;
    const REAL before = known[2 * k], after = known[2 * k + 3];
    if (before != 0) rhs[first] -= (lower_is_array ? lower_buffer[lower_at + first] : lower_value) * before;
    if (after != 0) rhs[last] -= (upper_is_array ? upper_buffer[upper_at + last] : upper_value) * after;
}

__kernel void judge_pieces(word count, word rows, __global const REAL* x_buffer, word x_at, __global const REAL* known_buffer, word known_at, volatile __global int* worst_buffer, word worst_at) {
    const word k = get_global_id(0);
    if (k >= count) return;
    __global const REAL* const x = x_buffer + x_at + k * rows;
    __global const REAL* const known = known_buffer + known_at;
    REAL most = 0;
    for (word i = 0; i < rows; ++i) most = fmax(most, fabs(x[i]));
    const REAL away = fmax(fabs(x[0] - known[2 * k + 1]), fabs(x[rows - 1] - known[2 * k + 2]));
    const bool numbers = x[0] - x[0] == 0 && x[rows - 1] - x[rows - 1] == 0 && most <= LARGEST;
    const float ratio = !numbers ? INFINITY : away == 0 ? 0.f : (float)(away / most);
    atomic_max(worst_buffer + worst_at, as_int(ratio));
}
