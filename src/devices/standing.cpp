// SPDX-License-Identifier: BSD-3-Clause
#include "devices/standing.hpp"

#include <algorithm>
#include <utility>

namespace trifold::devices {

bool Standings::find(const Shape& shape, const Arrays& arrays, Standing& out) const {
    const std::lock_guard lock(mutex_);
    for (const Standing& one : all_)
        if (one.arrays == arrays && one.shape.devices == shape.devices && one.shape.what == shape.what && one.shape.watts == shape.watts) return out = one, true;
    return false;
}

bool Standings::find(const Shape& shape, Standing& out) const {
    const std::lock_guard lock(mutex_);
    for (const Standing& one : all_)
        if (one.shape == shape) return out = one, true;
    return false;
}

void Standings::keep(Standing standing) {
    const std::lock_guard lock(mutex_);
    auto at = std::find_if(all_.begin(), all_.end(), [&](const Standing& one) { return one.shape == standing.shape; });
    if (at == all_.end()) {
        if (all_.size() >= most) all_.pop_back();
        all_.push_back(std::move(standing));
        at = all_.end() - 1;
    } else {
        *at = std::move(standing);
    }
    std::rotate(all_.begin(), at, at + 1);
}

void Standings::clear() {
    const std::lock_guard lock(mutex_);
    all_.clear();
}

}  // namespace trifold::devices
