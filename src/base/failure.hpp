// SPDX-License-Identifier: BSD-3-Clause
// An error that crosses the edge of a shared object: plain data in place of an exception.
#pragma once

#include <cstdio>
#include <string>

#include "trifold/error.hpp"

namespace trifold {

struct Failure {
    int code = 0;  ///< an ErrorCode; 0 = none
    char message[320] = "";
    char hint[256] = "";

    /// Fills it and returns false, what a failed call returns.
    bool say(ErrorCode why, const char* what, const char* what_to_do = "") noexcept {
        code = static_cast<int>(why);
        std::snprintf(message, sizeof message, "%s", what);
        std::snprintf(hint, sizeof hint, "%s", what_to_do);
        return false;
    }

    [[noreturn]] void raise(const std::string& where) const { throw Error(static_cast<ErrorCode>(code), where, message, hint); }
};

}  // namespace trifold
