// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>
#include <string>

#include "base/nearest.hpp"
#include "trifold/error.hpp"
#include "trifold/plan.hpp"

namespace trifold {

static constexpr std::string_view names[] = {"time", "energy", "edp"};

const char* name_of(Objective objective) noexcept { return static_cast<std::size_t>(objective) < std::size(names) ? names[static_cast<std::size_t>(objective)].data() : "?"; }

Objective objective_from(std::string_view name) {
    for (std::size_t k = 0; k < std::size(names); ++k)
        if (name == names[k]) return static_cast<Objective>(k);
    throw Error(ErrorCode::usage, "objective", "unknown objective '" + std::string(name) + "'", nearest_hint(name, names));
}

}  // namespace trifold
