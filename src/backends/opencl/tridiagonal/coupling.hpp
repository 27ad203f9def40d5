// SPDX-License-Identifier: BSD-3-Clause
// Chunks of one system, of which each is two rows, coupled on the device, and the verdict on what was made of their ends (kernels/couple.cl).
#pragma once

#include <vector>

#include "backends/opencl/tridiagonal/judging.hpp"

namespace trifold::opencl {

/// Merged 16 to one, level by level, until one group takes all that is left; and back.
class Coupling {
public:
    /// Its levels lie `numbers` numbers of the system's type into the call's work, rounded up.
    Coupling(const tridiagonal::System& system, word chunks, std::size_t numbers);

    /// Of work, with what lies before the levels.
    std::size_t bytes() const { return bytes_; }

    /// parts.out: the chunks as `reduce` leaves them; parts.add: where their first and last unknowns come. gate: what must have been found before, 0: they run in any case.
    void enqueue(Call& call, const ChunkParts& parts, cl_uint gate) const;

private:
    void level(Call& call, const char* kernel, const ChunkParts& parts, std::size_t l, cl_uint gate) const;

    word chunks_;
    std::size_t from_, bytes_;
    std::vector<word> at_, count_;  ///< of the levels that are enqueued one by one, above the chunks themselves; the last one, or the chunks where there is none, is where the top begins
    word above_;                    ///< where the top's own levels are
};

/// Tells the outcome of what finish has said of `chunks` chunks, where finish does not tell it itself.
void enqueue_verdict(Call& call, const ChunkParts& parts, word chunks, cl_uint gate, const Judging& by);

}  // namespace trifold::opencl
