// SPDX-License-Identifier: BSD-3-Clause
// The ways to solve one problem on one device, with what each is thought to cost. Fixed size, no allocation.
#pragma once

#include "planner/cost.hpp"

namespace trifold::tridiagonal {

struct Option {
    const Ops* ops = nullptr;
    Algorithm algorithm = Algorithm::automatic;
    bool one_by_one = false;        ///< the systems of a batch one after another
    const char* refused = nullptr;  ///< why not; then there is no prediction
    Prediction prediction;
};

struct OptionList {
    Option option[8];
    int count = 0;
};

/// Algorithms that automatic planning looks at, from the fastest on friendly matrices to the one that always works.
OptionList options_on(const Ops& ops, const System& system, const Features& features, const devices::Profile& profile,
                      int max_threads) noexcept;

/// The system that stands for those of a batch where they are solved one by one.
System typical_line(const System& batch) noexcept;

/// One algorithm that was asked for by name.
Option named_option(const Ops& ops, const System& system, const Features& features, Algorithm algorithm,
                    const devices::Profile& profile, int max_threads) noexcept;

}  // namespace trifold::tridiagonal
