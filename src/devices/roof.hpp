// SPDX-License-Identifier: BSD-3-Clause
// The roof: how fast this machine moves a solve's mix of reads and writes when nothing is computed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "devices/stream.hpp"

namespace trifold::devices {

/// Four reads and one write are a tridiagonal row with three coefficient arrays.
struct RoofMix {
    int reads = 4;
    Store store = Store::past_cache;

    /// Arrays that are moved: in place one array is both read and written, and both count.
    int words() const noexcept { return reads + (store == Store::none ? 0 : 1); }
    /// Arrays that lie in memory.
    int arrays() const noexcept { return reads + (store == Store::regular || store == Store::past_cache ? 1 : 0); }
};

struct RoofMeasurement {
    double bytes_per_s = 0;     ///< the best shape's median
    std::size_t footprint = 0;  ///< bytes of memory touched
    int threads = 1;
    RoofMix mix;
    StreamShape shape;          ///< the best one
    int samples = 0;            ///< of the best one
};

/// Passes over one set of arrays. Every thread owns one contiguous part, as in a solve.
class RoofProbe {
public:
    /// Own arrays of together `footprint` bytes, first written by the threads that will read them. Throws Error(bad_input)
    /// where there is not that much memory.
    RoofProbe(RoofMix mix, std::size_t footprint, int threads);

    /// The caller's arrays of `bytes` each. What is written is what read[reads-1] holds: in place changes nothing, else
    /// `write` ends as a copy of it.
    RoofProbe(const StreamArrays& arrays, std::size_t bytes, Store store, int threads);

    /// Seconds of one pass in this shape: the mean of as many as fill about 50 µs.
    double sample(StreamShape shape);

    /// Seconds of one pass in the best shape so far: what a benchmark interleaves with its solves.
    double sample() { return sample(best_); }

    /// Tries every shape, then the better ones, until `budget_s` is used up; each of them at least once, the best at least
    /// thrice.
    RoofMeasurement measure(double budget_s);

    double bytes_per_pass() const noexcept { return static_cast<double>(bytes_) * mix_.words(); }

private:
    double timed_passes(StreamShape shape, int passes);

    AlignedBuffer own_;
    StreamArrays arrays_;
    std::size_t bytes_ = 0;
    RoofMix mix_;
    int threads_ = 1;
    int passes_ = 0;  // per sample; 0 = not known yet
    StreamShape best_;
};

}  // namespace trifold::devices
