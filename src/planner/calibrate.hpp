// SPDX-License-Identifier: BSD-3-Clause
// Measures what predictions need: the machine's bandwidth and the pace of every cell in cache.
#pragma once

#include <cstddef>

#include "devices/profile.hpp"
#include "devices/scratch.hpp"
#include "families/tridiagonal/ops.hpp"
#include "trifold/context.hpp"

namespace trifold::tridiagonal {

/// Sizes of the samples, bytes of all five arrays.
struct SampleSizes {
    std::size_t cache = std::size_t{1} << 19;   ///< fits the private cache of a thread
    std::size_t memory = std::size_t{1} << 27;  ///< fits no cache; 0 = leave the overlap of moving and working at its default
};

/// Times the algorithms that automatic planning looks at, f32 and f64, single and in batches, on a dominant matrix: in
/// cache at two sizes on one thread and once on `threads`, in memory once on `threads`. Adds to profile.rates, with the
/// help of profile.bandwidth. Stops beginning new ones after `budget_s`. What the device refuses or fails on is left out.
void calibrate(const Ops& ops, devices::ScratchArena& scratch, int threads, const SampleSizes& sizes, double budget_s,
               devices::Profile& profile);

/// Measures bandwidth and every device that is not modelled, about two seconds, and makes the Context keep it.
const devices::Profile& measure_profile(Context& context);

/// The Context's profile, measured now where there is none. With profile_path "none" it is measured once per Context.
const devices::Profile& ensure_profile(Context& context);

}  // namespace trifold::tridiagonal
