// SPDX-License-Identifier: BSD-3-Clause
// What a batch solve moves, in its order, without its arithmetic: the ceiling that its pattern of accesses and requests leaves of the roof. Not a
// strict one along z: a loop that computes nothing asks in bursts, which a core drops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "devices/stream.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::bench {

/// Block by block as the cpu's plan cuts them, one word of every cache line: the four operands read, c' and d' of the block before read from a scratch of
/// the solve's size and those of this one written there, x of the block before stored in place over its rhs, which is lost; and the solve's requests.
/// Rows side by side: a line of rows of every system at a time, the next block asked for in the order of its addresses. Systems side by
/// side: row i of a block beside row n-1-i of the block before, lines asked for as many rows ahead as the plan says, and again.
class BatchOrder {
public:
    /// arrays: lower, diag, upper, and rhs, which is also `write`, all with the strides of system.rhs.
    BatchOrder(const devices::StreamArrays& arrays, const tridiagonal::System& system, int threads);

    /// Seconds of one pass.
    double sample();

private:
    std::int64_t offset(std::int64_t block) const;
    void columns(std::int64_t first, std::int64_t last, char* scratch);
    void lines(std::int64_t first, std::int64_t last, char* scratch);

    devices::StreamArrays arrays_;
    std::int64_t rows_ = 0, row_step_ = 0, lane_step_ = 0, lanes_ = 0;  // steps in bytes; lanes of a block
    std::int64_t run_ = 1, blocks_ = 0, extent_[3] = {1, 1, 1}, outer_step_[3] = {};
    std::int64_t width_ = 1, ahead_ = 0, again_ = 0;                     // lines of a row of a block; rows between asking and use; bytes between asking and asking again
    bool columns_ = false;
    int threads_ = 1;
    std::vector<std::vector<std::uint64_t>> scratch_;
};

}  // namespace trifold::bench
