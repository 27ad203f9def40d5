// SPDX-License-Identifier: BSD-3-Clause
// One system that forgets, on a GPU, in one pass: windows with halos, every residual and every seam checked.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1
//
// Arrays: job.h with levels == 0, any row stride, numbers too; x is not rhs (windows read what their neighbours keep; in place the host has it stored apart first).
// Who does what: a group of 32 lanes solves 32 R rows as if what lies beyond them were 0 (lanes.h), and keeps those of the lanes HALO … 31 - HALO. Windows follow each other
//   in memory, so that halos come from cache.
// Overwritten: x.
// Words per row: 4 read, 1 written; from cache 4 × 2 HALO / (32 - 2 HALO) more.
// Numerics: nothing is pivoted. Of every row kept |rhs - A x| ≤ accept (|a|+|b|+|c|) X is seen, X the largest |x| of its lane and the two unknowns beside it. At a seam both
//   windows write down their x and what they took the other's for; `judge` holds the difference times |a| or |c| to the same limit, or to 2^-40 of what it is for the largest x: the last
//   of its groups tells the outcome, `unstable` where it does not hold, and opens the kernels that couple chunks where these are to follow. docs/algorithms/gpu_single.md; decision 21.
//   MEETS: whoever comes second to a seam judges it, the group that comes last tells the outcome: one launch, for systems of few windows, where groups see each other's numbers (meet.h).
#include "lanes.h"
#include "meet.h"

/// STAYS: a group takes one window after the other. That is slower where all of them are solved, and soon done where none is.
#ifdef STAYS
#define EACH_WINDOW for (word window = get_group_id(0); window * kept < n; window += get_num_groups(0))
#else
#define EACH_WINDOW for (word window = get_group_id(0), once = 1; once; once = 0)
#endif

/// What a window says of its two ends.
typedef struct {
    REAL first, before, first_coupling, first_allowed;  ///< x of its first row, of the row before it as it solved that; |a| over the row's size, the residual accepted
    REAL last, after, last_coupling, last_allowed;
} Seam;

/// By how much what two windows say of a seam is beyond what is allowed; infinity: not finite.
INLINE REAL beyond(REAL x_above, REAL taken_above, REAL coupling_above, REAL allowed_above, REAL x_below, REAL taken_below, REAL coupling_below, REAL allowed_below) {
    const REAL upper = coupling_above * fabs(x_below - taken_above), lower = coupling_below * fabs(x_above - taken_below);
    REAL excess = upper <= allowed_above ? (REAL)0 : upper;
    excess = lower <= allowed_below ? excess : fmax(excess, lower);
    return upper != upper || lower != lower ? (REAL)INFINITY : excess;
}

/// By one item, when all windows and seams have been seen.
INLINE void tell_windows(volatile __global QueueState* verdict, const Job* job, __global char* status, REAL accept, const Telling* telling, __global uchar* outcome_buffer, int trusted, int hands_on) {
    const float largest = as_float(as_found(&verdict->largest)), excess = as_float(as_found(&verdict->excess));
    const int good = !as_found(&verdict->given_up) && (excess == 0.0f || (largest <= FLT_MAX && excess <= (float)accept * 0x1p-40f * largest));
    Found out = telling->fresh;
    if (!good) out.failures = 1, out.first = (unsigned)job->number, out.reason = UNSTABLE;
    *(__global Found*)(outcome_buffer + telling->at) = out;
    if (status) status[job->number] = good ? GOOD : UNSTABLE;
    if (!good && trusted) verdict->broken += 1;
    verdict->open = !good && hands_on ? COUPLE_CHUNKS : 0;
    verdict->given_up = verdict->largest = verdict->excess = verdict->groups_done = 0;
}

#define WINDOWS_VERDICT Telling telling, __global uchar *outcome_buffer, int trusted, int hands_on

