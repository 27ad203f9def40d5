// SPDX-License-Identifier: BSD-3-Clause
// What every kernel of a solver starts with. REAL: float or double; REAL_BYTES; LANES: numbers that a work item works on at once. VECTOR_BYTES, where these are more than one: of the device's vectors.
#include "job.h"

#if REAL_BYTES == 8
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define LARGEST DBL_MAX
#define SMALLEST 4.9406564584124654e-324
#define UNIT 0x1p-53
#else
#define LARGEST FLT_MAX
#define SMALLEST 1.4012984643e-45f
#define UNIT 0x1p-24f
#endif

// PoCL inlines nothing by itself, and a call keeps vectors in memory; what is seldom taken stays a call, so that kernels compile soon.
#define INLINE static inline __attribute__((always_inline))
#define APART __attribute__((noinline))

#define GOOD 1
#define SINGULAR (-1)
#define NOT_FINITE (-2)
#define UNSTABLE (-3)

/// marks[k] of system k of a batch.
#define SOLVED 0
#define TO_PIVOT 1
#define FAILED 2

static inline REAL number_of_bits(word bits) {
#if REAL_BYTES == 8
    return as_double(bits);
#else
    return as_float((int)bits);
#endif
}

static inline void indices_of(const Job* job, word k, word index[4]) {
    for (int d = 3; d >= 0; --d) {
        const word e = d < job->levels ? job->extent[d] : 1;
        index[d] = e > 1 ? k % e : 0;
        k = e > 1 ? k / e : k;
    }
}

static inline word number_at(const Job* job, const word index[4]) {
    word n = job->number;
    for (int d = 0; d < 4; ++d) n += index[d] * job->number_stride[d];
    return n;
}

/// Where row 0 of the system with these indices lies.
static inline word start_of(const Source* s, const word index[4]) {
    word at = s->offset;
    for (int d = 0; d < 4; ++d) at += index[d] * s->level_stride[d];
    return at;
}

/// One operand of one system.
typedef struct {
    __global REAL* data;
    word stride;
    REAL value;
    int is_view;
} Line;

static inline Line line_of(const Source* s, __global REAL* buffer, const word index[4]) {
    Line line;
    line.is_view = s->is_view != 0;
    line.data = buffer + start_of(s, index);
    line.stride = s->row_stride;
    line.value = line.is_view ? (REAL)0 : number_of_bits(s->bits);
    return line;
}

static inline REAL get(const Line* line, word i) { return line->is_view ? line->data[i * line->stride] : line->value; }

static inline void report_failure(volatile __global Found* found, __global char* status, word number, int reason) {
    atomic_inc(&found->failures);
    atomic_min(&found->first, (unsigned)number);
    if (status) status[number] = (char)reason;
}

#ifdef PTX
/// Of local memory, for its assembler.
#define LOCAL_ADDRESS(p) ((uint)(size_t)(p))

INLINE REAL reciprocal(REAL x) {
    REAL r;
#if REAL_BYTES == 8
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    const REAL e = fma(-x, r, 1.0);  // 2^-20 or less; the next line leaves its cube
    return fma(r, fma(e, e, e), r);
#else
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));  // to one unit in the last place
    return r;
#endif
}
#else
INLINE REAL reciprocal(REAL x) { return (REAL)1 / x; }
#endif

/// A nonnegative number as a float that is no smaller, and the largest of such in memory: as bits they are ordered like numbers.
INLINE float upwards(REAL x) {
    const float f = (float)x;
    return x > (REAL)0 && !(f > FLT_MIN) ? FLT_MIN : (REAL)f < x ? f * (1 + 2 * FLT_EPSILON) : f;
}
INLINE void raise(volatile __global uint* most, float value) {
    const uint bits = as_uint(value);
    if (*most < bits) atomic_max(most, bits);
}

/// The same by few: nobody waits for what is there.
INLINE void raise_at_once(volatile __global uint* most, float value) {
    if (value > 0.0f) atomic_max(most, as_uint(value));
}

/// What other groups of the same kernel have found, by atomics: a load may find what a cache has of it, since OpenCL 1.2 orders nothing between groups.
INLINE void give_up(volatile __global QueueState* state) {
    if (!state->given_up) atomic_or(&state->given_up, 1u);
}
INLINE uint as_found(volatile __global uint* by_others) { return atomic_or(by_others, 0u); }

/// STORED_FOR_ALL: what this item has stored, or has seen of its group behind a barrier, is there for other groups before what it does next. OWN_STORED: by each item before that barrier, where it is not enough
/// that one speaks for all.
#ifdef PTX
#define STORED_FOR_ALL() asm volatile("fence.acq_rel.gpu;" ::: "memory")
#define OWN_STORED()
#else
#define STORED_FOR_ALL() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define OWN_STORED() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

/// By all items of a group that has done its part: 1 in the last group to come here, which sees what the others have stored. `last`: an int in local memory.
INLINE int last_group(volatile __global QueueState* state, __local int* last) {
    OWN_STORED();
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        STORED_FOR_ALL();
        *last = atomic_inc(&state->groups_done) + 1 == get_num_groups(0);
        STORED_FOR_ALL();
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    OWN_STORED();
    return *last;
}

/// A batch on a GPU that may be its call's only kernel: `trusted`, then it tells that all is well, and counts in `broken` what is not; else marks are for the kernel that follows.
#define MAY_BE_ALONE Telling telling, __global uchar *outcome_buffer, int trusted
#define TELL_ALONE() \
    if (trusted && get_global_id(0) == 0) *(__global Found*)(outcome_buffer + telling.at) = telling.fresh;
INLINE void judge_system(int trusted, int bad, __global uchar* mark, volatile __global Found* found) {
    if (!trusted) *mark = bad ? TO_PIVOT : SOLVED;
    if (bad) atomic_inc(trusted ? &((volatile __global QueueState*)found)->broken : &found->marked);
}

/// Every kernel that solves has these arguments first.
#define SOLVER_ARGUMENTS \
    Job job, Where where, __global REAL *lower, __global REAL *diag, __global REAL *upper, __global REAL *rhs, __global REAL *x, \
        __global uchar *scratch_buffer, __global uchar *found_buffer, __global uchar *status_buffer
#define UNPACK_ARGUMENTS \
    __global REAL* const work = (__global REAL*)(scratch_buffer + where.work); \
    __global uchar* const marks = scratch_buffer + where.marks; \
    __global word* const verdicts = (__global word*)(scratch_buffer + where.verdicts); \
    volatile __global Found* const found = (volatile __global Found*)(found_buffer + where.found); \
    __global char* const status = where.status < 0 ? (__global char*)0 : (__global char*)(status_buffer + where.status);
