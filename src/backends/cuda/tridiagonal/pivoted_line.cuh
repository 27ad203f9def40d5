// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting between neighbouring rows, one thread per system, any layout.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: row i of system k lies at data[i row_stride + sum_d index_d(k) level_stride[d]]; strides may be zero or negative, a
//   coefficient may be a scalar. x may be rhs. lower[0] and upper[rows-1] are not read.
// Scratch: four arrays of rows × slots, row major, so that neighbouring threads write neighbouring words. A slot is a thread's;
//   with fewer slots than systems a thread solves one system after another.
// Overwritten: x of the systems that are solved, and nothing of one that fails: it is stored last, when all of it is known.
// Per thread: elimination keeps the current row in registers, exchanges it with the next where that has the larger entry in the
//   column, and stores the finished row of U and its right-hand side; substitution runs back through them.
// Words per row: 4 read + 4 stored + 4 read + 1 stored and read + 1 stored = 15, scattered where the rows of a system lie side by
//   side: this is the path for what no other takes.
// Numerics: backward stable, element growth at most 2 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section
//   9.6). A column without a pivot is `singular` at its row; a value that is not finite is `not_finite` at the first row that has
//   one, in the input, else in x.
// Source: the scheme of LAPACK's ?gtsv; G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 4.3.
#pragma once

#include "backends/cuda/tridiagonal/operand.cuh"
#include "backends/cuda/tridiagonal/pivoted.hpp"
#include "backends/cuda/tridiagonal/pivoted_verdict.cuh"

namespace trifold::cuda {

template <class T>
struct PivotedJob {
    Levels levels;
    std::int64_t rows, slots;
    Source<T> lower, diag, upper, rhs, x;
    T* scratch;
    Marks marks;
    const unsigned long long* marked;
    std::int8_t* status;
    DeviceOutcome* outcome;

    PivotedJob(const tridiagonal::System& s, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, std::int64_t slots)
        : levels(s), rows(s.rows), slots(slots), lower(s.lower), diag(s.diag), upper(s.upper), rhs(s.rhs), x(s.x),
          scratch(static_cast<T*>(launch.scratch)), marks(marks), marked(marked), status(launch.status), outcome(launch.outcome) {}

    /// Whether system k is to be solved.
    __device__ __forceinline__ bool wanted(std::int64_t k) const { return marks.has(k); }
};

/// As many threads as an H200 keeps in flight, but no more scratch than half a gigabyte, unless that leaves too few threads.
std::int64_t pivoted_slots(const tridiagonal::System& system);

/// One system, by one thread; scratch: its words, `slots` apart.
template <class T>
__device__ PivotedVerdict<T> solve_line(const Line<T>& lower, const Line<T>& diag, const Line<T>& upper, const Line<T>& rhs, const Line<T>& x, std::int64_t n, T* scratch,
                                        std::int64_t slots) {
    T* const pivot = scratch;
    T *const above = pivot + n * slots, *const above2 = above + n * slots, *const value = above2 + n * slots;
    T d = diag[0], u = n > 1 ? upper[0] : T(0), y = rhs[0];
    std::int64_t not_finite = all_finite(T(0), d, u, y) ? -1 : 0, singular = -1;
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        const T a = lower[i + 1], b = diag[i + 1], c = i + 2 < n ? upper[i + 1] : T(0), f = rhs[i + 1];
        if (not_finite < 0 && !all_finite(a, b, c, f)) not_finite = i + 1;
        const bool exchange = abs(a) > abs(d);
        const T p = exchange ? a : d;
        if (p == T(0) && singular < 0) singular = i;
        const T m = (exchange ? d : a) / p;
        pivot[i * slots] = p;
        above[i * slots] = exchange ? b : u;
        above2[i * slots] = exchange ? c : T(0);
        value[i * slots] = exchange ? f : y;
        if (exchange) {
            d = u - m * b, u = -m * c, y = y - m * f;
        } else {
            d = b - m * u, u = c, y = f - m * y;
        }
    }
    if (not_finite >= 0) return {Reason::not_finite, not_finite};
    if (singular < 0 && d == T(0)) singular = n - 1;
    if (singular >= 0) return {Reason::singular, singular};
    T next = y / d, after = 0;
    bool good = next * T(0) == T(0);
    if (!good) not_finite = n - 1;
    value[(n - 1) * slots] = next;
    for (std::int64_t i = n - 2; i >= 0; --i) {
        const T now = (value[i * slots] - above[i * slots] * next - above2[i * slots] * after) / pivot[i * slots];
        if (!(now * T(0) == T(0))) not_finite = i;
        value[i * slots] = now;
        after = next, next = now;
    }
    if (not_finite >= 0) return {Reason::not_finite, not_finite};
    for (std::int64_t i = 0; i < n; ++i) x.at(i) = value[i * slots];
    return {Reason::exact, -1};
}

template <class T>
__device__ PivotedVerdict<T> solve_line(const PivotedJob<T>& job, const std::int64_t (&index)[4], std::int64_t slot) {
    return solve_line(line_of(job.lower, index), line_of(job.diag, index), line_of(job.upper, index), line_of(job.rhs, index), line_of(job.x, index), job.rows, job.scratch + slot,
                      job.slots);
}

/// A thread's systems: those with a mark, or all, from `slot` on.
template <class T>
__device__ void solve_lines(const PivotedJob<T>& job, std::int64_t slot) {
    for (std::int64_t k = slot; k < job.levels.systems; k += job.slots) {
        if (!job.wanted(k)) continue;
        std::int64_t index[4];
        job.levels.indices(k, index);
        const PivotedVerdict<T> verdict = solve_line(job, index, slot);
        if (verdict.reason == Reason::exact) {
            if (job.marks.of_systems) report_rescued(job.outcome);
        } else {
            report_failure(job.outcome, job.status, job.levels.number_of(index), verdict.row, verdict.reason);
        }
    }
}

}  // namespace trifold::cuda
