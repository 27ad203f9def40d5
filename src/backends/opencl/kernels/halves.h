// SPDX-License-Identifier: BSD-3-Clause
// Tiles turned where a processor's vectors have 32 bytes: half a Vector at a time, since a whole tile is more than its sixteen registers hold.
// Included by vectors.h, whose words these are.
#if SIDE == 2
typedef double4 Half;
#define LOW_OF_HALVES_1 (ulong4)(0, 4, 2, 6)
#define HIGH_OF_HALVES_1 (ulong4)(1, 5, 3, 7)
#define FRONT_PIECES (ulong4)(0, 1, 4, 5)
#define BACK_PIECES (ulong4)(2, 3, 6, 7)
#else
typedef float8 Half;
#define LOW_OF_HALVES_1 (uint8)(0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH_OF_HALVES_1 (uint8)(2, 10, 3, 11, 6, 14, 7, 15)
#define LOW_OF_HALVES_2 (uint8)(0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_OF_HALVES_2 (uint8)(2, 3, 10, 11, 6, 7, 14, 15)
#define FRONT_PIECES (uint8)(0, 1, 2, 3, 8, 9, 10, 11)
#define BACK_PIECES (uint8)(4, 5, 6, 7, 12, 13, 14, 15)
#endif

// As HOLD.
#if defined(__x86_64__) && defined(__AVX__)
#define HOLD_HALF(v) __asm__("" : "+x"(v))
#else
#define HOLD_HALF(v)
#endif

/// As turn_pieces, of two pieces side by side.
INLINE void turn_halves(Half t[SIDE]) {
#pragma unroll
    for (int s = 0; s < SIDE; ++s) HOLD_HALF(t[s]);
#if SIDE == 2
    const Half one = t[0], other = t[1];
    t[0] = shuffle2(one, other, LOW_OF_HALVES_1), t[1] = shuffle2(one, other, HIGH_OF_HALVES_1);
#else
    Half t0 = shuffle2(t[0], t[1], LOW_OF_HALVES_1), t1 = shuffle2(t[0], t[1], HIGH_OF_HALVES_1), t2 = shuffle2(t[2], t[3], LOW_OF_HALVES_1), t3 = shuffle2(t[2], t[3], HIGH_OF_HALVES_1);
    HOLD_HALF(t0); HOLD_HALF(t1); HOLD_HALF(t2); HOLD_HALF(t3);
    t[0] = shuffle2(t0, t2, LOW_OF_HALVES_2), t[1] = shuffle2(t0, t2, HIGH_OF_HALVES_2), t[2] = shuffle2(t1, t3, LOW_OF_HALVES_2), t[3] = shuffle2(t1, t3, HIGH_OF_HALVES_2);
#endif
#pragma unroll
    for (int s = 0; s < SIDE; ++s) HOLD_HALF(t[s]);
}

/// LANES rows of LANES systems: from[l] is row 0 of system l; row r into out[r step].
INLINE void load_turned(__global const REAL* const* from, int step, Vector* out) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            Half t[SIDE];
#pragma unroll
            for (int s = 0; s < SIDE; ++s) t[s] = (Half)(LOAD_PIECE(from[2 * h * SIDE + s] + q * SIDE), LOAD_PIECE(from[(2 * h + 1) * SIDE + s] + q * SIDE));
            turn_halves(t);
#pragma unroll
            for (int s = 0; s < SIDE; ++s) ((Half*)(out + (q * SIDE + s) * step))[h] = t[s];
        }
}

/// The reverse: row r at x[r step] of all systems; LANES rows of system l into out[l].
INLINE void turn_back(const Vector* x, int step, Vector* out) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            Half a[SIDE], b[SIDE];
#pragma unroll
            for (int s = 0; s < SIDE; ++s) a[s] = ((const Half*)(x + (2 * p * SIDE + s) * step))[h], b[s] = ((const Half*)(x + ((2 * p + 1) * SIDE + s) * step))[h];
            turn_halves(a), turn_halves(b);
#pragma unroll
            for (int s = 0; s < SIDE; ++s) {
                ((Half*)(out + 2 * h * SIDE + s))[p] = shuffle2(a[s], b[s], FRONT_PIECES);
                ((Half*)(out + (2 * h + 1) * SIDE + s))[p] = shuffle2(a[s], b[s], BACK_PIECES);
            }
        }
}
