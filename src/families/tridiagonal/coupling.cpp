// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/coupling.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "families/tridiagonal/coupling_runs.hpp"

namespace trifold::tridiagonal {
namespace {

using Clock = std::chrono::steady_clock;

// Of so many more than one thread is done before others have heard of it.
constexpr std::int64_t worth_threads = 2048;

std::int64_t runs_of(std::int64_t count) { return (count + run_length - 1) / run_length; }

std::size_t lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

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

// Ends have a 0 before the first and after the last one.
std::size_t ends_bytes(std::int64_t runs) { return lines((2 * runs + 2) * sizeof(double)); }

std::size_t level_bytes(std::int64_t runs) { return lines(runs * sizeof(ChunkRun)) + lines(2 * runs * sizeof(InterfaceRow)) + 2 * ends_bytes(runs) + lines(runs); }

std::int64_t solve(InterfaceRow* rows, std::int64_t chunks, double* x, int threads, void* scratch);

/// Chunks, the runs that they form, and what solves those.
class Level {
public:
    Level(std::span<const ChunkRows> parts, int threads, void* scratch, std::vector<CouplingSpan>* spans) : threads_(threads), spans_(spans) {
        for (const ChunkRows& part : parts) chunks_ += part.chunks, runs_ += runs_of(part.chunks);
        char* at = static_cast<char*>(scratch);
        const auto take = [&](std::size_t bytes) { return std::exchange(at, at + bytes); };
        run_ = reinterpret_cast<ChunkRun*>(take(lines(runs_ * sizeof(ChunkRun))));
        run_rows_ = reinterpret_cast<InterfaceRow*>(take(lines(2 * runs_ * sizeof(InterfaceRow))));
        for (double*& ends : ends_) {
            ends = reinterpret_cast<double*>(take(ends_bytes(runs_))) + 1;
            ends[-1] = ends[2 * runs_] = 0;
        }
        reduced_again_ = take(lines(runs_));
        above_ = at;
        std::int64_t chunk = 0, run = 0;
        for (const ChunkRows& part : parts)
            for (std::int64_t at = 0; at < part.chunks; at += run_length) {
                const std::int64_t some = std::min(run_length, part.chunks - at);
                run_[run++] = {part.rows + 2 * at, chunk, some};
                chunk += some;
            }
        sets_ = (runs_ + together_ - 1) / together_;
    }

    /// The first unknown without a pivot, or -1.
    std::int64_t reduce() {
        const Seen seen = each_set("reduce", [&](std::int64_t set, Seen& seen) {
            const std::int64_t at = reduce_runs(runs(set), run_rows_ + 2 * set * together_);
            if (at >= 0) seen.missing = std::min(seen.missing, at);
        });
        if (seen.missing < none_missing) return seen.missing;
        for (int k = 0; k < 2; ++k) run_rows_[k].coefficient[0] = 0, run_rows_[2 * (runs_ - 1) + k].coefficient[3] = 0;
        const std::int64_t above = solve_runs(ends_[0]);
        if (above < 0) return -1;
        const ChunkRun& run = run_[above / 2];
        return above % 2 == 0 ? 2 * run.first : 2 * (run.first + run.chunks) - 1;
    }

    void finish(double* x) {
        each_set("finish", [&](std::int64_t set, Seen&) { finish_runs(runs(set), Also::nothing, {.ends = ends_[0] + 2 * set * together_, .x = x}); });
    }

    /// Returns what is left of the worst row. left: room for what is left of all rows, should that be more than `accept`.
    double finish_and_take(double* x, double* left, double accept) {
        // From the first row on that has too much it is known that what is left will be reduced, and how its rows were subtracted is still in the cache.
        std::atomic<bool> again = false;
        const Seen all = each_set("finish", [&](std::int64_t set, Seen& seen) {
            reduced_again_[set] = again.load(std::memory_order_relaxed);
            const RowsLeft some = take(set, x, reduced_again_[set] ? left : nullptr);
            seen.add(some);
            if (!reduced_again_[set] && some.most > accept) again.store(true, std::memory_order_relaxed);
        });
        return all.left.worst();
    }

    /// x is corrected by what is `left`. Returns what is left of the worst row then; negative: nothing was done.
    double correct(double* left, double* x) {
        if (!std::all_of(reduced_again_, reduced_again_ + sets_, [](char done) { return done; }))
            each_set("reduce again", [&](std::int64_t set, Seen&) {
                if (!reduced_again_[set]) take(set, x, left);
            });
        if (solve_runs(ends_[1]) >= 0) return -1;
        const Seen all = each_set("correct", [&](std::int64_t set, Seen& seen) {
            const std::int64_t at = 2 * set * together_;
            seen.add(finish_runs(runs(set), Also::correct, {.ends = ends_[1] + at, .x = x, .right = left, .ends_of_x = ends_[0] + at}));
        });
        return all.left.worst();
    }

private:
    ChunkRuns runs(std::int64_t set) const { return {run_ + set * together_, std::min(together_, runs_ - set * together_)}; }

