// SPDX-License-Identifier: BSD-3-Clause
// trifold bench: this machine in a few seconds. Roof and solve in turns over the same memory, medians. The benchmarks
// with peers are in bench/.
#include <algorithm>
#include <memory>

#include "base/available_memory.hpp"
#include "build_info.hpp"
#include "common.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report/format.hpp"
#include "report/render.hpp"
#include "roof.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

struct Options : CommonOptions {
    std::vector<std::int64_t> rows{100000, 1000000, 10000000};
    std::vector<std::string> problems{"gen:diffusion?number=10", "gen:poisson", "gen:random"};
    int repeat = 7;
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

report::BenchRow measure(const std::string& problem, std::int64_t rows, const Options& o, Queue& queue,
                         const tridiagonal::Options& settings) {
    const std::string input =
        problem + (problem.find('?') == std::string::npos ? "?" : "&") + "rows=" + std::to_string(rows);
    const auto needed = [&] {
        const Prospect prospect = look_ahead(input, o, queue, settings);
        return prospect.bytes + prospect.certain;
    };
    require_memory(input, needed(), "leave it out with --rows");
    const io::TridiagonalData data = io::load_tridiagonal(input, o.load(true));
    const io::Array x(data.rhs.shape(), "x");
    std::vector<double> solves;
    ProblemRoof roof(data, x, queue);
    report::BenchRow row;
    row.problem = problem;
    row.rows = data.systems() * data.rows();
    row.dtype = data.rhs.dtype();
    for (int k = 0; k < o.repeat; ++k) {
        roof.sample();
        Report report;
        tridiagonal::Options asked = settings;
        asked.report = &report;
        const Outcome outcome = tridiagonal::solve(queue, data.problem(x), asked);
        row.branch = outcome.branch;
        row.reason = name_of(outcome.reason), row.ok = outcome.ok();
        row.certified_share = outcome.certified_share;
        row.needed_bytes = report.roof.needed_bytes;
        row.predicted_s = report.plan.predicted_s;
        solves.push_back(report.solve_s);
        if (!outcome.ok()) break;
    }
    row.solve_s = median(solves);
    row.roof_bytes_per_s = roof.bytes_per_s();
    return row;
}

int run(const Options& o) {
    for (const std::string& problem : o.problems)
        if (!problem.starts_with("gen:")) throw Error(ErrorCode::usage, "--problems", "'" + problem + "' is not a generator", "write gen:NAME?key=value&..., see: trifold generate --list");
    tridiagonal::Options settings;
    settings.algorithm = tridiagonal::algorithm_from(o.algorithm);
    Context context(o.context());
    Queue queue(context, o.device);
    ProgressLine line(o.quiet);
    report::BenchTable table;
    table.threads = context.threads();
    table.machine = report::this_machine(build_commit());
    for (const std::string& problem : o.problems)
        for (const std::int64_t rows : o.rows) {
            line.stage("bench " + problem + ", " + report::count_text(rows) + " rows");
            table.rows.push_back(measure(problem, rows, o, queue, settings));
        }
    line.clear();
    print(o.json ? report::json(table) : report::text(table));
    bool all_good = true;
    for (const report::BenchRow& row : table.rows) {
        if (row.ok) continue;
        all_good = false;
        say("not solved: " + row.problem + ", " + report::count_text(row.rows) + " rows: " + row.reason);
    }
    return all_good ? good : numerical;
}

}  // namespace

Command bench_command(CLI::App& parent) {
    auto options = std::make_shared<Options>();
    CLI::App* app = parent.add_subcommand("bench", "time generated problems against this machine's memory");
    app->add_option("--rows", options->rows, "rows of the systems")
        ->delimiter(',')
        ->capture_default_str()
        ->transform(whole_number(1, std::int64_t{1} << 48));
    app->add_option("--problems", options->problems, "generators, without rows")->delimiter(',')->capture_default_str();
    app->add_option("--repeat", options->repeat, "solves of each, of which the median counts")
        ->capture_default_str()
        ->transform(whole_number(1, 1000));
    options->add_run(*app);
    app->add_option("--precision", options->precision, "f32 or f64 (default: f64)");
    options->add_talk(*app);
    set_examples(
        *app, "  trifold bench --rows 100000,1000000 --repeat 5\n"
              "  trifold bench --problems gen:dominant --rows 100000 --repeat 5 --precision f32 --threads 1 --json\n");
    return {app, [options] { return run(*options); }};
}

}  // namespace trifold::cli
