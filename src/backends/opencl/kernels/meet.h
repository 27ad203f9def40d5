// SPDX-License-Identifier: BSD-3-Clause
// Groups of one kernel that hear of each other without waiting: who comes last to a meeting goes on with what the others have stored. A launch less each time; only where a group sees
// what another one has stored before an atomic that it has seen too, which OpenCL 1.2 does not promise (NVIDIA's devices and processors do).
#include "common.h"

/// What another group has stored: past this one's cache.
INLINE REAL by_another(__global const REAL* p) { return *(volatile __global const REAL*)p; }

/// By one item after it has stored: 1 where `others` came before, and then their numbers can be read. The place is left as it was.
INLINE int comes_last(volatile __global uint* met, uint others) {
    STORED_FOR_ALL();
    if (atomic_inc(met) != others) return 0;
    STORED_FOR_ALL();
    *met = 0;
    return 1;
}

/// The same by all items of a group. last: an int in local memory.
INLINE int group_comes_last(volatile __global uint* met, uint others, __local int* last) {
    OWN_STORED();
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) *last = comes_last(met, others);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    OWN_STORED();
    return *last;
}

/// By one item, the last of a call, where some groups may have ended before they came.
INLINE void forget_meetings(volatile __global QueueState* state, word places) {
    if (as_found(&state->given_up))
        for (word k = 0; k < places; ++k) state->met[k] = 0;
}
