// SPDX-License-Identifier: BSD-3-Clause
// trifold plan: what solve would do, without reading or computing anything.
#include <memory>

#include "base/available_memory.hpp"
#include "common.hpp"
#include "devices/context_state.hpp"
#include "machine_file.hpp"
#include "output.hpp"
#include "planner/calibrate.hpp"
#include "progress.hpp"
#include "report/render.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

struct Options : CommonOptions {
    std::string input, machine;
    bool explain = false;
};

int run(Options& o) {
    if (!o.machine.empty()) {
        if (!o.input.empty()) throw Error(ErrorCode::usage, "plan", "takes an input or --machine, not both");
        const report::MachineTable table = predict_machine(o.machine);
        print(o.json ? report::json(table) : report::text(table));
        return good;
    }
    if (o.input.empty()) throw Error(ErrorCode::usage, "plan", "needs an input", "a file, gen:…, or --machine FILE");
    tridiagonal::Options settings;
    settings.algorithm = tridiagonal::algorithm_from(o.algorithm);
    o.apply_objective(settings);
    Context context(o.context());
    Queue queue(context, o.device);
    const Prospect prospect = look_ahead(o.input, o, queue, settings);
    const io::TridiagonalData& data = prospect.shape;
    report::PlanRecord record;
    record.input = o.input;
    record.description = data.description;
    record.rows = data.rows();
    record.systems = data.systems();
    record.shape = data.rhs.shape().extents;
    record.axis = data.axis;
    record.periodic = data.periodic;
    record.dtype = data.rhs.dtype();
    const bool on_host = queue.memory().kind != MemoryKind::device;
    if (on_host && o.explain && !context.state().profile().measured()) {
        ProgressLine line(o.quiet);
        line.stage("measure bandwidth and pace, once for this machine");
        tridiagonal::ensure_profile(context);
    }
    o.note_watts(queue);
    record.plan = tridiagonal::plan(queue, data.problem(prospect.x), settings);
    record.problem_bytes = static_cast<std::int64_t>(prospect.bytes);
    record.workspace_bytes = static_cast<std::int64_t>(prospect.workspace);
    record.available_bytes = available_memory();
    const bool several = record.plan.device.find(',') != std::string::npos;
    record.threads = !on_host && record.plan.device == queue.device() ? 0 : several ? context.threads() : planned_threads(queue, data.problem(prospect.x), settings.algorithm);
    print(o.json ? report::json(record) : report::text(record, o.explain));
    return good;
}

}  // namespace

Command plan_command(CLI::App& parent) {
    auto options = std::make_shared<Options>();
    CLI::App* app = parent.add_subcommand("plan", "say what solve would do; reads shapes only");
    options->add_input(*app, options->input)->required(false);
    app->add_option("--machine", options->machine, "instead of a problem: every combination of the devices in this file, by the contention model");
    app->add_flag("--explain", options->explain,
                  "every candidate, its predicted time, and why it was taken or refused");
    options->add_run(*app);
    options->add_objective(*app);
    options->add_data(*app);
    options->add_periodic(*app);
    options->add_talk(*app);
    set_examples(*app, "  trifold plan problem.npz --explain\n"
                       "  trifold plan 'gen:poisson?rows=100000000' --explain --json\n"
                       "  trifold plan 'gen:dominant?rows=1e9' --device all --explain\n");
    return {app, [options] { return run(*options); }};
}

}  // namespace trifold::cli
