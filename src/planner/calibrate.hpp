// SPDX-License-Identifier: BSD-3-Clause
// Measures what predictions need: the machine's bandwidth and the pace of every cell in cache.
#pragma once

#include <map>
#include <string>

#include "devices/profile.hpp"
#include "devices/scratch.hpp"
#include "families/tridiagonal/ops.hpp"
#include "trifold/context.hpp"

namespace trifold::tridiagonal {

/// Times the algorithms that automatic planning looks at, f32 and f64, single and in batches, on a dominant matrix that
/// fits `cache_bytes` per thread; each on one thread at two sizes and once on `threads`. Stops beginning new ones after
/// `budget_s`. What the device refuses or fails on is left out.
void calibrate(const Ops& ops, devices::ScratchArena& scratch, int threads, std::size_t cache_bytes, double budget_s,
               std::map<std::string, devices::CellRate, std::less<>>& rates);

/// Measures bandwidth and every device that is not modelled, about two seconds, and makes the Context keep it.
const devices::Profile& measure_profile(Context& context);

/// The Context's profile, measured now where there is none. With profile_path "none" it is measured once per Context.
const devices::Profile& ensure_profile(Context& context);

}  // namespace trifold::tridiagonal
