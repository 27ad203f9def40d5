// SPDX-License-Identifier: BSD-3-Clause
// 32 work items of one group as lanes with R rows each: what batches and windows of one system on a GPU share.
//
//   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = f[i],   i = 0 … 32 R - 1, couplings beyond either end 0
//
// A lane eliminates forwards, then backwards: each of its rows becomes x[i] = D[i] - A[i] x[before] - C[i] x[last], the last one x[last] = D - A x[before] -
// C x[after] (F. A. Wang 1981). The lanes' last rows, closed with the first row of the next lane, are joined by putting every other one into its
// neighbours (cyclic reduction: R. W. Hockney 1965); no unknown is found twice. Nothing is pivoted: who uses x checks it.
//
// Lanes hear of each other by NVIDIA's shuffles (PTX is defined), else through local memory.
#include "arrivals.h"

#ifndef WARP
#define WARP 32
#endif

#if defined(PTX)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

/// The size of a number as an integer, which is ordered like it: NaN beyond infinity, infinity beyond all. FP64: its upper half, so that a maximum is one instruction.
INLINE int size_of(REAL x) {
#if REAL_BYTES == 8
    return as_int2(x).y & 0x7fffffff;
#else
    return as_int(x) & 0x7fffffff;
#endif
}

/// Bounds of what has this size.
INLINE REAL at_least(int size) {
#if REAL_BYTES == 8
    return as_double((int2)(0, size));
#else
    return as_float(size);
#endif
}
INLINE REAL at_most(int size) {
#if REAL_BYTES == 8
    return as_double((int2)(-1, size));
#else
    return as_float(size);
#endif
}

/// The largest size of several numbers: FP32 in one instruction, which passes over NaN. RAISE_REST does not, or `strange` stays 0 only while all are finite, at the price of a multiply-add.
#if REAL_BYTES == 8
typedef int Size;
#define RAISE(most, x) most = max(most, size_of(x))
#define RAISE_REST(most, strange, r) RAISE(most, r)
#define SIZE_AT_LEAST(size) at_least(size)
#define SIZE_AT_MOST(size) at_most(size)
#else
typedef REAL Size;
#define RAISE(most, x) most = fmax(most, fabs(x))
#ifdef PTX
#define RAISE_REST(most, strange, r) asm("max.NaN.f32 %0, %0, %1;" : "+f"(most) : "f"(fabs(r)))
#else
#define RAISE_REST(most, strange, r) RAISE(most, r), strange = fma(r, (REAL)0, strange)
#endif
#define SIZE_AT_LEAST(size) (size)
#define SIZE_AT_MOST(size) (size)
#endif

/// For maxima of a group in local memory: sizes are ordered like integers.
#if REAL_BYTES == 8
#define AS_INT(size) (size)
#define OF_INT(size) (size)
#else
#define AS_INT(size) as_int(size)
#define OF_INT(size) as_float(size)
#endif

INLINE REAL finite_or_zero(REAL x) { return x * (REAL)0 == (REAL)0 ? x : (REAL)0; }

/// The reciprocal of a pivot that is infinite, or beyond what the device's reciprocals reach, is 0: nothing else says so where the row's x is then taken for 0.
#if REAL_BYTES == 8
#define IS_ZERO(k) (size_of(k) == 0)
#else
#define IS_ZERO(k) ((k) == (REAL)0)
#endif

/// One row in unknowns far apart: x = d - a x[left] - c x[right].
typedef struct {
    REAL a, c, d;
} Relation;

