// SPDX-License-Identifier: BSD-3-Clause
// A vector of LANES numbers (64 bytes; a GPU's items have one number each), and tiles of LANES rows of neighbouring systems as vectors, whatever their strides.
#include "common.h"

#if LANES == 1
typedef REAL Vector;
typedef int Mask;
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#define all(m) (m)
#elif LANES == 8
typedef double8 Vector;
typedef long8 Mask;
#define LOAD(p) vload8(0, p)
#define STORE(v, p) vstore8(v, 0, p)
#define LOW_1 (ulong8)(0, 8, 2, 10, 4, 12, 6, 14)
#define HIGH_1 (ulong8)(1, 9, 3, 11, 5, 13, 7, 15)
#define LOW_2 (ulong8)(0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_2 (ulong8)(2, 3, 10, 11, 6, 7, 14, 15)
#define LOW_4 (ulong8)(0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_4 (ulong8)(4, 5, 6, 7, 12, 13, 14, 15)
#else
typedef float16 Vector;
typedef int16 Mask;
#define LOAD(p) vload16(0, p)
#define STORE(v, p) vstore16(v, 0, p)
#define LOW_1 (uint16)(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
#define HIGH_1 (uint16)(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
#define LOW_2 (uint16)(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH_2 (uint16)(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define LOW_4 (uint16)(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
#define HIGH_4 (uint16)(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
#define LOW_8 (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define HIGH_8 (uint16)(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#endif

