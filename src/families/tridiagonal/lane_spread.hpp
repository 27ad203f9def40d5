// SPDX-License-Identifier: BSD-3-Clause
// How far apart in the caches' sets streams lie that are read side by side, one per lane.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trifold::tridiagonal {

/// Cache lines between the sets of the two nearest of `lanes` streams that are `lines` apart. Streams at one offset within a page (64
/// lines) meet in one set of the first-level cache, those at one offset within 1024 lines in one set of the second, where 16 lines count as
/// one of the first. At most what is as good as can be. It stops counting at what is not above `wanted`.
inline std::int64_t lane_spread(std::int64_t lines, std::int64_t lanes, std::int64_t wanted = -1) {
    std::int64_t nearest = 768 / lanes;
    for (std::int64_t k = 1; k < lanes && nearest > wanted; ++k) {
        const std::int64_t far = k * lines % 1024, near = k * lines % 64;
        nearest = std::min({nearest, far, 1024 - far, 16 * near, 16 * (64 - near)});
    }
    return nearest;
}

}  // namespace trifold::tridiagonal
