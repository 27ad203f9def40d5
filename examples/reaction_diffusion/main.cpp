// SPDX-License-Identifier: BSD-3-Clause
// Spots that divide (Gray and Scott 1983; J. E. Pearson, Complex patterns in a simple system, Science 1993): u is fed, u + 2 v becomes 3 v,
// v is removed, both diffuse.
//
//   du/dt = Du ∆u - u v² + F (1 - u)        dv/dt = Dv ∆v + u v² - (F + k) v
//
// Diffusion is implicit, by alternating directions; the reaction is explicit. usage: reaction_diffusion [cells] [steps] [device]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <trifold/trifold.hpp>
#include <vector>

// Fields: 0 = u, 1 = v, 2 = the solution of a sweep. Parameters: step, F, k, step Du / h², step Dv / h².
TRIFOLD_POINT_FUNCTION(change_of_u, {
    real u = at(0, 0, 0, 0);
    real v = at(1, 0, 0, 0);
    out(0) = mad(p(0), p(1) * (1 - u) - u * v * v, p(3) * (at(0, -1, 0, 0) + at(0, 1, 0, 0) + at(0, 0, -1, 0) + at(0, 0, 1, 0) - 4 * u));
})
TRIFOLD_POINT_FUNCTION(change_of_v, {
    real u = at(0, 0, 0, 0);
    real v = at(1, 0, 0, 0);
    out(0) = mad(p(0), u * v * v - (p(1) + p(2)) * v, p(4) * (at(1, -1, 0, 0) + at(1, 1, 0, 0) + at(1, 0, -1, 0) + at(1, 0, 1, 0) - 4 * v));
})
TRIFOLD_POINT_FUNCTION(add_to_u, { out(0) = at(0, 0, 0, 0) + at(2, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(add_to_v, { out(0) = at(1, 0, 0, 0) + at(2, 0, 0, 0); })

int main(int argc, char** argv) {
    using namespace trifold;
    const std::int64_t cells = argc > 1 ? std::atoll(argv[1]) : 192, steps = argc > 2 ? std::atoll(argv[2]) : 4000;
    if (cells < 3 || steps < 0) return std::fputs("usage: reaction_diffusion [cells, at least 3] [steps] [device]\n", stderr), 2;
    const double feed = 0.03, kill = 0.0615, step = 1, number_u = 0.16 * step, number_v = 0.08 * step;

    const MeshShape shape{.x = cells, .y = cells};
    std::vector<double> u(static_cast<std::size_t>(shape.points()), 1.0), v(u.size(), 0.0);
    for (std::int64_t y = 0; y < cells; ++y)
        for (std::int64_t x = 0; x < cells; ++x)
            if (std::hypot(static_cast<double>(x) - 0.4 * static_cast<double>(cells), static_cast<double>(y) - 0.5 * static_cast<double>(cells)) < 6)
                u[static_cast<std::size_t>(y * cells + x)] = 0.5, v[static_cast<std::size_t>(y * cells + x)] = 0.25;

    const Sides around{{Edge::periodic}, {Edge::periodic}};
    const std::array<Sides, 3> sides{around, around, Sides{}};
    const auto lines = [](double number) {  // 1 - ∂²/2 along x, then along y
        const std::array<double, 3> row{-number / 2, 1 + number, -number / 2};
        return std::vector<LineSolve>{{.axis = 0, .constant = row}, {.axis = 1, .constant = row}};
    };
    const AnyField fields[] = {Field<double>::packed(u.data(), shape, sides), Field<double>::packed(v.data(), shape, sides)};
    const Sweep sweeps[] = {{.rhs = change_of_u, .lines = lines(number_u), .update = add_to_u, .target = 0, .solution = sides},
                            {.rhs = change_of_v, .lines = lines(number_v), .update = add_to_v, .target = 1, .solution = sides}};
    const double parameters[] = {step, feed, kill, number_u, number_v};

    try {
        Context context;
        Queue queue(context, argc > 3 ? argv[3] : "cpu");
        const SweepOutcome outcome = sweep(queue, {shape, fields, sweeps, parameters}, steps);
        if (!outcome.ok()) return std::fprintf(stderr, "step %lld: %s\n", static_cast<long long>(outcome.step), name_of(outcome.reason)), 4;
    } catch (const Error& error) {
        return std::fprintf(stderr, "%s\n", error.what()), static_cast<int>(error.code());
    }
    for (std::int64_t y = 0; y < 32; ++y, std::putchar('\n'))
        for (std::int64_t x = 0; x < 64; ++x) {
            const double value = v[static_cast<std::size_t>((2 * y + 1) * cells / 64 * cells + (2 * x + 1) * cells / 128)];
            std::putchar(" .:-=+*#%@"[std::clamp(static_cast<int>(value * 25), 0, 9)]);
        }
}
