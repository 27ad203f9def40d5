// SPDX-License-Identifier: BSD-3-Clause
// Where a device with memory of its own finds the offsets of a ragged batch.
#pragma once

#include <cstddef>

#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal {

/// System::offsets is the host's, for planning. A device that takes ragged batches has a copy of them, systems + 1 numbers, at the beginning of Launch::scratch; who enqueues puts
/// them there before, in the same stream. So much of Ops::workspace is theirs: a multiple of 256, 0 where the batch is not ragged.
inline std::size_t offsets_bytes(const System& system) noexcept {
    if (!system.offsets) return 0;
    return (static_cast<std::size_t>(system.ragged_systems + 1) * sizeof *system.offsets + 255) / 256 * 256;
}

}  // namespace trifold::tridiagonal
