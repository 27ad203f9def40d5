// SPDX-License-Identifier: BSD-3-Clause
// What two passes have found of x, as the family's driver weighs it (two_pass.cpp).
#include "common.h"

/// A float as the bits of a double, without any: the outcome has one, the device may have none.
INLINE word double_bits(float x) {
    const uint bits = as_uint(x);
    return (bits & 0x7f800000) == 0 ? 0 : (bits & 0x7f800000) == 0x7f800000 ? (word)0x7ff0000000000000 : ((word)(bits & 0x7fffffff) << 29) + ((word)896 << 52);
}

/// Of chunks: the largest residual in proportion to the chunk's own numbers, the largest one, the largest numbers. bad: some residual is not finite.
typedef struct {
    float ratio, rest, largest;
    int bad;
} Weighed;

INLINE Weighed nothing_weighed() {
    const Weighed w = {0, 0, 0, 0};
    return w;
}

/// A residual of a few denormal numbers is rounding at the lower end of the range.
INLINE void weigh(Weighed* w, REAL rest, REAL matrix, REAL size, REAL right, int stored) {
    const REAL scale = matrix * size + right;
    const REAL ratio = rest <= (REAL)(8 * SMALLEST) ? (REAL)0 : scale <= (REAL)LARGEST ? rest / scale : rest / matrix / size;
    if (!stored || ratio != ratio) w->bad = 1;
    else w->ratio = fmax(w->ratio, upwards(ratio)), w->rest = fmax(w->rest, upwards(rest)), w->largest = fmax(w->largest, upwards(scale));
}

INLINE void say_weighed(volatile __global QueueState* state, const Weighed* w) {
    if (w->bad) give_up(state);
    raise_at_once(&state->excess, w->ratio), raise_at_once(&state->rest, w->rest), raise_at_once(&state->largest, w->largest);
}

#define VERDICT_ARGUMENTS REAL accept, REAL whole, unsigned next, int trusted, int reason, Telling telling, __global uchar *outcome_buffer

/// Against each chunk's scale or, LAPACK's measure, the largest one's (whole; 0: not that).
INLINE int holds(const Weighed* w, REAL accept, REAL whole) { return !w->bad && (w->ratio <= (float)accept || (w->largest <= FLT_MAX && w->rest <= (float)whole * w->largest)); }

/// By one item. Tells the outcome, with `reason` where it holds, and opens the kernels of `next` where it does not: correction only where x is there in all of it.
INLINE void tell(volatile __global QueueState* state, const Weighed* w, const Job* job, __global char* status, REAL accept, REAL whole, unsigned next, int trusted, int reason, const Telling* telling,
                 __global uchar* outcome_buffer) {
    const int good = holds(w, accept, whole);
    Found said = telling->fresh;
    said.residual = double_bits(w->ratio), said.reason = reason;
    if (!good) said.failures = 1, said.first = (unsigned)job->number, said.reason = UNSTABLE;
    *(__global Found*)(outcome_buffer + telling->at) = said;
    if (status) status[job->number] = said.reason;
    const unsigned opens = !good && !(w->bad && next == CORRECT) ? next : 0;
    if (!good && trusted >= IN_TURN) state->broken = (unsigned)(trusted - IN_TURN) + 1;
    else if (!good && (trusted == ALWAYS || (trusted == WHERE_LAST && !opens))) state->broken += 1;
    state->open = opens;
}

/// The same by the last item of all, of what they have said.
INLINE void tell_verdict(volatile __global QueueState* state, const Job* job, __global char* status, REAL accept, REAL whole, unsigned next, int trusted, int reason, const Telling* telling,
                         __global uchar* outcome_buffer) {
    const Weighed all = {as_float(as_found(&state->excess)), as_float(as_found(&state->rest)), as_float(as_found(&state->largest)), as_found(&state->given_up) != 0};
    tell(state, &all, job, status, accept, whole, next, trusted, reason, telling, outcome_buffer);
    state->given_up = state->largest = state->excess = state->rest = state->groups_done = 0;
}
