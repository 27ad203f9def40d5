// SPDX-License-Identifier: BSD-3-Clause
#include "build_info.hpp"

#include "trifold/version.hpp"
#include "trifold_commit.hpp"

namespace trifold::cli {

std::string build_commit() {
    return TRIFOLD_COMMIT;
}

std::string version_text() {
    std::string text = "trifold " TRIFOLD_VERSION " (";
    if (*TRIFOLD_COMMIT) text += "commit " TRIFOLD_COMMIT ", ";
#if defined(__clang__)
    text += "clang " __clang_version__;
#else
    text += "g++ " __VERSION__;
#endif
    if (*TRIFOLD_BUILD_TYPE) text += ", " TRIFOLD_BUILD_TYPE;
    return text + ")";
}

}  // namespace trifold::cli
