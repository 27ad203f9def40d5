// SPDX-License-Identifier: BSD-3-Clause
// What every solve ends in. Positive reasons mean that x is good, negative ones that it is not.
#pragma once

#include <cstdint>
#include <limits>

namespace trifold {

enum class Reason : std::int8_t {
    exact = 1,         ///< as good as elimination with pivots: with them, or without where their growth or the residual was seen to be small; also a
                       ///< truncated method whose truncation is within the tolerance while no useful bound of its rounding exists
    certified = 2,     ///< a truncated method whose error bound was computed and holds
    refined = 3,       ///< the residual of a pivoted method, or of one asked for by name, needed one step of refinement, and is small now
    none = 0,          ///< nothing was solved (no rows or no systems)
    singular = -1,     ///< a pivot is exactly zero: see `system` and `row`
    not_finite = -2,   ///< NaN or infinity in the input or in the result (without Options::check_finite, the certified pass, which takes long systems
                       ///< that decay, takes an infinite diagonal entry for its limit, x = 0 in that row)
    unstable = -3,     ///< an unpivoted method asked for by name met a pivot too small, or left too large a residual; else only in place: a long, nearly singular system whose rhs was lost
    not_certified = -4 ///< a truncated method asked for by name could not prove its bound, or left too large a residual
};

constexpr bool ok(Reason reason) { return static_cast<int>(reason) >= 0; }

/// exact, certified, refined, none, singular, not_finite, unstable, not_certified.
constexpr const char* name_of(Reason reason) {
    switch (reason) {
        case Reason::exact: return "exact";
        case Reason::certified: return "certified";
        case Reason::refined: return "refined";
        case Reason::none: return "none";
        case Reason::singular: return "singular";
        case Reason::not_finite: return "not_finite";
        case Reason::unstable: return "unstable";
        case Reason::not_certified: return "not_certified";
    }
    return "?";
}

struct Outcome {
    static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

    Reason reason = Reason::none;
    std::int64_t system = -1;    ///< first system that failed, -1 = none
    std::int64_t row = -1;       ///< first bad row of that system (counted from 0), -1 = not known; of a singular one where no pivot was found, which exchanged rows may put below the one to blame
    std::int64_t failures = 0;   ///< number of systems that failed
    std::int64_t rescued = 0;    ///< number of systems (or chunks of a single one) that took the fall-back path and are good
    double residual = unknown;   ///< max over rows of |rhs - A x| / (|A| |x| + |rhs|) per block of rows, where computed
    double certificate = unknown;///< bound on max|error| / max|x| from truncation and growth, where computed
    double certified_share = unknown;  ///< share of the rows that the certificate covers, one-pass methods only
    const char* branch = "";     ///< the algorithm that gave the answer (a name that `Options::algorithm` takes)
    const char* device = "";     ///< the device that really computed: "cpu", "reference", …
    bool tabulated = false;      ///< a coefficient function was evaluated into an array beforehand
    bool tried_other = false;    ///< another branch was tried first and handed over

    bool ok() const noexcept { return trifold::ok(reason); }
};

}  // namespace trifold
