// SPDX-License-Identifier: BSD-3-Clause
// A chunk as equal systems, which one call solves as a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "families/tridiagonal/split/part.hpp"

namespace trifold::tridiagonal::split {

/// Equal systems one after the other in a chunk: `count` of `rows` rows from its row `first` on.
struct Group {
    std::int64_t first, rows, count;
};

/// `rows` rows as systems of `part`, and one of what is left.
inline std::vector<Group> groups_of(std::int64_t rows, std::int64_t part) {
    std::vector<Group> out;
    const std::int64_t whole = rows / part, rest = rows - whole * part;
    if (whole > 0) out.push_back({0, part, whole});
    if (rest > 0) out.push_back({whole * part, rest, 1});
    return out;
}

inline std::int64_t count_of(std::int64_t rows, std::int64_t part) { return (rows + part - 1) / part; }

/// Rows first … of `chunk`, on the device, as equal systems.
inline System as_batch(const System& chunk, const Group& group) {
    System out = slice(chunk, group.first, group.rows);
    if (group.count == 1) return out;
    out.levels = 1, out.extent[0] = group.count, out.number_stride[0] = 1;
    for (Operand* operand : {&out.lower, &out.diag, &out.upper, &out.rhs, &out.x}) operand->level_stride[0] = group.rows * operand->row_stride;
    return out;
}

}  // namespace trifold::tridiagonal::split
