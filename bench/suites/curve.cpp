// SPDX-License-Identifier: BSD-3-Clause
#include "bench/suites/suites.hpp"

namespace trifold::bench {

using tridiagonal::Algorithm;

void run_curve(const Settings& settings, Record& record) {
    const std::string rows = "rows=" + std::to_string(settings.quick ? 4000000 : 16000000);
    struct Point {
        const char* name;
        std::string generator;
    };
    std::vector<Point> points;
    for (const char* number : {"0.1", "1", "10", "100", "1e4"})
        points.push_back({number, std::string("diffusion?contrast=1e4&number=") + number + "&" + rows});
    points.push_back({"Poisson", "poisson?" + rows});
    points.push_back({"indefinite", "random?" + rows});
    for (const Point& point : points) {
        Case problem(point.generator, DType::f64);
        for (const int threads : settings.thread_counts()) {
            Group group(problem, threads, false);
            group.add_solver("automatic");
            group.add_solver("two_pass", Algorithm::two_pass);
            const bool number = point.name[0] >= '0' && point.name[0] <= '9';
            group.run({.rounds = 15, .least = 3, .budget_s = 4 * settings.budget_scale},
                      std::string(number ? "number = " : "") + point.name, record, "two_pass");
        }
    }
}

}  // namespace trifold::bench
