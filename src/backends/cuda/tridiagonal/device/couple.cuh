// SPDX-License-Identifier: BSD-3-Clause
// One thread, up to `group` neighbouring chunks: their two rows each are merged into two rows of all, or their ends are found
// between known ends. Unknowns: x[first], x[last] of every chunk; two of them leave with every chunk that joins.
//
//   a0 x[last before] + a1 x[first] + a2 x[last] + a3 x[first after] = rhs,   two such rows per chunk
//
// Arrays: level: 10 words per chunk, word w of chunk k at level[w pitch + place(k)]: chunk i of group g at i groups + g, so that threads beside each other,
//   who have groups beside each other, meet neighbours in memory; ends: x[first] and x[last], each array in the order of chunks. merge gives one chunk of
//   the next level, spread the ends of its own.
// Numerics: FP64; partial pivoting among four rows, then among three. A column of zeros gives false.
// Source: docs/algorithms/two_pass.md, "Coupling".
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/device/chunk.cuh"

namespace trifold::cuda {

inline constexpr int group = 16;

/// The chunks of a level, in groups of `size`.
struct LevelOf {
    std::int64_t count, groups;
    int size;

    __host__ __device__ LevelOf(std::int64_t chunks, int together) : count(chunks), groups((chunks + together - 1) / together), size(together) {}

    __host__ __device__ std::int64_t pitch() const { return groups * size; }
    __host__ __device__ std::int64_t place(std::int64_t k) const { return k % size * groups + k / size; }
    __device__ std::int64_t first(std::int64_t g) const { return g * size; }
    __device__ int chunks_of(std::int64_t g) const { return static_cast<int>(g + 1 < groups ? size : count - g * size); }
};

__device__ inline TwoRows load_rows(const double* level, std::int64_t pitch, std::int64_t place) {
    TwoRows out;
#pragma unroll
    for (int w = 0; w < 4; ++w) out.a[0][w] = level[w * pitch + place], out.a[1][w] = level[(4 + w) * pitch + place];
    out.rhs[0] = level[8 * pitch + place], out.rhs[1] = level[9 * pitch + place];
    return out;
}

__device__ inline void store_rows(double* level, std::int64_t pitch, std::int64_t place, const TwoRows& rows) {
#pragma unroll
    for (int w = 0; w < 4; ++w) level[w * pitch + place] = rows.a[0][w], level[(4 + w) * pitch + place] = rows.a[1][w];
    level[8 * pitch + place] = rows.rhs[0], level[9 * pitch + place] = rows.rhs[1];
}

namespace coupling {

/// in: x[last k], x[first k+1], which leave; next: x[last k+1], x[first k+2]; outer: x[last before the group], x[first of it].
struct Row {
    double in0, in1, next0, next1, outer0, outer1, rhs;
};

__device__ inline void subtract(Row& lost, const Row& pivot, double multiplier) {
    lost.in1 -= multiplier * pivot.in1;
    lost.next0 -= multiplier * pivot.next0, lost.next1 -= multiplier * pivot.next1;
    lost.outer0 -= multiplier * pivot.outer0, lost.outer1 -= multiplier * pivot.outer1;
    lost.rhs -= multiplier * pivot.rhs;
}

__device__ inline void exchange_if(bool wanted, Row& a, Row& b) {
    const Row kept = a;
    a = wanted ? b : a;
    b = wanted ? kept : b;
}

/// Two carried rows on the way from the first chunk of a group to its last.
struct Run {
    Row carried[2];

    __device__ void start(const TwoRows& rows) {
#pragma unroll
        for (int k = 0; k < 2; ++k) carried[k] = {0, 0, rows.a[k][2], rows.a[k][3], rows.a[k][0], rows.a[k][1], rows.rhs[k]};
    }

