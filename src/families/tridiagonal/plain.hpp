// SPDX-License-Identifier: BSD-3-Clause
// What kernels that read arrays and scalars and store x leave to the reference, in words that follow "because".
#pragma once

#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal {

/// nullptr where `system` is neither periodic nor ragged nor accumulating and has no generators.
inline const char* why_not_plain(const System& system) noexcept {
    if (system.periodic) return "this device's kernels do not take periodic systems";
    if (system.accumulate) return "this device's kernels do not add to x";
    if (system.offsets) return "this device's kernels do not take ragged batches";
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper})
        if (operand->kind == Operand::Kind::generator) return "this device's kernels read arrays and scalars";
    return nullptr;
}

}  // namespace trifold::tridiagonal
