// SPDX-License-Identifier: BSD-3-Clause
// Tridiagonal systems  lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],  i = 0 … n-1,
// one or many, along any axis of an n-d array.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trifold/coefficient.hpp"
#include "trifold/context.hpp"
#include "trifold/outcome.hpp"
#include "trifold/plan.hpp"
#include "trifold/report.hpp"
#include "trifold/view.hpp"

namespace trifold::tridiagonal {

/// The matrices. Shapes: `rhs` of the problem decides rows n and batch dimensions. A coefficient view has the same
/// batch dimensions (stride 0 shares it along one: a shared matrix, many right-hand sides) or none (shared by all).
/// lower[0] and upper[n-1] are read in periodic systems only; LAPACK's packed length n-1 (lower starts with the
/// entry of row 1) is taken too, but not for periodic ones.
struct Matrix {
    Coefficient lower = 0.0;
    Coefficient diag = 1.0;
    Coefficient upper = 0.0;
    bool periodic = false;    ///< lower[0] couples row 0 to x[n-1], upper[n-1] couples row n-1 to x[0]
    bool transposed = false;  ///< solve with the transpose
};

struct Problem {
    Matrix matrix;
    AnyView rhs;
    AnyView x;                ///< same shape as rhs; may be the same memory with the same strides (in place), else must not overlap
    bool accumulate = false;  ///< x += A^-1 rhs instead of x = A^-1 rhs; x must not be rhs
    std::span<const std::int64_t> offsets{};  ///< ragged batch: system k owns rows offsets[k] … offsets[k+1]-1 of one-dimensional views; in the host's memory, also where these are a device's
};

/// Algorithms that can be asked for by name. One that the device has no kernels for is computed by the reference, from host memory; the outcome says by whom.
enum class Algorithm : std::uint8_t {
    automatic,         ///< the planner decides; every path is certified or pivoted
    thomas,            ///< LU without pivoting (Thomas 1949)
    lu,                ///< LU with partial pivoting, as LAPACK's gtsv
    twisted,           ///< elimination from both ends ("burn at both ends")
    cyclic_reduction,  ///< Hockney 1965
    pcr,               ///< parallel cyclic reduction (Hockney and Jesshope 1981)
    spike,             ///< SPIKE with the full reduced system (Polizzi and Sameh 2006)
    truncated_spike,   ///< SPIKE with the truncated reduced system: dominant matrices only
    certified,         ///< one pass with truncated right couplings, bounded (docs/algorithms/certified.md)
    two_pass,          ///< pivoted; one pass where the matrix forgets, else reduction of chunks and recomputation (docs/algorithms/two_pass.md)
};

inline constexpr int algorithm_count = 10;

/// The name that the command, JSON and messages use; `algorithm_from` throws Error(usage) with the nearest name.
TRIFOLD_API const char* name_of(Algorithm algorithm) noexcept;
TRIFOLD_API Algorithm algorithm_from(std::string_view name);

/// What a device draws while it computes, for objectives other than time. Of one that is not named: its power limit, where the machine tells it; Error(usage) where neither is known.
struct DeviceWatts {
    std::string_view device;
    double watts = 0;
};

struct Options {
    Algorithm algorithm = Algorithm::automatic;
    double tolerance = 0;               ///< accepted truncation error relative to max|x| of a chunk; 0 = unit roundoff of the type
    bool check_finite = false;          ///< look for NaN and infinity in the input before anything is written
    std::int8_t* status = nullptr;      ///< per system, batch order: the Reason; may be null
    Report* report = nullptr;           ///< filled where given (allocates)
    Workspace workspace{};              ///< see workspace(); empty = the Context's
    Objective objective = Objective::time;  ///< for what the devices that share a solve are chosen, where several were named
    std::span<const DeviceWatts> watts{};   ///< of them, for the other objectives; see DeviceWatts
    double patience_s = 0;              ///< a call to one of several devices that takes longer is given up, and its rows go to others; 0 = 30
};

/// Solves. Never returns a wrong x with outcome.ok(): truncated and unpivoted passes are checked and handed to pivoted
/// ones, unless an algorithm was named, in which case its failure is the outcome. Where a system fails, its rows of x hold
/// nothing useful; in place, rhs of a failed system holds rhs again to within rounding, unless documented otherwise.
/// Throws Error for shapes, types, aliasing and devices that cannot serve. No allocation for a system of up to 1024 rows.
TRIFOLD_API Outcome solve(Queue& queue, const Problem& problem, const Options& options = {});

/// On the context's own choice of device.
TRIFOLD_API Outcome solve(Context& context, const Problem& problem, const Options& options = {});

/// Like solve, without exceptions for misuse: `error` receives the text and the outcome's reason is `none`.
TRIFOLD_API bool try_solve(Queue& queue, const Problem& problem, const Options& options, Outcome& outcome, std::string& error) noexcept;

class Factor;

/// Where solve_async leaves its outcome: a few bytes of the queue's device, or of the host for a host device. For one solve at a
/// time; a graph that was recorded with it fills it anew with each launch. The queue's Context must outlive it.
class TRIFOLD_API PendingOutcome {
public:
    explicit PendingOutcome(const Queue& queue);
    ~PendingOutcome();
    PendingOutcome(PendingOutcome&&) noexcept;
    PendingOutcome& operator=(PendingOutcome&&) noexcept;

