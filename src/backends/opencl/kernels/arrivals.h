// SPDX-License-Identifier: BSD-3-Clause
// Numbers on their way to local memory while the items that asked for them go on, and hold no register for them, where the device can; elsewhere they are there at once.
#include "common.h"

#ifdef ASYNC
#define ASKED_AHEAD 1
#else
#define ASKED_AHEAD 0
#endif

INLINE void ask_from(__local REAL* to, __global const REAL* from) {
#ifndef ASYNC
    *to = *from;
#elif REAL_BYTES == 8
    asm volatile("{ .reg .u64 g; cvta.to.global.u64 g, %1; cp.async.ca.shared.global [%0], [g], 8; }" ::"r"(LOCAL_ADDRESS(to)), "l"(from) : "memory");
#else
    asm volatile("{ .reg .u64 g; cvta.to.global.u64 g, %1; cp.async.ca.shared.global [%0], [g], 4; }" ::"r"(LOCAL_ADDRESS(to)), "l"(from) : "memory");
#endif
}

INLINE void ask_number(__local REAL* to, const Line* line, word i) {
    if (line->is_view) ask_from(to, line->data + i * line->stride);
    else *to = line->value;
}

/// What the item has asked for since the last time is one lot.
INLINE void close_lot() {
#ifdef ASYNC
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// All lots of this item but the last one are there, or all of them. A barrier is to follow.
INLINE void await_all_but_one() {
#ifdef ASYNC
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}
INLINE void await_all() {
#ifdef ASYNC
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
