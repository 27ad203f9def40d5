// SPDX-License-Identifier: BSD-3-Clause
// Misuse and environment: what is wrong, where, and what to do. Numerical results are not errors: see outcome.hpp.
#pragma once

#include <stdexcept>
#include <string>

#include "trifold/export.hpp"

namespace trifold {

/// The value of a code is the exit status of the command.
enum class ErrorCode : int {
    internal = 1,            ///< a bug in Trifold
    usage = 2,               ///< a call that cannot mean anything: option, name, shape, aliasing
    bad_input = 3,           ///< a file or array whose contents are wrong, or more than the memory holds
    device_unavailable = 5,  ///< the device is absent, not built, or cannot do this
};

/// `what()` reads "where: message (hint)".
class TRIFOLD_API Error : public std::runtime_error {
public:
    Error(ErrorCode code, std::string where, const std::string& message, std::string hint = {});
    ~Error() override;

    ErrorCode code() const noexcept { return code_; }
    const std::string& where() const noexcept { return where_; }
    const std::string& hint() const noexcept { return hint_; }

private:
    ErrorCode code_;
    std::string where_, hint_;
};

}  // namespace trifold
