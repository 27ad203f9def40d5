// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/coupling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace trifold::tridiagonal {
namespace {

constexpr std::int64_t run_length = 64, together = 4;

// Of so many more than one thread is done before others have heard of it.
constexpr std::int64_t worth_threads = 2 * run_length * together;

std::int64_t runs_of(std::int64_t count) { return (count + run_length - 1) / run_length; }

std::size_t lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Moved as a whole: written as two numbers and read as a vector, a pair would wait for the store.
typedef double Pair __attribute__((vector_size(16)));

// Two unknowns leave with every chunk that joins a run: x[last k] and x[first k+1] ("in"); x[last k+1] and x[first k+2] come
// ("next"). outer: x[last before the run], x[first of the run]. right: rhs and, once the row is a pivot row, 1 / pivot.
struct Row {
    Pair in, next, outer, right;
};

// `lost` -= multiplier × pivot, from column `from` of `in` on. Returns the multiplier.
template <int from>
double subtract(Row& lost, const Row& pivot) {
    const double number = lost.in[from] * pivot.right[1];
    const Pair multiplier = {number, number};
    if constexpr (from == 0) lost.in -= multiplier * pivot.in;
    lost.next -= multiplier * pivot.next;
    lost.outer -= multiplier * pivot.outer;
    lost.right -= multiplier * pivot.right;
    return number;
}

// What a chunk's joining leaves: the pivot rows of x[last k] and x[first k+1], and how they were subtracted, for other right-hand sides. Where a row is of no use any more (last.in[0], first.in)
// three of the five multipliers are.
struct Step {
    Row last, first;
    Pair of_carried;
    std::int32_t best, second;  // of four rows; of the three others
    std::int64_t unused;
};

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

