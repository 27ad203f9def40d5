// SPDX-License-Identifier: BSD-3-Clause
// Long rings whose unknowns forget each other: solved open, and once more around the seam (ring_seams.cu).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

inline constexpr int seam_words = 6;  ///< of `maxima`, per ring

/// Whether it is worth while: x lies elsewhere than rhs, and rows are many more than those around the seam.
bool takes_seams(const tridiagonal::System& ring);

/// Its own, and what its solves need; least: at least.
std::size_t seams_scratch(const tridiagonal::System& ring, bool least);

/// Enqueues. In *unsettled, which is zero before, and as windows_turn in `handed_over` of others' outcomes (or null), it says that rings are to be solved otherwise; else x is there. maxima: seam_words per ring, zeros.
void solve_at_seams(const tridiagonal::System& ring, const BatchLaunch& launch, unsigned* unsettled, DeviceOutcome* const (&others)[2], unsigned* maxima);

}  // namespace trifold::cuda
