// SPDX-License-Identifier: BSD-3-Clause
// Factor: analyse and factor once, refactor with new values, solve many right-hand sides.
#include <new>
#include <optional>
#include <string>

#include "api/device_matrix.hpp"
#include "api/kept_matrix.hpp"
#include "api/pending_outcome.hpp"
#include "api/placement.hpp"
#include "api/tabulate.hpp"
#include "api/try_matrix.hpp"
#include "backends/registry.hpp"
#include "base/aligned_buffer.hpp"
#include "base/available_memory.hpp"
#include "devices/context_state.hpp"
#include "planner/decision.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {
namespace {

constexpr const char* too_large = "use fewer rows or systems per factorisation";

bool keeps_factors(const Ops& ops) { return ops.factor_bytes && ops.factor_scratch && ops.factor && ops.solve_factored; }

// The queue's device, or the first registered one that keeps factorisations.
const Ops& factoring_ops(const Queue& queue) {
    const Ops& own = ops_of(queue);
    if (keeps_factors(own)) return own;
    for (const Device* device : host_devices()) {
        const Cell& cell = find_cell(*device, "tridiagonal");
        if (cell.kind != CellKind::native) continue;
        const Ops& other = *static_cast<const Ops*>(cell.ops);
        if (keeps_factors(other)) return other;
    }
    throw Error(ErrorCode::device_unavailable, "Factor", std::string("no device keeps factorisations for ") + queue.device());
}

/// nullptr where the device keeps such a matrix in its own memory and solves with it; else why not, in words that follow "because".
const char* why_not_there(const Device& device, const Ops& own, System system) {
    if (!device.runtime || !own.enqueue) return "it has no memory of its own";
    if (!device.runtime->copy_strided) return "it does not copy arrays with gaps";
    for (Operand* const operand : {&system.lower, &system.diag, &system.upper, &system.top_right, &system.bottom_left})
        if (operand->kind == Operand::Kind::generator) operand->kind = Operand::Kind::view;  // they become arrays
    return own.refuses(system, Algorithm::automatic);
}

AlignedBuffer buffer_for(std::size_t bytes) {
    require_memory("Factor", static_cast<double>(bytes), too_large);
    try {
        return AlignedBuffer(bytes);
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::bad_input, "Factor", "cannot allocate " + bytes_text(static_cast<double>(bytes)), too_large);
    }
}

}  // namespace

struct Factor::State {
    State(Queue& queue, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype)
        : queue(queue), device(device_at(queue.device_index())), ops(factoring_ops(queue)), dtype(dtype), rows(rows), batch(batch.begin(), batch.end()) {}

    Queue queue;
    const Device& device;
    const Ops& ops;  ///< of the host, which factors what is not kept in the device's memory
    DType dtype;
    std::int64_t rows;
    std::vector<std::int64_t> batch;
    std::int64_t systems = 1;
    bool periodic = false;
    // One of these holds the matrix:
    AlignedBuffer factors{};
    std::optional<KeptMatrix> kept{};     ///< where the host has no factors for this shape
    std::optional<DeviceMatrix> there{};  ///< where the device computes, from its own memory
    const char* not_there = nullptr;      ///< why it does not
    Outcome outcome{};
    bool holds = false;  ///< a matrix that belongs to `outcome`

    Context& context() const { return queue.context(); }

    void factor(const Matrix& matrix) {
        const System system = normalise(matrix, rows, batch, dtype, queue.memory());
        holds = false;
        outcome = Outcome{};
        systems = system.systems();
        periodic = matrix.periodic;
        not_there = why_not_there(device, ops_of(queue), system);
        not_there ? factor_on_host(matrix, system) : keep_there(matrix);
        holds = true;
    }

