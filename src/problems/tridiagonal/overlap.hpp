// SPDX-License-Identifier: BSD-3-Clause
// Do two strided views share an element?
#pragma once

#include "trifold/view.hpp"

namespace trifold {

/// Exact for nested strides (sub-blocks, padded arrays, interleaved components); views whose strides interlock so that the
/// search would take long count as overlapping.
bool overlap(const AnyView& a, const AnyView& b) noexcept;

/// Two different index tuples of the view that name the same element (a zero stride, rows that reach into each other).
bool overlaps_itself(const AnyView& view) noexcept;

}  // namespace trifold
