// SPDX-License-Identifier: BSD-3-Clause
#include "devices/device_arena.hpp"

#include <cmath>
#include <cstdio>

namespace trifold::devices {

DeviceBlock::~DeviceBlock() {
    if (arena_) arena_->give_back(data_);
}

DeviceArena::~DeviceArena() {
    for (const Slot& slot : slots_) runtime_.release(device_, slot.data);
}

DeviceBlock DeviceArena::take(std::size_t bytes, const std::string& what, double rows, double systems) {
    DeviceBlock out;
    if (bytes == 0) return out;
    const std::lock_guard lock(mutex_);
    Slot* fit = nullptr;
    for (Slot& slot : slots_)
        if (!slot.lent && slot.bytes >= bytes && (!fit || slot.bytes < fit->bytes)) fit = &slot;
    if (!fit) {
        // What is kept and too small would only be in the way.
        std::erase_if(slots_, [&](const Slot& slot) {
            if (!slot.lent) runtime_.release(device_, slot.data);
            return !slot.lent;
        });
        void* data = nullptr;
        Failure failure;
        if (!runtime_.allocate(device_, bytes, &data, failure)) {
            std::size_t free = 0, total = 0;
            Failure unknown;
            if (runtime_.memory_info(device_, &free, &total, unknown) && free < bytes) {
                const double share = static_cast<double>(free) / static_cast<double>(bytes), whole = std::floor(systems * share);
                if (whole >= 1)
                    std::snprintf(failure.hint, sizeof failure.hint, "about %.0f of the %.0f systems fit: solve so many at a time, or in f32", whole, systems);
                else
                    std::snprintf(failure.hint, sizeof failure.hint, "about %.3g of the %.3g rows%s fit: solve in f32, or on several devices", rows * share,
                                  systems > 1 ? rows / systems : rows, systems > 1 ? " of one system" : "");
            }
            failure.raise(what + " on " + name_);
        }
        fit = &slots_.emplace_back(Slot{data, bytes, false});
    }
    fit->lent = true;
    out.arena_ = this, out.data_ = fit->data, out.bytes_ = fit->bytes;
    return out;
}

void DeviceArena::give_back(void* data) noexcept {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_)
        if (slot.data == data) slot.lent = false;
}

}  // namespace trifold::devices
