// SPDX-License-Identifier: BSD-3-Clause
// Groups of chunks of one system, on devices with vector units: which chunks a block has, their rows, what is said of them and where their x lies until it is stored.
//
// A lane per chunk, V vectors of neighbouring chunks per block; the first chunk and the last one are blocks of their own. Arrays and scratch: chunks.cl.
#include "chunk_rows.h"

#if LANES > 1

#define WIDTH (V * LANES)
#define EACH(v) for (int v = 0; v < V; ++v)

typedef struct {
    word first, count, rows;  ///< chunks first … first+count-1 of equally many rows
    int edge;
} Group;

INLINE word groups_of(const Cut* cut) { return cut->chunks <= 2 ? cut->chunks : 2 + (cut->chunks - 2 + WIDTH - 1) / WIDTH; }

INLINE Group group_of(const Cut* cut, word g) {
    Group out;
    out.edge = g == 0 || g == groups_of(cut) - 1;
    out.first = g == 0 ? 0 : out.edge ? cut->chunks - 1 : 1 + (g - 1) * WIDTH;
    out.count = out.edge ? 1 : min((word)WIDTH, cut->chunks - 1 - out.first);
    out.rows = out.first == cut->chunks - 1 ? cut->rows - out.first * cut->chunk_rows : cut->chunk_rows;
    return out;
}

INLINE Block chunk_block(const Source* s, __global REAL* buffer, const Cut* cut, const Group* g) {
    Block b;
    b.is_view = s->is_view != 0;
    b.data = buffer + s->offset + g->first * cut->chunk_rows * s->row_stride;
    b.rows = s->row_stride;
    b.lanes = cut->chunk_rows * s->row_stride;
    b.value = b.is_view ? (REAL)0 : number_of_bits(s->bits);
    return b;
}

/// Rows of a group that are read of `lower` and of `upper`: the others lie outside of the system.
INLINE word top_of(const Group* g) { return g->first == 0 ? 1 : 0; }
INLINE word bottom_of(const Cut* cut, const Group* g) { return g->first + g->count == cut->chunks ? g->rows - 2 : g->rows - 1; }

/// Rows i … of the matrix; those that lie outside of the system are 0.
INLINE void load_matrix(const Block* blocks, const Cut* cut, const Group* g, word i, int count, Vector* a, Vector* b, Vector* c) {
    const word top = top_of(g), bottom = bottom_of(cut, g);
    load_tile(blocks + 0, i, count, top, g->rows - 1, g->count, V, g->edge, TILES_AHEAD, a);
    load_tile(blocks + 1, i, count, 0, g->rows - 1, g->count, V, g->edge, TILES_AHEAD, b);
    load_tile(blocks + 2, i, count, 0, bottom, g->count, V, g->edge, TILES_AHEAD, c);
    // A number is outside too.
    if (i < top) EACH(v) a[v] = (Vector)0;
    if (i + count - 1 > bottom) EACH(v) c[(count - 1) * V + v] = (Vector)0;
}

INLINE void load_rows(const Block* blocks, const Cut* cut, const Group* g, word i, int count, Vector* a, Vector* b, Vector* c, Vector* f) {
    load_matrix(blocks, cut, g, i, count, a, b, c);
    load_tile(blocks + 3, i, count, 0, g->rows - 1, g->count, V, g->edge, TILES_AHEAD, f);
}

APART void number_out(__global REAL* out, word chunks, const Group* g, int v, int w, Vector value) {
    for (word l = 0; l < LANES && v * LANES + l < g->count; ++l) out[w * chunks + g->first + v * LANES + l] = ((const REAL*)&value)[l];
}

APART Vector number_in(const __global REAL* in, word chunks, const Group* g, int v, word shift) {
    Vector value;
    for (word l = 0; l < LANES; ++l) {
        const word k = g->first + min(v * LANES + l, g->count - 1) + shift;
        ((REAL*)&value)[l] = k >= 0 && k < chunks ? in[k] : (REAL)0;
    }
    return value;
}

INLINE Ends ends_of(const __global REAL* ends, const Cut* cut, const Group* g, int v) {
    Ends e;
    e.before = number_in(ends + cut->chunks, cut->chunks, g, v, -1), e.first = number_in(ends, cut->chunks, g, v, 0);
    e.last = number_in(ends + cut->chunks, cut->chunks, g, v, 0), e.after = number_in(ends, cut->chunks, g, v, 1);
    return e;
}

/// x of a chunk's rows lies at solutions[l pitch + LANES + row], x of the neighbours' rows around it.
INLINE word solution_pitch(word rows) { return (rows / LANES + 3) * LANES; }

/// Rows i … of all vectors of x to where they lie one after the other.
INLINE void put_solutions(const Vector* x, word i, word pitch, __global REAL* solutions) {
    EACH(v) {
        Vector t[LANES];
        turn_back(x + v, V, t);
#pragma unroll
        for (int l = 0; l < LANES; ++l) STORE(t[l], solutions + (v * LANES + l) * pitch + LANES + i);
    }
}

/// Row i of chunk j.
INLINE REAL at_row(const Block* b, word j, word i) { return b->is_view ? b->data[j * b->lanes + i * b->rows] : b->value; }

/// Rows i … i+LANES-1 of chunk j, side by side.
INLINE Vector along(const Block* b, word j, word i) { return b->is_view ? LOAD(b->data + j * b->lanes + i) : (Vector)b->value; }

INLINE int lies_along(const Block* b) { return !b->is_view || b->rows == 1; }

APART void store_chunk(const Block* x, word j, word m, int stream, const __global REAL* s) {
    __global REAL* const to = x->data + j * x->lanes;
    word i = 0;
    if (x->rows == 1 && stream) {
        for (; i < m && (size_t)(to + i) % 64; ++i) to[i] = s[i];
        for (; i + LANES <= m; i += LANES) STREAM(LOAD(s + i), to + i);
    }
    if (x->rows == 1)
        for (; i + LANES <= m; i += LANES) STORE(LOAD(s + i), to + i);
    for (; i < m; ++i) to[i * x->rows] = s[i];
}

#endif
