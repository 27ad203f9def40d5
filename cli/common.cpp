// SPDX-License-Identifier: BSD-3-Clause
#include "common.hpp"

#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "backends/registry.hpp"
#include "base/nearest.hpp"
#include "output.hpp"
#include "planner/decision.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {

CLI::Option* CommonOptions::add_input(CLI::App& app, std::string& input) {
    return app.add_option(
           "INPUT", input,
           "FILE.npz with arrays lower, diag, upper, rhs ('-' = stdin), or gen:NAME?key=value&... (see: trifold generate --list)")
        ->required();
}

void CommonOptions::add_run(CLI::App& app) {
    app.add_option("--device", device, "where to run; see: trifold devices; several with commas, or 'all'")->capture_default_str();
    app.add_option("--algorithm", algorithm,
                   "automatic, or one by name, which is then not replaced where it fails: certified, two_pass, lu, thomas, twisted, cyclic_reduction, pcr, spike, truncated_spike")
        ->capture_default_str();
    add_threads(app);
}

void CommonOptions::add_threads(CLI::App& app) {
    app.add_option("--threads", threads, "0 = OMP_NUM_THREADS, else the cores this process may use")
        ->capture_default_str()
        ->transform(whole_number(0, 4096));
}

void CommonOptions::add_periodic(CLI::App& app) {
    app.add_flag("--periodic", periodic, "rows form a ring: lower[0] couples row 0 to the last row, upper[n-1] the last row to row 0");
}

void CommonOptions::add_data(CLI::App& app) {
    app.add_option("--precision", precision, "f32 or f64; default: as the file has it, f64 for generators");
    app.add_option("--axis", axis,
                   "axis of n-d arrays that is solved; negative counts from the last (default: the last)");
}

void CommonOptions::add_objective(CLI::App& app) {
    app.add_option("--optimise", objective, "time, energy or edp (energy times time): for what the devices that share a solve are chosen; the latter two by --watts, else by the devices' power limits where the machine tells them")
        ->capture_default_str();
    add_watts(app);
}

void CommonOptions::add_watts(CLI::App& app) {
    app.add_option("--watts", watts_text, "DEVICE=WATTS,…: what devices draw while they compute; joules are estimated so where there is no counter, or without --energy. One that is not named is taken to draw its power limit, where the machine tells it");
}

void CommonOptions::apply_objective(tridiagonal::Options& settings) {
    watts = report::watts_from(watts_text);
    device_watts.clear();
    for (const auto& [name, value] : watts) device_watts.push_back({name, value});
    settings.objective = objective_from(objective), settings.watts = device_watts;
}

void CommonOptions::note_watts(const Queue& queue) const {
    if (quiet) return;
    const Device& device = device_at(queue.device_index());
    for (const auto& [name, value] : watts) {
        bool asked = name == device.name;
        for (const Device* part : device.parts) asked = asked || name == part->name;
        if (!asked) say("--watts: '" + name + "' is none of the devices that are asked to compute (" + device.name + ")");
    }
}

void CommonOptions::add_talk(CLI::App& app) {
    app.add_flag("-q,--quiet", quiet, "no progress and no notes on stderr");
    app.add_flag("--json", json, "the report as JSON on stdout");
}

std::optional<DType> CommonOptions::dtype() const {
    if (precision.empty()) return {};
    if (precision == "f32") return DType::f32;
    if (precision == "f64") return DType::f64;
    static constexpr std::string_view known[] = {"f32", "f64"};
    throw Error(ErrorCode::usage, "--precision", "unknown precision '" + precision + "'",
                nearest_hint(precision, known));
}

io::LoadOptions CommonOptions::load(bool values, io::Progress progress) const {
    return {axis, dtype(), values, std::move(progress), periodic};
}

ContextOptions CommonOptions::context() const {
    ContextOptions options;
    options.threads = threads;
    // Once each: solves that are repeated have nothing new to say.
    if (!quiet)
        options.log = [said = std::set<std::string, std::less<>>()](std::string_view line) mutable {
            if (said.emplace(line).second) say(std::string(line));
        };
    return options;
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
    const auto settle = [least, most](std::string& text) -> std::string {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool read = error == std::errc() && end == text.data() + text.size();
        if (!read || value != std::floor(value) || value < static_cast<double>(least) || value > static_cast<double>(most))
            return "'" + text + "' is no whole number from " + std::to_string(least) + " to " + std::to_string(most);
        text = std::to_string(static_cast<std::int64_t>(value));
        return {};
    };
    return CLI::Validator(settle, "");
}

std::string not_empty(const std::string& name) {
    return name.empty() ? "names no file" : "";
}

void use_threads_of(const Context& context) {
    omp_set_num_threads(context.threads());
}

void set_examples(CLI::App& app, const std::string& examples) {
    app.footer("\nExamples:\n" + examples);
}

Prospect look_ahead(const std::string& input, const CommonOptions& common, Queue& queue,
                    const tridiagonal::Options& options) {
    use_threads_of(queue.context());
    Prospect prospect{io::load_tridiagonal(input, common.load(false)), {}, 0, 0, 0};
    prospect.x = io::Array::without_values(prospect.shape.rhs.shape());
    prospect.bytes = static_cast<double>(prospect.shape.bytes()) + static_cast<double>(prospect.x.shape().bytes());
    const tridiagonal::Problem problem = prospect.shape.problem(prospect.x);
    for (const WorkspaceNeed& need : tridiagonal::workspace(queue, problem, options))
        if (need.memory.kind != MemoryKind::device) prospect.workspace += static_cast<double>(need.bytes);
    prospect.certain = static_cast<double>(tridiagonal::certain_workspace(queue, tridiagonal::normalise(problem, queue.memory()), options.algorithm));
    return prospect;
}

int planned_threads(const Queue& queue, const tridiagonal::Problem& problem, tridiagonal::Algorithm algorithm) {
    const tridiagonal::System system = tridiagonal::normalise(problem, queue.memory());
    if (system.rows == 0 || system.systems() == 0) return 1;
    const tridiagonal::Decision decision = tridiagonal::decide(queue, system, algorithm);
    const auto hosts = host_devices();
    const bool on_host = std::any_of(hosts.begin(), hosts.end(), [&](const Device* device) { return std::string_view(device->name) == decision.ops->device; });
    return on_host ? decision.threads : 0;
}

}  // namespace trifold::cli
