// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace trifold::cli {

/// The commit that this program was built from; empty where that is not known.
std::string build_commit();

/// "trifold 0.1.0", then the build in brackets.
std::string version_text();

}  // namespace trifold::cli
