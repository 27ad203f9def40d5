// SPDX-License-Identifier: BSD-3-Clause
// One dominant system by truncated SPIKE, in oclspkt's mappings for GPUs and CPUs (spike.h has the system; spike_fpga.cl the third mapping).
//
// A partition of m rows is eliminated from the top (LU) and from the bottom (UL), as if nothing were beyond it. Its last LU row and the first UL row of the
//   next partition are two equations in the unknowns on both sides of the boundary; from these the parts of the partitions are substituted.
// Words per row: marshalling 4 + 4, spkfact 4 read + 2 written, substitution 3 read + 1 written, back 1 + 1: 20, or 10 without marshalling (the paper
//   counts 13; on the CPU's mapping the first 2 m_min rows of a partition are read once more).
// Truncation: what is cut off at a partition's end has decayed by d^-t at the rows whose elimination is used, t rows away, where d = min |D| / (|L| + |U|):
//   t = m/2 on the GPU, m_min on the CPU. Nothing is pivoted; the host checks the residual of what comes out.
// The paper's CPU mapping starts LU at row m_min. Rows m_min … 2 m_min would then be substituted from an elimination that has not decayed there: we start at row 0.
// Source: oclspkt, figures 4 and 5, table 3; Mendiratta's partitions for the CPU.
#include "vectors.h"
#include "spike.h"

// GPU and CPU: partitions side by side, row r of partition k at r p + k, in `parts`: L, D, U, Y, D', Y', X of p m words each, then five of p + 2 words for
// the boundaries: of the last LU rows d, y (u is in U), of the first UL rows d, y (l is in L); index k + 1, so that what is outside is zero.
#define PART(which) (parts_buffer + parts.at + (which) * parts.p * parts.m)
#define EDGE(which) (parts_buffer + parts.at + 7 * parts.p * parts.m + (which) * (parts.p + 2) + 1)
#define PARTITIONS __global REAL *restrict parts_buffer, SpikePartitions parts

/// Marshalling. GPU: tiles of 32 partitions and 32 rows through local memory, so that both sides are met in runs of 32 words; vector unit: an item per run of rows of all partitions.
#if LANES == 1
#define TILE 32
#define EACH_TILE(k0, r0) \
    const int item = (int)get_local_id(0), items = (int)get_local_size(0); \
    const word across = (parts.p + TILE - 1) / TILE, tiles = across * ((parts.m + TILE - 1) / TILE); \
    for (word t = get_group_id(0), k0 = t % across * TILE, r0 = t / across * TILE; t < tiles; t += get_num_groups(0), k0 = t % across * TILE, r0 = t / across * TILE)
/// Element (partition s, row r) of the tile by each item in turn: rows beside rows, or partitions beside partitions.
#define BY_ROWS(s, r) for (int e = item, r = e % TILE, s = e / TILE; e < TILE * TILE; e += items, r = e % TILE, s = e / TILE)
#define BY_PARTITIONS(s, r) for (int e = item, s = e % TILE, r = e / TILE; e < TILE * TILE; e += items, s = e % TILE, r = e / TILE)
#define THERE(s, r) (k0 + (s) < parts.p && r0 + (r) < parts.m)
#define MOVE_IN(which, OPERAND) \
    BY_ROWS(s, r) tile[s][r] = THERE(s, r) ? OPERAND((k0 + s) * parts.m + r0 + r) : (REAL)0; \
    barrier(CLK_LOCAL_MEM_FENCE); \
    BY_PARTITIONS(s, r) if (THERE(s, r)) PART(which)[(r0 + r) * parts.p + k0 + s] = tile[s][r]; \
    barrier(CLK_LOCAL_MEM_FENCE);

__kernel void marshal(SYSTEM, PARTITIONS) {
    __local REAL tile[TILE][TILE + 1];
    EACH_TILE(k0, r0) {
        MOVE_IN(0, LOWER)
        MOVE_IN(1, DIAG)
        MOVE_IN(2, UPPER)
        MOVE_IN(3, RHS)
    }
}

