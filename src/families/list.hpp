// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

namespace trifold {

struct FamilyEntry {
    const char* name;
    const char* text;
};

/// families.def, in its order.
std::span<const FamilyEntry> registered_families() noexcept;

}  // namespace trifold
