// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/coupling.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trifold::tridiagonal {
namespace {

constexpr std::int64_t run_length = 64;

std::int64_t runs_of(std::int64_t count) { return (count + run_length - 1) / run_length; }

/// Divided by its pivot: unknown = rhs - outer[0] x[last before the run] - outer[1] x[first of the run]
///                                     - next[0] x[first] - next[1] x[last] - next[2] x[first after]
/// where the next three belong to the chunk that joined; next[0] is 0 in the row of that x[first] itself.
struct PivotRow {
    double outer[2], next[3], rhs;
};

/// Coefficients of the run's two outer unknowns, of last k and first k+1 (which leave), last k+1 and first k+2; rhs.
using Row = double[7];

/// Column 2 or 3 of rows[0 … count-1]: brings the pivot row to the end and eliminates above it. False where there is none.
bool eliminate(Row* rows, int count, int column) {
    int best = 0;
    for (int k = 1; k < count; ++k)
        if (std::abs(rows[k][column]) > std::abs(rows[best][column])) best = k;
    if (rows[best][column] == 0) return false;
    std::swap(rows[best], rows[count - 1]);
    const double* const pivot = rows[count - 1];
    const double inverse = 1 / pivot[column];
    for (int k = 0; k + 1 < count; ++k) {
        const double multiplier = rows[k][column] * inverse;
        for (int c = 0; c < 7; ++c) rows[k][c] -= multiplier * pivot[c];
    }
    return true;
}

PivotRow normalised(const Row& row, int column) {
    const double inverse = 1 / row[column];
    return {{row[0] * inverse, row[1] * inverse}, {column == 2 ? row[3] * inverse : 0, row[4] * inverse, row[5] * inverse}, row[6] * inverse};
}

/// Rows of chunks 0 … count-1 of a run → its two rows; 2 (count - 1) pivot rows are kept. Returns the unknown without a pivot
/// (2 k or 2 k + 1, counted in the run), or -1.
std::int64_t reduce_run(const InterfaceRow* rows, std::int64_t count, InterfaceRow* out, PivotRow* pivots) {
    Row work[4] = {};
    for (int k = 0; k < 2; ++k) {
        const InterfaceRow& r = rows[k];
        const double values[7] = {r.coefficient[0], r.coefficient[1], 0, 0, r.coefficient[2], r.coefficient[3], r.rhs};
        std::copy_n(values, 7, work[k]);
    }
    for (std::int64_t chunk = 1; chunk < count; ++chunk) {
        for (int k = 0; k < 2; ++k) {
            const InterfaceRow& r = rows[2 * chunk + k];
            const double values[7] = {0, 0, r.coefficient[0], r.coefficient[1], r.coefficient[2], r.coefficient[3], r.rhs};
            std::copy_n(values, 7, work[2 + k]);
            work[k][2] = work[k][4], work[k][3] = work[k][5], work[k][4] = 0, work[k][5] = 0;
        }
        if (!eliminate(work, 4, 2)) return 2 * chunk - 1;
        if (!eliminate(work, 3, 3)) return 2 * chunk;
        pivots[2 * chunk - 2] = normalised(work[3], 2);
        pivots[2 * chunk - 1] = normalised(work[2], 3);
    }
    for (int k = 0; k < 2; ++k) out[k] = {{work[k][0], work[k][1], work[k][4], work[k][5]}, work[k][6]};
    return -1;
}

/// before, first, last, after: x at the ends of the run and beside it.
void finish_run(const PivotRow* pivots, std::int64_t count, double before, double first, double last, double after, double* boundary) {
    boundary[0] = first, boundary[2 * count - 1] = last;
    double last_x = last, after_x = after;
    for (std::int64_t chunk = count - 1; chunk > 0; --chunk) {
        const PivotRow& s = pivots[2 * chunk - 1];
        const PivotRow& e = pivots[2 * chunk - 2];
        const double first_x = s.rhs - s.outer[0] * before - s.outer[1] * first - s.next[1] * last_x - s.next[2] * after_x;
        const double x = e.rhs - e.outer[0] * before - e.outer[1] * first - e.next[0] * first_x - e.next[1] * last_x - e.next[2] * after_x;
        boundary[2 * chunk] = first_x, boundary[2 * chunk - 1] = x;
        last_x = x, after_x = first_x;
    }
}

/// Two rows in two unknowns.
std::int64_t solve_last(InterfaceRow* rows, double* x) {
    if (std::abs(rows[1].coefficient[1]) > std::abs(rows[0].coefficient[1])) std::swap(rows[0], rows[1]);
    const double pivot = rows[0].coefficient[1];
    if (pivot == 0) return 0;
    const double multiplier = rows[1].coefficient[1] / pivot;
    const double last = rows[1].coefficient[2] - multiplier * rows[0].coefficient[2];
    if (last == 0) return 1;
    x[1] = (rows[1].rhs - multiplier * rows[0].rhs) / last;
    x[0] = (rows[0].rhs - rows[0].coefficient[2] * x[1]) / pivot;
    return -1;
}

std::size_t level_bytes(std::int64_t count) {
    const std::int64_t runs = runs_of(count);
    const std::size_t bytes = 2 * count * sizeof(PivotRow) + runs * (2 * sizeof(InterfaceRow) + 2 * sizeof(double));
    return (bytes + 63) / 64 * 64;
}

}  // namespace

