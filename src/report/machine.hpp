// SPDX-License-Identifier: BSD-3-Clause
// The machine and the build that a result was made with.
#pragma once

#include <cstdint>
#include <string>

namespace trifold::report {

struct Machine {
    std::string cpu;  ///< as the system calls it
    int cores = 1;    ///< that this process may use
    std::int64_t memory_bytes = 0;
    std::string system;  ///< "Linux 6.1.0 x86_64"
    std::string compiler, version;
    std::string commit;  ///< empty = unknown
};

/// `commit` is known to the program, not to the library.
Machine this_machine(const std::string& commit);

/// Largest resident size of this process so far, in bytes.
std::int64_t peak_bytes();

}  // namespace trifold::report