    void factor_on_host(const Matrix& matrix, const System& system) {
        require_host(without_right(matrix));
        there.reset();
        outcome.device = ops.device;
        const std::size_t need = ops.factor_bytes(system);
        kept.reset();
        if (need > factors.bytes()) {
            factors = AlignedBuffer();  // first, so that old and new are never held together
            factors = buffer_for(need);
        }
        if (need == 0 && rows > 0 && systems > 0) kept.emplace(matrix, dtype, context().threads());
        auto scratch = context().state().scratch.take(ops.factor_scratch(system, context().threads()));
        const Launch launch{context().threads(), scratch.data(), scratch.bytes(), unit_roundoff(dtype), nullptr};
        ops.factor(system, launch, kept ? nullptr : factors.data(), outcome);
    }

    /// Which rows of a matrix are read depends on how many a right-hand side would have.
    Problem without_right(const Matrix& matrix) const {
        Problem problem;
        problem.matrix = matrix;
        problem.rhs.axis.extent = problem.x.axis.extent = rows;
        return problem;
    }

    void keep_there(Matrix matrix) {
        factors = AlignedBuffer(), kept.reset();
        if (!there) there.emplace(device, queue.stream());
        outcome.device = queue.device();
        if (rows == 0 || systems == 0) return;
        refuse_recording();
        AlignedBuffer tables[3];
        Coefficient* const bands[] = {&matrix.lower, &matrix.diag, &matrix.upper};
        bool tables_made = false;
        for (int k = 0; k < 3; ++k) {
            const Generator* const generator = std::get_if<Generator>(bands[k]);
            if (!generator) continue;
            tables[k] = buffer_for(static_cast<std::size_t>(rows * systems) * size_of(dtype));
            *bands[k] = tabulated(Generator(*generator), rows, batch, dtype, tables[k].data(), context().threads());
            tables_made = true;
        }
        const Placement placement = place(queue, without_right(matrix), {}, false);
        there->keep(matrix, placement.there, rows, batch, context().state().scratch, context().threads());
        outcome = try_matrix(queue, there->layout(), rows, batch, dtype);
        outcome.tabulated = tables_made;
    }

    // An error of what was enqueued before is the caller's.
    void refuse_recording() const {
        bool capturing = false;
        Failure failure;
        if (!device.runtime->enter(device.number, queue.stream(), true, &capturing, failure)) failure.raise(std::string("device '") + device.name + "'");
        if (capturing) throw Error(ErrorCode::usage, "Factor", "the queue's stream is being recorded into a graph, and factoring waits", "factor before, and record Factor::solve_async");
    }

    // Who computes in place of the device reads the host's memory.
    void require_host(const Problem& problem) const {
        if (!device.runtime) return;
        if (const Placement placement = place(queue, problem, {}, false); placement.first_there)
            throw Error(ErrorCode::device_unavailable, std::string("device '") + device.name + "'",
                        std::string("cannot keep this matrix itself: ") + not_there + "; '" + ops.device + "' does, in host memory, but " + placement.first_there + " lies on the device",
                        "copy the arrays to the host, and give all of them as host memory");
    }

    /// The right-hand sides as a problem, whose matrix is still to be set where it is kept. Throws Error where they do not fit.
    Problem problem_of(const char* where, const AnyView& rhs, const AnyView& x) const {
        if (!holds) throw Error(ErrorCode::usage, where, "there are no factors: the last refactor() ended in an error", "refactor first");
        if (!outcome.ok())
            throw Error(ErrorCode::usage, where, std::string("the matrix could not be factored: ") + trifold::name_of(outcome.reason), "look at outcome() after factoring");
        Problem problem;
        problem.rhs = rhs;
        problem.x = x;
        (void)normalise(problem, queue.memory());
        if (rhs.dtype != dtype)
            throw Error(ErrorCode::usage, "rhs", std::string("type ") + name_of(rhs.dtype) + " where the factors have " + name_of(dtype));
        const int extra = rhs.batch_dims - static_cast<int>(batch.size());
        bool fits = rhs.axis.extent == rows && extra >= 0;
        for (std::size_t d = 0; fits && d < batch.size(); ++d) fits = rhs.batch[static_cast<std::size_t>(extra) + d].extent == batch[d];
        if (!fits)
            throw Error(ErrorCode::usage, "rhs", "its shape does not end in the factored batch of " + std::to_string(systems) + " systems of " + std::to_string(rows) + " rows",
                        "further right-hand sides go into dimensions in front");
        if (not_there) require_host(problem);
        else problem.matrix = under(there->layout().matrix, rhs.batch_dims);
        return problem;
    }

