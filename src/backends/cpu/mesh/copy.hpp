// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

namespace trifold::cpu {

/// Copies `count` values with stores that do not read the destination first.
template <class T>
void copy_past_cache(const T* from, std::int64_t count, T* to) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i < count && reinterpret_cast<std::uintptr_t>(to + i) % (static_cast<std::size_t>(lanes) * sizeof(T)); ++i) to[i] = from[i];
    for (; i + lanes <= count; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
    for (; i < count; ++i) to[i] = from[i];
}

}  // namespace trifold::cpu
