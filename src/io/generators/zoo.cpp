// SPDX-License-Identifier: BSD-3-Clause
// The matrices on which tridiagonal solvers are compared, by their number in Klein and Strzodka, "Tridiagonal GPU
// solver with scaled partial pivoting at maximum bandwidth" (ICPP 2021), table 1, as far as a row can be made alone; 21
// is clement.
#include "io/generators/kinds.hpp"
#include "io/generators/random_entries.hpp"

namespace trifold::io {
namespace {

enum { number };
constexpr Parameter parameters[] = {{"number", 1, 1, 21, true, "1 to 21 without 8 to 11"}};

// Those that `random` makes; the defaults are what it draws.
RandomEntries entries_of(int member) {
    switch (member) {
    case 2:
        return {.diag = 1e8};
    case 4:
        return {.weak_link = 1e-50};
    case 5:
        return {.zeros = 0.5};
    case 6:
        return {.diag = 64};
    case 12:
        return {.lower_scale = 1e-50};
    case 14:
        return {.diag = 1e-8};
    case 15:
        return {.diag = 0};
    case 16:
        return {.lower = 1, .diag = 1e-8, .upper = 1};
    case 17:
        return {.lower = 1, .diag = 1e8, .upper = 1};
    case 18:
        return {.lower = -1, .diag = 4, .upper = -1};
    case 19:
        return {.lower = -1, .diag = 4, .upper = 1};
    case 20:
        return {.lower = -1, .diag = 4};
    default:
        return {};
    }
}

void fill(const Values& values, const Tile& tile) {
    const int member = static_cast<int>(values[number]);
    switch (member) {
    case 3:
        return lesp_kind.fill({}, tile);
    case 7:
        return kms_kind.fill({0.5}, tile);
    case 13:
        return dorr_kind.fill({1e-4}, tile);
    case 21:
        return clement_kind.fill({}, tile);
    default:
        return fill_random(entries_of(member), tile);
    }
}

const char* refuses(const Values& values) {
    return values[number] >= 8 && values[number] <= 11
               ? "8 to 11 are dense matrices reduced to tridiagonal form: no row can be made alone"
               : nullptr;
}

}  // namespace

const GeneratorKind zoo_kind{
    "zoo",  "matrices that solvers are compared on, by number (Klein and Strzodka 2021, table 1)", parameters, fill, nullptr, false,
    refuses};

}  // namespace trifold::io
