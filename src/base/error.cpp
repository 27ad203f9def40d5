// SPDX-License-Identifier: BSD-3-Clause
#include "trifold/error.hpp"

#include <utility>

namespace trifold {

static std::string compose(const std::string& where, const std::string& message, const std::string& hint) {
    std::string text = where.empty() ? message : where + ": " + message;
    if (!hint.empty()) text += " (" + hint + ")";
    return text;
}

Error::Error(ErrorCode code, std::string where, const std::string& message, std::string hint)
    : std::runtime_error(compose(where, message, hint)), code_(code), where_(std::move(where)), hint_(std::move(hint)) {}

Error::~Error() = default;

}  // namespace trifold
