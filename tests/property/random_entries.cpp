// SPDX-License-Identifier: BSD-3-Clause
#include "property/random_entries.hpp"

#include <array>
#include <cmath>
#include <sstream>

#include "support/random.hpp"
#include "support/zoo.hpp"

namespace trifold::tests {

const char* name_of(Kind kind) {
    constexpr std::array names{"dominant", "uniform", "barely", "slow", "poisson", "heat", "waves", "zero_diagonal", "small_diagonal", "few_pivots", "lower_only", "upper_only",
                               "diagonal", "convection", "growth", "integers", "half_zeros", "zero_row", "zero_column", "nearly_singular", "graded_rows", "graded_columns", "zoo"};
    static_assert(names.size() == kinds);
    return names[static_cast<std::size_t>(kind)];
}

const char* name_of(Right right) {
    constexpr std::array names{"normal", "zero", "unit", "constant", "alternating", "huge", "tiny", "graded", "some_zero"};
    static_assert(names.size() == rights);
    return names[static_cast<std::size_t>(right)];
}

double DrawnEntries::noise(int array, std::int64_t row, std::int64_t number) const {
    Random random(seed + 0x1000003u * static_cast<std::uint64_t>(row) + 0x9e3779b1u * static_cast<std::uint64_t>(number) + (static_cast<std::uint64_t>(array) << 60));
    random.bits();
    return random.uniform(-1, 1);
}

std::uint64_t DrawnEntries::choice(std::uint64_t what, std::int64_t number) const {
    Random random(seed ^ (what << 56) ^ (0x2545f4914f6cdd1du * static_cast<std::uint64_t>(number + 1)));
    random.bits();
    return random.bits();
}

double DrawnEntries::coefficient(int band, std::int64_t row, std::int64_t number) const {
    for (const Planted& p : planted)
        if (p.array == band && p.row == row && p.number == number) return p.value;
    return std::ldexp(value(band, row, number), exponent);
}

double DrawnEntries::value(int band, std::int64_t row, std::int64_t number) const {
    const bool on_diagonal = band == 1;
    const double v = noise(band, row, number), dominant = on_diagonal ? std::copysign(2.2 + std::abs(v), v) : v;
    const auto special = static_cast<std::int64_t>(choice(1, number) % static_cast<std::uint64_t>(std::max<std::int64_t>(rows, 1)));
    const bool chosen = choice(2, number) % 3 == 0;
    // Which column an entry is in.
    const std::int64_t column = (row + (band == 0 ? rows - 1 : band == 2 ? 1 : 0)) % std::max<std::int64_t>(rows, 1);
    const auto grade = [&](std::int64_t place) { return static_cast<int>(choice(static_cast<std::uint64_t>(3), place) % 33) - 16; };
    switch (kind[choice(0, number) % kind.size()]) {
        case Kind::dominant: return dominant;
        case Kind::uniform: return v;
        case Kind::barely: return on_diagonal ? std::copysign(std::abs(noise(0, row, number)) + std::abs(noise(2, row, number)), v) : v;
        case Kind::slow: return on_diagonal ? 2 + std::pow(10.0, -static_cast<double>(1 + choice(4, number) % 6)) : -1;
        case Kind::poisson: return on_diagonal ? 2 : -1;
        case Kind::heat: {
            const double k = std::pow(10.0, static_cast<double>(choice(4, number) % 5) - 1);
            return on_diagonal ? 1 + 2 * k : -k;
        }
        case Kind::waves: {
            // The same numbers in all rows, which do not multiply exactly: what they round adds up.
            const double coupling = 1 + 3 * std::abs(noise(4, 0, number));
            return on_diagonal ? 1.95 * coupling * noise(5, 0, number) : -coupling;
        }
        case Kind::zero_diagonal: return on_diagonal ? 0 : std::copysign(0.5 + std::abs(v), v);
        case Kind::small_diagonal: return on_diagonal ? v * std::pow(10.0, -static_cast<double>(1 + choice(4, number) % 14)) : v;
        case Kind::few_pivots:
            if (band != 2 && choice(5, row) % 97 == 0) return on_diagonal ? 1e-9 * v : 0;
            return dominant;
        case Kind::lower_only: return band == 2 ? 0 : on_diagonal ? std::copysign(1 + std::abs(v), v) : v;
        case Kind::upper_only: return band == 0 ? 0 : on_diagonal ? std::copysign(1 + std::abs(v), v) : v;
        case Kind::diagonal: return on_diagonal ? std::copysign(0.1 + std::abs(v), v) : 0;
        case Kind::convection: return band == 0 ? -2 : on_diagonal ? 2.2 : -0.1;
        case Kind::growth: return band == 0 ? 0.1 : on_diagonal ? 1 : 3;
        case Kind::integers: return std::floor(2.5 * v + 0.5);
        case Kind::half_zeros: return !on_diagonal && choice(6 + static_cast<std::uint64_t>(band), row) % 2 ? 0 : v;
        case Kind::zero_row: return chosen && row == special ? 0 : dominant;
        case Kind::zero_column: return chosen && column == special ? 0 : dominant;
        case Kind::nearly_singular: return chosen && (row == special || column == special) ? (on_diagonal ? 1e-20 : 0) : dominant;
        case Kind::graded_rows: return std::ldexp(dominant, grade(row));
        case Kind::graded_columns: return std::ldexp(dominant, grade(column));
        case Kind::zoo:
            if (!animals.empty()) {
                const Bands<double>& s = animals[choice(9, number) % animals.size()];
                return (band == 0 ? s.lower : on_diagonal ? s.diag : s.upper)[static_cast<std::size_t>(std::min(row, s.rows() - 1))];
            }
    }
    return dominant;
}

double DrawnEntries::right(std::int64_t row, std::int64_t system) const {
    for (const Planted& p : planted)
        if (p.array == 3 && p.row == row && p.number == system) return p.value;
    const double v = noise(3, row, system);
    switch (rhs) {
        case Right::normal: return 3 + 2 * v;
        case Right::zero: return 0;
        case Right::unit: return row == static_cast<std::int64_t>(choice(10, system) % static_cast<std::uint64_t>(rows)) ? 1 : 0;
        case Right::constant: return 1;
        case Right::alternating: return row % 2 ? -1 : 1;
        case Right::huge: return std::ldexp(v, 60);
        case Right::tiny: return std::ldexp(v, -60);
        case Right::graded: return std::ldexp(v, static_cast<int>(choice(11, row) % 41) - 20);
        case Right::some_zero: return choice(12, system) % 2 ? 0 : v;
    }
    return v;
}

void DrawnEntries::fetch_animals() {
    animals.clear();
    for (std::int64_t number = 0; number < 3; ++number) {
        const ZooEntry& entry = zoo()[choice(13, number) % zoo().size()];
        if (entry.dense && rows > 100) continue;
        animals.push_back(make(entry, std::max<std::int64_t>(rows, 1), choice(14, number), periodic));
    }
}

std::string DrawnEntries::text() const {
    std::ostringstream out;
    out << "kinds";
    for (const Kind k : kind) out << " " << name_of(k);
    out << ", rhs " << name_of(rhs);
    if (exponent) out << ", matrix × 2^" << exponent;
    constexpr const char* arrays[] = {"lower", "diag", "upper", "rhs"};
    for (const Planted& p : planted) out << ", " << p.value << " in row " << p.row << " of " << arrays[p.array] << " " << p.number;
    out << ", entries' seed " << seed;
    return out.str();
}

}  // namespace trifold::tests
