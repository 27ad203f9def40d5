// SPDX-License-Identifier: BSD-3-Clause
// Which of the devices that were named take part in solving one long system: those that cost least, by what was seen of them together and alone
// (docs/decisions/0052-who-takes-part.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "devices/rates.hpp"
#include "trifold/dtype.hpp"
#include "trifold/plan.hpp"

namespace trifold::tridiagonal {

struct SplitMember {
    std::string name;
    bool linked = false;  ///< it has memory of its own
    double watts = 0;     ///< while it computes; 0 = not known
};

/// What is learnt is learnt of systems like this one.
struct SplitProblem {
    double rows = 0;
    DType dtype = DType::f64;
    bool coupled = false;   ///< the matrix does not forget: two passes
    bool slowly = false;    ///< it forgets, but within hundreds of rows: it may need pivots
    bool in_place = false;
    bool pageable = false;  ///< some array is ordinary memory, which links read and write through another
    Objective objective = Objective::time;

    /// Part of the names of what is learnt: sizes in steps of four, since rates of what fits caches say nothing of what does not.
    std::string kind() const;
};

/// In steps of four.
int size_class(double rows);

/// What one member did.
struct SplitWork {
    double rows = 0, kernel_s = 0;  ///< kernel_s: 0 = not known
};

struct SplitTime {
    double seconds = 0;
    bool first = false;    ///< of this set in this process: buffers were made, programs compiled
    double steady_s = 0;   ///< what it would have taken without that, where it was seen; else 0
    std::span<const double> before = {};  ///< rows per second of solves before this one, which stood
};

struct SplitChoice {
    std::uint32_t members = 0;  ///< bit k: members[k] takes part
    bool learning = false;      ///< taken in order to be timed, not for what it costs
    int stands = 0;             ///< of one device: so many solves after this one would choose it again, if each took what it takes
};

/// What a set is thought to cost.
struct SplitEstimate {
    double seconds = 0, joules = 0;  ///< NaN = not known
    int seen = 0;                    ///< solves that count; 0 = predicted from what its members do alone
};

/// First everybody, then alone who did most of it, and who did nearly half of it, from the third or fourth solve on the best: several only where they gain over the best single one. Between these trials of others that
/// might gain, some solves in a row, so seldom that they cost little. Throws Error(usage) where the objective needs watts that are not known.
SplitChoice choose_members(const devices::Rates& rates, std::span<const SplitMember> members, const SplitProblem& problem);

/// After a solve by `chosen`, or one that it could not end, with the time of who did.
void remember(devices::Rates& rates, std::span<const SplitMember> members, const SplitChoice& chosen, const SplitProblem& problem, const SplitTime& time, std::span<const SplitWork> work);

SplitEstimate estimate_members(const devices::Rates& rates, std::span<const SplitMember> members, const SplitProblem& problem, std::uint32_t set);

/// "cpu,cuda:0"
std::string names_of(std::span<const SplitMember> members, std::uint32_t set);

}  // namespace trifold::tridiagonal
