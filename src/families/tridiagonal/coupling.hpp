// SPDX-License-Identifier: BSD-3-Clause
// What couples chunks: the interface rows of all of them, solved for the unknowns at the chunks' ends.
//
// Chunk k leaves two rows in x[last k-1], x[first k], x[last k], x[first k+1] (InterfaceRow), so 2 chunks unknowns in the order
// first 0, last 0, first 1, last 1 … form a banded system. Runs of chunks are reduced like the rows of a chunk: two carried
// rows and the two of the next chunk lose two unknowns, with the largest entry of the column as pivot among all rows that have
// it, until two rows in the ends of the run are left; the runs are then chunks of the next level. Runs are independent of each
// other and of the number of threads. Interface rows of any device will do: this is the only coupling that there is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal {

/// Chunks that lie one after the other, and their rows, 2 per chunk.
struct ChunkRows {
    InterfaceRow* rows = nullptr;
    std::int64_t chunks = 0;
};

/// What one thread did in a coupling, and when: "reduce" runs, solve for the ends of "runs" (one thread calls that), "finish" them and take what is left, "reduce again" what was finished before it was known that it would be asked for, "correct".
struct CouplingSpan {
    const char* what = nullptr;
    int thread = 0;
    std::chrono::steady_clock::time_point begin, end;
};

/// Scratch bytes of `couple`, for so many chunks in so many parts; a multiple of 64.
std::size_t coupling_scratch(std::int64_t chunks, std::int64_t parts = 1) noexcept;

/// What the drivers ask of a row: below what x of the chunks' ends is rounded to.
inline double coupled_to(DType dtype) noexcept { return 2 * unit_roundoff(dtype); }

/// parts: one after the other, wherever their rows lie; a run never goes from one to the next. coefficient[0] of the first chunk and coefficient[3] of the last one are set to 0, other rows are not
/// changed. boundary: 2 per chunk, filled with x[first], x[last]. Returns -1, or 2 k (+ 1) where x[first] (x[last]) of chunk k is the first unknown found without a pivot: the matrix is singular and boundary
/// holds nothing. What is left of a row, against the sum of its |coefficient x|, is asked to be at most `accept`: pivots are chosen by size, so a row whose coefficients are small beside its neighbours' may
/// have more. Then one step of refinement follows, which makes it small row by row (R. D. Skeel 1980, Iterative refinement implies numerical stability for Gaussian elimination). spans: null, or who did what is
/// added to it.
std::int64_t couple(std::span<const ChunkRows> parts, double* boundary, double accept, int threads, void* scratch, std::vector<CouplingSpan>* spans = nullptr);

/// All of them in one part.
inline std::int64_t couple(std::int64_t chunks, InterfaceRow* rows, double* boundary, double accept, int threads, void* scratch) {
    const ChunkRows all{rows, chunks};
    return couple({&all, 1}, boundary, accept, threads, scratch);
}

}  // namespace trifold::tridiagonal
