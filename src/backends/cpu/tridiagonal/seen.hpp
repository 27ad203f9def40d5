// SPDX-License-Identifier: BSD-3-Clause
// What threads saw of the systems of a batch: sums and minima, so that the order does not matter.
#pragma once

#include <cstdint>

#include "trifold/outcome.hpp"

namespace trifold::cpu {

struct Seen {
    std::int8_t* status = nullptr;  ///< per system, by its number; may be null
    std::int64_t failures = 0, rescued = 0, first_failed = -1, row = -1;
    Reason reason = Reason::none;

    void failed(std::int64_t number, Reason why, std::int64_t where) {
        ++failures;
        if (status) status[number] = static_cast<std::int8_t>(why);
        if (first_failed >= 0 && first_failed < number) return;
        first_failed = number, reason = why, row = where;
    }

    void merge(const Seen& other) {
        failures += other.failures, rescued += other.rescued;
        if (other.first_failed < 0 || (first_failed >= 0 && first_failed < other.first_failed)) return;
        first_failed = other.first_failed, reason = other.reason, row = other.row;
    }

    void fill(Outcome& outcome) const {
        outcome.reason = failures > 0 ? reason : Reason::exact;
        outcome.system = first_failed;
        outcome.row = row;
        outcome.failures = failures;
        outcome.rescued = rescued;
    }
};

}  // namespace trifold::cpu
