// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "bench/baselines/thomas_rows.hpp"
#include "bench/harness/allocations.hpp"
#include "bench/harness/residual.hpp"
#include "bench/suites/suites.hpp"

namespace trifold::bench {
namespace {

template <class T>
void run_size(std::int64_t rows, DType dtype, const Settings& settings, Record& record) {
    Case problem("dominant?ratio=2&rows=" + std::to_string(rows), dtype);
    Context context;
    Queue queue(context);
    const tridiagonal::Problem ready = problem.problem(false);
    std::vector<T> x(static_cast<std::size_t>(rows)), c(x);
    Outcome outcome;
    const auto& d = problem.data();
    const tridiagonal::Factor factor(queue, ready.matrix, rows, {}, dtype);
    auto ours = [&] { outcome = tridiagonal::solve(queue, ready); };
    const std::vector<Runner> runners{
        {"Thomas, inlined", {}, [&] {
             thomas_rows(rows, d.lower.as<T>(), d.diag.as<T>(), d.upper.as<T>(), d.rhs.as<T>(), x.data(), c.data());
             asm volatile("" : : "r"(x.data()) : "memory");
         }, {}},
        {"solve", {}, ours, {}},
        {"solve, views made anew", {}, [&] { outcome = tridiagonal::solve(queue, problem.problem(false)); }, {}},
        {"kept factors", {}, [&] { outcome = factor.solve(ready.rhs, ready.x); }, {}}};
    const std::vector<Timing> timings = race(runners, {.rounds = 301, .least = 51, .budget_s = 0.6 * settings.budget_scale});
    ours();
    const std::int64_t before = allocations();
    for (int k = 0; k < 1000; ++k) ours();
    const double allocated = static_cast<double>(allocations() - before) / 1000;
    for (std::size_t k = 0; k < runners.size(); ++k) {
        Row row;
        row.set("case", std::to_string(rows) + " rows").set("solver", runners[k].name).set("rows", static_cast<double>(rows));
        row.set("dtype", name_of(dtype)).set("threads", 1.0).set("seconds", timings[k].median).set("best_s", timings[k].best);
        row.set("samples", static_cast<double>(timings[k].samples));
        if (k > 0) {
            const double allowed = 1.5 * timings[0].median + 200e-9;
            row.set("allowed_s", allowed).set("over_allowed", timings[k].median / allowed);
            row.set("outcome", name_of(outcome.reason)).set("branch", outcome.branch);
            row.set("backward_error", backward_error(problem.data(), problem.x()));
        }
        if (k == 1) row.set("allocations_per_call", allocated);
        std::fprintf(stderr, "  %-10s %s %-24s %8.1f ns%s\n", row.text("case").c_str(), name_of(dtype), runners[k].name.c_str(),
                     timings[k].median * 1e9, k == 1 ? (", " + std::to_string(allocated) + " allocations").c_str() : "");
        record.rows.push_back(std::move(row));
    }
}

}  // namespace

void run_small(const Settings& settings, Record& record) {
    for (const std::int64_t rows : {8, 16, 64, 200, 1000}) {
        run_size<double>(rows, DType::f64, settings, record);
        run_size<float>(rows, DType::f32, settings, record);
    }
}

}  // namespace trifold::bench
