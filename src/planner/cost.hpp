// SPDX-License-Identifier: BSD-3-Clause
// How long an algorithm is thought to take: what it took on this machine with as many rows and threads, corrected for how many
// words this problem moves; where nothing was measured, the slower of memory and arithmetic and what a call costs.
// Pure functions of the problem's shape and a profile; no value of the problem is read, nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/profile.hpp"
#include "families/tridiagonal/ops.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal {

/// What a prediction needs to know of a problem.
struct Features {
    double systems = 1;
    double rows = 0;            ///< of all systems
    double longest = 0;         ///< rows of the longest system
    double bytes = 0;           ///< needed: each input once, each output once
    double output_bytes = 0;    ///< of these, written
    double passing = 0;         ///< rows that pass through the caches from one solve to the next
    std::size_t footprint = 0;  ///< bytes of memory touched
    bool in_place = false;
    bool batch = false;         ///< levels > 0 or ragged
    bool contiguous = true;     ///< rows side by side
    DType dtype = DType::f64;
};

Features features_of(const System& system) noexcept;

/// One system out of a batch, for solving them one by one.
Features one_line(const Features& batch) noexcept;

struct Prediction {
    double seconds = 0;
    int threads = 1;     ///< that give these seconds: more would not help
};

/// Solving `f` with one algorithm of a device, on at most `max_threads` threads, where its fast path suffices: the matrix
/// decays and no system needs a rescue.
Prediction predict(const Features& f, const Ops& ops, Algorithm algorithm, const devices::Profile& profile, int max_threads) noexcept;

/// One system for Ops::solve_small, which neither plans nor takes scratch.
Prediction predict_small(const Features& f, const Ops& ops, const devices::Profile& profile) noexcept;

/// The time of a batch depends on how long its systems are: it is measured at these lengths, and interpolated. Long ones are no
/// power of two, where lines of neighbouring systems would meet in one set of the cache.
inline constexpr std::int64_t batch_lengths[] = {32, 128, 1000, 30000};

/// Key of an algorithm's timings in a profile: "device.algorithm.dtype" for single systems, with ".in_place" behind where x is rhs;
/// for batches with ".contiguous" or ".interleaved" and the length of the systems behind.
struct TimingKey {
    char text[96];
};
TimingKey timing_key(const Ops& ops, Algorithm algorithm, DType dtype, bool in_place = false) noexcept;
TimingKey timing_key(const Ops& ops, Algorithm algorithm, DType dtype, bool contiguous, std::int64_t length) noexcept;

/// "device.small.dtype"
TimingKey small_timing_key(const Ops& ops, DType dtype) noexcept;

}  // namespace trifold::tridiagonal
