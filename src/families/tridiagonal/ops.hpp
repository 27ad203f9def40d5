// SPDX-License-Identifier: BSD-3-Clause
// The contract of the tridiagonal family: what a device fills. A plain table with a version, so that a device may live in
// its own shared object; templates stay inside it. `solve` is coarse and mandatory; the fine verbs are what the family's
// own drivers (certified.hpp, two_pass.hpp) couple, on one device or over several.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/failure.hpp"
#include "families/tridiagonal/stretches.hpp"
#include "problems/tridiagonal/system.hpp"
#include "trifold/outcome.hpp"
#include "trifold/sweep.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::mesh {
struct Checked;
}

namespace trifold::tridiagonal {

inline constexpr int ops_version = 4;

/// What a call may use. Scratch is at least `workspace(...)` bytes, aligned to 64.
struct Launch {
    int threads = 1;
    void* scratch = nullptr;
    std::size_t scratch_bytes = 0;
    double tolerance = 0;            ///< relative truncation error accepted; already resolved, never 0
    std::int8_t* status = nullptr;   ///< per system, by its number; may be null
    void* stream = nullptr;          ///< a device with memory of its own: where to enqueue; the other pointers are then that device's
    int device = 0;                  ///< Ops::number of the device that computes
    Failure* failure = nullptr;      ///< a driver that fails says so here, since an outcome speaks of numbers only; the results then hold nothing
};

/// Rows of one system cut into chunks of `chunk_rows`; the last chunk also takes the remainder, so it has between
/// chunk_rows and 2 chunk_rows - 1 rows. chunk_rows ≥ 2; rows ≥ chunk_rows.
struct Partition {
    std::int64_t rows = 0;
    std::int64_t chunk_rows = 0;

    /// Refinement, out of place: the boundary from which the x that is now stored was finished. `reduce` and `finish` then
    /// take rhs - A x for rhs and `finish` adds what it finds to x. Only where Ops::corrects.
    const double* stored = nullptr;

    std::int64_t chunks() const noexcept { return rows / chunk_rows; }
    std::int64_t first(std::int64_t chunk) const noexcept { return chunk * chunk_rows; }
    std::int64_t last(std::int64_t chunk) const noexcept { return chunk + 1 == chunks() ? rows - 1 : (chunk + 1) * chunk_rows - 1; }
};

/// What is left of a chunk after its interior unknowns are eliminated, two such rows per chunk with rows first … last:
///   coefficient[0] x[first-1] + coefficient[1] x[first] + coefficient[2] x[last] + coefficient[3] x[last+1] = rhs
struct InterfaceRow {
    double coefficient[4];
    double rhs;
};

/// What `finish` saw in one chunk. residual = max over its rows of |rhs - A x| / (max|A| max|x| + max|rhs|), the maxima over
/// the chunk's rows (and the two x beside it), NaN where anything is not finite; where rows need no check, what is known twice
/// and does not fit at the chunk's ends, over max|A| max|x|. A chunk is stored where residual ≤ accept.
struct ChunkResidual {
    double residual;
    bool stored;
    double scale = 0;  ///< max|A| max|x| + max|rhs|; needed by `restore`
    double right = 0;  ///< max|rhs|
};

struct Ops {
    int version = ops_version;
    const char* device = "";
    int number = 0;  ///< of a device of which there are several; its functions take it as `device`

    /// nullptr where this device runs `algorithm` on `system` itself; else why not, as a phrase that follows "because".
    const char* (*refuses)(const System& system, Algorithm algorithm) = nullptr;

    /// Scratch bytes for `solve`, or for the driver's verbs, with this algorithm on this many threads.
    std::size_t (*workspace)(const System& system, Algorithm algorithm, int threads) = nullptr;

    /// Optional, with `enqueue`: bytes with which that does too, in more time.
    std::size_t (*least_workspace)(const System& system, Algorithm algorithm) = nullptr;

    /// Solves with exactly this algorithm. Batches: every system is solved; unpivoted algorithms asked for by name report
    /// `unstable` where a pivot is too small, `automatic` falls back to pivoting for that system and counts it in
    /// outcome.rescued. Nothing is stored into a failed system that `solve` could not rebuild (in place).
    void (*solve)(const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome) = nullptr;

    /// A device with memory of its own has these in place of `solve`. The system's pointers, scratch (aligned to 256), status and
    /// `outcome` (outcome_bytes) lie in its memory. Enqueue and return: they neither synchronise nor allocate, nor decide by
    /// anything that must be read back, so that they can be recorded into a graph. False: nothing runs, failure says why.
    /// `enqueue_finite` looks at every value that a solve would read; read_outcome makes an Outcome of a copy of `outcome`. Ragged batches: offsets.hpp.
    double bytes_per_s = 0;  ///< what its memory is thought to move; 0 = not known
    std::size_t outcome_bytes = 0;
    bool (*enqueue)(int device, const System& system, Algorithm algorithm, const Launch& launch, void* outcome, Failure& failure) = nullptr;
    bool (*enqueue_finite)(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) = nullptr;
    void (*read_outcome)(const void* copy, Outcome& outcome) = nullptr;