#define EXCHANGE(h) \
    _Pragma("unroll") for (int r = 0; r < LANES; ++r) if ((r & h) == 0) { \
        const Vector one = t[r], other = t[r + h]; \
        t[r] = shuffle2(one, other, LOW_##h); \
        t[r + h] = shuffle2(one, other, HIGH_##h); \
    }

// PoCL inlines nothing by itself, and a call keeps vectors in memory; what is seldom taken stays a call, so that kernels compile soon.
#define INLINE inline __attribute__((always_inline))
#define APART __attribute__((noinline))

// More streams than a CPU's own prefetchers follow. OpenCL's prefetch() does nothing on PoCL.
#if defined(__has_builtin)
#if LANES > 1 && __has_builtin(__builtin_prefetch)
#define ASK(p) __builtin_prefetch((const void*)(size_t)(p))
#endif
#endif
#ifndef ASK
#define ASK(p)
#endif

/// Lane l of vector r becomes lane r of vector l.
INLINE void transpose(Vector t[LANES]) {
#if LANES > 1
    EXCHANGE(1)
    EXCHANGE(2)
    EXCHANGE(4)
#endif
#if LANES == 16
    EXCHANGE(8)
#endif
}

/// One operand of the systems of a block: row i of system j at data[i rows + j lanes].
typedef struct {
    __global REAL* data;
    word rows, lanes;
    REAL value;
    int is_view;
} Block;

INLINE Block block_of(const Source* s, __global REAL* buffer, const word index[4], word lanes) {
    Block b;
    b.is_view = s->is_view != 0;
    b.data = buffer + start_of(s, index);
    b.rows = s->row_stride;
    b.lanes = lanes;
    b.value = b.is_view ? (REAL)0 : number_of_bits(s->bits);
    return b;
}

/// Any strides and numbers, element by element.
APART void load_slowly(const Block* b, word i, int count, word first, word last, word systems, int vectors, Vector* out) {
    for (int r = 0; r < count; ++r) {
        const int there = !b->is_view || (i + r >= first && i + r <= last);
        for (int j = 0; j < vectors * LANES; ++j)
            ((REAL*)(out + r * vectors))[j] =
                !there ? (REAL)0 : !b->is_view ? b->value : b->data[(i + r) * b->rows + (b->lanes == 0 ? 0 : min((word)j, systems - 1) * b->lanes)];
    }
}

/// Rows i … i+count-1 of `vectors` vectors of systems, into out[row × vectors + vector]. Systems from `systems` on repeat the last one.
/// Rows outside first … last are 0 (numbers need not be), and are not read where nothing may lie there: at the `edge`, a block with the first or
/// the last system.
INLINE void load_tile(const Block* b, word i, int count, word first, word last, word systems, int vectors, int edge, Vector* out) {
    const int inside = i >= first && i + count - 1 <= last;
    if (!b->is_view) {
        for (int r = 0; r < count; ++r)
            for (int v = 0; v < vectors; ++v) out[r * vectors + v] = (Vector)b->value;
    } else if (b->lanes == 1 && systems == vectors * LANES && inside) {
        for (int r = 0; r < count; ++r) {
            __global const REAL* const from = b->data + (i + r) * b->rows;
            __global const REAL* const later = from + 2 * LANES * b->rows;
#pragma unroll
            for (int v = 0; v < vectors; ++v) {
                ASK(later + v * LANES);
                out[r * vectors + v] = LOAD(from + v * LANES);
            }
        }
    } else if (b->rows == 1 && b->lanes != 0 && count == LANES && (inside || !edge)) {
        for (int v = 0; v < vectors; ++v) {
            Vector t[LANES];
#pragma unroll
            for (int l = 0; l < LANES; ++l) {
                __global const REAL* const from = b->data + min((word)(v * LANES + l), systems - 1) * b->lanes + i;
                ASK(from + 2 * LANES);
                t[l] = LOAD(from);
            }
            transpose(t);
#pragma unroll
            for (int r = 0; r < LANES; ++r) out[r * vectors + v] = t[r];
        }
        if (i < first) for (int v = 0; v < vectors; ++v) out[v] = (Vector)0;
        if (i + count - 1 > last) for (int v = 0; v < vectors; ++v) out[(count - 1) * vectors + v] = (Vector)0;
    } else {
        load_slowly(b, i, count, first, last, systems, vectors, out);
    }
}

APART void store_slowly(const Block* b, word i, int count, word systems, int vectors, const uchar* skip, const Vector* x) {
    for (int r = 0; r < count; ++r)
        for (word j = 0; j < systems; ++j)
            if (!skip || !skip[j]) b->data[(i + r) * b->rows + j * b->lanes] = ((const REAL*)(x + r * vectors))[j];
}

/// Asks for the first rows of a block that is next.
INLINE void ask_first_rows(const Block* b, word n, word systems) {
    if (!b->is_view || b->lanes == 0) return;
    if (b->rows == 1) {
        for (word j = 0; j < systems; ++j)
            for (word i = 0; i < min(n, (word)(2 * LANES)); i += LANES) ASK(b->data + j * b->lanes + i);
    } else if (b->lanes == 1) {
        for (word i = 0; i < min(n, (word)(2 * LANES)); ++i)
            for (word j = 0; j < systems; j += LANES) ASK(b->data + i * b->rows + j);
    }
}

/// The reverse for x. `skip`: per system, not to be stored where it is not 0; null: all are.
INLINE void store_tile(const Block* b, word i, int count, word systems, int vectors, const uchar* skip, const Vector* x) {
    if (!skip && b->lanes == 1 && systems == vectors * LANES) {
        for (int r = 0; r < count; ++r)
#pragma unroll
            for (int v = 0; v < vectors; ++v) STORE(x[r * vectors + v], b->data + (i + r) * b->rows + v * LANES);
    } else if (!skip && b->rows == 1 && count == LANES && systems == vectors * LANES) {
        for (int v = 0; v < vectors; ++v) {
            Vector t[LANES];
#pragma unroll
            for (int r = 0; r < LANES; ++r) t[r] = x[r * vectors + v];
            transpose(t);
#pragma unroll
            for (int l = 0; l < LANES; ++l) STORE(t[l], b->data + (v * LANES + l) * b->lanes + i);
        }
    } else {
        store_slowly(b, i, count, systems, vectors, skip, x);
    }
}
