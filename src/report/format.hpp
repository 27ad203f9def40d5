// SPDX-License-Identifier: BSD-3-Clause
// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace trifold::report {

std::string seconds_text(double seconds);                   ///< "20.3 ms"
std::string quantity_text(double value, const char* unit);  ///< "12.3 Grows", "not known"
std::string rate_text(double per_s, const char* unit);      ///< "788 Mrows/s", "37.5 GB/s"
std::string count_text(std::int64_t count);                 ///< "16 000 000"
std::string bound_text(double value);                       ///< "1.2e-16", "not known"
std::string percent_text(double share);                     ///< "86 %"

/// "one system of 16 000 000 rows", "512 systems of 256 rows".
std::string problem_text(std::int64_t rows, std::int64_t systems);

}  // namespace trifold::report
