// SPDX-License-Identifier: BSD-3-Clause
// Functions of any signature that return a CUresult, each behind a slot: whoever calls the slot's code is asked for first, and then either has a result at once, or is in the real function with
// registers and stack as they were.
#pragma once

#include <cstddef>

namespace trifold::tests {

inline constexpr int trampoline_count = 2048;  // drivers have some six hundred functions, some in several versions

/// Enters slot `slot`, whose real function is `real`; call it before the address is given away.
void* trampoline(int slot, void* real);

/// What a call of that slot returns instead of the real function; 0: it is made. Whoever links trampolines.cpp has it.
int result_instead(int slot);

}  // namespace trifold::tests
