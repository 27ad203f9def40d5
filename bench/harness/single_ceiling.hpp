// SPDX-License-Identifier: BSD-3-Clause
// What bounds the solve of one system in one pass: its moving without its arithmetic, and its arithmetic without its moving.
#pragma once

#include <cstdint>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "devices/stream.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::bench {

/// For the passes that eliminate in stretches side by side: `certified`, or the pivoted one of systems that forget. Another order or other kernels may be
/// faster, and the two need not overlap.
class SingleCeiling {
public:
    enum class Pass : std::uint8_t { certified, pivoted };

    /// arrays: lower, diag, upper, rhs and x, those of the system.
    SingleCeiling(Pass pass, const devices::StreamArrays& arrays, const tridiagonal::System& system, int threads);

    /// Seconds of one pass that reads one word of every line of the four operands, tile by tile as the solve does, reads and writes one word of every line
    /// of a ring of its size, and stores x, block by block as the solve does; in the best of several orders within a tile, with pauses as long as arithmetic or
    /// without. In place: x is rhs, which is lost; and the log of the pivoted pass is written.
    double moving() { return pass(order_); }

    /// Seconds of the solve itself with four numbers in the place of the operands: of the five words per row one is left to move, x.
    double computing();

private:
    /// Lines of a tile by array, then what else there is to do (docs/decisions/0015-which-level-is-asked.md), or one of every array and all else lane by lane, with a
    /// chain of so many multiplications each.
    struct Order {
        bool by_lane = false;
        int pause = 0;
    };
    double pass(Order order);
    void group(std::int64_t number, unsigned char* ring, unsigned char* log, Order order) const;

    Pass pass_;
    devices::StreamArrays arrays_;
    tridiagonal::System system_;
    int threads_;
    std::int64_t lanes_ = 0, groups_ = 0, first_ = 0, lines_ = 0, last_lines_ = 0, block_lines_ = 0, ask_lines_ = 0;  // lines: of a stretch
    bool second_level_ = false, stream_ = false;
    Order order_;
    AlignedBuffer scratch_, rings_, logs_;
    std::int64_t ring_bytes_ = 0;
};

}  // namespace trifold::bench