    /// Optional, all three or none: LU with partial pivoting that is kept. `factor` takes the matrix of a system (its rhs and x
    /// are not read) and writes factor_bytes of it to `factors`, aligned to 64; a singular one is named in the outcome.
    /// `solve_factored` takes rhs and x of a system (its matrix is not read): the system with number k uses the factors with
    /// number k modulo `factored`. Scratch: factor_scratch bytes for both. factor_bytes 0: solving anew is faster; `factor` then only looks (factors null).
    std::size_t (*factor_bytes)(const System& system) = nullptr;
    std::size_t (*factor_scratch)(const System& system, int threads) = nullptr;
    void (*factor)(const System& system, const Launch& launch, void* factors, Outcome& outcome) = nullptr;
    void (*solve_factored)(const System& system, bool periodic, std::int64_t factored, const void* factors, const Launch& launch,
                           Outcome& outcome) = nullptr;

    /// Optional: one system (levels == 0, views and scalars, neither periodic nor accumulating) of 1 to `small_rows` rows, on the
    /// calling thread, without scratch or allocation; as `solve` with Algorithm::automatic.
    std::int64_t small_rows = 0;
    void (*solve_small)(const System& system, Outcome& outcome) noexcept = nullptr;

    /// One system (levels == 0): eliminates the interior of the chunks; rows: 2 per chunk; zero_pivot: per chunk the first row
    /// whose column has no pivot, or -1. Writes neither rhs nor x. Optional: nullptr = no two_pass on this device.
    void (*reduce)(const System& system, const Partition& partition, const Launch& launch, InterfaceRow* rows,
                   std::int64_t* zero_pivot) = nullptr;

    /// Recomputes the interiors with `boundary` = x[first], x[last] of every chunk, checks each chunk's residual against
    /// `accept` and stores x.
    void (*finish)(const System& system, const Partition& partition, const Launch& launch, const double* boundary, double accept,
                   ChunkResidual* residuals) = nullptr;

    /// `reduce` and `finish` honour Partition::stored.
    bool corrects = false;

    /// In place, after some chunk was refused: x of the stored chunks becomes A x, a right-hand side that it solves, with
    /// `boundary` as `finish` had it. Where boundary is null nothing is written and every residuals[].scale = max|A| max|x|
    /// of what is in x. Optional: nullptr = two_pass on this device needs a separate x.
    void (*restore)(const System& system, const Partition& partition, const Launch& launch, const double* boundary,
                    ChunkResidual* residuals) = nullptr;

    /// Optional, both or none. One system (levels == 0), with partial pivoting in one pass, where rows some hundreds
    /// apart do not matter to each other. Every equation then holds to a few roundings of max|A| max|x| nearby. False, with x partly
    /// written or, in place, rhs bit for bit as it was, where it is not so, where anything is not finite, where the system is too short
    /// for it, and where Launch::scratch is smaller than `sweep_pivoted_scratch` says. In place that is more than rhs takes.
    bool (*sweep_pivoted)(const System& system, const Launch& launch) = nullptr;
    std::size_t (*sweep_pivoted_scratch)(const System& system, int threads) = nullptr;

    /// The certified one-pass solve of one system (levels == 0; views with row_stride 1 and scalars); all four or none.
    /// Eliminates from a few places of the system, without writing: the rows after which both products, of |c'| and of
    /// |a/p|, are at most `close` at every place, or limit + 1 where they are not within `limit` rows, limit + 2 where a pivot is unfit.
    std::int64_t (*decay)(const System& system, const Launch& launch, double close, double growth, std::int64_t limit) = nullptr;

    /// Scratch bytes of `sweep`. What `unsweep` needs is kept there from one call to the other.
    std::size_t (*sweep_scratch)(const System& system, const Stretches& stretches, int threads) = nullptr;

    /// Stores x in every row, and one bound per stretch; or stops, and leaves rhs as it was: to rounding in place.
    SweepResult (*sweep)(const System& system, const Stretches& stretches, const Launch& launch, StretchBound* bounds) = nullptr;

    /// In place, after a sweep that did not stop: puts back the right-hand side, to rounding.
    void (*unsweep)(const System& system, const Stretches& stretches, const Launch& launch) = nullptr;

    /// Optional, both or none: sweeps over meshes (trifold/sweep.hpp), fields in the host's memory. `mesh_sweep` uses mesh_bytes of scratch.
    std::size_t (*mesh_bytes)(const mesh::Checked& checked, int threads) = nullptr;
    void (*mesh_sweep)(const mesh::Checked& checked, std::int64_t first_step, std::int64_t steps, const Launch& launch, SweepOutcome& outcome) = nullptr;

    /// The same on a device with memory of its own, in place of both: fields and scratch (aligned to 256) lie there. `mesh_run` may wait for the
    /// stream, and has when it returns; the outcome's device is the caller's to fill. False: failure says why.
    bool (*mesh_scratch)(int device, const mesh::Checked& checked, std::size_t* bytes, Failure& failure) = nullptr;
    bool (*mesh_run)(int device, const mesh::Checked& checked, std::int64_t first_step, std::int64_t steps, const Launch& launch, SweepOutcome& outcome,
                     Failure& failure) = nullptr;
};

}  // namespace trifold::tridiagonal
