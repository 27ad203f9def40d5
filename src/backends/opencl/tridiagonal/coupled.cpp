// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/coupled.hpp"

#include <utility>

#include "backends/opencl/tridiagonal/chunks.hpp"
#include "backends/opencl/tridiagonal/coupling.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::System;

class Chain {
public:
    Chain(Call& call, bool trusted)
        : call_(call), trusted_(trusted ? WHERE_LAST : NEVER), layout_(true, call.system, own_chunk_rows), chunks_(call.system.rows / own_chunk_rows), coupling_(call.system, chunks_, static_cast<std::size_t>(layout_.numbers)),
          cut_{chunks_, own_chunk_rows, call.system.rows} {}

    /// Both passes; `correct`: for rhs - A x. corrected: what does not hold is corrected by kernels that follow.
    void passes(cl_uint gate, bool correct, bool corrected) {
        // What is added by the correction lies apart from the ends that x was finished from.
        ChunkParts parts = layout_.parts;
        if (correct) std::swap(parts.add, parts.old);
        const auto corrects = static_cast<cl_int>(correct);
        constexpr std::size_t group = 64;
        if (correct) call_.enqueue({"chunks", "defect"}, static_cast<std::size_t>(chunks_), group, parts, gate);
        enqueue_tile_reduce(call_, cut_, parts, corrects, gate);
        coupling_.enqueue(call_, parts, gate);
        enqueue_tile_finish_judged(call_, cut_, layout_, parts, corrects, gate, {false, corrected ? CORRECT : 0u, correct ? Reason::refined : Reason::exact, trusted_});
    }

private:
    Call& call_;
    const cl_int trusted_;
    const ChunkLayout layout_;
    const word chunks_;
    const Coupling coupling_;
    const Cut cut_;
};

}  // namespace

std::size_t coupled_scratch(const System& system) {
    if (system.rows < least_cut_rows) return 0;
    const ChunkLayout layout(true, system, own_chunk_rows);
    return ScratchParts(system).work + Coupling(system, system.rows / own_chunk_rows, static_cast<std::size_t>(layout.numbers)).bytes();
}

void enqueue_coupled(Call& call, cl_uint gate, bool trusted, bool corrects) {
    call.use_state();
    Chain chain(call, trusted);
    chain.passes(gate, false, corrects);
    if (corrects) chain.passes(CORRECT, true, false);
    call.told();
}

}  // namespace trifold::opencl
