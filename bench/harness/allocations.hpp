// SPDX-License-Identifier: BSD-3-Clause
// Counts every allocation of this process, whoever makes it.
#pragma once

#include <cstdint>

namespace trifold::bench {

/// Calls of malloc, calloc, realloc and aligned_alloc (and so of operator new) so far.
std::int64_t allocations() noexcept;

}  // namespace trifold::bench