    Outcome solve(Problem& problem) const {
        Queue own = queue;
        if (!not_there) return tridiagonal::solve(own, problem);
        const System system = normalise(problem);
        Outcome solved;
        solved.device = ops.device;
        if (system.rows == 0 || system.systems() == 0) return solved;
        if (kept) {
            Queue host(context(), ops.device);
            problem.matrix = under(kept->matrix(), problem.rhs.batch_dims);
            return tridiagonal::solve(host, problem);
        }
        auto scratch = context().state().scratch.take(ops.factor_scratch(system, context().threads()));
        const Launch launch{context().threads(), scratch.data(), scratch.bytes(), unit_roundoff(dtype), nullptr};
        ops.solve_factored(system, periodic, systems, factors.data(), launch, solved);
        return solved;
    }
};

Factor::Factor(Queue& queue, const Matrix& matrix, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype)
    : state_(new State(queue, rows, batch, dtype)) {
    state_->factor(matrix);
}

Factor::~Factor() = default;
Factor::Factor(Factor&&) noexcept = default;
Factor& Factor::operator=(Factor&&) noexcept = default;

namespace {

template <class State>
State& contents(const char* where, const std::unique_ptr<State>& state) {
    if (!state) throw Error(ErrorCode::usage, where, "a Factor whose contents were moved to another", "use that one");
    return *state;
}

}  // namespace

const Outcome& Factor::outcome() const noexcept {
    static const Outcome nothing;
    return state_ ? state_->outcome : nothing;
}

Outcome Factor::refactor(const Matrix& matrix) {
    contents("Factor::refactor", state_).factor(matrix);
    return state_->outcome;
}

Outcome Factor::solve(const AnyView& rhs, const AnyView& x) const {
    const State& state = contents("Factor::solve", state_);
    Problem problem = state.problem_of("Factor::solve", rhs, x);
    return state.solve(problem);
}

void Factor::solve_async(Queue& queue, const AnyView& rhs, const AnyView& x, PendingOutcome& pending, const Workspace& scratch) const {
    constexpr const char* where = "Factor::solve_async";
    const State& state = contents(where, state_);
    if (queue.device_index() != state.queue.device_index())
        throw Error(ErrorCode::usage, where, std::string("a queue of '") + queue.device() + "' where the Factor was made with one of '" + state.queue.device() + "'", "take a Queue on that device");
    if (&queue.context() != &state.context()) throw Error(ErrorCode::usage, where, "a queue of another Context than the Factor's", "make the Queue with that Context");
    Problem problem = state.problem_of(where, rhs, x);
    if (state.not_there && state.device.runtime)
        throw Error(ErrorCode::usage, where, std::string("'") + queue.device() + "' leaves this matrix to '" + state.ops.device + "' because " + state.not_there, "use Factor::solve with host arrays, which waits");
    if (!state.not_there) {
        Options options;
        options.workspace = scratch;
        return tridiagonal::solve_async(queue, problem, options, pending);
    }
    if (!pending.state_) throw Error(ErrorCode::usage, where, "a PendingOutcome whose contents were moved to another", "make one with this queue");
    if (pending.state_->queue.device_index() != queue.device_index())
        throw Error(ErrorCode::usage, where, std::string("an outcome of '") + pending.state_->queue.device() + "' for work on '" + queue.device() + "'", "make the PendingOutcome with this queue");
    pending.state_->outcome = state.solve(problem);
}

std::vector<WorkspaceNeed> Factor::workspace(const AnyView& rhs, const AnyView& x) const {
    const State& state = contents("Factor::workspace", state_);
    const Problem problem = state.problem_of("Factor::workspace", rhs, x);
    if (state.not_there) return {WorkspaceNeed{}};
    Queue own = state.queue;
    return tridiagonal::workspace(own, problem);
}

}  // namespace trifold::tridiagonal