    RowsLeft take(std::int64_t set, double* x, double* left) {
        const std::int64_t at = 2 * set * together_;
        return finish_runs(runs(set), Also::take, {.ends = ends_[0] + at, .x = x, .left = left, .again = left ? run_rows_ + at : nullptr});
    }

    std::int64_t solve_runs(double* ends) {
        const auto begin = Clock::now();
        const std::int64_t missing = solve(run_rows_, runs_, ends, threads_, above_);
        if (spans_) spans_->push_back({"runs", 0, begin, Clock::now()});
        return missing;
    }

    /// What was seen of some sets.
    struct Seen {
        std::int64_t missing = none_missing;
        RowsLeft left;

        void add(const RowsLeft& some) { left.most = std::max(left.most, some.most), left.numbers = left.numbers && some.numbers; }
    };

    /// work(set, seen) of all sets.
    template <class Work>
    Seen each_set(const char* what, const Work& work) {
        const std::size_t at = spans_ ? spans_->size() : 0;
        if (spans_) spans_->resize(at + static_cast<std::size_t>(threads_));
        std::int64_t missing = none_missing;
        double most = 0;
        bool numbers = true;
#pragma omp parallel num_threads(threads_) reduction(min : missing) reduction(max : most) reduction(&& : numbers) if (chunks_ >= worth_threads)
        {
            const auto begin = spans_ ? Clock::now() : Clock::time_point();
            Seen seen;
#pragma omp for schedule(static) nowait
            for (std::int64_t set = 0; set < sets_; ++set) work(set, seen);
            missing = seen.missing, most = seen.left.most, numbers = seen.left.numbers;
            if (spans_) {
                const int thread = omp_get_thread_num();
                (*spans_)[at + static_cast<std::size_t>(thread)] = {what, thread, begin, Clock::now()};
            }
        }
        // There may be fewer threads than were asked for.
        if (spans_) std::erase_if(*spans_, [](const CouplingSpan& span) { return !span.what; });
        return {missing, {most, numbers}};
    }

    static constexpr std::int64_t none_missing = INT64_MAX;

    const int threads_;
    std::vector<CouplingSpan>* const spans_;
    const std::int64_t together_ = runs_together();  // runs of a set
    std::int64_t chunks_ = 0, runs_ = 0, sets_ = 0;
    ChunkRun* run_;
    InterfaceRow* run_rows_;
    double* ends_[2];  // of x, of its correction
    char* reduced_again_;  // by set
    void* above_;
};

std::int64_t solve(InterfaceRow* rows, std::int64_t chunks, double* x, int threads, void* scratch) {
    if (chunks == 1) return solve_last(rows, x);
    const ChunkRows all{rows, chunks};
    Level level({&all, 1}, threads, scratch, nullptr);
    const std::int64_t missing = level.reduce();
    if (missing < 0) level.finish(x);
    return missing;
}

}  // namespace

std::size_t coupling_scratch(std::int64_t chunks, std::int64_t parts) noexcept {
    std::size_t bytes = lines(2 * chunks * sizeof(double));
    std::int64_t runs = chunks / run_length + parts;
    bytes += level_bytes(runs);
    for (; runs > 1; runs = runs_of(runs)) bytes += level_bytes(runs_of(runs));
    return bytes;
}

std::int64_t couple(std::span<const ChunkRows> parts, double* boundary, double accept, int threads, void* scratch, std::vector<CouplingSpan>* spans) {
    std::int64_t chunks = 0;
    for (const ChunkRows& part : parts) chunks += part.chunks;
    for (int k = 0; k < 2; ++k) parts.front().rows[k].coefficient[0] = 0, parts.back().rows[2 * (parts.back().chunks - 1) + k].coefficient[3] = 0;
    double* const left = static_cast<double*>(scratch);
    Level level(parts, threads, static_cast<char*>(scratch) + lines(2 * chunks * sizeof(double)), spans);
    if (const std::int64_t missing = level.reduce(); missing >= 0) return missing;
    const double before = level.finish_and_take(boundary, left, accept);
    if (!(before > accept)) return -1;
    const double after = level.correct(left, boundary);
    // Found again as it was.
    if (after >= before || std::isnan(after)) level.finish(boundary);
    return -1;
}

}  // namespace trifold::tridiagonal
