// SPDX-License-Identifier: BSD-3-Clause
// What a device with memory of its own needs for the chunks that it reduces and finishes (reduce_stream.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "families/tridiagonal/split/coupled.hpp"

namespace trifold::tridiagonal::split {

inline constexpr int under_way = 2;    ///< chunks of the first pass
inline constexpr int most_groups = 2;  ///< batches that a chunk is

/// Of the second pass twice as many, each way: half as long, so that they fit the same memory. A lane's thread that waits is woken late at times, by milliseconds, since the cores are busy: the link has something to do until then.
inline constexpr int queued = 2 * under_way;

/// Bytes, per chunk that stays, and per chunk that is under way.
struct Sizes {
    std::size_t array, pass, scratch, zeros, outcome, numbers, known, back;  // back: two numbers to a part

    Sizes(const System& system, const Ops& ops, SpikeRows rows, std::int64_t piece);
};

}  // namespace trifold::tridiagonal::split
