// SPDX-License-Identifier: BSD-3-Clause
// What bounds the solve of one system: its moving without its arithmetic, and its arithmetic without its moving.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/tridiagonal/sweep_job.hpp"
#include "base/aligned_buffer.hpp"
#include "families/tridiagonal/certified.hpp"
#include "families/tridiagonal/ops.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::bench {

/// For the passes that eliminate in stretches side by side, `certified` and the pivoted one of systems that forget; and for the two passes over systems that forget nothing.
class SingleCeiling {
public:
    /// dominant: two passes over rows that need no exchange.
    enum class Pass : std::uint8_t { certified, pivoted, two_pass, dominant };

    /// A system that the pass solves.
    SingleCeiling(Pass pass, const tridiagonal::System& system, int threads);

    /// Seconds of the solve's own kernels, compiled once more with an exclusive or of what is read in the place of elimination and substitution: the same loads,
    /// requests, transposes, stores and logs at the same addresses by as many threads. The faster of two: with a chain of a division per row, as a solve has it, or
    /// without, when requests come as fast as the core makes them. x is lost.
    double moving() { return move(work_); }

    /// Seconds of the solve itself with four numbers in the place of the operands: of the five words per row one is left to move, x.
    double computing();

private:
    double move(cpu::Work work);
    template <class T>
    void move_certified(cpu::Work work);
    template <class T>
    void move_pivoted(cpu::Work work, std::int64_t lanes);
    template <class T>
    void move_two_pass();

    bool twice() const { return pass_ == Pass::two_pass || pass_ == Pass::dominant; }

    Pass pass_;
    tridiagonal::System system_, numbers_;
    tridiagonal::Launch launch_, numbers_launch_;
    AlignedBuffer scratch_, numbers_scratch_;
    tridiagonal::CertifiedCut cut_;
    std::int64_t block_ = 0;
    cpu::Work work_ = cpu::Work::move;

    // Two passes.
    tridiagonal::Partition partition_;
    std::vector<tridiagonal::InterfaceRow> rows_;
    std::vector<std::int64_t> zero_pivot_;
    std::vector<double> boundary_;
    std::vector<tridiagonal::ChunkResidual> residuals_;
};

}  // namespace trifold::bench
