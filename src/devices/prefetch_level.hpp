// SPDX-License-Identifier: BSD-3-Clause
// Into which cache loops ask for what they will read later, where many streams are read side by side.
#pragma once

namespace trifold::devices {

/// Whether this processor is asked for lines of its second-level cache. Measured: on Zen 4 requests for the first level reach less than half of
/// the bandwidth, on Zen 5 the first level is the better one (docs/decisions/0015-which-level-is-asked.md). Others: the first.
bool asks_second_level() noexcept;

}  // namespace trifold::devices
