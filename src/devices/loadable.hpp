// SPDX-License-Identifier: BSD-3-Clause
// Shared objects of devices that need a driver, found when such a device is first named.
#pragma once

#include <string>

namespace trifold::devices {

/// Beside libtrifold; beside a program that holds it statically, or in the lib/ next to that one's bin/; then the usual search.
/// nullptr, and why. Never to be closed: a driver's threads may outlive every Context.
void* open_beside_library(const char* name, std::string& why);

}  // namespace trifold::devices
