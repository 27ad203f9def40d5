// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ctime>
#include <string>

namespace trifold {

/// The present in Coordinated Universal Time, in a format of strftime; at most 63 characters.
inline std::string utc_now(const char* format) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[64];
    return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

}  // namespace trifold
