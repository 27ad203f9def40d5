// SPDX-License-Identifier: BSD-3-Clause
// Kernels in every instruction set that was compiled and that this machine has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstdint>

namespace trifold::tests {

/// Calls `body` with each target forced, one after the other: at least two, where more than one was compiled.
template <class Body>
void on_every_target(const Body& body) {
    int tried = 0;
    for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1, ++tried) {
        const std::int64_t target = left & -left;
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        body();
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    constexpr bool several = (HWY_TARGETS & (HWY_TARGETS - 1)) != 0;
    EXPECT_GE(tried, several ? 2 : 1);
}

}  // namespace trifold::tests
