// SPDX-License-Identifier: BSD-3-Clause
// A vector of LANES numbers (64 bytes; a GPU's items have one number each), and tiles of LANES rows of neighbouring systems as vectors, whatever their strides.
// VECTOR_BYTES: of the processor's own vectors. Where they have 32, each Vector is two of them.
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
typedef double8 __attribute__((aligned(8))) Loose;
typedef double2 __attribute__((aligned(8))) Piece;
#define LOAD_PIECE(p) (*(__global const Piece*)(p))
#define LOW_1 (ulong8)(0, 8, 2, 10, 4, 12, 6, 14)
#define HIGH_1 (ulong8)(1, 9, 3, 11, 5, 13, 7, 15)
#define FRONTS (ulong8)(0, 1, 2, 3, 8, 9, 10, 11)
#define BACKS (ulong8)(4, 5, 6, 7, 12, 13, 14, 15)
#define EVEN (ulong8)(0, 1, 4, 5, 8, 9, 12, 13)
#define ODD (ulong8)(2, 3, 6, 7, 10, 11, 14, 15)
#else
typedef float16 Vector;
typedef int16 Mask;
typedef float16 __attribute__((aligned(4))) Loose;
typedef float4 __attribute__((aligned(4))) Piece;
#define LOAD_PIECE(p) (*(__global const Piece*)(p))
#define LOW_1 (uint16)(0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH_1 (uint16)(2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW_2 (uint16)(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH_2 (uint16)(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define FRONTS (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define BACKS (uint16)(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define EVEN (uint16)(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD (uint16)(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#endif

#if LANES > 1
/// Vectors of parts of one system (strips.cl, chunks.cl) that go side by side, since one waits for its divisions: two of the processor's own. Four took 1.2 to 1.5 times as long in FP64 on a Zen 3, whose
/// second-level cache of 512 KiB then has more scratch and rows to hold (docs/notes/opencl.md).
#define V (VECTOR_BYTES == 32 ? 1 : 2)

// PoCL's vload and vstore make two of one.
#define LOAD(p) ((Vector)*(__global const Loose*)(p))
#define STORE(v, p) (*(__global Loose*)(p) = (v))
#endif

// More streams than a CPU's own prefetchers follow. Asked for in the second-level cache: lines of a hundred rows that lie apart, some tiles of each, are more than the first one has
// (a Zen 4 took twice the time for one system where they were asked for there). OpenCL's prefetch() does nothing on PoCL.
#if defined(__has_builtin)
#if LANES > 1 && __has_builtin(__builtin_prefetch)
#define ASK(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#define ASK_TO_STORE(p) __builtin_prefetch((const void*)(size_t)(p), 1, 2)
#endif
#endif
#ifndef ASK
#define ASK(p)
#define ASK_TO_STORE(p)
#endif

// Past the caches, where the compiler knows how: p lies on 64 bytes.
#if defined(__has_builtin)
#if LANES > 1 && __has_builtin(__builtin_nontemporal_store)
#define STREAM(v, p) __builtin_nontemporal_store(v, (__global Vector*)(p))
#endif
#endif
#ifndef STREAM
#define STREAM(v, p) STORE(v, p)
#endif

#if LANES > 1
/// A vector is four pieces of 16 bytes, of SIDE numbers; tiles of SIDE × SIDE numbers are turned within the pieces, one instruction a shuffle.
#define SIDE (LANES / 4)

// LLVM joins shuffles of shuffles into one that no processor has, and takes it apart number by number.
#if defined(__x86_64__) && defined(__AVX512F__)
#define HOLD(v) __asm__("" : "+v"(v))
#else
#define HOLD(v)
#endif

#if VECTOR_BYTES == 32
#include "halves.h"
#else
/// t[s], s < SIDE: piece g is of system SIDE g + s, rows SIDE q …; becomes row SIDE q + s of all systems. Its own inverse.
INLINE void turn_pieces(Vector t[SIDE]) {
#if SIDE == 2
    const Vector one = t[0], other = t[1];
    t[0] = shuffle2(one, other, LOW_1), t[1] = shuffle2(one, other, HIGH_1);
#else
    Vector t0 = shuffle2(t[0], t[1], LOW_1), t1 = shuffle2(t[0], t[1], HIGH_1), t2 = shuffle2(t[2], t[3], LOW_1), t3 = shuffle2(t[2], t[3], HIGH_1);
    HOLD(t0); HOLD(t1); HOLD(t2); HOLD(t3);
    t[0] = shuffle2(t0, t2, LOW_2), t[1] = shuffle2(t0, t2, HIGH_2), t[2] = shuffle2(t1, t3, LOW_2), t[3] = shuffle2(t1, t3, HIGH_2);
#endif
}

/// LANES rows of LANES systems: from[l] is row 0 of system l; row r into out[r step].
INLINE void load_turned(__global const REAL* const* from, int step, Vector* out) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        Vector t[SIDE];
#pragma unroll
        for (int s = 0; s < SIDE; ++s) {
            t[s] = (Vector)(LOAD_PIECE(from[s] + q * SIDE), LOAD_PIECE(from[SIDE + s] + q * SIDE), LOAD_PIECE(from[2 * SIDE + s] + q * SIDE), LOAD_PIECE(from[3 * SIDE + s] + q * SIDE));
            HOLD(t[s]);
        }
        turn_pieces(t);
#pragma unroll
        for (int s = 0; s < SIDE; ++s) out[(q * SIDE + s) * step] = t[s];
    }
}

