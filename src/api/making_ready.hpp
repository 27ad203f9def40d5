// SPDX-License-Identifier: BSD-3-Clause
// A device that compiles its programs when they are first needed may take many seconds then, and others have solved the system meanwhile. So it first solves a copy of some rows for itself, on a thread of its own that
// the Context waits for when it ends; who shares a solve with it waits for a second at most, and it takes part in later ones.
#pragma once

#include "api/split_solve.hpp"

namespace trifold::tridiagonal {

/// Whether `part` is being made ready by this Context: nothing should be asked of it.
bool is_being_made_ready(const Context::State& state, const split::Part& part);

/// False: it is not ready for systems like this one, and that has begun.
bool make_ready(Context::State& state, const split::Part& part, const System& system, const split::Reach& reach, const Options& options);

/// After so many seconds at most. Never: a call of those that make it ready has not returned.
split::Readiness::Answer readiness(const Context::State& state, const split::Part& part, double seconds);

}  // namespace trifold::tridiagonal
