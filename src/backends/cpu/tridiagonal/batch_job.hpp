// SPDX-License-Identifier: BSD-3-Clause
// A batch as the kernels see it: one level whose systems become lanes, up to three levels around it, and blocks of lanes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "problems/tridiagonal/system.hpp"

namespace trifold::cpu {

/// One operand. Element (row i, lane j, outer indices o[]) is data[i row_stride + j lane_stride + Σ o[] outer_stride[]].
template <class T>
struct BatchOperand {
    tridiagonal::Operand::Kind kind = tridiagonal::Operand::Kind::scalar;
    T value = 0;
    T* data = nullptr;
    std::int64_t row_stride = 0, lane_stride = 0, outer_stride[3] = {};
    const Generator* generator = nullptr;
    std::int64_t generator_shift = 0;
};

enum class BatchMethod : std::uint8_t {
    checked,    ///< without pivoting; lanes that fail its test are redone with partial pivoting
    unpivoted,  ///< lanes that fail the test are left as they were and reported
    pivoted     ///< partial pivoting for all
};

/// Why a system is handed back by a kernel.
enum class BatchEvent : std::uint8_t {
    pivoted,    ///< solved with partial pivoting after the unpivoted pass was refused
    refused,    ///< not stored (in place: rhs is as it was): to be solved by a scalar method or reported
    overflow    ///< stored, but x[0] is not finite although every pivot and the eliminated right-hand side are
};

template <class T>
struct BatchJob {
    std::int64_t rows = 0;
    std::int64_t lanes = 0;                     ///< extent of the level whose systems become lanes
    int outer_levels = 0;
    std::int64_t outer_extent[3] = {1, 1, 1};
    BatchOperand<T> lower, diag, upper, rhs, x;
    bool in_place = false;
    BatchMethod method = BatchMethod::checked;
    T growth = 0;                               ///< accepted |lower c'| over |lower| + |diag|
    int block_lines = 4;                        ///< width of a block in cache lines of one row
    int overlapped_lines = 0;                   ///< width where a block is eliminated while the one before is substituted; 0: never
    std::int64_t ahead_rows = 0;                ///< then: between asking for a row and its use
    std::int64_t segment_rows = 0;              ///< rows whose c', d' are kept at a time
    void (*event)(void* sink, std::int64_t outer, std::int64_t lane, BatchEvent event) = nullptr;

    static constexpr std::int64_t line = 64 / sizeof(T);  ///< elements of a cache line

    std::int64_t outer() const noexcept { return outer_extent[0] * outer_extent[1] * outer_extent[2]; }
    std::int64_t lines() const noexcept { return (lanes + line - 1) / line; }
    bool narrow() const noexcept { return overlapped_lines > 0 && overlapped_lines < block_lines; }
    std::int64_t blocks_per_run() const noexcept {
        return narrow() ? std::max<std::int64_t>(lanes / line / overlapped_lines, 1) : (lines() + block_lines - 1) / block_lines;
    }
    std::int64_t blocks() const noexcept { return outer() * blocks_per_run(); }
    std::int64_t segments() const noexcept { return (rows + segment_rows - 1) / segment_rows; }

    /// Lanes [first, last) of block k of a run: whole lines, as equal as they can be, so that no narrow one is left over. Narrow blocks
    /// leave what is over to the last one.
    std::int64_t first_lane(std::int64_t k) const noexcept {
        if (narrow()) return k < blocks_per_run() ? k * overlapped_lines * line : lanes;
        return std::min(lines() * k / blocks_per_run() * line, lanes);
    }

    /// Elements of scratch per thread: c', d' and the second upper diagonal of U for a segment, the carry at every segment's
    /// start and end, four tiles with room before and after them, eight rows for the block's own state.
    std::int64_t scratch_elements() const noexcept {
        return block_lines * line * (3 * std::min(segment_rows, rows) + 3 * (segments() + 1) + 4 * (4 * line + 2) + 8);
    }
};

}  // namespace trifold::cpu
