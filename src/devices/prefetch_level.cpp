// SPDX-License-Identifier: BSD-3-Clause
#include "devices/prefetch_level.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace trifold::devices {

bool asks_second_level() noexcept {
#if defined(__x86_64__)
    static const bool second = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        constexpr unsigned authentic_amd[] = {0x68747541, 0x69746e65, 0x444d4163};
        if (!__get_cpuid(0, &a, &b, &c, &d) || b != authentic_amd[0] || d != authentic_amd[1] || c != authentic_amd[2]) return false;
        __get_cpuid(1, &a, &b, &c, &d);
        const unsigned family = (a >> 8 & 0xf) + (a >> 20 & 0xff);
        // Zen 3 is of this family too, and has no AVX-512.
        return family == 0x19 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 16 & 1);
    }();
    return second;
#else
    return false;
#endif
}

}  // namespace trifold::devices
