// SPDX-License-Identifier: BSD-3-Clause
// Runs of chunks, reduced to two rows each and finished from their ends: lanes = runs (coupling_runs.cpp).
#pragma once

#include <cstdint>
#include <limits>

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal {

/// The most chunks of a run.
inline constexpr std::int64_t run_length = 64;

/// Chunks side by side. rows: 2 per chunk. first: where it begins in arrays of all chunks.
struct ChunkRun {
    InterfaceRow* rows;
    std::int64_t first, chunks;
};

/// Runs that go through the vector units together: so many, in the order of the system, are given at a time (the last ones may be fewer).
struct ChunkRuns {
    const ChunkRun* run;
    std::int64_t count;
};
std::int64_t runs_together();

/// What is left of the worst row, against the sum of |coefficient x|; NaN where anything is not a number.
struct RowsLeft {
    double most = 0;
    bool numbers = true;
    double worst() const { return numbers ? most : std::numeric_limits<double>::quiet_NaN(); }
};

/// out: two rows per run. Returns the first unknown without a pivot, 2 k (+ 1) for x[first] (x[last]) of chunk k of all, or -1.
std::int64_t reduce_runs(ChunkRuns runs, InterfaceRow* out);

/// What is done besides finding x in the runs. take: what is left of their rows is judged and, where `left` and `again` are given, stored and reduced. correct: x is the correction for the right-hand
/// sides `right`, and is added to `x`.
enum class Also { nothing, take, correct };

/// Two numbers per chunk of all, but for ends: x[first], x[last] of every run of these, with those of the runs beside them (0 where there are none) before and after.
struct RunArrays {
    const double* ends = nullptr;
    double* x = nullptr;
    double* left = nullptr;             ///< take, or null: what is left of the rows
    InterfaceRow* again = nullptr;      ///< with it, two rows per run of these: their right-hand sides become what `left` is reduced to
    const double* right = nullptr;      ///< correct
    const double* ends_of_x = nullptr;  ///< correct: as they were in x
};

/// Returns what is left of the rows, corrected or not, against the sum of |coefficient x| with x as it was; nothing where that is not asked.
RowsLeft finish_runs(ChunkRuns runs, Also also, const RunArrays& arrays);

}  // namespace trifold::tridiagonal
