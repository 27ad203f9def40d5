// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "devices/roof.hpp"
#include "io/tridiagonal_data.hpp"
#include "trifold/context.hpp"

namespace trifold::cli {

/// The bandwidth of a stream with a problem's mix of reads and writes over the problem's own memory, or over as much memory of
/// a device that has its own. x is overwritten: take a sample before a solve, not between it and the use of x.
class ProblemRoof {
public:
    ProblemRoof(const io::TridiagonalData& data, const io::Array& x, const Queue& queue);

    /// The first call looks for the fastest way to read and write, in well under a second; the next ones are short.
    void sample();

    /// Bytes per second, median of the samples; 0 where the arrays are too small to tell.
    double bytes_per_s() const;

private:
    void sample_device();

    const Queue& queue_;
    int device_reads_ = 0;                    // on a device with memory of its own: arrays of device_bytes_ there
    std::size_t device_bytes_ = 0;
    std::vector<devices::RoofProbe> probes_;  // the fastest alone after the first sample
    std::vector<double> samples_;
};

/// Smaller arrays are too small to tell.
inline constexpr std::int64_t worth_a_roof = std::int64_t{1} << 20;

/// Bytes per second of a stream that reads `reads` arrays of `bytes` bytes and writes one more, in memory of its own: at most 256 MiB an array,
/// on a device with memory of its own exactly that. 0 where there is no memory for them.
double stream_bandwidth(const Queue& queue, std::size_t bytes, int reads);

}  // namespace trifold::cli