    /// 0, or 1 (2) where x[last k] (x[first k+1]) has no pivot.
    int join(const InterfaceRow* rows, Step& step) {
        Row work[4];
        for (int k = 0; k < 2; ++k) {
            const double* const c = rows[k].coefficient;
            work[k] = Row{carried[k].next, Pair{0, 0}, carried[k].outer, carried[k].right};
            work[2 + k] = Row{Pair{c[0], c[1]}, Pair{c[2], c[3]}, Pair{0, 0}, Pair{rows[k].rhs, 0}};
        }
        const int best = largest<0>(work, {0, 1, 2, 3});
        if (work[best].in[0] == 0) return 1;
        Row last = work[best];
        last.right = Pair{last.right[0], 1 / last.in[0]};
        const int others[3] = {best == 0 ? 3 : 0, best == 1 ? 3 : 1, best == 2 ? 3 : 2};
        double multiplier[3];
        for (int k = 0; k < 3; ++k) multiplier[k] = subtract<0>(work[others[k]], last);

        const int second = largest<1>(work, others);
        Row first = work[others[second]];
        if (first.in[1] == 0) return 2;
        first.right = Pair{first.right[0], 1 / first.in[1]};
        carried[0] = work[others[second == 0 ? 2 : 0]], carried[1] = work[others[second == 1 ? 2 : 1]];
        const double one = subtract<1>(carried[0], first), other = subtract<1>(carried[1], first);
        last.in[0] = multiplier[0], first.in = Pair{multiplier[1], multiplier[2]};
        step = {last, first, Pair{one, other}, best, second, 0};
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
std::int64_t reduce_runs(const InterfaceRow* rows, std::int64_t count, InterfaceRow* out, Step* steps) {
    Run run[interleaved];
    std::int64_t missing = -1;
    for (int r = 0; r < interleaved; ++r) run[r].start(rows + 2 * r * count);
    for (std::int64_t chunk = 1; chunk < count; ++chunk)
        for (int r = 0; r < interleaved; ++r) {
            const std::int64_t at = r * count + chunk;
            const int lacking = run[r].join(rows + 2 * at, steps[at - 1]);
            if (lacking && (missing < 0 || 2 * at - 2 + lacking < missing)) missing = 2 * at - 2 + lacking;
        }
    for (int r = 0; r < interleaved; ++r) run[r].store(out + 2 * r);
    return missing;
}

/// The same for other right-hand sides.
template <int interleaved>
void reduce_right(const InterfaceRow* rows, std::int64_t count, InterfaceRow* out, Step* steps) {
    double carried[interleaved][2];
    for (int r = 0; r < interleaved; ++r)
        for (int k = 0; k < 2; ++k) carried[r][k] = rows[2 * r * count + k].rhs;
    for (std::int64_t chunk = 1; chunk < count; ++chunk)
        for (int r = 0; r < interleaved; ++r) {
            const std::int64_t at = r * count + chunk;
            Step& step = steps[at - 1];
            const double work[4] = {carried[r][0], carried[r][1], rows[2 * at].rhs, rows[2 * at + 1].rhs};
            const int best = step.best, second = step.second;
            const double last = work[best];
            const double left[3] = {work[best == 0 ? 3 : 0] - step.last.in[0] * last, work[best == 1 ? 3 : 1] - step.first.in[0] * last, work[best == 2 ? 3 : 2] - step.first.in[1] * last};
            const double first = left[second];
            step.last.right[0] = last, step.first.right[0] = first;
            carried[r][0] = left[second == 0 ? 2 : 0] - step.of_carried[0] * first;
            carried[r][1] = left[second == 1 ? 2 : 1] - step.of_carried[1] * first;
        }
    for (int r = 0; r < interleaved; ++r)
        for (int k = 0; k < 2; ++k) out[2 * r + k].rhs = carried[r][k];
}

/// ends: x[last before], x[first], x[last], x[first after] of every run.
template <int interleaved>
void finish_runs(const Step* steps, std::int64_t count, const double (*ends)[4], double* boundary) {
    double next[interleaved][2];
    for (int r = 0; r < interleaved; ++r) {
        next[r][0] = ends[r][2], next[r][1] = ends[r][3];
        boundary[2 * r * count] = ends[r][1], boundary[2 * (r + 1) * count - 1] = ends[r][2];
    }
    for (std::int64_t chunk = count - 1; chunk > 0; --chunk)
        for (int r = 0; r < interleaved; ++r) {
            const std::int64_t at = r * count + chunk;
            const auto rest = [&](const Row& row) {
                return row.right[0] - row.outer[0] * ends[r][0] - row.outer[1] * ends[r][1] - row.next[1] * next[r][1] -
                       row.next[0] * next[r][0];
            };
            const Step& step = steps[at - 1];
            const double first = rest(step.first) * step.first.right[1], last = (rest(step.last) - step.last.in[1] * first) * step.last.right[1];
            boundary[2 * at] = first, boundary[2 * at - 1] = last;
            next[r][0] = last, next[r][1] = first;
        }
}

/// Two rows in two unknowns.
std::int64_t solve_last(const InterfaceRow* of, double* x) {
    InterfaceRow rows[2] = {of[0], of[1]};
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

/// What is left of a row, against the sum of |coefficient x|.
struct Left {
    double most = 0;
    bool numbers = true;
    double worst() const { return numbers ? most : std::numeric_limits<double>::quiet_NaN(); }
};

/// x at the ends of chunks, with what lies before the first and behind the last of them.
struct Ends {
    const double* of;
    double before, after;
};

/// Takes rows × x from the right-hand sides of `count` chunks.
Left take_from(InterfaceRow* rows, std::int64_t count, const Ends& x, const Ends& scale) {
    Left left;
    for (std::int64_t k = 0; k < count; ++k) {
        const auto around = [&](const Ends& ends, double (&at)[4]) {
            at[0] = k > 0 ? ends.of[2 * k - 1] : ends.before, at[1] = ends.of[2 * k], at[2] = ends.of[2 * k + 1], at[3] = k + 1 < count ? ends.of[2 * k + 2] : ends.after;
        };
        double value[4], size[4];
        around(x, value), around(scale, size);
        for (InterfaceRow* row = rows + 2 * k; row < rows + 2 * k + 2; ++row) {
            double weight = 0;
            for (int c = 0; c < 4; ++c) row->rhs -= row->coefficient[c] * value[c], weight += std::abs(row->coefficient[c] * size[c]);
            if (row->rhs != 0) left.most = std::max(left.most, std::abs(row->rhs) / weight);
            left.numbers = left.numbers && std::isfinite(row->rhs) && std::isfinite(weight);
        }
    }
    return left;
}

/// Runs of `count` chunks from `chunk` on: `together` of them, or one.
struct Some {
    InterfaceRow* rows;
    std::int64_t chunk, run, count;
    bool set;
    std::int64_t runs() const { return set ? together : 1; }
    std::int64_t chunks() const { return runs() * count; }
};

// Every part may end with single runs, of which the last one may be short.
std::size_t level_bytes(std::int64_t chunks, std::int64_t runs, std::int64_t parts) {
    return lines(chunks * sizeof(Step) + runs * (2 * sizeof(InterfaceRow) + 2 * sizeof(double)) + (chunks / (together * run_length) + together * parts) * sizeof(Some));
}

std::int64_t solve(InterfaceRow* rows, std::int64_t chunks, double* x, int threads, void* scratch);

/// Chunks, the runs that they form, and what solves those.
class Level {
public:
    Level(std::span<const ChunkRows> parts, int threads, void* scratch) : threads_(threads) {
        for (const ChunkRows& part : parts) chunks_ += part.chunks, runs_ += runs_of(part.chunks);
        steps_ = static_cast<Step*>(scratch);
        run_rows_ = reinterpret_cast<InterfaceRow*>(steps_ + chunks_);
        ends_ = reinterpret_cast<double*>(run_rows_ + 2 * runs_);
        some_ = reinterpret_cast<Some*>(ends_ + 2 * runs_);
        above_ = static_cast<char*>(scratch) + level_bytes(chunks_, runs_, static_cast<std::int64_t>(parts.size()));
        std::int64_t chunk = 0, run = 0;
        for (const ChunkRows& part : parts)
            for (std::int64_t at = 0; at < part.chunks;) {
                const bool set = part.chunks - at >= together * run_length;
                const Some& some = some_[count_++] = {part.rows + 2 * at, chunk, run, std::min(run_length, part.chunks - at), set};
                at += some.chunks(), chunk += some.chunks(), run += some.runs();
            }
    }

    /// The first unknown without a pivot, or -1.
    std::int64_t reduce() {
        std::int64_t missing = 2 * chunks_;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(min : missing) if (chunks_ >= worth_threads)
        for (std::int64_t part = 0; part < count_; ++part) {
            const Some& some = some_[part];
            const std::int64_t at = (some.set ? reduce_runs<together> : reduce_runs<1>)(some.rows, some.count, run_rows_ + 2 * some.run, steps_ + some.chunk);
            if (at >= 0) missing = std::min(missing, 2 * some.chunk + at);
        }
        if (missing < 2 * chunks_) return missing;
        for (int k = 0; k < 2; ++k) run_rows_[k].coefficient[0] = 0, run_rows_[2 * (runs_ - 1) + k].coefficient[3] = 0;
        const std::int64_t above = solve_runs();
        if (above < 0) return -1;
        for (const Some& some : std::span(some_, static_cast<std::size_t>(count_)))
            for (std::int64_t r = 0; r < some.runs(); ++r)
                if (some.run + r == above / 2) return above % 2 == 0 ? 2 * (some.chunk + r * some.count) : 2 * (some.chunk + (r + 1) * some.count) - 1;
        return above;
    }

    /// The same for what is left on the right.
    bool reduce_again() {
#pragma omp parallel for num_threads(threads_) schedule(static) if (chunks_ >= worth_threads)
        for (std::int64_t part = 0; part < count_; ++part) {
            const Some& some = some_[part];
            (some.set ? reduce_right<together> : reduce_right<1>)(some.rows, some.count, run_rows_ + 2 * some.run, steps_ + some.chunk);
        }
        return solve_runs() < 0;
    }

    void finish(double* x) {
        each_finished(x, [](const Some&, const Ends&) { return Left{}; });
    }

    /// And what is left of all rows, by which it is judged.
    double finish_and_take(double* x) {
        return each_finished(x, [](const Some& some, const Ends& ends) { return take_from(some.rows, some.chunks(), ends, ends); });
    }

    /// The same of a correction of `scale`.
    double finish_and_take(double* x, const double* scale) {
        return each_finished(x, [&](const Some& some, const Ends& ends) {
            const double* const of = scale + 2 * some.chunk;
            return take_from(some.rows, some.chunks(), ends, {of, some.chunk > 0 ? of[-1] : 0, some.chunk + some.chunks() < chunks_ ? of[2 * some.chunks()] : 0});
        });
    }

private:
    std::int64_t solve_runs() { return solve(run_rows_, runs_, ends_, threads_, above_); }

    // Of what others finish at the same time only ends are asked, which are known.
    template <class Then>
    double each_finished(double* x, const Then& then) {
        double most = 0;
        bool numbers = true;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(max : most) reduction(&& : numbers) if (chunks_ >= worth_threads)
        for (std::int64_t part = 0; part < count_; ++part) {
            const Some& some = some_[part];
            double ends[together][4];
            for (std::int64_t r = 0; r < some.runs(); ++r) {
                const double* const at = ends_ + 2 * (some.run + r);
                ends[r][0] = some.run + r > 0 ? at[-1] : 0, ends[r][1] = at[0], ends[r][2] = at[1], ends[r][3] = some.run + r + 1 < runs_ ? at[2] : 0;
            }
            (some.set ? finish_runs<together> : finish_runs<1>)(steps_ + some.chunk, some.count, ends, x + 2 * some.chunk);
            const Left left = then(some, Ends{x + 2 * some.chunk, ends[0][0], ends[some.runs() - 1][3]});
            most = std::max(most, left.most), numbers = numbers && left.numbers;
        }
        return Left{most, numbers}.worst();
    }

    const int threads_;
    std::int64_t chunks_ = 0, runs_ = 0, count_ = 0;  // count: of some
    Some* some_;
    Step* steps_;
    InterfaceRow* run_rows_;
    double* ends_;
    void* above_;
};

std::int64_t solve(InterfaceRow* rows, std::int64_t chunks, double* x, int threads, void* scratch) {
    if (chunks == 1) return solve_last(rows, x);
    const ChunkRows all{rows, chunks};
    Level level({&all, 1}, threads, scratch);
    const std::int64_t missing = level.reduce();
    if (missing < 0) level.finish(x);
    return missing;
}

}  // namespace

std::size_t coupling_scratch(std::int64_t chunks, std::int64_t parts) noexcept {
    std::size_t bytes = lines(2 * chunks * sizeof(double));
    std::int64_t runs = chunks / run_length + parts;
    bytes += level_bytes(chunks, runs, parts);
    for (; runs > 1; runs = runs_of(runs)) bytes += level_bytes(runs, runs_of(runs), 1);
    return bytes;
}

std::int64_t couple(std::span<const ChunkRows> parts, double* boundary, double accept, int threads, void* scratch) {
    std::int64_t chunks = 0;
    for (const ChunkRows& part : parts) chunks += part.chunks;
    for (int k = 0; k < 2; ++k) parts.front().rows[k].coefficient[0] = 0, parts.back().rows[2 * (parts.back().chunks - 1) + k].coefficient[3] = 0;
    double* const correction = static_cast<double*>(scratch);
    Level level(parts, threads, static_cast<char*>(scratch) + lines(2 * chunks * sizeof(double)));
    if (const std::int64_t missing = level.reduce(); missing >= 0) return missing;
    const double before = level.finish_and_take(boundary);
    if (!(before > accept)) return -1;
    if (!level.reduce_again() || !(level.finish_and_take(correction, boundary) < before)) return -1;
#pragma omp parallel for num_threads(threads) schedule(static) if (chunks >= worth_threads)
    for (std::int64_t k = 0; k < 2 * chunks; ++k) boundary[k] += correction[k];
    return -1;
}

}  // namespace trifold::tridiagonal
