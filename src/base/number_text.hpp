// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <string>

namespace trifold {

/// The shortest text that reads back as the value: "0.1", "1e-320", "nan".
inline std::string number_text(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace trifold
