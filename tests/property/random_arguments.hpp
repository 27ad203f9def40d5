// SPDX-License-Identifier: BSD-3-Clause
// What programs that draw cases are told: one case by its number, or as many as go into some seconds.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>

namespace trifold::tests {

struct RandomArguments {
    std::string device = "cpu";
    std::uint64_t seed = 0, from = 0;
    std::int64_t most = 1;          ///< elements of a case
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

/// A program's main: text(seed) says what is drawn, report(device, seed) what went wrong, cases(device, from, seconds) how many did; without arguments, its tests.
template <class Text, class Report, class Cases>
int run_drawn(RandomArguments& arguments, int count, char** values, const char* usage, Text text, Report report, Cases cases) {
    testing::InitGoogleTest(&count, values);
    if (!arguments.parse(count, values)) return std::fprintf(stderr, "arguments: %s\n", usage), 2;
    if (arguments.one) {
        const std::string wrong = report(arguments.device, arguments.seed);
        std::printf("%s\n%s\n", std::string(text(arguments.seed)).c_str(), wrong.empty() ? "as promised" : wrong.c_str());
        return !wrong.empty();
    }
    if (arguments.seconds > 0) return cases(arguments.device, arguments.first_seed(), arguments.seconds) != 0;
    return RUN_ALL_TESTS();
}

}  // namespace trifold::tests
