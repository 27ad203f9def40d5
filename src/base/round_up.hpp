// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>

namespace trifold {

/// The next multiple of `unit`, or `value` where it is one.
template <class T>
constexpr T round_up(T value, std::type_identity_t<T> unit) noexcept {
    return (value + unit - 1) / unit * unit;
}

/// Whole cache lines.
constexpr std::size_t whole_lines(std::size_t bytes) noexcept { return round_up(bytes, 64); }

}  // namespace trifold
