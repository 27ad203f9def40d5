// SPDX-License-Identifier: BSD-3-Clause
// Chunks whose rows are those of diffusion, dominant and with couplings of the other sign: no exchanges, no residual. A Vector has a chunk per lane.
// Pending: p x[i] = r + before x[-1] + next x[i+1], rows with the sign that makes the first diagonal positive. What p has more than before and next is carried along, and p made of it.
// Numerics: the cpu's dominant_row-inl.h, by the same equations: both passes eliminate alike, so that ends and chunks fit to a rounding. docs/algorithms/two_pass.md, "Dominant rows".
#include "chunk_rows.h"

#if LANES > 1

#if REAL_BYTES == 8
#define POWER_OF_TWO(x) as_double8(as_long8(x) & (long8)0x7ff0000000000000)
#define LEAST_PIVOT 1e-270
#define MOST_PIVOT 1e270
#define NOTHING 1e-60
#define MOST_OFF (128 * DBL_EPSILON)
#else
#define POWER_OF_TWO(x) as_float16(as_int16(x) & (int16)0x7f800000)
#define LEAST_PIVOT 1e-28f
#define MOST_PIVOT 1e28f
#define NOTHING 1e-18f
#define MOST_OFF (128 * FLT_EPSILON)
#endif
/// What a row may lack of being dominant, of its pivot.
#define SLACK ((REAL)1 / (REAL)512)
#define LESSER(a, b) ((a) < (b) ? (a) : (b))

typedef struct {
    Vector p, excess, before, next, r;
    Vector fall;  ///< p - next
    Vector least, most;  ///< of what must not be negative, and of p
    Vector flip;
} Dominant;

/// x[i] = r + before x[-1] + next x[i+1]. w: next - 1, and below zero, where next is above 1/2; else next.
typedef struct {
    Vector r, before, excess, next, w;
} DominantPivot;

INLINE void take_pivot(Dominant* t) {
    t->fall = t->excess + t->before, t->p = t->fall + t->next;
    const Vector lacks = t->p * SLACK + (t->excess - (Vector)LEAST_PIVOT), coupling = LESSER(t->before, t->next), most = t->most;
    t->least = LESSER(t->least, LESSER(coupling, lacks)), t->most = t->p > most ? t->p : most;
}

INLINE void start_dominant(Dominant* t, Vector a, Vector b, Vector c, Vector f) {
    t->flip = b < (Vector)0 ? (Vector)(-1) : (Vector)1;
    t->before = -a * t->flip, t->next = -c * t->flip, t->r = f * t->flip;
    t->excess = (b * t->flip - t->before) - t->next;
    t->least = (Vector)LARGEST, t->most = (Vector)0;
    take_pivot(t);
}

INLINE DominantPivot pivot_of(const Dominant* t) {
    const Vector inverse = (Vector)1 / t->p;
    const Vector next = t->next * inverse;
    const DominantPivot of = {t->r * inverse, t->before * inverse, t->excess * inverse, next, t->next > t->fall ? -fmax(t->fall * inverse, (Vector)NOTHING) : next};
    return of;
}

INLINE void join_dominant(Dominant* t, const DominantPivot* of, Vector a, Vector b, Vector c, Vector f) {
    const Vector over = -a * t->flip;
    t->next = -c * t->flip, t->before = over * of->before;
    t->r = over * of->r + f * t->flip;
    t->excess = over * of->excess + ((b * t->flip - over) - t->next);
    take_pivot(t);
}

/// What has become next to nothing, once in a while: smaller numbers would be slow.
INLINE void forget(Dominant* t) {
    const Vector nothing = t->p * (Vector)NOTHING;
    t->before = t->before < nothing ? (Vector)0 : t->before, t->excess = fabs(t->excess) < nothing ? (Vector)0 : t->excess;
}

/// Whether all lanes did without exchanges. What is not a number shows in r or in the last pivot.
INLINE int is_dominant(const Dominant* t) {
    return all((t->least >= (Vector)0) & (t->most <= (Vector)MOST_PIVOT) & (fabs(t->p + t->r) <= (Vector)LARGEST));
}

