// SPDX-License-Identifier: BSD-3-Clause
// The scalar types, known at run time at the edges and typed inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace trifold {

enum class DType : std::uint8_t { f32, f64 };

constexpr std::size_t size_of(DType type) { return type == DType::f32 ? 4 : 8; }
constexpr const char* name_of(DType type) { return type == DType::f32 ? "f32" : "f64"; }

template <class T>
inline constexpr bool is_scalar = std::is_same_v<std::remove_const_t<T>, float> || std::is_same_v<std::remove_const_t<T>, double>;

template <class T>
    requires is_scalar<T>
inline constexpr DType dtype_of = std::is_same_v<std::remove_const_t<T>, float> ? DType::f32 : DType::f64;

/// Unit roundoff of a type: 2^-24 for f32, 2^-53 for f64.
constexpr double unit_roundoff(DType type) { return type == DType::f32 ? 0x1p-24 : 0x1p-53; }

}  // namespace trifold