/// The reverse in registers: row r at x[r step] of all systems; LANES rows of system l into out[l].
INLINE void turn_back(const Vector* x, int step, Vector* out) {
    Vector t[4][SIDE];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
        for (int s = 0; s < SIDE; ++s) t[q][s] = x[(q * SIDE + s) * step];
        turn_pieces(t[q]);
#pragma unroll
        for (int s = 0; s < SIDE; ++s) HOLD(t[q][s]);
    }
#pragma unroll
    for (int s = 0; s < SIDE; ++s) {
        Vector a = shuffle2(t[0][s], t[1][s], FRONTS), b = shuffle2(t[2][s], t[3][s], FRONTS), c = shuffle2(t[0][s], t[1][s], BACKS), d = shuffle2(t[2][s], t[3][s], BACKS);
        HOLD(a); HOLD(b); HOLD(c); HOLD(d);
        out[s] = shuffle2(a, b, EVEN), out[SIDE + s] = shuffle2(a, b, ODD), out[2 * SIDE + s] = shuffle2(c, d, EVEN), out[3 * SIDE + s] = shuffle2(c, d, ODD);
    }
}
#endif
#else
INLINE void load_turned(__global const REAL* const* from, int step, Vector* out) { out[0] = *from[0]; }
INLINE void turn_back(const Vector* x, int step, Vector* out) { out[0] = x[0]; }
#endif

// Where vectors have 32 bytes, the second-level cache (512 KiB of a Zen 3) is smaller too.
#if VECTOR_BYTES == 32
#define TILES_AHEAD 2
#else
#define TILES_AHEAD 4
#endif
/// Where they were asked for long before: what came too fast was dropped.
#define TILES_AGAIN 1

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

/// Lines of the four operands of a block that comes later, one of each at a time in the order of their addresses; rows of every system side by side.
typedef struct {
    __global const REAL* p[4];
    word at, end, between, n, left;  ///< of a run: where we are, its end; from its end to the next one; its rows; runs that follow
} Asks;
#define LINE (64 / REAL_BYTES)

/// 0: these four are not laid out alike.
INLINE int asks_of(const Block* of, word n, word systems, Asks* asks) {
    word lanes = 0;
    __global const REAL* some = 0;
    for (int o = 0; o < 4; ++o) {
        if (!of[o].is_view || of[o].lanes == 0) continue;
        if (of[o].rows != 1 || of[o].lanes < n || (some && of[o].lanes != lanes)) return 0;
        some = of[o].data, lanes = of[o].lanes;
    }
    if (!some) return 0;
    for (int o = 0; o < 4; ++o) asks->p[o] = of[o].is_view && of[o].lanes ? of[o].data : some;
    const int whole = lanes == n;  // one run
    asks->at = 0, asks->n = n, asks->end = whole ? n * systems : n, asks->between = lanes - n, asks->left = whole ? 0 : systems - 1;
    return 1;
}

INLINE void ask_lines(Asks* asks) {
    if (asks->at >= asks->end) {
        if (asks->left <= 0) return;
        --asks->left;
        asks->at = asks->end + asks->between, asks->end = asks->at + asks->n;
    }
#pragma unroll
    for (int o = 0; o < 4; ++o) ASK(asks->p[o] + asks->at);
    asks->at += LINE;
}

/// Rows i … i+count-1 of `vectors` vectors of systems, into out[row × vectors + vector]. Systems from `systems` on repeat the last one.
/// Rows outside first … last are 0 (numbers need not be), and are not read where nothing may lie there: at the `edge`, a block with the first or
/// the last system. Those `ahead` tiles further on are asked for.
INLINE void load_tile(const Block* b, word i, int count, word first, word last, word systems, int vectors, int edge, int ahead, Vector* out) {
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
            __global const REAL* from[LANES];
#pragma unroll
            for (int l = 0; l < LANES; ++l) from[l] = b->data + min((word)(v * LANES + l), systems - 1) * b->lanes + i;
#pragma unroll
            for (int l = 0; l < LANES; ++l) ASK(from[l] + ahead * LANES);
            load_turned(from, vectors, out + v);
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

/// Asks for rows i … i+LANES-1 of a block that is next.
INLINE void ask_tile(const Block* b, word i, word systems) {
    if (!b->is_view || b->lanes == 0) return;
    if (b->rows == 1) {
        for (word j = 0; j < systems; ++j) ASK(b->data + j * b->lanes + i);
    } else if (b->lanes == 1) {
        for (int r = 0; r < LANES; ++r)
            for (word j = 0; j < systems; j += LANES) ASK(b->data + (i + r) * b->rows + j);
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
            turn_back(x + v, vectors, t);
#pragma unroll
            for (int l = 0; l < LANES; ++l) STORE(t[l], b->data + (v * LANES + l) * b->lanes + i);
        }
    } else {
        store_slowly(b, i, count, systems, vectors, skip, x);
    }
}

/// LANES rows of systems whose rows are side by side and begin on 64 bytes, past the caches.
INLINE void stream_tile(const Block* b, word i, word systems, int vectors, const Vector* x) {
    for (int v = 0; v < vectors; ++v) {
        Vector t[LANES];
        turn_back(x + v, vectors, t);
#pragma unroll
        for (int l = 0; l < LANES; ++l)
            if (v * LANES + l < systems) STREAM(t[l], b->data + (v * LANES + l) * b->lanes + i);
    }
}
