// SPDX-License-Identifier: BSD-3-Clause
// How long an algorithm is thought to take: the slower of memory and arithmetic, plus what a call costs whatever its size.
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

/// What a profile says of this algorithm on problems like `f`, or a default.
devices::CellRate rate_for(const Features& f, const Ops& ops, Algorithm algorithm, const devices::Profile& profile) noexcept;

/// Seconds that moving the words and working on them would take alone.
struct Shares {
    double moving, working;
};
Shares shares_of(const Features& f, Algorithm algorithm, const devices::CellRate& rate, const devices::Profile& profile, int threads) noexcept;

/// Both of them, by CellRate::overlap; and the overlap, between 0.5 and 8, with which they take `seconds`.
double together(const Shares& shares, double overlap) noexcept;
double overlap_of(const Shares& shares, double seconds) noexcept;

/// The pace of a batch depends on how long its systems are: it is measured at these lengths, and interpolated.
inline constexpr std::int64_t batch_lengths[] = {128, 2048, 32768};

/// Key of the pace of an algorithm in a profile: "device.algorithm.dtype" for single systems; for batches with
/// ".contiguous" or ".interleaved" and the length of the systems behind.
struct RateKey {
    char text[96];
};
RateKey rate_key(const Ops& ops, Algorithm algorithm, DType dtype) noexcept;
RateKey rate_key(const Ops& ops, Algorithm algorithm, DType dtype, bool contiguous, std::int64_t length) noexcept;

}  // namespace trifold::tridiagonal
