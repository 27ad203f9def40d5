// SPDX-License-Identifier: BSD-3-Clause
// Arrays of the host brought to a device and back for one solve: each distinct element once, whatever the strides.
#pragma once

#include <cstddef>

#include "devices/scratch.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal {

/// One operand without gaps and repeats, in the order in which it lies in memory.
struct StagedOperand {
    Operand host;                 ///< as the problem has it
    Operand compact;              ///< the same with the strides of the copy; `data` is set when memory is known
    std::int64_t extent[5] = {}, stride[5] = {}, packed[5] = {};  ///< distinct dimensions, the slowest first
    int dims = 0;
    int row_dim = -1;             ///< which of them counts rows; -1 = rows share
    std::int64_t elements = 0;
    std::int64_t first_row = 0, last_row = 0;  ///< rows that exist (lower has no first, upper no last)
    std::size_t element_bytes = 8;
    bool dense = false;           ///< it lies like that already: no packing

    std::size_t bytes() const noexcept { return static_cast<std::size_t>(elements) * element_bytes; }

    /// First byte, and number of bytes, of what a dense one copies.
    std::size_t dense_offset() const noexcept;
    std::size_t dense_bytes() const noexcept;

    void pack(void* to, int threads) const;
    void unpack(const void* from, int threads) const;
};

/// `first_row` … `last_row` are the rows that may be touched.
StagedOperand stage_operand(const Operand& operand, const System& system, std::int64_t first_row, std::int64_t last_row);

}  // namespace trifold::tridiagonal
