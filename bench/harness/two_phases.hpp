// SPDX-License-Identifier: BSD-3-Clause
// What cores and links can do of a system in two passes, of which the second begins when the first has ended: the fastest way through both, at rates that were seen of either pass.
//
// Pass 1: every row is reduced, by the cores or by a device that its four words go to. Pass 2: what the cores have reduced is finished by them, or goes to a device; and x comes back of all rows that a device has solved,
// in the first pass or now. In a pass they may work side by side for a while, in any of the ways that were measured, and one of them alone for the rest.
#pragma once

#include <span>

namespace trifold::bench {

/// Who works in a pass, and how fast each does it then: rows per second.
struct PhaseMode {
    int pass = 1;
    double cores = 0;  ///< reduced or finished
    double to = 0;     ///< that go to a device to be solved
    double from = 0;   ///< x that comes back
};

struct TwoPhases {
    double rows_per_s = 0;    ///< of both passes, nothing between them; 0: the modes do not suffice
    double share = 0;         ///< of the rows that the cores reduce
    double sent = 0;          ///< of the rows that go to a device in the second pass
    double first = 0;         ///< of the time, in the first pass
};

/// A linear programme in how long each mode goes on, solved by its corners.
TwoPhases fastest(std::span<const PhaseMode> modes);

}  // namespace trifold::bench
