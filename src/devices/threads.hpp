// SPDX-License-Identifier: BSD-3-Clause
// How many threads a Context starts with.
#pragma once

#include <string>

namespace trifold::devices {

/// Cores that this process may run on: its affinity mask, cut by the control group's quota. At least 1.
int usable_cores();

/// The first entry of an OMP_NUM_THREADS value ("4", "4,2"); 0 where it is no positive number.
int threads_from_text(const char* text) noexcept;

/// `asked` if positive; else OMP_NUM_THREADS; else usable_cores(). `note` receives one line where the environment's value
/// is unusable. Throws Error(usage) for a negative or absurd number.
int resolve_threads(int asked, const char* environment, std::string& note);

}  // namespace trifold::devices