    /// The pivot rows are left in `pivots`; their in0 and in1 then hold 1 / pivot. False: no pivot.
    __device__ bool join(const TwoRows& rows, Row (&pivots)[2]) {
        Row w[4];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            w[k] = {carried[k].next0, carried[k].next1, 0, 0, carried[k].outer0, carried[k].outer1, carried[k].rhs};
            w[2 + k] = {rows.a[k][0], rows.a[k][1], rows.a[k][2], rows.a[k][3], 0, 0, rows.rhs[k]};
        }
#pragma unroll
        for (int k = 1; k < 4; ++k) exchange_if(abs(w[k].in0) > abs(w[0].in0), w[0], w[k]);
        bool regular = w[0].in0 != 0;
        const double first = 1 / w[0].in0;
#pragma unroll
        for (int k = 1; k < 4; ++k) subtract(w[k], w[0], w[k].in0 * first);
#pragma unroll
        for (int k = 2; k < 4; ++k) exchange_if(abs(w[k].in1) > abs(w[1].in1), w[1], w[k]);
        regular = regular && w[1].in1 != 0;
        const double second = 1 / w[1].in1;
#pragma unroll
        for (int k = 2; k < 4; ++k) {
            subtract(w[k], w[1], w[k].in1 * second);
            carried[k - 2] = w[k];
        }
        pivots[0] = w[0], pivots[1] = w[1];
        pivots[0].in0 = first, pivots[1].in1 = second;
        return regular;
    }

    __device__ TwoRows rows() const {
        TwoRows out;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            out.a[k][0] = carried[k].outer0, out.a[k][1] = carried[k].outer1, out.a[k][2] = carried[k].next0, out.a[k][3] = carried[k].next1;
            out.rhs[k] = carried[k].rhs;
        }
        return out;
    }
};

}  // namespace coupling

/// The chunks of group g as one.
__device__ inline bool merge(const double* level, const LevelOf& of, std::int64_t g, TwoRows& out) {
    const int count = of.chunks_of(g);
    const std::int64_t pitch = of.pitch();
    coupling::Run run;
    TwoRows next = load_rows(level, pitch, g);
    run.start(next);
    bool regular = true;
    coupling::Row pivots[2];
    if (count > 1) next = load_rows(level, pitch, g + of.groups);
    for (int k = 1; k < count; ++k) {
        const TwoRows here = next;
        next = load_rows(level, pitch, g + min(k + 1, count - 1) * of.groups);  // while this one is joined
        regular = run.join(here, pivots) && regular;
    }
    out = run.rows();
    return regular;
}

/// The ends of the chunks of group g from x[last before], x[first], x[last], x[first after] of them all: x[first] of the group's chunks, and x[last].
__device__ inline void spread(const double* level, const LevelOf& of, std::int64_t g, const double (&known)[4], double* firsts, double* lasts) {
    const int count = of.chunks_of(g);
    const std::int64_t pitch = of.pitch();
    coupling::Run run;
    TwoRows next = load_rows(level, pitch, g);
    run.start(next);
    // What is known moves to the right-hand side.
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        run.carried[k].rhs -= run.carried[k].outer0 * known[0] + run.carried[k].outer1 * known[1];
        run.carried[k].outer0 = run.carried[k].outer1 = 0;
    }
    double kept[group - 1][9];
    if (count > 1) next = load_rows(level, pitch, g + of.groups);
    for (int j = 0; j + 1 < count; ++j) {
        const TwoRows here = next;
        next = load_rows(level, pitch, g + min(j + 2, count - 1) * of.groups);
        coupling::Row p[2];
        run.join(here, p);
        kept[j][0] = p[0].in0, kept[j][1] = p[0].in1, kept[j][2] = p[0].next0, kept[j][3] = p[0].next1, kept[j][4] = p[0].rhs;
        kept[j][5] = p[1].in1, kept[j][6] = p[1].next0, kept[j][7] = p[1].next1, kept[j][8] = p[1].rhs;
    }
    double next0 = known[2], next1 = known[3];
    firsts[0] = known[1], lasts[count - 1] = known[2];
    for (int j = count - 2; j >= 0; --j) {
        const double(&p)[9] = kept[j];
        const double front = (p[8] - p[6] * next0 - p[7] * next1) * p[5];
        const double back = (p[4] - p[1] * front - p[2] * next0 - p[3] * next1) * p[0];
        firsts[j + 1] = front, lasts[j] = back;
        next0 = back, next1 = front;
    }
}

/// Two rows in x[first], x[last] of the whole system.
__device__ inline bool solve_last(const TwoRows& rows, double& first, double& last) {
    const int top = abs(rows.a[1][1]) > abs(rows.a[0][1]) ? 1 : 0, other = 1 - top;
    const double pivot = rows.a[top][1], m = rows.a[other][1] / pivot, rest = rows.a[other][2] - m * rows.a[top][2];
    last = (rows.rhs[other] - m * rows.rhs[top]) / rest;
    first = (rows.rhs[top] - rows.a[top][2] * last) / pivot;
    return pivot != 0 && rest != 0;
}

}  // namespace trifold::cuda
