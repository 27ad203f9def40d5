// SPDX-License-Identifier: BSD-3-Clause
// 128 bits of a text that tell it from others by accident, not against intent: two FNV-1a of 64 bits (Fowler, Noll, Vo).
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace trifold {

class TextHash {
public:
    void add(std::string_view text) noexcept {
        for (const char c : text) step(static_cast<unsigned char>(c));
        step(0x100);
    }

    std::string text() const {
        char out[40];
        std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(a_), static_cast<unsigned long long>(b_));
        return out;
    }

private:
    void step(unsigned value) noexcept {
        a_ = (a_ ^ value) * 0x100000001b3u;
        b_ = (b_ ^ (value + 0x9e37u)) * 0x100000001b3u;
        b_ ^= b_ >> 29;
    }

    std::uint64_t a_ = 0xcbf29ce484222325u, b_ = 0x84222325cbf29ce4u;
};

}  // namespace trifold
