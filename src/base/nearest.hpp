// SPDX-License-Identifier: BSD-3-Clause
// The known name that a mistyped one most likely meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trifold {

/// The entry of `known` with the smallest edit distance (Levenshtein 1966; letters' case ignored); empty where `known` is
/// empty or even the nearest shares less than half of its letters with `name`.
std::string nearest(std::string_view name, std::span<const std::string_view> known);

/// "did you mean X? known: A, B, C", or only the known names where none is near.
std::string nearest_hint(std::string_view name, std::span<const std::string_view> known);

}  // namespace trifold