    /// Waits for the work of the queue's stream, then says how it went. Throws Error(device_unavailable) where it has failed.
    Outcome read() const;

private:
    friend TRIFOLD_API void solve_async(Queue& queue, const Problem& problem, const Options& options, PendingOutcome& outcome);
    friend class Factor;
    struct State;
    std::unique_ptr<State> state_;
};

/// Enqueues on the queue's stream and returns: neither waits nor allocates, and can be recorded into a CUDA graph. Arrays, status
/// and Options::workspace (see workspace(); where it asks for any) must be the device's memory, or pinned memory that it reaches; offsets the latter.
/// Throws Error(usage) for what cannot be done so: host arrays, generators, check_finite, report, or what the device leaves to
/// another. On a host device it solves before it returns.
TRIFOLD_API void solve_async(Queue& queue, const Problem& problem, const Options& options, PendingOutcome& outcome);

/// What solve would do and what it would look at; nothing is run, no data is read.
TRIFOLD_API Plan plan(Queue& queue, const Problem& problem, const Options& options = {});

/// Scratch that solve would take for this problem and these options. A long system that is solved in place takes as much as its
/// right-hand side, and a third more at most, where it is there; a smaller workspace makes `two_pass` slower, and is refused only where it would not do at all.
TRIFOLD_API std::vector<WorkspaceNeed> workspace(Queue& queue, const Problem& problem, const Options& options = {});

/// A factorisation, for many solves with one matrix or one batch of them. Not pivoted where it is shown to be as good without; where it is not, or where
/// that takes less time, the matrix is kept instead and eliminated by every solve. A device with memory of its own that solves such systems keeps the
/// matrix there, solves with it once to see whether it can, and eliminates it with every solve; what it leaves to the cpu takes arrays of the host only.
/// Arrays of the matrix are the caller's again when a call returns. The queue's Context, and its stream, must outlive it.
class TRIFOLD_API Factor {
public:
    /// `rows` and `batch` give the shape; coefficient views must fit it, and lie in the host's memory or in that of the queue's device. Waits. Check
    /// outcome().ok() before solving.
    Factor(Queue& queue, const Matrix& matrix, std::int64_t rows, std::span<const std::int64_t> batch = {}, DType dtype = DType::f64);
    ~Factor();
    Factor(Factor&&) noexcept;
    Factor& operator=(Factor&&) noexcept;

    /// The failures are of factored systems. Where the matrix is kept in a device's memory, they are those of a solve with numbers of size 1.
    const Outcome& outcome() const noexcept;

    /// The same shape, new values. Waits, on the stream of the Factor's queue: what solve_async has enqueued on another one must be done. A recorded graph
    /// solves with the new values where the same bands are arrays, shared along the same dimensions; numbers stay in it as they were recorded; after any
    /// other change it must be recorded anew.
    Outcome refactor(const Matrix& matrix);

    /// rhs and x: n rows and the batch of the factor, or that batch plus further dimensions in front (many right-hand sides); in host memory or that of the
    /// device. Waits. In place, one long right-hand side that holds NaN or infinity is lost.
    Outcome solve(const AnyView& rhs, const AnyView& x) const;

    /// As tridiagonal::solve_async: enqueues on the queue's stream, neither waits nor allocates, and can be recorded into a CUDA graph. The queue is one of
    /// the Factor's Context and device. Factor and `scratch` (see workspace()) must live until the work is done, and as long as a graph that was recorded. On
    /// a host device it solves before it returns.
    void solve_async(Queue& queue, const AnyView& rhs, const AnyView& x, PendingOutcome& outcome, const Workspace& scratch = {}) const;

    /// Scratch that solve_async needs for this right-hand side and x.
    std::vector<WorkspaceNeed> workspace(const AnyView& rhs, const AnyView& x) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace trifold::tridiagonal
