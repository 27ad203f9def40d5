// SPDX-License-Identifier: BSD-3-Clause
// Poisson's equation in single precision, in place: chunks whose rows cancel lose little, else they would be taken back and the whole refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

std::vector<float> right_hand_side(std::int64_t rows, const std::string& kind) {
    std::vector<float> rhs(static_cast<std::size_t>(rows));
    std::mt19937 random(static_cast<unsigned>(rows));
    std::uniform_real_distribution<float> number(-1, 1);
    for (std::int64_t i = 0; i < rows; ++i)
        rhs[static_cast<std::size_t>(i)] = kind == "ones" ? 1.0f : kind == "random" ? number(random) : static_cast<float>(i) / static_cast<float>(rows);
    if (kind != "image") return rhs;
    std::vector<float> x(rhs.size());
    for (float& value : x) value = number(random);
    for (std::size_t i = 0; i < x.size(); ++i) rhs[i] = 2 * x[i] - (i > 0 ? x[i - 1] : 0) - (i + 1 < x.size() ? x[i + 1] : 0);
    return rhs;
}

/// max|rhs - A x| / (max|A| max|x| + max|rhs|) in unit roundoffs of floats.
double backward_error(const std::vector<float>& rhs, const std::vector<float>& x) {
    double rest = 0, size = 0, right = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double before = i > 0 ? x[i - 1] : 0, here = x[i], after = i + 1 < x.size() ? x[i + 1] : 0;
        rest = std::max(rest, std::abs(rhs[i] - 2 * here + before + after));
        size = std::max(size, std::abs(here)), right = std::max(right, std::abs(static_cast<double>(rhs[i])));
    }
    return rest / (2 * size + right) * 0x1p24;
}

TEST(InPlace, PoissonInSinglePrecision) {
    const std::string device = opencl_device_name();
    if (device.empty()) GTEST_SKIP() << no_device;
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    for (const std::string& name : {device, std::string("cpu")}) {
        Queue queue(context, name);
        for (const std::int64_t rows : {40000, 100000, 300001, 400000, 500000})
            for (const std::string kind : {"ones", "random", "ramp", "image"}) {
                SCOPED_TRACE(name + ", " + std::to_string(rows) + " rows, " + kind);
                const std::vector<float> beside(static_cast<std::size_t>(rows), -1.0f), diag(static_cast<std::size_t>(rows), 2.0f), rhs = right_hand_side(rows, kind);
                std::vector<float> x = rhs;
                tridiagonal::Problem problem;
                problem.matrix = {View<const float>::rows(std::span(beside)), View<const float>::rows(std::span(diag)), View<const float>::rows(std::span(beside))};
                problem.rhs = View<const float>::rows(std::span<const float>(x)), problem.x = View<float>::rows(std::span(x));
                const Outcome outcome = tridiagonal::solve(queue, problem);
                ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason);
                EXPECT_LE(backward_error(rhs, x), 16);
            }
    }
}

}  // namespace
}  // namespace trifold::tests
