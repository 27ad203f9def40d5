// SPDX-License-Identifier: BSD-3-Clause
// Eight bytes of a cache line, whatever lies there: what a loop reads and stores that only moves.
#pragma once

#include <cstdint>
#include <cstring>

namespace trifold::bench {

inline constexpr std::int64_t line = 64;  ///< bytes

inline std::uint64_t word_at(const void* p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    return word;
}

inline void put(void* p, std::uint64_t word) { std::memcpy(p, &word, sizeof(word)); }

}  // namespace trifold::bench
