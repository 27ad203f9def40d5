// SPDX-License-Identifier: BSD-3-Clause
// A user of the extended library: the new device solves both families, and a device without the cell says so.
#include <trifold/diagonal.hpp>
#include <trifold/trifold.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

static int fail(const char* what) {
    std::fprintf(stderr, "touch: %s\n", what);
    return 1;
}

int main() {
    using trifold::View;
    trifold::Context context({.threads = 1, .profile_path = "none", .log = {}});
    const auto devices = context.devices();
    if (std::none_of(devices.begin(), devices.end(), [](const auto& d) { return d.name == "toy"; })) return fail("the device is not listed");
    trifold::Queue toy(context, "toy"), reference(context, "reference");

    const std::vector<double> lower{0, -1, -1, -1}, diag{2, 3, 4, 5}, upper{-1, -1, -1, 0}, exact{1, 2, 3, 4}, rhs{0, 2, 6, 17};
    std::vector<double> x(4);
    trifold::tridiagonal::Problem problem;
    problem.matrix.lower = View<const double>::rows(lower);
    problem.matrix.diag = View<const double>::rows(diag);
    problem.matrix.upper = View<const double>::rows(upper);
    problem.rhs = View<const double>::rows(rhs);
    problem.x = View<double>::rows(x);
    trifold::tridiagonal::Options options;
    options.algorithm = trifold::tridiagonal::Algorithm::thomas;
    auto outcome = trifold::tridiagonal::solve(toy, problem, options);
    if (!outcome.ok() || std::strcmp(outcome.device, "toy") != 0) return fail("the new device did not solve the tridiagonal system");
    for (int i = 0; i < 4; ++i)
        if (!(std::fabs(x[i] - exact[i]) < 1e-14)) return fail("the new device's tridiagonal solution is wrong");

    const std::vector<double> values{2, 6, 12, 20};
    outcome = trifold::diagonal::solve(toy, diag, values, x);
    if (!outcome.ok() || x != std::vector<double>{1, 2, 3, 4}) return fail("the new family's solution is wrong");
    const std::vector<double> zero{1, 0, 1, 1};
    outcome = trifold::diagonal::solve(toy, zero, values, x);
    if (outcome.reason != trifold::Reason::singular || outcome.row != 1) return fail("the singular row is not named");
    try {
        trifold::diagonal::solve(reference, diag, values, x);
        return fail("an absent cell computed something");
    } catch (const trifold::Error& error) {
        if (error.code() != trifold::ErrorCode::device_unavailable) return fail("the wrong error for an absent cell");
    }
}
