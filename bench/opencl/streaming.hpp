// SPDX-License-Identifier: BSD-3-Clause
// One system of the host's registered memory through devices with memory of their own, beside their links.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trifold/trifold.hpp"

namespace trifold::bench {

/// A row per device; the first one is what others are compared with. T: float or double.
template <class T>
void run_streaming(Context& context, const std::vector<std::string>& devices, std::int64_t rows, int rounds, nlohmann::ordered_json& out);

}  // namespace trifold::bench