std::size_t coupling_scratch(std::int64_t chunks) noexcept {
    std::size_t bytes = 0;
    for (std::int64_t count = chunks; count > 1; count = runs_of(count)) bytes += level_bytes(count);
    return bytes;
}

std::int64_t couple(std::int64_t chunks, InterfaceRow* rows, double* boundary, int threads, void* scratch) {
    for (int k = 0; k < 2; ++k) rows[k].coefficient[0] = 0, rows[2 * (chunks - 1) + k].coefficient[3] = 0;
    if (chunks == 1) return solve_last(rows, boundary);

    const std::int64_t runs = runs_of(chunks);
    PivotRow* const pivots = static_cast<PivotRow*>(scratch);
    InterfaceRow* const run_rows = reinterpret_cast<InterfaceRow*>(pivots + 2 * chunks);
    double* const run_boundary = reinterpret_cast<double*>(run_rows + 2 * runs);
    void* const rest = static_cast<char*>(scratch) + level_bytes(chunks);

    std::int64_t missing = 2 * chunks;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : missing) if (runs > 1)
    for (std::int64_t run = 0; run < runs; ++run) {
        const std::int64_t first = run * run_length, count = std::min(run_length, chunks - first);
        const std::int64_t at = reduce_run(rows + 2 * first, count, run_rows + 2 * run, pivots + 2 * first);
        if (at >= 0) missing = std::min(missing, 2 * first + at);
    }
    if (missing < 2 * chunks) return missing;

    const std::int64_t above = couple(runs, run_rows, run_boundary, 1, rest);
    if (above >= 0) {
        const std::int64_t run = above / 2;
        return above % 2 == 0 ? 2 * run * run_length : 2 * std::min((run + 1) * run_length, chunks) - 1;
    }
#pragma omp parallel for num_threads(threads) schedule(static) if (runs > 1)
    for (std::int64_t run = 0; run < runs; ++run) {
        const std::int64_t first = run * run_length, count = std::min(run_length, chunks - first);
        const double before = run > 0 ? run_boundary[2 * run - 1] : 0, after = run + 1 < runs ? run_boundary[2 * run + 2] : 0;
        finish_run(pivots + 2 * first, count, before, run_boundary[2 * run], run_boundary[2 * run + 1], after, boundary + 2 * first);
    }
    return -1;
}

}  // namespace trifold::tridiagonal
