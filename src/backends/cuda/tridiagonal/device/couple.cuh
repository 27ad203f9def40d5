// SPDX-License-Identifier: BSD-3-Clause
// One thread, up to `group` neighbouring chunks: their two rows each are merged into two rows of all, or their ends are found
// between known ends. Unknowns: x[first], x[last] of every chunk; two of them leave with every chunk that joins.
//
//   a0 x[last before] + a1 x[first] + a2 x[last] + a3 x[first after] = rhs,   two such rows per chunk
//
// Arrays: level: 10 words per chunk, word w of chunk k at level[w count + k]; ends: x[first] of chunk k at ends[k], x[last] at
//   ends[count + k]. merge writes one chunk of the next level, spread the ends of its own.
// Numerics: FP64; partial pivoting among four rows, then among three. A column of zeros gives false.
// Source: docs/algorithms/two_pass.md, "Coupling".
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/device/chunk.cuh"

namespace trifold::cuda {

inline constexpr int group = 16;

__device__ inline TwoRows load_rows(const double* level, std::int64_t count, std::int64_t k) {
    TwoRows out;
#pragma unroll
    for (int w = 0; w < 4; ++w) out.a[0][w] = level[w * count + k], out.a[1][w] = level[(4 + w) * count + k];
    out.rhs[0] = level[8 * count + k], out.rhs[1] = level[9 * count + k];
    return out;
}

__device__ inline void store_rows(double* level, std::int64_t count, std::int64_t k, const TwoRows& rows) {
#pragma unroll
    for (int w = 0; w < 4; ++w) level[w * count + k] = rows.a[0][w], level[(4 + w) * count + k] = rows.a[1][w];
    level[8 * count + k] = rows.rhs[0], level[9 * count + k] = rows.rhs[1];
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

/// Chunks first … last of a level as one.
__device__ inline bool merge(const double* level, std::int64_t count, std::int64_t first, std::int64_t last, TwoRows& out) {
    coupling::Run run;
    run.start(load_rows(level, count, first));
    bool regular = true;
    coupling::Row pivots[2];
    for (std::int64_t k = first + 1; k <= last; ++k) regular = run.join(load_rows(level, count, k), pivots) && regular;
    out = run.rows();
    return regular;
}

/// The ends of chunks first … last from x[last before], x[first], x[last], x[first after] of them all.
__device__ inline void spread(const double* level, std::int64_t count, std::int64_t first, std::int64_t last, const double (&known)[4], double* ends) {
    coupling::Run run;
    run.start(load_rows(level, count, first));
    // What is known moves to the right-hand side.
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        run.carried[k].rhs -= run.carried[k].outer0 * known[0] + run.carried[k].outer1 * known[1];
        run.carried[k].outer0 = run.carried[k].outer1 = 0;
    }
    double kept[group - 1][9];
    for (int j = 0; first + j < last; ++j) {
        coupling::Row p[2];
        run.join(load_rows(level, count, first + j + 1), p);
        kept[j][0] = p[0].in0, kept[j][1] = p[0].in1, kept[j][2] = p[0].next0, kept[j][3] = p[0].next1, kept[j][4] = p[0].rhs;
        kept[j][5] = p[1].in1, kept[j][6] = p[1].next0, kept[j][7] = p[1].next1, kept[j][8] = p[1].rhs;
    }
    double next0 = known[2], next1 = known[3];
    ends[first] = known[1], ends[count + last] = known[2];
    for (int j = static_cast<int>(last - first) - 1; j >= 0; --j) {
        const double(&p)[9] = kept[j];
        const double front = (p[8] - p[6] * next0 - p[7] * next1) * p[5];
        const double back = (p[4] - p[1] * front - p[2] * next0 - p[3] * next1) * p[0];
        ends[first + j + 1] = front, ends[count + first + j] = back;
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
