// SPDX-License-Identifier: BSD-3-Clause
// A machine in a file (schema trifold.machine/1): one or several models of it, and what was published or measured of it.
// docs/algorithms/split_model.md describes the keys.
#pragma once

#include <string>

#include "report/combinations.hpp"

namespace trifold::cli {

/// Every combination of the machine's devices by each model. Throws Error(bad_input) with file, key and reason.
report::MachineTable predict_machine(const std::string& path);

}  // namespace trifold::cli
