// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "trifold_commit.hpp"

namespace trifold::bench {

std::string built_commit();

std::string built_commit() { return *TRIFOLD_COMMIT ? TRIFOLD_COMMIT : "unknown"; }

}  // namespace trifold::bench
