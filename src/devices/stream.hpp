// SPDX-License-Identifier: BSD-3-Clause
// One pass of one thread over up to four arrays read and at most one written: the traffic of a tridiagonal solve without
// its arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trifold::devices {

/// How the words go back: a line that is stored regularly is first read by the cache (write-allocate), one that is stored
/// past the cache is not, and in place it has been read already.
enum class Store : std::uint8_t { none, regular, past_cache, in_place };

constexpr const char* name_of(Store store) {
    switch (store) {
        case Store::none: return "read only";
        case Store::regular: return "regular stores";
        case Store::past_cache: return "non-temporal stores";
        case Store::in_place: return "in place";
    }
    return "?";
}

/// How a pass tells the processor what it will read next; a roof is the best of them.
struct StreamShape {
    std::int32_t prefetch_bytes = 0;  ///< ahead of each array's reads; 0 = leave it to the hardware
    enum class Into : std::uint8_t { first, second, once } into = Into::first;  ///< the cache; once: the first, marked as used once
    friend bool operator==(const StreamShape&, const StreamShape&) = default;
};

/// Arrays of one pass. read[reads-1] is also what `write` receives, bit for bit: in place nothing changes. Addresses are
/// aligned to the elements' size only; the ends that do not fill a line are copied plainly.
struct StreamArrays {
    const unsigned char* read[4] = {};
    int reads = 0;
    unsigned char* write = nullptr;
};

/// Passes over bytes [first, last) of every array; returns a value that depends on all that was read.
std::uint64_t stream_pass(const StreamArrays& arrays, Store store, StreamShape shape, std::size_t first, std::size_t last);

/// The instruction set that stream_pass runs on, as Highway names it.
const char* simd_target();

}  // namespace trifold::devices
