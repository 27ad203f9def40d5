// SPDX-License-Identifier: BSD-3-Clause
// Into which cache loops ask for what they will read later, where many streams are read side by side.
#pragma once

namespace trifold::devices {

/// Whether this processor is asked for lines of its second-level cache. Zen to Zen 4 hold a request for the first level until
/// memory has answered, which leaves them less than half of their bandwidth; on Zen 5 and on Intel's cores the first level is the better one
/// (docs/decisions/0015-which-level-is-asked.md).
bool asks_second_level() noexcept;

}  // namespace trifold::devices
