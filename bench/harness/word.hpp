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

/// A chain of that many multiplications, three cycles each on most cores: it waits as a row's division does, so that requests do not come in bursts.
inline std::uint64_t wait_for(std::uint64_t x, int multiplications) {
    for (int k = 0; k < multiplications; ++k) x *= 0x9E3779B97F4A7C15;
    return x;
}

}  // namespace trifold::bench