#if defined(PTX) && WARP == 32
#define SHUFFLES
INLINE int int_above(int v, int by) {
    int r;
    asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=r"(r) : "r"(v), "r"(by));
    return r;
}
INLINE int int_below(int v, int by) {
    int r;
    asm volatile("shfl.sync.down.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(by));
    return r;
}
#if REAL_BYTES == 8
INLINE REAL lane_above(REAL v, int by) {
    const int2 b = as_int2(v);
    return as_double((int2)(int_above(b.x, by), int_above(b.y, by)));
}
INLINE REAL lane_below(REAL v, int by) {
    const int2 b = as_int2(v);
    return as_double((int2)(int_below(b.x, by), int_below(b.y, by)));
}
#else
INLINE REAL lane_above(REAL v, int by) { return as_float(int_above(as_int(v), by)); }
INLINE REAL lane_below(REAL v, int by) { return as_float(int_below(as_int(v), by)); }
#endif
#define EXCHANGE_WORDS 1
#else
#define EXCHANGE_WORDS (3 * WARP)
#endif

/// Of the lanes `by` above and below; their own where there is none. All lanes take part. box: 3 × WARP words of local memory.
INLINE void neighbours(const Relation* own, int by, Relation* above, Relation* below, int lane, __local REAL* box) {
#ifdef SHUFFLES
    above->a = lane_above(own->a, by), above->c = lane_above(own->c, by), above->d = lane_above(own->d, by);
    below->a = lane_below(own->a, by), below->c = lane_below(own->c, by), below->d = lane_below(own->d, by);
#else
    box[lane] = own->a, box[WARP + lane] = own->c, box[2 * WARP + lane] = own->d;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int up = lane >= by ? lane - by : lane, down = lane + by < WARP ? lane + by : lane;
    above->a = box[up], above->c = box[WARP + up], above->d = box[2 * WARP + up];
    below->a = box[down], below->c = box[WARP + down], below->d = box[2 * WARP + down];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

INLINE void numbers_beside(REAL own, int by, REAL* above, REAL* below, int lane, __local REAL* box) {
#ifdef SHUFFLES
    *above = lane_above(own, by), *below = lane_below(own, by);
#else
    box[lane] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    *above = box[lane >= by ? lane - by : lane], *below = box[lane + by < WARP ? lane + by : lane];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

/// Four sizes become the largest of all lanes. most: as many zeros in local memory, which other groups of lanes have not.
INLINE void largest_of_lanes(int sizes[4], __local int* most) {
#if defined(SHUFFLES) && defined(ASYNC)
    UNROLL for (int k = 0; k < 4; ++k) asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(sizes[k]) : "r"(sizes[k]));
#else
    for (int k = 0; k < 4; ++k) atomic_max(most + k, sizes[k]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 4; ++k) sizes[k] = most[k];
#endif
}

#ifdef BULK
// The copy engine of NVIDIA's devices from compute capability 9 on: one lane asks, nobody's registers hold what is on its way. Addresses and sizes are multiples of 16 bytes.
// What it is to take from local memory all lanes have said stored_here() of after their last store, before a barrier; then one lane copies, and waits until local memory has been read.
INLINE void expect_bytes(__local ulong* arrived, uint bytes) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(LOCAL_ADDRESS(arrived)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(LOCAL_ADDRESS(arrived)), "r"(bytes) : "memory");
}
// USED_ONCE: the second-level cache is told that nobody asks again.
#ifdef USED_ONCE
#define POLICY "createpolicy.fractional.L2::evict_first.b64 p; "
#define HINT ".L2::cache_hint"
#define HINTED ", p"
#else
#define POLICY
#define HINT
#define HINTED
#endif
INLINE void copy_here(__local void* to, __global const void* from, uint bytes, __local ulong* arrived) {
    asm volatile("{ .reg .u64 g, p; " POLICY "cvta.to.global.u64 g, %1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" HINT " [%0], [g], %2, [%3]" HINTED "; }" ::"r"(LOCAL_ADDRESS(to)),
                 "l"(from), "r"(bytes), "r"(LOCAL_ADDRESS(arrived))
                 : "memory");
}
INLINE void await_bytes(__local ulong* arrived) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }" ::"r"(LOCAL_ADDRESS(arrived)) : "memory");
}
INLINE void stored_here() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
INLINE void copy_out(__global void* to, __local const void* from, uint bytes) {
    asm volatile("{ .reg .u64 g, p; " POLICY "cvta.to.global.u64 g, %0; cp.async.bulk.global.shared::cta.bulk_group" HINT " [g], [%1], %2" HINTED "; }" ::"l"(to), "r"(LOCAL_ADDRESS(from)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#else
INLINE void stored_here() {}
#endif

/// Elements of 16 bytes, and of a line of memory. A box holds WARP R rows that begin anywhere within 16 bytes; where the copy engine brings them, anywhere within a line: rows that lie
/// otherwise to lines on chip than in memory are twice the requests to the second-level cache.
#define QUAD (16 / REAL_BYTES)
#ifdef BULK
#define LINE (128 / REAL_BYTES)
#define BOX ((WARP * R + LINE + LINE - 1) / LINE * LINE)
#else
#define BOX ((WARP * R + 2 * QUAD - 1) / QUAD * QUAD)
#endif

/// Row `row` of operand o in local memory.
#define IN_BOX(o, row) box[(o) * BOX + pad[o] + (row)]

/// `count` rows, one element apart, of the four operands from from[o] on into their boxes; pad[o]: where row 0 lies there. Up to QUAD elements before and behind them are read,
/// or all that a box holds. A barrier is to follow. STAYS is defined where a group has several runs, one after the other.
#ifdef BULK
INLINE int pad_of(__global const REAL* from) { return (int)((uint)(size_t)from % 128 / REAL_BYTES); }
/// By one lane: the copy engine is to bring `count` rows from `from` on into a box. Returns its bytes.
INLINE uint bytes_of_run(__global const REAL* from, uint count) { return ((uint)pad_of(from) % QUAD + count + QUAD - 1) / QUAD * 16; }
INLINE void bring_run(__global const REAL* from, uint count, __local REAL* box, __local ulong* arrived) {
    const uint pad = (uint)pad_of(from), over = pad % QUAD;
    copy_here(box + (pad - over), from - over, bytes_of_run(from, count), arrived);
}
#endif
INLINE void load_run(__global const REAL* const* from, uint count, int lane, __local REAL* box, __local ulong* arrived, int* pad) {
#ifdef BULK
    if (lane == 0) {
        uint bytes = 0;
        UNROLL for (int o = 0; o < 4; ++o) bytes += bytes_of_run(from[o], count);
        expect_bytes(arrived, bytes);
        UNROLL for (int o = 0; o < 4; ++o) bring_run(from[o], count, box + o * BOX, arrived);
    }
    UNROLL for (int o = 0; o < 4; ++o) pad[o] = pad_of(from[o]);
    barrier(CLK_LOCAL_MEM_FENCE);
    await_bytes(arrived);
#ifdef STAYS
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(LOCAL_ADDRESS(arrived)) : "memory");
#endif
#else
    REAL value[4][R];
    UNROLL for (int o = 0; o < 4; ++o)
        UNROLL for (int j = 0; j < R; ++j) value[o][j] = from[o][j * WARP + lane];
    UNROLL for (int o = 0; o < 4; ++o)
        UNROLL for (int j = 0; j < R; ++j) box[o * BOX + j * WARP + lane] = value[o][j];
#endif
}

/// Rows first … first + WARP R - 1 of one system of n rows, with any row stride, numbers too; rows that do not exist are x = 0, couplings to them 0. A barrier is to follow.
INLINE void bring_rows(const Job* job, __global const REAL* const* buffers, word first, word n, int lane, __local REAL* box, __local ulong* arrived, int* pad) {
    const Source* const sources[4] = {&job->lower, &job->diag, &job->upper, &job->rhs};
    __global const REAL* data[4];
    int dense = first >= QUAD && first + BOX < n;
    UNROLL for (int o = 0; o < 4; ++o) {
        data[o] = buffers[o] + sources[o]->offset + first * sources[o]->row_stride;
        dense &= sources[o]->is_view && sources[o]->row_stride == 1;
    }
    if (dense) return load_run(data, WARP * R, lane, box, arrived, pad);
    UNROLL for (int o = 0; o < 4; ++o) {
        const REAL number = sources[o]->is_view ? (REAL)0 : number_of_bits(sources[o]->bits);
        const word from = o == 0, to = o == 2 ? n - 1 : n, step = sources[o]->row_stride;
        const int is_view = sources[o]->is_view != 0;
#pragma unroll 4
        for (word e = lane; e < WARP * R; e += WARP) {
            __local REAL* const here = &box[o * BOX + e];
            if (first + e < from || first + e >= to) *here = (REAL)(o == 1);
            else if (is_view) ask_from(here, data[o] + e * step);
            else *here = number;
        }
    }
    await_all();
}

/// `count` rows of a box go to memory, by all lanes, after stored_here() and a barrier.
INLINE void store_rows(__global REAL* to, word stride, __local const REAL* from, int count, int lane) {
#ifdef BULK
    if (stride == 1 && ((uint)(size_t)to | (uint)(size_t)from | (uint)count * REAL_BYTES) % 16 == 0) {
        if (lane == 0) copy_out(to, from, (uint)count * REAL_BYTES);
        return;
    }
#endif
    for (int i = lane; i < count; i += WARP) to[i * stride] = from[i];
}

/// The same to rows first … of x of one system.
INLINE void store_x(const Job* job, __global REAL* x, word first, __local const REAL* from, int count, int lane) {
    store_rows(x + job->x.offset + first * job->x.row_stride, job->x.row_stride, from, count, lane);
}

typedef struct {
    Relation own, next;      ///< the lane's last row among those of all lanes; the first row of the next lane
    REAL left, mine, after;  ///< unknowns: the one before the lane, its last one, the one after it
    int broken;              ///< not finite: what this lane says is not to be used
} Joined;

/// `last` of each lane closed with `first` of the next.
INLINE Joined close_lanes(Relation first, Relation last, int lane, __local REAL* box) {
    Joined j;
    const REAL sum = first.a + first.c + first.d + last.a + last.c + last.d;
    j.broken = !(sum * (REAL)0 == (REAL)0);
    if (j.broken) first.a = first.c = first.d = last.a = last.c = last.d = (REAL)0;
    Relation unused;
    neighbours(&first, 1, &unused, &j.next, lane, box);
    j.own = last;
    if (lane < WARP - 1) {
        const REAL k = finite_or_zero(reciprocal(fma(-last.c, j.next.a, (REAL)1)));
        j.own.a = last.a * k, j.own.c = -last.c * j.next.c * k, j.own.d = fma(-last.c, j.next.d, last.d) * k;
    }
    return j;
}

// Who wants to see pivots beside their rows defines it before.
#ifndef SEE_PIVOT
#define SEE_PIVOT(i, pivot, a, b, c)
#endif

/// Rows a[i], b[i], c[i], f[i], i < R, of each lane: A, C, D is what elimination makes of them, `joined` the lane's last one closed with the first one of the next lane.
#define ELIMINATE_ROWS(joined) \
    REAL A[R], C[R], D[R]; \
    UNROLL for (int i = 0; i < R; ++i) { \
        const REAL ai = a[i], bi = b[i], ci = c[i], pivot = i ? fma(-ai, C[i ? i - 1 : 0], bi) : bi, k = reciprocal(pivot); \
        SEE_PIVOT(i, pivot, ai, bi, ci); \
        C[i] = ci * k; \
        D[i] = (i ? fma(-ai, D[i ? i - 1 : 0], f[i]) : f[i]) * k; \
        A[i] = i ? -(ai * k) * A[i ? i - 1 : 0] : ai * k; \
    } \
    UNROLL for (int i = R - 3; i >= 0; --i) { \
        D[i] = fma(-C[i], D[i + 1], D[i]); \
        A[i] = fma(-C[i], A[i + 1], A[i]); \
        C[i] = -C[i] * C[i + 1]; \
    } \
    const Relation first_row = {A[0], C[0], D[0]}, last_row = {A[R - 1], C[R - 1], D[R - 1]}; \
    Joined joined = close_lanes(first_row, last_row, lane, meeting);

/// The same of rows R lane … of the boxes, where a, b, c, f lie.
#define ELIMINATE_LANES(joined) \
    __local const REAL *const a = &IN_BOX(0, lane * R), *const b = &IN_BOX(1, lane * R), *const c = &IN_BOX(2, lane * R); \
    __local REAL* const f = &IN_BOX(3, lane * R); \
    ELIMINATE_ROWS(joined)

/// x of the lane's rows into D, between its last one and the one before it.
#define SUBSTITUTE_ROWS(joined) \
    D[R - 1] = (joined).mine; \
    UNROLL for (int i = 0; i < R - 1; ++i) D[i] = fma(-C[i], (joined).mine, fma(-A[i], (joined).left, D[i]));

/// x of all lanes' last rows; what lies before the first one and after the last one is 0.
INLINE void solve_lanes(Joined* j, int lane, __local REAL* box) {
    Relation row = j->own, above, below;
    if (lane == 0) row.a = (REAL)0;
    if (lane == WARP - 1) row.c = (REAL)0;
    UNROLL for (int s = 1; s < WARP; s *= 2) {
        neighbours(&row, s, &above, &below, lane, box);
        const REAL k = finite_or_zero(reciprocal(fma(-row.c, below.a, fma(-row.a, above.c, (REAL)1))));
        if ((lane & (2 * s - 1)) == 2 * s - 1) {
            row.d = fma(-row.c, below.d, fma(-row.a, above.d, row.d)) * k;
            row.a = -(row.a * k) * above.a, row.c = -(row.c * k) * below.c;
        }
    }
    REAL x = lane == WARP - 1 ? row.d : (REAL)0, over, under;
    UNROLL for (int s = WARP / 2; s > 0; s /= 2) {
        numbers_beside(x, s, &over, &under, lane, box);
        if ((lane & (2 * s - 1)) == s - 1) x = fma(-row.c, under, fma(-row.a, over, row.d));
    }
    numbers_beside(x, 1, &over, &under, lane, box);
    j->mine = x;
    j->left = lane ? over : (REAL)0;
    j->after = lane < WARP - 1 ? fma(-j->next.c, under, fma(-j->next.a, x, j->next.d)) : (REAL)0;
}

/// The same between known ends: x before the first lane, the last lane's last one, x after it.
INLINE void solve_lanes_between(Joined* j, REAL before, REAL last, REAL after, int lane, __local REAL* box) {
    if (lane == 0) j->own.d = fma(-j->own.a, before, j->own.d);
    if (lane == WARP - 1) j->own.a = j->own.c = (REAL)0, j->own.d = last;
    solve_lanes(j, lane, box);
    if (lane == 0) j->left = before;
    if (lane == WARP - 1) j->after = after;
}

/// What is left of all lanes: returned by the last one, its last unknown's relation to those before the first lane and after the last one; head, by the first lane, of its first
/// row's unknown in the one before it and, until now, its own last one: in the last lane's last one instead.
INLINE Relation reduce_lanes(const Joined* j, Relation* head, int lane, __local REAL* box) {
    Relation row = j->own, above, below, way;
    UNROLL for (int s = 1; s < WARP; s *= 2) {
        // Lane s - 1 leads from the unknown before all to that of lane 2s - 1.
        neighbours(&row, s - 1, &above, &way, lane, box);
        head->d = fma(-head->c, way.d, head->d), head->a = fma(-head->c, way.a, head->a), head->c = -head->c * way.c;
        neighbours(&row, s, &above, &below, lane, box);
        const int ends = lane == WARP - 1;
        if (ends) below.a = below.d = (REAL)0;
        const REAL k = finite_or_zero(reciprocal(fma(-row.c, below.a, fma(-row.a, above.c, (REAL)1))));
        if ((lane & (2 * s - 1)) == 2 * s - 1) {
            row.d = fma(-row.c, below.d, fma(-row.a, above.d, row.d)) * k;
            row.a = -(row.a * k) * above.a, row.c = ends ? row.c * k : -(row.c * k) * below.c;
        }
    }
    return row;
}
