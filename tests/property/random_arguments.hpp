// SPDX-License-Identifier: BSD-3-Clause
// What programs that draw cases are told: one case by its number, or as many as go into some seconds.
#pragma once

#include <charconv>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace trifold::tests {

struct RandomArguments {
    std::string device = "cpu";
    std::uint64_t seed = 0, from = 0;
    std::int64_t most = 0;          ///< elements of a case
    double seconds = 0, shrink = 3; ///< shrink: to look for a simpler case that fails
    bool one = false, begins = false, loud = false;

    /// False: not understood.
    bool parse(int count, char** values) {
        const auto number = [](std::string_view text, auto& to) { return std::from_chars(text.data(), text.data() + text.size(), to).ec == std::errc{}; };
        for (int k = 1; k + 1 < count; k += 2) {
            const std::string_view name = values[k], value = values[k + 1];
            bool good = true;
            if (name == "--device") device = value;
            else if (name == "--seed") good = number(value, seed), one = true;
            else if (name == "--from") good = number(value, from), begins = true;
            else if (name == "--most") good = number(value, most) && most > 0;
            else if (name == "--seconds") good = number(value, seconds);
            else if (name == "--loud") loud = value != "0";
            else if (name == "--shrink") good = number(value, shrink);
            else good = false;
            if (!good) return false;
        }
        return count % 2 == 1;
    }

    std::uint64_t first_seed() const { return begins ? from : std::random_device{}() * std::uint64_t{1000000}; }
};

}  // namespace trifold::tests
