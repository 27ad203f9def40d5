// SPDX-License-Identifier: BSD-3-Clause
// Where and with what a record was made.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trifold::bench {

/// Short name of this kind of machine for a folder: "amd-epyc-2c". No host name, nothing of the user.
std::string machine_slug();

/// Key and value: cpu, caches, memory, instruction set, compiler, commit, date, load, …
std::vector<std::pair<std::string, std::string>> machine_facts();

/// One-minute load average now.
double load_average();

}  // namespace trifold::bench
