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
    std::vector<double> seconds;  ///< of each time it was measured

    double median() const {
        std::vector<double> sorted = seconds;
        std::sort(sorted.begin(), sorted.end());
        return sorted[sorted.size() / 2];
    }
};

bool within(double ratio) { return std::max(ratio, 1 / ratio) <= 1.3; }

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

struct Shape {
    std::string name, generator;
    DType dtype;
    int threads;
    double rows = 0;
    bool batch = false;
    std::vector<Candidate> candidates{};
};

/// Times every candidate once more. The first time it also finds them, and what is predicted of them.
void measure(Shape& shape, double budget_s, int rounds) {
    Case problem(shape.generator, shape.dtype);
    Context context(options_with(shape.threads));
    tridiagonal::ensure_profile(context);
    Queue queue(context);
    const tridiagonal::Problem ready = problem.problem(false);
    if (shape.candidates.empty()) {
        shape.rows = problem.rows(), shape.batch = problem.data().systems() > 1;
        for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::certified, Algorithm::two_pass, Algorithm::lu}) {
            if (algorithm != Algorithm::automatic && !runs(queue, ready, algorithm)) continue;
            tridiagonal::Options options;
            options.algorithm = algorithm;
            shape.candidates.push_back({std::string(name_of(algorithm)), algorithm, {}, tridiagonal::plan(queue, ready, options).predicted_s, {}});
        }
    }
    std::vector<Runner> runners;
    for (Candidate& candidate : shape.candidates) {
        tridiagonal::Options options;
        options.algorithm = candidate.algorithm;
        runners.push_back({candidate.name, {}, [&, options] { candidate.outcome = tridiagonal::solve(queue, ready, options); }, {}});
    }
    const std::vector<Timing> timings = race(runners, {.rounds = rounds, .least = 2, .warm = true, .budget_s = budget_s});
    for (std::size_t k = 0; k < timings.size(); ++k) shape.candidates[k].seconds.push_back(timings[k].median);
}

Row row_of(const Shape& shape) {
    const Candidate& automatic = shape.candidates.front();
    const double seconds = automatic.median();
    const Candidate* best = &automatic;
    for (const Candidate& candidate : shape.candidates)
        if (candidate.outcome.ok() && candidate.median() < best->median()) best = &candidate;
    const double ratio = automatic.predicted_s / seconds, again = automatic.seconds.back() / automatic.seconds.front();
    Row row;
    row.set("case", shape.name).set("dtype", name_of(shape.dtype)).set("threads", static_cast<double>(shape.threads)).set("rows", shape.rows);
    row.set("batch", shape.batch).set("branch", automatic.outcome.branch).set("seconds", seconds).set("predicted_s", automatic.predicted_s);
    row.set("predicted_over_measured", ratio).set("within_1_3", within(ratio));
    row.set("again_over_first", again).set("again_within_1_3", within(again));
    row.set("best", best->name).set("best_candidate_s", best->median()).set("regret", seconds / best->median() - 1);
    for (std::size_t k = 1; k < shape.candidates.size(); ++k) {
        const Candidate& candidate = shape.candidates[k];
        row.set(candidate.name + "_s", candidate.outcome.ok() ? candidate.median() : std::numeric_limits<double>::quiet_NaN());
        row.set(candidate.name + "_predicted_s", candidate.predicted_s);
    }
    std::fprintf(stderr, "  %-28s %s %d thr  %-10s measured %9.2f us, predicted %9.2f us (x%.2f), measured again x%.2f  best %-10s regret %5.1f %%\n",
                 shape.name.c_str(), name_of(shape.dtype), shape.threads, automatic.outcome.branch, seconds * 1e6, automatic.predicted_s * 1e6, ratio,
                 again, best->name.c_str(), 100 * row.number("regret"));
    return row;
}

}  // namespace

// Every problem is timed three times, minutes apart: what the last time says of the first is the best that a prediction can do on this machine.
void run_planner(const Settings& settings, Record& record) {
    {
        // What an earlier version or hour has left of a profile says nothing of predictions.
        Context context(options_with(0));
        tridiagonal::measure_profile(context);
    }
    std::vector<Shape> shapes;
    for (const int threads : settings.thread_counts())
        for (const DType dtype : {DType::f64, DType::f32}) {
            std::vector<double> sizes{500, 2000, 8000, 32000, 128000, 1e6, 4e6};
            if (!settings.quick) sizes.push_back(3.2e7);
            for (const double rows : sizes)
                shapes.push_back({"single " + count_text(rows), "dominant?ratio=2&rows=" + std::to_string(static_cast<std::int64_t>(rows)), dtype, threads});
            struct Extent {
                int systems, rows;
            };
            for (const Extent e : {Extent{4, 100000}, {16, 1000}, {64, 64}, {1000, 100}, {1000, 1000}, {20000, 128}, {100000, 32}}) {
                const std::string text = std::to_string(e.systems) + "x" + std::to_string(e.rows);
                shapes.push_back({"contiguous " + text, "dominant?ratio=2&axis=1&shape=" + text, dtype, threads});
                const std::string turned = std::to_string(e.rows) + "x" + std::to_string(e.systems);
                shapes.push_back({"interleaved " + text, "dominant?ratio=2&axis=0&shape=" + turned, dtype, threads});
            }
        }
    const int sweeps = settings.quick ? 2 : 3;
    for (int sweep = 0; sweep < sweeps; ++sweep)
        for (Shape& shape : shapes) measure(shape, 0.8 * settings.budget_scale / sweeps, 9);
    int repeated = 0, near = 0;
    for (const Shape& shape : shapes) {
        record.rows.push_back(row_of(shape));
        if (const Row& row = record.rows.back(); within(row.number("again_over_first"))) ++repeated, near += within(row.number("predicted_over_measured"));
    }
    std::fprintf(stderr, "  %d of %zu problems were repeated within 1.3 by the machine, %d of them were predicted so\n", repeated, shapes.size(), near);
}

}  // namespace trifold::bench
