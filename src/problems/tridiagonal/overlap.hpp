// SPDX-License-Identifier: BSD-3-Clause
// Do two strided views share an element?
#pragma once

#include <cstdint>

#include "trifold/view.hpp"

namespace trifold {

/// The bytes from a view's first element to behind its last; of an empty one, what meets nothing.
struct Stretch {
    std::intptr_t first, last;

    bool meets(const Stretch& other) const noexcept { return first < other.last && other.first < last; }
};
inline Stretch stretch_of(const AnyView& view) noexcept {
    const auto size = static_cast<std::intptr_t>(size_of(view.dtype));
    const auto data = reinterpret_cast<std::intptr_t>(view.data);
    Stretch out{data, data};
    bool empty = view.axis.extent <= 0;
    const auto grow = [&](const Dim& dim) { (dim.stride < 0 ? out.first : out.last) += (dim.extent - 1) * dim.stride * size; };
    grow(view.axis);
    for (int d = 0; d < view.batch_dims; ++d) grow(view.batch[d]), empty = empty || view.batch[d].extent <= 0;
    out.last += size;
    return empty ? Stretch{INTPTR_MAX, INTPTR_MIN} : out;
}

/// Exact for nested strides (sub-blocks, padded arrays, interleaved components); views whose strides interlock so that the
/// search would take long count as overlapping.
bool overlap(const AnyView& a, const AnyView& b) noexcept;

/// Two different index tuples of the view that name the same element (a zero stride, rows that reach into each other).
bool overlaps_itself(const AnyView& view) noexcept;

}  // namespace trifold