/// rest: what may be left of the unknown beyond a halo.
__attribute__((reqd_work_group_size(WARP, 1, 1)))
__kernel void windows(SOLVER_ARGUMENTS, REAL accept, float rest
#ifdef MEETS
                      ,
                      WINDOWS_VERDICT
#endif
) {
    UNPACK_ARGUMENTS
    volatile __global QueueState* const verdict = (volatile __global QueueState*)found;
    __global Seam* const seams = (__global Seam*)work;
    __local REAL box[4 * BOX] __attribute__((aligned(128)));
    __local REAL meeting[EXCHANGE_WORDS];
    __local ulong arrived;
    const int lane = (int)get_local_id(0);
    const word kept = (WARP - 2 * HALO) * R, n = job.rows;
    __global const REAL* const buffers[4] = {lower, diag, upper, rhs};
    __local int goes_on;
#ifdef MEETS
    __local int last, most;
    if (lane == 0) most = 0;
#endif
    EACH_WINDOW {
        // Groups begin in the order of rows: where one has failed, the rest would be in vain. One lane looks, so that all go the same way.
        if (lane == 0) goes_on = !verdict->given_up;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!goes_on) break;
        const word first = window * kept - HALO * R;
        int pad[4] = {0, 0, 0, 0};
        bring_rows(&job, buffers, first, n, lane, box, &arrived, pad);
        barrier(CLK_LOCAL_MEM_FENCE);
        ELIMINATE_LANES(joined)

        // A lane's unknown moves by at most |a| / (1 - |c|) of what the one before it does; over a halo that is a product.
        const float fa = (float)fabs(joined.own.a), fc = (float)fabs(joined.own.c);
        float passes = fa + fc <= 1.0f && lane < HALO ? fa / (1.0f - fc) : fa + fc <= 1.0f && lane >= WARP - HALO ? fc / (1.0f - fa) : 1.0f;
        REAL over, under;
        UNROLL for (int by = 1; by < 4; by *= 2) {
            numbers_beside((REAL)passes, by, &over, &under, lane, meeting);
            passes *= lane < WARP / 2 ? (float)under : (float)over;
        }
        int fails = joined.broken;
        fails |= lane == 0 && first > 0 && !(passes <= rest);
        fails |= lane == WARP - 1 && first + WARP * R < n && !(passes <= rest);
        solve_lanes(&joined, lane, meeting);

        SUBSTITUTE_ROWS(joined)
        Size largest = 0;
        RAISE(largest, joined.mine);
        UNROLL for (int i = 0; i < R - 1; ++i) RAISE(largest, D[i]);
        if (a[0] != (REAL)0) RAISE(largest, joined.left);
        if (c[R - 1] != (REAL)0) RAISE(largest, joined.after);
        const REAL X = SIZE_AT_LEAST(largest), allowed = accept * X;
        int good = 1;
        REAL first_size = 0, last_size = 0;
        const REAL first_a = a[0], last_c = c[R - 1];
        UNROLL for (int i = 0; i < R; ++i) {
            const REAL above = i ? D[i ? i - 1 : 0] : joined.left, below = i + 1 < R ? D[i + 1 < R ? i + 1 : i] : joined.after, own = D[i], ai = a[i], bi = b[i], ci = c[i];
            const REAL r = fma(-ci, below, fma(-ai, above, fma(-bi, own, f[i]))), row = fabs(ai) + fabs(bi) + fabs(ci);
            good &= fabs(r) <= allowed * row;
            if (i == 0) first_size = row;
            if (i == R - 1) last_size = row;
            f[i] = own;
        }
        // Lanes beyond the system's ends have nothing to be checked: their rows are x = 0.
        const word top = window * kept, bottom = min(top + kept, n);
        const int keeps = lane >= HALO && lane < WARP - HALO && first + lane * R < n;
        fails |= keeps && !(good && X <= (REAL)(REAL_BYTES == 8 ? 1e290 : 1e30));
        if (fails) give_up(verdict);
#ifdef MEETS
        if (keeps) atomic_max(&most, as_int(upwards(X)));
#else
        if (keeps) raise(&verdict->largest, upwards(X));
#endif
        if (lane == HALO || lane == WARP - 1 - HALO) {
            const int at_first = lane == HALO, at_last = !at_first;
            const REAL own = at_first ? D[0] : joined.mine, taken = at_first ? joined.left : joined.after, coupling = at_first ? fabs(first_a) / first_size : fabs(last_c) / last_size;
            __global REAL* const said = (__global REAL*)(seams + window) + 4 * at_last;
            said[0] = own, said[1] = taken, said[2] = coupling, said[3] = allowed;
#ifdef MEETS
            if ((at_first ? window > 0 : bottom < n) && comes_last(&verdict->met[at_first ? window - 1 : window], 1)) {
                __global const REAL* const other = said + (at_first ? -4 : 4);
                const REAL excess = beyond(own, taken, coupling, allowed, by_another(other), by_another(other + 1), by_another(other + 2), by_another(other + 3));
                raise_at_once(&verdict->excess, upwards(excess));
            }
#endif
        }
        stored_here();
        barrier(CLK_LOCAL_MEM_FENCE);
        store_x(&job, x, top, &IN_BOX(3, HALO * R), (int)(bottom - top), lane);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#ifdef MEETS
    if (lane == 0) raise_at_once(&verdict->largest, as_float(most));
    if (!last_group(verdict, &last) || lane != 0) return;
    forget_meetings(verdict, get_num_groups(0));
    tell_windows(verdict, &job, status, accept, &telling, outcome_buffer, trusted, hands_on);
#endif
}

/// An item per seam.
__kernel void judge(SOLVER_ARGUMENTS, REAL accept, word seams_there, WINDOWS_VERDICT) {
    UNPACK_ARGUMENTS
    volatile __global QueueState* const verdict = (volatile __global QueueState*)found;
    __global const Seam* const seams = (__global const Seam*)work;
    __local int last;
    for (word k = get_global_id(0); k < seams_there; k += get_global_size(0)) {
        const Seam above = seams[k], below = seams[k + 1];
        const REAL excess = beyond(above.last, above.after, above.last_coupling, above.last_allowed, below.first, below.before, below.first_coupling, below.first_allowed);
        if (excess > (REAL)0) raise(&verdict->excess, upwards(excess));
    }
    if (last_group(verdict, &last) && get_local_id(0) == 0) tell_windows(verdict, &job, status, accept, &telling, outcome_buffer, trusted, hands_on);
}
