// SPDX-License-Identifier: BSD-3-Clause
// Factor: analyse and factor once, refactor with new values, solve many right-hand sides.
#include <new>
#include <optional>
#include <string>

#include "api/kept_matrix.hpp"
#include "backends/registry.hpp"
#include "base/aligned_buffer.hpp"
#include "base/available_memory.hpp"
#include "devices/context_state.hpp"
#include "planner/decision.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {
namespace {

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

}  // namespace

struct Factor::State {
    Context& context;
    const Ops& ops;
    DType dtype;
    std::int64_t rows;
    std::vector<std::int64_t> batch;
    std::int64_t systems = 1;
    bool periodic = false;
    AlignedBuffer factors{};
    std::optional<KeptMatrix> kept{};  ///< in place of factors, where the device has none for this shape
    Outcome outcome{};
    bool holds = false;  ///< factors that belong to `outcome`

    void factor(const Matrix& matrix) {
        const System system = normalise(matrix, rows, batch, dtype);
        systems = system.systems();
        const std::size_t need = ops.factor_bytes(system);
        holds = false;
        outcome = Outcome{};
        outcome.device = ops.device;
        kept.reset();
        if (need > factors.bytes()) {
            factors = AlignedBuffer();  // first, so that old and new are never held together
            constexpr const char* hint = "use fewer rows or systems per factorisation";
            require_memory("Factor", static_cast<double>(need), hint);
            try {
                factors = AlignedBuffer(need);
            } catch (const std::bad_alloc&) {
                throw Error(ErrorCode::bad_input, "Factor", "cannot allocate " + bytes_text(static_cast<double>(need)), hint);
            }
        }
        if (need == 0 && rows > 0 && systems > 0) kept.emplace(matrix, dtype, context.threads());
        periodic = matrix.periodic;
        auto scratch = context.state().scratch.take(ops.factor_scratch(system, context.threads()));
        const Launch launch{context.threads(), scratch.data(), scratch.bytes(), unit_roundoff(dtype), nullptr};
        ops.factor(system, launch, kept ? nullptr : factors.data(), outcome);
        holds = true;
    }
};

Factor::Factor(Queue& queue, const Matrix& matrix, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype)
    : state_(new State{queue.context(), factoring_ops(queue), dtype, rows, {batch.begin(), batch.end()}}) {
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
    if (!state.holds)
        throw Error(ErrorCode::usage, "Factor::solve", "there are no factors: the last refactor() ended in an error", "refactor first");
    if (!state.outcome.ok())
        throw Error(ErrorCode::usage, "Factor::solve", std::string("the matrix could not be factored: ") + trifold::name_of(state.outcome.reason),
                    "look at outcome() after factoring");
    Problem problem;
    problem.rhs = rhs;
    problem.x = x;
    const System system = normalise(problem);
    if (rhs.dtype != state.dtype)
        throw Error(ErrorCode::usage, "rhs", std::string("type ") + name_of(rhs.dtype) + " where the factors have " + name_of(state.dtype));
    const int extra = rhs.batch_dims - static_cast<int>(state.batch.size());
    bool fits = rhs.axis.extent == state.rows && extra >= 0;
    for (std::size_t d = 0; fits && d < state.batch.size(); ++d) fits = rhs.batch[extra + static_cast<int>(d)].extent == state.batch[d];
    if (!fits)
        throw Error(ErrorCode::usage, "rhs", "its shape does not end in the factored batch of " + std::to_string(state.systems) + " systems of " +
                                                 std::to_string(state.rows) + " rows",
                    "further right-hand sides go into dimensions in front");
    Outcome outcome;
    outcome.device = state.ops.device;
    if (system.rows == 0 || system.systems() == 0) return outcome;
    if (state.kept) {
        Queue queue(state.context, state.ops.device);
        problem.matrix = state.kept->under(rhs.batch_dims);
        return tridiagonal::solve(queue, problem);
    }
    auto scratch = state.context.state().scratch.take(state.ops.factor_scratch(system, state.context.threads()));
    const Launch launch{state.context.threads(), scratch.data(), scratch.bytes(), unit_roundoff(state.dtype), nullptr};
    state.ops.solve_factored(system, state.periodic, state.systems, state.factors.data(), launch, outcome);
    return outcome;
}

}  // namespace trifold::tridiagonal
