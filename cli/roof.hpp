// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "devices/roof.hpp"
#include "io/tridiagonal_data.hpp"
#include "trifold/context.hpp"

namespace trifold::cli {

/// The bandwidth of a stream with a problem's mix of reads and writes over the problem's own memory. x is overwritten:
/// take a sample before a solve, not between it and the use of x.
class ProblemRoof {
public:
    ProblemRoof(const io::TridiagonalData& data, const io::Array& x, Context& context);

    /// The first call looks for the fastest way to read and write, in well under a second; the next ones are short.
    void sample();

    /// Bytes per second, median of the samples; 0 where the arrays are too small to tell.
    double bytes_per_s() const;

private:
    std::vector<devices::RoofProbe> probes_;  // the fastest alone after the first sample
    std::vector<double> samples_;
};

}  // namespace trifold::cli
