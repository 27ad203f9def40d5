// SPDX-License-Identifier: BSD-3-Clause
// Systems that are made of rings.
#pragma once

#include <array>

#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

/// Whether the matrix differs along a level.
inline void matrix_levels(const tridiagonal::System& system, bool (&kept)[4]) {
    using tridiagonal::Operand;
    for (int d = 0; d < 4; ++d) {
        kept[d] = false;
        for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.top_right, &system.bottom_left})
            kept[d] = kept[d] || (operand->kind == Operand::Kind::view && operand->level_stride[d] != 0);
    }
}

/// Without what couples its ends; systems are numbered from 0.
inline tridiagonal::System open_of(const tridiagonal::System& ring) {
    tridiagonal::System open = ring;
    open.periodic = open.accumulate = false;
    open.top_right = open.bottom_left = tridiagonal::Operand{};
    open.number = 0;
    std::int64_t weight = 1;
    for (int d = open.levels - 1; d >= 0; --d) open.number_stride[d] = weight, weight *= open.extent[d];
    return open;
}

/// Those of its levels that are `kept`, at index 0 of the others; numbered from 0.
inline tridiagonal::System with_levels(const tridiagonal::System& all, const bool (&kept)[4]) {
    using tridiagonal::Operand;
    tridiagonal::System some = all;
    some.levels = 0, some.number = 0;
    const auto operands = [](auto& system) { return std::array{&system.lower, &system.diag, &system.upper, &system.rhs, &system.x, &system.top_right, &system.bottom_left}; };
    const auto from_all = operands(all);
    const auto to_some = operands(some);
    for (int d = 0; d < all.levels; ++d) {
        if (!kept[d]) continue;
        const int to = some.levels++;
        some.extent[to] = all.extent[d];
        for (std::size_t k = 0; k < to_some.size(); ++k) to_some[k]->level_stride[to] = from_all[k]->level_stride[d];
    }
    for (int d = some.levels; d < 4; ++d) {
        some.extent[d] = 1, some.number_stride[d] = 0;
        for (Operand* operand : to_some) operand->level_stride[d] = 0;
    }
    std::int64_t weight = 1;
    for (int d = some.levels - 1; d >= 0; --d) some.number_stride[d] = weight, weight *= some.extent[d];
    return some;
}

}  // namespace trifold::cuda
