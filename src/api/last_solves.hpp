// SPDX-License-Identifier: BSD-3-Clause
// What the last solves of a shape on several devices say of the next one (devices/standing.hpp). To look how far a matrix remembers costs what some per cent of a solve of milliseconds do, and to choose by all that is
// known of the devices nearly as much. Where one device was chosen, for what it costs, it solves the next systems of this shape that are as dominant at some rows, and nobody looks or chooses: the device alone solves
// any matrix. So until another device shall be timed, the matrix is another one, the device takes another branch than before, or fifteen were solved.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "api/split_solve.hpp"
#include "devices/standing.hpp"

namespace trifold::tridiagonal {

class LastSolves {
public:
    LastSolves(Context::State& state, const Device& set, const System& system, const Options& options);

    /// One device solves it, as the last ones.
    bool stands() const noexcept { return stands_; }
    const OneChosen& chosen() const noexcept { return *static_cast<const OneChosen*>(last_.chosen.get()); }

    /// The host's own: it needs no chunks, and no queue of its own.
    bool host_alone() const;

    /// It took so long, and `branch`.
    void stood(double seconds, std::string_view branch);

    /// Else: where its arrays lie is known. What the last ones took is learnt.
    void asked(bool pageable, bool several);

    /// How far the last ones reached; nullptr where it is time to look.
    const split::Reach* reach() const noexcept { return known_ ? &reach_ : nullptr; }

    /// It was solved by one device, for what that costs: `one`, which may solve the next ones; or null. looked: it was looked at, and reached so far. False where it was not what it was taken for.
    bool ended(std::shared_ptr<const OneChosen> one, const split::Reach* looked, std::string_view branch);

private:
    bool as_before();
    int dominance();

    Context::State& state_;
    const System& system_;
    devices::Standing last_;
    split::Reach reach_;
    bool takes_part_ = false, stands_ = false, known_ = false;
    int dominance_ = 0;
    bool has_dominance_ = false;
};

}  // namespace trifold::tridiagonal
