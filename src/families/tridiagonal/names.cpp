// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>
#include <string>

#include "base/nearest.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

static constexpr std::string_view names[] = {"automatic", "thomas", "lu",    "twisted",         "cyclic_reduction",
                                             "pcr",       "spike",  "truncated_spike", "certified", "two_pass"};
static_assert(std::size(names) == algorithm_count);

const char* name_of(Algorithm algorithm) noexcept { return static_cast<int>(algorithm) < algorithm_count ? names[static_cast<int>(algorithm)].data() : "?"; }

Algorithm algorithm_from(std::string_view name) {
    for (int i = 0; i < algorithm_count; ++i)
        if (name == names[i]) return static_cast<Algorithm>(i);
    throw Error(ErrorCode::usage, "algorithm", "unknown algorithm '" + std::string(name) + "'", nearest_hint(name, names));
}

}  // namespace trifold::tridiagonal
