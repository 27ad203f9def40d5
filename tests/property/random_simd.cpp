// SPDX-License-Identifier: BSD-3-Clause
// Compiled like the units that Highway dispatches, so that it lists the same instruction sets.
#include <hwy/highway.h>

#include <cstdint>

#include "property/random_case.hpp"

namespace trifold::tests {

SimdBelow::SimdBelow(int steps) {
    if (steps == 0) return;
    // Better sets have lower bits.
    std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS;
    for (int k = 0; k < steps && (left & (left - 1)) != 0; ++k) left &= left - 1;
    hwy::SetSupportedTargetsForTest(left);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

SimdBelow::~SimdBelow() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace trifold::tests
