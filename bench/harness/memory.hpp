// SPDX-License-Identifier: BSD-3-Clause
// What a run takes of the machine's memory beside the arrays that were there before.
#pragma once

#include <cstddef>

namespace trifold::bench {

/// Resident bytes of this process now.
std::size_t resident_bytes();

/// The most resident bytes since the last reset_peak() (VmHWM).
std::size_t peak_bytes();

/// False where the system does not let us: the peak then is that of the whole process.
bool reset_peak();

}  // namespace trifold::bench
