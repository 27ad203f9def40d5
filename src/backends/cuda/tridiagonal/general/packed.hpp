// SPDX-License-Identifier: BSD-3-Clause
// An array of the shape of a system's x without gaps, in scratch: dimensions in the order in which they lie in x.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

struct Packed {
    std::int64_t row_stride = 1, level_stride[4] = {}, elements = 1;

    /// Of all levels, or of those that are `kept`; the others share it.
    explicit Packed(const tridiagonal::System& system, const bool (&kept)[4] = {true, true, true, true}) {
        struct Dimension {
            std::int64_t extent, apart;
            std::int64_t* stride;
        };
        Dimension list[5] = {{system.rows, std::llabs(system.x.row_stride), &row_stride}};
        int count = 1;
        for (int d = 0; d < system.levels; ++d) {
            if (!kept[d]) continue;
            int at = count++;  // the smallest stride first
            const std::int64_t apart = std::llabs(system.x.level_stride[d]);
            for (; at > 0 && list[at - 1].apart > apart; --at) list[at] = list[at - 1];
            list[at] = {system.extent[d], apart, &level_stride[d]};
        }
        for (int k = 0; k < count; ++k) *list[k].stride = elements, elements *= list[k].extent;
    }

    tridiagonal::Operand at(void* memory) const {
        tridiagonal::Operand operand;
        operand.kind = tridiagonal::Operand::Kind::view;
        operand.data = memory, operand.row_stride = row_stride;
        for (int d = 0; d < 4; ++d) operand.level_stride[d] = level_stride[d];
        return operand;
    }
};

}  // namespace trifold::cuda