/// x of a row, and what its roundings have lost.
typedef struct {
    Vector near, lost;
} Substituting;

/// x[i] = v + w x[i+1], or x[i+1] + (v + w x[i+1]) where w is below zero, with what the sum loses: where x of hundreds of rows is one and the same but for little, all of their roundings would be in x[0].
INLINE Vector substitute_dominant(Substituting* t, Vector w, Vector v) {
    const Mask falls = w < (Vector)0;
    const Vector from = falls ? t->near : (Vector)0, kept = falls ? t->lost : (Vector)0, part = v + w * t->near, all = from + part;
    t->lost = (kept + w * t->lost) + (part - (all - from));
    t->near = all;
    return all + t->lost;
}

/// A sum of parts, and what its roundings have lost (D. E. Knuth's exact sum of two numbers).
typedef struct {
    Vector sum, lost;
} Gathered;

INLINE void add_part(Gathered* t, Vector part) {
    const Vector all = t->sum + part, of_part = all - t->sum, of_sum = all - of_part;
    t->lost += (t->sum - of_sum) + (part - of_part);
    t->sum = all;
}

/// x[0] = r + before x[-1] + last x[i] goes along in the first pass, excess = 1 - before - last: of before and excess the smaller one is known better, and says the other.
typedef struct {
    Dominant row;
    Vector last;
    Vector turned, lost;       ///< last at the tile's first row, and what its roundings have lost
    Vector before, r, excess;  ///< what the rows of a tile add
    Gathered befores, rs, excesses;
    Vector edge;
} DominantReducing;

INLINE void start_dominant_reducing(DominantReducing* t, Vector a, Vector b, Vector c, Vector f) {
    const Vector none = (Vector)0;
    const Gathered nothing = {none, none};
    start_dominant(&t->row, a, b, c, f);
    t->edge = t->row.before;
    t->befores = t->rs = t->excesses = nothing;
    t->before = t->r = t->excess = t->lost = none, t->last = t->turned = (Vector)1;
}

/// A tile at a time: a rounding of the whole sum with every row would be some 20 in a chunk where x is rough. last too is what before and excess leave of it, unless
/// little is left.
INLINE void gather_tile(DominantReducing* t) {
    const Vector taken = t->before + t->excess, left = t->turned - taken, of_sums = t->lost + ((t->turned - left) - taken), all = left + of_sums;
    const Mask most = t->last + t->last > t->turned;
    t->lost = most ? of_sums - (all - left) : (Vector)0, t->last = t->turned = most ? all : t->last;
    add_part(&t->befores, t->before), add_part(&t->rs, t->r), add_part(&t->excesses, t->excess);
    t->before = t->r = t->excess = (Vector)0;
}

INLINE void reduce_dominant_row(DominantReducing* t, Vector a, Vector b, Vector c, Vector f) {
    const DominantPivot of = pivot_of(&t->row);
    t->before += t->last * of.before, t->r += t->last * of.r, t->excess += t->last * of.excess;
    t->last = t->last * of.next;
    join_dominant(&t->row, &of, a, b, c, f);
}

/// What `reduce` says of a chunk: rows as elimination of the unknowns between leaves them of its first and its last one.
INLINE void close_dominant(const DominantReducing* t, Vector said[11]) {
    const Vector none = (Vector)0, of_before = t->befores.sum + t->befores.lost, of_excess = t->excesses.sum + t->excesses.lost;
    const Vector before = of_before < of_excess ? of_before : ((Vector)1 - t->last) - of_excess;
    const Vector size = t->edge / before, scale = POWER_OF_TWO((before > none) & (t->edge > none) ? LESSER(size, t->row.most) : t->row.p);
    said[0] = -t->row.before, said[1] = none, said[2] = t->row.p, said[3] = -t->row.next;
    said[4] = -before * scale, said[5] = scale, said[6] = -t->last * scale, said[7] = none;
    said[8] = t->row.r, said[9] = (t->rs.sum + t->rs.lost) * scale, said[10] = (Vector)(-1);
}

#endif
