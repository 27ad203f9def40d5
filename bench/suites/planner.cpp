// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>

#include "bench/suites/suites.hpp"
#include "planner/calibrate.hpp"
#include "trifold/error.hpp"

namespace trifold::bench {
namespace {

using tridiagonal::Algorithm;

struct Candidate {
    std::string name;
    Algorithm algorithm;
    Outcome outcome;
    double predicted_s = 0;
};

/// Whether the queue's own device takes this algorithm.
bool runs(Queue& queue, const tridiagonal::Problem& problem, Algorithm algorithm) {
    tridiagonal::Options options;
    options.algorithm = algorithm;
    try {
        return tridiagonal::plan(queue, problem, options).device == queue.device();
    } catch (const Error&) {
        return false;
    }
}

void run_shape(const std::string& name, const std::string& generator, DType dtype, int threads, const Settings& settings, Record& record) {
    Case problem(generator, dtype);
    Context context(options_with(threads));
    tridiagonal::ensure_profile(context);
    Queue queue(context);
    const tridiagonal::Problem ready = problem.problem(false);
    const bool batch = problem.data().systems() > 1;
    std::vector<Candidate> candidates{{"automatic", Algorithm::automatic, {}, 0}};
    for (const Algorithm algorithm : {Algorithm::certified, Algorithm::two_pass, Algorithm::lu})
        if (runs(queue, ready, algorithm)) candidates.push_back({std::string(name_of(algorithm)), algorithm, {}, 0});
    std::vector<Runner> runners;
    for (Candidate& candidate : candidates) {
        tridiagonal::Options options;
        options.algorithm = candidate.algorithm;
        candidate.predicted_s = tridiagonal::plan(queue, ready, options).predicted_s;
        runners.push_back({candidate.name, {}, [&, options] { candidate.outcome = tridiagonal::solve(queue, ready, options); }, {}});
    }
    const std::vector<Timing> timings = race(runners, {.rounds = 25, .least = 5, .warm = true, .budget_s = 0.8 * settings.budget_scale});

    std::size_t best = 0;
    for (std::size_t k = 1; k < candidates.size(); ++k)
        if (candidates[k].outcome.ok() && timings[k].median < timings[best].median) best = k;
    Row row;
    row.set("case", name).set("dtype", name_of(dtype)).set("threads", static_cast<double>(threads)).set("rows", problem.rows());
    row.set("batch", batch).set("branch", candidates[0].outcome.branch).set("seconds", timings[0].median);
    row.set("predicted_s", candidates[0].predicted_s);
    const double ratio = candidates[0].predicted_s / timings[0].median;
    row.set("predicted_over_measured", ratio).set("within_1_3", std::max(ratio, 1 / ratio) <= 1.3);
    row.set("best", candidates[best].name).set("best_candidate_s", timings[best].median);
    row.set("regret", timings[0].median / timings[best].median - 1);
    for (std::size_t k = 1; k < candidates.size(); ++k)
        row.set(candidates[k].name + "_s", candidates[k].outcome.ok() ? timings[k].median : std::numeric_limits<double>::quiet_NaN())
            .set(candidates[k].name + "_predicted_s", candidates[k].predicted_s);
    std::fprintf(stderr, "  %-28s %s %d thr  %-10s measured %9.2f us, predicted %9.2f us (x%.2f)  best %-10s regret %5.1f %%\n",
                 name.c_str(), name_of(dtype), threads, candidates[0].outcome.branch, timings[0].median * 1e6,
                 candidates[0].predicted_s * 1e6, ratio, candidates[best].name.c_str(), 100 * row.number("regret"));
    record.rows.push_back(std::move(row));
}

}  // namespace

void run_planner(const Settings& settings, Record& record) {
    for (const int threads : settings.thread_counts())
        for (const DType dtype : {DType::f64, DType::f32}) {
            std::vector<double> sizes{500, 2000, 8000, 32000, 128000, 1e6, 4e6};
            if (!settings.quick) sizes.push_back(3.2e7);
            for (const double rows : sizes)
                run_shape("single " + count_text(rows), "dominant?ratio=2&rows=" + std::to_string(static_cast<std::int64_t>(rows)), dtype,
                          threads, settings, record);
            struct Shape {
                int systems, rows;
            };
            for (const Shape s : {Shape{4, 100000}, {16, 1000}, {64, 64}, {1000, 100}, {1000, 1000}, {20000, 128}, {100000, 32}}) {
                const std::string text = std::to_string(s.systems) + "x" + std::to_string(s.rows);
                run_shape("contiguous " + text, "dominant?ratio=2&axis=1&shape=" + text, dtype, threads, settings, record);
                const std::string turned = std::to_string(s.rows) + "x" + std::to_string(s.systems);
                run_shape("interleaved " + text, "dominant?ratio=2&axis=0&shape=" + turned, dtype, threads, settings, record);
            }
        }
}

}  // namespace trifold::bench
