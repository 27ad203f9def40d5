// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/coupling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace trifold::tridiagonal {
namespace {

constexpr std::int64_t run_length = 64, together = 4;

std::int64_t runs_of(std::int64_t count) { return (count + run_length - 1) / run_length; }

// Moved as a whole: written as two numbers and read as a vector, a pair would wait for the store.
typedef double Pair __attribute__((vector_size(16)));

// Two unknowns leave with every chunk that joins a run: x[last k] and x[first k+1] ("in"); x[last k+1] and x[first k+2] come
// ("next"). outer: x[last before the run], x[first of the run]. right: rhs and, once the row is a pivot row, 1 / pivot.
struct Row {
    Pair in, next, outer, right;
};

// `lost` -= multiplier × pivot, from column `from` of `in` on.
template <int from>
void subtract(Row& lost, const Row& pivot) {
    const double number = lost.in[from] * pivot.right[1];
    const Pair multiplier = {number, number};
    if constexpr (from == 0) lost.in -= multiplier * pivot.in;
    lost.next -= multiplier * pivot.next;
    lost.outer -= multiplier * pivot.outer;
    lost.right -= multiplier * pivot.right;
}

// Which of the rows `at` has the largest entry in a column. Branches would be taken at random, so there are none.
template <int column, int count>
int largest(const Row* rows, const int (&at)[count]) {
    int best = 0;
    double size = std::abs(rows[at[0]].in[column]);
    for (int k = 1; k < count; ++k) {
        const double other = std::abs(rows[at[k]].in[column]);
        best = other > size ? k : best;
        size = other > size ? other : size;
    }
    return best;
}

// A run on its way: two carried rows, in terms of the chunk that joined last.
struct Run {
    Row carried[2];

    void start(const InterfaceRow* rows) {
        for (int k = 0; k < 2; ++k) {
            const double* const c = rows[k].coefficient;
            carried[k] = Row{Pair{0, 0}, Pair{c[2], c[3]}, Pair{c[0], c[1]}, Pair{rows[k].rhs, 0}};
        }
    }

    /// Keeps two pivot rows. 0, or 1 (2) where x[last k] (x[first k+1]) has no pivot.
    int join(const InterfaceRow* rows, Row* pivots) {
        Row work[4];
        for (int k = 0; k < 2; ++k) {
            const double* const c = rows[k].coefficient;
            work[k] = Row{carried[k].next, Pair{0, 0}, carried[k].outer, carried[k].right};
            work[2 + k] = Row{Pair{c[0], c[1]}, Pair{c[2], c[3]}, Pair{0, 0}, Pair{rows[k].rhs, 0}};
        }
        const int best = largest<0>(work, {0, 1, 2, 3});
        if (work[best].in[0] == 0) return 1;
        pivots[0] = work[best];
        pivots[0].right = Pair{pivots[0].right[0], 1 / pivots[0].in[0]};
        const int others[3] = {best == 0 ? 3 : 0, best == 1 ? 3 : 1, best == 2 ? 3 : 2};
        for (int k = 0; k < 3; ++k) subtract<0>(work[others[k]], pivots[0]);

        const int second = largest<1>(work, others);
        pivots[1] = work[others[second]];
        if (pivots[1].in[1] == 0) return 2;
        pivots[1].right = Pair{pivots[1].right[0], 1 / pivots[1].in[1]};
        carried[0] = work[others[second == 0 ? 2 : 0]], carried[1] = work[others[second == 1 ? 2 : 1]];
        for (int k = 0; k < 2; ++k) subtract<1>(carried[k], pivots[1]);
        return 0;
    }

