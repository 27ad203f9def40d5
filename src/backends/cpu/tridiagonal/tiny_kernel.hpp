// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

/// Rows of a system that is copied beside others before it is solved.
inline constexpr std::int64_t tiny_rows = 32;

/// Of so many at a time: their quotients do not wait for each other, nor what is loaded for what has just been stored.
template <class T>
inline constexpr int tiny_lanes = 4 * group_lanes<T>;

/// Systems of up to tiny_rows rows side by side, a lane each. lower of first rows and upper of last ones are zero; what a shorter system lacks is a row of the identity. rhs becomes x.
template <class T>
struct alignas(64) TinyGroup {
    struct Row {
        T lower[tiny_lanes<T>], diag[tiny_lanes<T>], upper[tiny_lanes<T>], rhs[tiny_lanes<T>];
    };
    Row row[tiny_rows];
};

/// Solves the first `rows` rows, at least one; returns the lanes that are singular, not finite, or have a pivot without a reciprocal.
std::uint64_t solve_tiny_group(TinyGroup<float>& group, std::int64_t rows);
std::uint64_t solve_tiny_group(TinyGroup<double>& group, std::int64_t rows);

}  // namespace trifold::cpu
