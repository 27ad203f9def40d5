// SPDX-License-Identifier: BSD-3-Clause
// What a batch solve moves, in its order, without its arithmetic: the ceiling that its pattern of accesses leaves below the roof.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "devices/stream.hpp"
#include "io/tridiagonal_data.hpp"

namespace trifold::bench {

/// Systems with rows side by side. Block by block, one word of every cache line: the four operands read in the order of their
/// addresses, then again line by line across the block, c' and d' written to a scratch of the solve's size and read backwards, x
/// stored in place over rhs, its values unchanged.
class BatchOrder {
public:
    /// arrays: lower, diag, upper, and rhs, which is also `write`, of data.rhs's shape in C order.
    BatchOrder(const devices::StreamArrays& arrays, const io::TridiagonalData& data, int threads);

    /// Seconds of one pass.
    double sample();

private:
    void pass(std::int64_t block, char* scratch);

    devices::StreamArrays arrays_;
    std::int64_t rows_ = 0, element_ = 8;            // rows of a system, bytes of an element
    std::int64_t blocks_ = 0;
    int threads_ = 1;
    std::vector<std::vector<std::uint64_t>> scratch_;
    std::uint64_t zero_ = 0;                         // not known when compiled
};

}  // namespace trifold::bench