    void store(InterfaceRow* rows) const {
        for (int k = 0; k < 2; ++k)
            rows[k] = {{carried[k].outer[0], carried[k].outer[1], carried[k].next[0], carried[k].next[1]}, carried[k].right[0]};
    }
};

/// `interleaved` runs of `count` chunks side by side, since one alone waits for its divisions. Returns the first unknown without
/// a pivot (2 k or 2 k + 1, counted from the first run's first chunk), or -1.
template <int interleaved>
std::int64_t reduce_runs(const InterfaceRow* rows, std::int64_t count, InterfaceRow* out, Row* pivots) {
    Run run[interleaved];
    std::int64_t missing = -1;
    for (int r = 0; r < interleaved; ++r) run[r].start(rows + 2 * r * count);
    for (std::int64_t chunk = 1; chunk < count; ++chunk)
        for (int r = 0; r < interleaved; ++r) {
            const std::int64_t at = 2 * (r * count + chunk);
            const int lacking = run[r].join(rows + at, pivots + at - 2);
            if (lacking && (missing < 0 || at - 2 + lacking < missing)) missing = at - 2 + lacking;
        }
    for (int r = 0; r < interleaved; ++r) run[r].store(out + 2 * r);
    return missing;
}

/// ends: x[last before], x[first], x[last], x[first after] of every run.
template <int interleaved>
void finish_runs(const Row* pivots, std::int64_t count, const double (*ends)[4], double* boundary) {
    double next[interleaved][2];
    for (int r = 0; r < interleaved; ++r) {
        next[r][0] = ends[r][2], next[r][1] = ends[r][3];
        boundary[2 * r * count] = ends[r][1], boundary[2 * (r + 1) * count - 1] = ends[r][2];
    }
    for (std::int64_t chunk = count - 1; chunk > 0; --chunk)
        for (int r = 0; r < interleaved; ++r) {
            const std::int64_t at = 2 * (r * count + chunk);
            const auto rest = [&](const Row& row) {
                return row.right[0] - row.outer[0] * ends[r][0] - row.outer[1] * ends[r][1] - row.next[1] * next[r][1] -
                       row.next[0] * next[r][0];
            };
            const Row& e = pivots[at - 2];
            const Row& s = pivots[at - 1];
            const double first = rest(s) * s.right[1], last = (rest(e) - e.in[1] * first) * e.right[1];
            boundary[at] = first, boundary[at - 1] = last;
            next[r][0] = last, next[r][1] = first;
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
    const std::size_t bytes = 2 * count * sizeof(Row) + runs * (2 * sizeof(InterfaceRow) + 2 * sizeof(double));
    return (bytes + 63) / 64 * 64;
}

std::int64_t eliminate(std::int64_t chunks, InterfaceRow* rows, double* boundary, int threads, void* scratch) {
    if (chunks == 1) return solve_last(rows, boundary);

    const std::int64_t runs = runs_of(chunks);
    Row* const pivots = static_cast<Row*>(scratch);
    InterfaceRow* const run_rows = reinterpret_cast<InterfaceRow*>(pivots + 2 * chunks);
    double* const run_boundary = reinterpret_cast<double*>(run_rows + 2 * runs);
    void* const rest = static_cast<char*>(scratch) + level_bytes(chunks);

    // Whole sets of runs first, then the runs that are left, of which the last may be short.
    const std::int64_t sets = chunks / run_length / together, singles = runs - sets * together;
    std::int64_t missing = 2 * chunks;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : missing) if (sets > 1)
    for (std::int64_t part = 0; part < sets + singles; ++part) {
        const std::int64_t run = part < sets ? part * together : sets * (together - 1) + part, first = run * run_length;
        const std::int64_t count = std::min(run_length, chunks - first);
        const auto reduce = part < sets ? reduce_runs<together> : reduce_runs<1>;
        const std::int64_t at = reduce(rows + 2 * first, count, run_rows + 2 * run, pivots + 2 * first);
        if (at >= 0) missing = std::min(missing, 2 * first + at);
    }
    if (missing < 2 * chunks) return missing;

    for (int k = 0; k < 2; ++k) run_rows[k].coefficient[0] = 0, run_rows[2 * (runs - 1) + k].coefficient[3] = 0;
    const std::int64_t above = eliminate(runs, run_rows, run_boundary, 1, rest);
    if (above >= 0) {
        const std::int64_t run = above / 2;
        return above % 2 == 0 ? 2 * run * run_length : 2 * std::min((run + 1) * run_length, chunks) - 1;
    }
#pragma omp parallel for num_threads(threads) schedule(static) if (sets > 1)
    for (std::int64_t part = 0; part < sets + singles; ++part) {
        const std::int64_t run = part < sets ? part * together : sets * (together - 1) + part, first = run * run_length;
        const std::int64_t count = std::min(run_length, chunks - first);
        double ends[together][4];
        for (std::int64_t r = 0; r < (part < sets ? together : 1); ++r) {
            const double* const at = run_boundary + 2 * (run + r);
            ends[r][0] = run + r > 0 ? at[-1] : 0, ends[r][1] = at[0], ends[r][2] = at[1], ends[r][3] = run + r + 1 < runs ? at[2] : 0;
        }
        const auto finish = part < sets ? finish_runs<together> : finish_runs<1>;
        finish(pivots + 2 * first, count, ends, boundary + 2 * first);
    }
    return -1;
}

/// Takes rows × x from their right-hand sides. The largest of what is left, row by row against the sum of |coefficient x|; NaN where one is.
double take_from(InterfaceRow* rows, std::int64_t chunks, const double* x, const double* scale, int threads) {
    double most = 0;
    bool numbers = true;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : most) reduction(&& : numbers) if (chunks > run_length * together)
    for (std::int64_t k = 0; k < chunks; ++k) {
        const auto around = [&](const double* of, double (&at)[4]) {
            at[0] = k > 0 ? of[2 * k - 1] : 0, at[1] = of[2 * k], at[2] = of[2 * k + 1], at[3] = k + 1 < chunks ? of[2 * k + 2] : 0;
        };
        double value[4], size[4];
        around(x, value), around(scale, size);
        for (InterfaceRow* row = rows + 2 * k; row < rows + 2 * k + 2; ++row) {
            double weight = 0;
            for (int c = 0; c < 4; ++c) row->rhs -= row->coefficient[c] * value[c], weight += std::abs(row->coefficient[c] * size[c]);
            if (row->rhs != 0) most = std::max(most, std::abs(row->rhs) / weight);
            numbers = numbers && std::isfinite(row->rhs) && std::isfinite(weight);
        }
    }
    return numbers ? most : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::size_t coupling_scratch(std::int64_t chunks) noexcept {
    std::size_t bytes = (2 * chunks * sizeof(double) + 63) / 64 * 64;
    for (std::int64_t count = chunks; count > 1; count = runs_of(count)) bytes += level_bytes(count);
    return bytes;
}

std::int64_t couple(std::int64_t chunks, InterfaceRow* rows, double* boundary, double accept, int threads, void* scratch) {
    for (int k = 0; k < 2; ++k) rows[k].coefficient[0] = 0, rows[2 * (chunks - 1) + k].coefficient[3] = 0;
    double* const correction = static_cast<double*>(scratch);
    void* const rest = static_cast<char*>(scratch) + (2 * chunks * sizeof(double) + 63) / 64 * 64;
    const std::int64_t missing = eliminate(chunks, rows, boundary, threads, rest);
    if (missing >= 0) return missing;
    const double before = take_from(rows, chunks, boundary, boundary, threads);
    if (!(before > accept)) return -1;
    if (eliminate(chunks, rows, correction, threads, rest) >= 0 || !(take_from(rows, chunks, correction, boundary, threads) < before)) return -1;
#pragma omp parallel for num_threads(threads) schedule(static) if (chunks > run_length * together)
    for (std::int64_t k = 0; k < 2 * chunks; ++k) boundary[k] += correction[k];
    return -1;
}

}  // namespace trifold::tridiagonal
