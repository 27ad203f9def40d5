// SPDX-License-Identifier: BSD-3-Clause
// OpenCL devices that work in the host's memory beside the native cpu: the same arrays, solved in turn, x apart from rhs. What a vendor's CPU driver makes of the kernels. Compilation is not timed.
// Before every timed solve the same one, not timed: threads of the other solver's team, which still spin, would take this one's cores.
#include <string_view>
#include <vector>

#include "bench/suites/suites.hpp"
#include "trifold/trifold.hpp"

namespace trifold::bench {
namespace {

struct Solver {
    std::string device;
    Queue queue;
    Outcome outcome;
};

void run_one(const Settings& settings, Record& record, std::vector<Solver>& solvers, const std::string& name, const std::string& generator, double rows, double systems, DType dtype) {
    Case problem(generator, dtype);
    std::vector<Runner> runners;
    for (Solver& solver : solvers)
        runners.push_back({solver.device, {}, [&] { solver.outcome = tridiagonal::solve(solver.queue, problem.problem(false), {}); }, {}});
    const std::vector<Timing> timings = race(runners, {.rounds = 31, .least = 5, .warm = true, .budget_s = 3 * settings.budget_scale});
    for (std::size_t k = 0; k < solvers.size(); ++k) {
        Row row;
        row.set("case", name).set("rows", rows).set("systems", systems).set("dtype", name_of(dtype)).set("device", solvers[k].device);
        row.set("branch", solvers[k].outcome.branch).set("reason", name_of(solvers[k].outcome.reason)).set("solved_by", solvers[k].outcome.device);
        row.set("seconds", timings[k].median).set("best_s", timings[k].best).set("samples", static_cast<double>(timings[k].samples));
        row.set("rows_per_s", rows * systems / timings[k].median);
        if (k > 0) row.set("times_cpu", timings[k].median / timings[0].median).set("best_times_cpu", timings[k].best / timings[0].best);
        record.rows.push_back(std::move(row));
    }
}

}  // namespace

void run_opencl_cpu(const Settings& settings, Record& record) {
    Context context(options_with(settings.threads));
    std::vector<Solver> solvers;
    solvers.push_back({"cpu", Queue(context, "cpu"), {}});
    for (const DeviceInfo& device : context.devices())
        if (device.name.starts_with("opencl:") && device.description.find("shared with the host") != std::string::npos) solvers.push_back({device.name, Queue(context, device.name), {}});
    if (solvers.size() == 1) return record.notes.push_back("no OpenCL device that works in the host's memory");
    for (const DType dtype : {DType::f64, DType::f32}) {
        for (const auto& [rows, systems] : {std::pair{256, 4096}, {64, 131072}}) {
            const std::string r = std::to_string(rows), s = std::to_string(systems);
            run_one(settings, record, solvers, "batch, rows side by side", "dominant?ratio=2&shape=" + s + "x" + r + "&axis=1", rows, systems, dtype);
            run_one(settings, record, solvers, "batch, systems side by side", "dominant?ratio=2&shape=" + r + "x" + s + "&axis=0", rows, systems, dtype);
        }
        for (const double rows : {1e6, 8e6, 32e6})
            if (!settings.quick || rows < 3e7) run_one(settings, record, solvers, "one system", "dominant?ratio=2&rows=" + count_text(rows), rows, 1, dtype);
        run_one(settings, record, solvers, "one system that does not forget", "toeplitz?lower=-1&diag=2&upper=-1&rows=8e6", 8e6, 1, dtype);
    }
}

}  // namespace trifold::bench