/// And back.
__kernel void unmarshal(SYSTEM, PARTITIONS) {
    __local REAL tile[TILE][TILE + 1];
    EACH_TILE(k0, r0) {
        BY_PARTITIONS(s, r) if (THERE(s, r)) tile[s][r] = PART(6)[(r0 + r) * parts.p + k0 + s];
        barrier(CLK_LOCAL_MEM_FENCE);
        BY_ROWS(s, r) {
            const word i = (k0 + s) * parts.m + r0 + r;
            if (THERE(s, r) && i < at.n) x[at.x + i] = tile[s][r];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#else
#define EACH_WORD(i, w) \
    for (word r = parts.m * get_global_id(0) / get_global_size(0); r < parts.m * (get_global_id(0) + 1) / get_global_size(0); ++r) \
        for (word w = r * parts.p, i = r; w < (r + 1) * parts.p; ++w, i += parts.m)

__kernel void marshal(SYSTEM, PARTITIONS) {
    EACH_WORD(i, w) PART(0)[w] = LOWER(i), PART(1)[w] = DIAG(i), PART(2)[w] = UPPER(i), PART(3)[w] = RHS(i);
}

__kernel void unmarshal(SYSTEM, PARTITIONS) {
    EACH_WORD(i, w) if (i < at.n) x[at.x + i] = PART(6)[w];
}
#endif

/// LU of all rows of a partition, kept from row `top` on; UL of its first `ul` rows, kept above `top`. An item for LANES partitions.
__kernel void spkfact(PARTITIONS) {
    const word k = get_global_id(0) * LANES, p = parts.p;
    if (k >= p) return;
    __global const REAL* const l = PART(0) + k;
    __global const REAL* const b = PART(1) + k;
    __global const REAL* const u = PART(2) + k;
    __global const REAL* const f = PART(3) + k;
    __global REAL* const kept_d = PART(4) + k;
    __global REAL* const kept_y = PART(5) + k;
    const Vector none = (Vector)0;
    Vector d = (Vector)1, y = none, beside = none;
    for (word i = 0; i < parts.m; ++i) {
        const Vector q = (i > 0 ? LOAD(l + i * p) : none) / d;
        d = LOAD(b + i * p) - q * beside, y = LOAD(f + i * p) - q * y, beside = LOAD(u + i * p);
        if (i < parts.top) continue;
        STORE(d, kept_d + i * p);
        STORE(y, kept_y + i * p);
    }
    STORE(d, EDGE(0) + k);
    STORE(y, EDGE(1) + k);
    d = (Vector)1, y = none, beside = none;
    for (word i = parts.ul - 1; i >= 0; --i) {
        const Vector q = (i < parts.ul - 1 ? LOAD(u + i * p) : none) / d;
        d = LOAD(b + i * p) - q * beside, y = LOAD(f + i * p) - q * y, beside = LOAD(l + i * p);
        if (i >= parts.top) continue;
        STORE(d, kept_d + i * p);
        STORE(y, kept_y + i * p);
    }
    STORE(d, EDGE(2) + k);
    STORE(y, EDGE(3) + k);
}

/// x below the last row of partition k, and above the first row of partition k.
static inline REAL x_below(__global const REAL* restrict parts_buffer, SpikePartitions parts, word k) {
    if (k + 1 >= parts.p) return 0;
    const word p = parts.p;
    const REAL q = PART(0)[k + 1] / EDGE(0)[k];
    return (EDGE(3)[k + 1] - q * EDGE(1)[k]) / (EDGE(2)[k + 1] - q * PART(2)[(parts.m - 1) * p + k]);
}

static inline REAL x_above(__global const REAL* restrict parts_buffer, SpikePartitions parts, word k) {
    if (k == 0) return 0;
    const REAL xt = x_below(parts_buffer, parts, k - 1);
    return (EDGE(1)[k - 1] - PART(2)[(parts.m - 1) * parts.p + k - 1] * xt) / EDGE(0)[k - 1];
}

static inline void substitute_up(__global REAL* restrict parts_buffer, SpikePartitions parts, word k) {
    const word p = parts.p;
    Vector next;
    for (int j = 0; j < LANES; ++j) ((REAL*)&next)[j] = x_below(parts_buffer, parts, k + j);
    for (word i = parts.m - 1; i >= parts.top; --i) {
        const word w = i * p + k;
        next = (LOAD(PART(5) + w) - LOAD(PART(2) + w) * next) / LOAD(PART(4) + w);
        STORE(next, PART(6) + w);
    }
}

static inline void substitute_down(__global REAL* restrict parts_buffer, SpikePartitions parts, word k) {
    const word p = parts.p;
    Vector before;
    for (int j = 0; j < LANES; ++j) ((REAL*)&before)[j] = x_above(parts_buffer, parts, k + j);
    for (word i = 0; i < parts.top; ++i) {
        const word w = i * p + k;
        before = (LOAD(PART(5) + w) - LOAD(PART(0) + w) * before) / LOAD(PART(4) + w);
        STORE(before, PART(6) + w);
    }
}

__kernel void spkreclu(PARTITIONS) {
    const word k = get_global_id(0) * LANES;
    if (k < parts.p) substitute_up(parts_buffer, parts, k);
}

__kernel void spkrecul(PARTITIONS) {
    const word k = get_global_id(0) * LANES;
    if (k < parts.p) substitute_down(parts_buffer, parts, k);
}

__kernel void spkrec(PARTITIONS) {
    const word k = get_global_id(0) * LANES;
    if (k >= parts.p) return;
    substitute_up(parts_buffer, parts, k);
    substitute_down(parts_buffer, parts, k);
}

/// Rows that an item looks at: on a GPU items beside items, else a part that is its own.
#if LANES == 1
#define EACH_ROW(i) for (word i = get_global_id(0); i < at.n; i += get_global_size(0))
#else
#define EACH_ROW(i) for (word i = at.n * get_global_id(0) / get_global_size(0); i < at.n * (get_global_id(0) + 1) / get_global_size(0); ++i)
#endif
#define MOST_ITEMS 256  // of a group

/// By each group: least |D| / (|L| + |U|), into out[group].
__kernel void dominance(SYSTEM, __global REAL* out_buffer, word out_at) {
    __local REAL of_item[MOST_ITEMS];
    REAL least = (REAL)LARGEST;
    EACH_ROW(i) {
        const REAL beside = fabs(LOWER(i)) + fabs(UPPER(i)), here = fabs(DIAG(i));
        // NaN is no dominance.
        if (!(here >= least * beside)) least = beside > (REAL)0 ? here / beside : (REAL)0;
    }
    of_item[get_local_id(0)] = least;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) > 0) return;
    for (int k = 1; k < (int)get_local_size(0); ++k)
        if (!(of_item[k] >= least)) least = of_item[k];
    out_buffer[out_at + get_group_id(0)] = least;
}

/// By each group: largest |Y - A x|, entry, |x|, |Y|, into out[w groups + group]; NaN in the first where anything is not finite.
__kernel void check(SYSTEM, __global REAL* out_buffer, word out_at) {
    __local REAL of_item[5][MOST_ITEMS];
    REAL residual = 0, entry = 0, size = 0, right = 0, sum = 0;
    EACH_ROW(i) {
        const REAL l = LOWER(i), d = DIAG(i), u = UPPER(i), f = RHS(i), here = x[at.x + i];
        const REAL rest = f - (i > 0 ? l * x[at.x + i - 1] : (REAL)0) - d * here - (i + 1 < at.n ? u * x[at.x + i + 1] : (REAL)0);
        residual = fmax(residual, fabs(rest)), entry = fmax(entry, fmax(fabs(d), fmax(fabs(l), fabs(u))));
        size = fmax(size, fabs(here)), right = fmax(right, fabs(f)), sum += rest * (REAL)0;
    }
    const int item = (int)get_local_id(0);
    of_item[0][item] = residual, of_item[1][item] = entry, of_item[2][item] = size, of_item[3][item] = right, of_item[4][item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item > 0) return;
    for (int k = 1; k < (int)get_local_size(0); ++k) {
        residual = fmax(residual, of_item[0][k]), entry = fmax(entry, of_item[1][k]), size = fmax(size, of_item[2][k]), right = fmax(right, of_item[3][k]);
        sum += of_item[4][k];
    }
    const word groups = get_num_groups(0);
    __global REAL* const out = out_buffer + out_at + get_group_id(0);
    out[0] = sum == (REAL)0 ? residual : (REAL)NAN, out[groups] = entry, out[2 * groups] = size, out[3 * groups] = right;
}
