// SPDX-License-Identifier: BSD-3-Clause
// How much memory this process may still take, asked before it takes any.
#pragma once

#include <cstdint>
#include <string>

namespace trifold {

/// Bytes: the least of MemAvailable, what the control group leaves, and RLIMIT_AS; INT64_MAX where nothing is known.
std::int64_t available_memory();

/// "1.5 GiB", "320 MiB", "17 B".
std::string bytes_text(double bytes);

/// Throws Error(bad_input) "where: needs X, Y available (hint)" where `bytes` is more than available_memory().
void require_memory(const std::string& where, double bytes, const std::string& hint);

}  // namespace trifold
