// SPDX-License-Identifier: BSD-3-Clause
// Measures what predictions need: the machine's bandwidth and the time of every cell by rows and threads.
#pragma once

#include <cstddef>

#include "devices/profile.hpp"
#include "devices/scratch.hpp"
#include "families/tridiagonal/ops.hpp"
#include "trifold/context.hpp"

namespace trifold::tridiagonal {

/// Times the algorithms that automatic planning looks at, f32 and f64, single and in batches, on a dominant matrix: from
/// 500 rows, or a vector of systems, to `largest_bytes` in all five arrays, on one thread and on `threads`. Adds to profile.timings. Stops
/// beginning new ones after `budget_s`. What the device refuses or fails on is left out.
void calibrate(const Ops& ops, devices::ScratchArena& scratch, int threads, std::size_t largest_bytes, double budget_s,
               devices::Profile& profile);

/// Measures bandwidth and every device that is not modelled, about four seconds, and makes the Context keep it.
const devices::Profile& measure_profile(Context& context);

/// The Context's profile, measured now where there is none. With profile_path "none" it is measured once per Context.
const devices::Profile& ensure_profile(Context& context);

}  // namespace trifold::tridiagonal
