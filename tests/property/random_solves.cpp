// SPDX-License-Identifier: BSD-3-Clause
// What users may call, in combinations that nobody has listed: shapes, layouts, kinds of matrices, sources of coefficients, options and ways, drawn from one
// number a case; what must hold is random_verdict.cpp's.
//
//   property_random_solves                                    some hundred cases on every device, from a seed that is printed
//   property_random_solves --device cpu --seed 7              the case that is drawn from 7, and a simpler one that fails as well
//   property_random_solves --device cpu,opencl:0.0 --seconds 600 [--most 1000000] [--from 1]
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "contract/tridiagonal/devices.hpp"
#include "property/random_arguments.hpp"
#include "property/random_case.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t usual_most = 60000;
RandomArguments arguments{.most = usual_most};

// Empty where it went as promised.
std::string report(const std::string& device, std::uint64_t seed) {
    const Case drawn = draw(seed, arguments.most);
    if (arguments.loud) std::fprintf(stderr, "%llu: %s\n", static_cast<unsigned long long>(seed), drawn.text().c_str());
    std::string wrong;
    try {
        wrong = attempt(device, drawn);
    } catch (const std::exception& error) {
        return drawn.text() + "\nthe test stopped: " + error.what() + "\n";
    }
    if (wrong.empty()) return "";
    std::string text = drawn.text() + "\n" + wrong + "again: property_random_solves --device " + device + " --seed " + std::to_string(seed);
    if (arguments.most != usual_most) text += " --most " + std::to_string(arguments.most);
    text += "\n";
    try {
        const Case simple = shrunk(device, drawn, arguments.shrink);
        if (simple.text() != drawn.text()) text += "simpler: " + simple.text() + "\n" + attempt(device, simple);
    } catch (const std::exception& error) {
        text += std::string("while it was made simpler: ") + error.what() + "\n";
    }
    return text;
}

// As many as go into the seconds; the first few failures are shown.
int cases(const std::string& device, std::uint64_t from, std::int64_t count, double seconds) {
    const auto start = std::chrono::steady_clock::now();
    int failed = 0;
    std::int64_t done = 0;
    const auto goes_on = [&] {
        const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return done < count && taken < seconds && failed < 12;
    };
    for (; goes_on(); ++done) {
        const std::string text = report(device, from + static_cast<std::uint64_t>(done));
        if (text.empty()) continue;
        ++failed;
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(from) + static_cast<unsigned long long>(done), text.c_str());
        std::fflush(stdout);
    }
    std::printf("%s: %lld cases from seed %llu, %d failed\n", device.c_str(), static_cast<long long>(done), static_cast<unsigned long long>(from), failed);
    return failed;
}

class RandomSolves : public testing::TestWithParam<std::string> {};

TEST_P(RandomSolves, AreAsPromised) { EXPECT_EQ(cases(GetParam(), arguments.first_seed(), 1500, 12), 0); }

TRIFOLD_ON_EVERY_DEVICE(RandomSolves);

}  // namespace
}  // namespace trifold::tests

int main(int count, char** values) {
    using namespace trifold::tests;
    return run_drawn(arguments, count, values, "[--device NAME] [--seed N | --seconds S [--from N]] [--most ELEMENTS] [--shrink S] [--loud 1]", [](std::uint64_t seed) { return draw(seed, arguments.most).text(); }, report,
                     [](const std::string& device, std::uint64_t from, double seconds) { return cases(device, from, INT64_MAX, seconds); });
}
