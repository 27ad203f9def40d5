// SPDX-License-Identifier: BSD-3-Clause
#include "families/list.hpp"

namespace trifold {

std::span<const FamilyEntry> registered_families() noexcept {
    static const FamilyEntry families[] = {
#define TRIFOLD_FAMILY(name, text) {#name, text},
#include "families/families.def"
#undef TRIFOLD_FAMILY
    };
    return families;
}

}  // namespace trifold
