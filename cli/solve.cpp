// SPDX-License-Identifier: BSD-3-Clause
// trifold solve: input → x, and the report of it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "backends/opencl/kernel_times.hpp"
#include "backends/power_limit.hpp"
#include "backends/registry.hpp"
#include "base/available_memory.hpp"
#include "build_info.hpp"
#include "common.hpp"
#include "devices/context_state.hpp"
#include "energy.hpp"
#include "interrupt.hpp"
#include "io/atomic_file.hpp"
#include "io/npy.hpp"
#include "output.hpp"
#include "planner/calibrate.hpp"
#include "progress.hpp"
#include "report/format.hpp"
#include "report/render.hpp"
#include "report/trace.hpp"
#include "residual.hpp"
#include "roof.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

/// Bytes of an array from which a solve takes long enough for its plan to rest on measured figures.
constexpr std::int64_t worth_measuring = std::int64_t{32} << 20;

struct Options : CommonOptions {
    std::string input, output, trace, timeline;
    double tolerance = 0, patience = 0;
    int repeat = 1;
    bool no_check = false, no_roof = false, energy = false, csv = false;
};

class Solve {
public:
    explicit Solve(const Options& options) : o_(options), line_(options.quiet) {}

    int run() {
        if (o_.output == "/dev/stdout") o_.output = "-";  // x alone goes there
        require_names();
        settings_.algorithm = tridiagonal::algorithm_from(o_.algorithm);
        settings_.tolerance = o_.tolerance;
        if (o_.output == "-" && terminal_on_stdout())
            throw Error(ErrorCode::usage, "-o -", "stdout is a terminal", "name a file or redirect stdout");
        settings_.patience_s = o_.patience;
        o_.apply_objective(settings_);
        Context context(o_.context());
        Queue queue(context, o_.device);
        threads_ = context.threads();
        o_.note_watts(queue);
        if (queue.memory().kind == MemoryKind::device) own_memory_ = queue.device();
        prepare(queue);
        read();
        solve(queue);
        return finish();
    }

private:
    // A file that is read or written twice would be lost.
    void require_names() const {
        const std::pair<const char*, const std::string*> outputs[] = {{"-o", &o_.output}, {"--trace", &o_.trace}, {"--timeline", &o_.timeline}};
        if (o_.output.ends_with(".npz")) throw Error(ErrorCode::usage, "-o " + o_.output, "is an archive's name, and x is one array", "name it *.npy");
        // Pipes and devices have whatever name they have.
        const std::filesystem::path name = o_.output;
        std::error_code unknown;
        if (name.has_extension() && name.extension() != ".npy" && !std::filesystem::is_other(name, unknown))
            throw Error(ErrorCode::usage, "-o " + o_.output, "is not an .npy file", "name it *.npy, or - for stdout");
        if (const std::filesystem::path picture = o_.timeline; picture.has_extension() && picture.extension() != ".svg" && !std::filesystem::is_other(picture, unknown))
            throw Error(ErrorCode::usage, "--timeline " + o_.timeline, "is not an .svg file", "name it *.svg");
        std::vector<std::pair<std::string, std::string>> taken{{"INPUT", o_.input}};
        for (const auto& [option, path] : outputs) {
            if (path->empty() || *path == "-") continue;
            for (const auto& [other, name] : taken)
                if (io::same_file(*path, name)) throw Error(ErrorCode::usage, std::string(option) + " " + *path, "is " + other + " too, and would overwrite it", "name another file");
            taken.emplace_back(option, *path);
        }
    }

    // Everything that can be refused is, before the long work.
    void prepare(Queue& queue) {
        watch_.start("prepare");
        double needed = 0;
        {
            const Prospect prospect = look_ahead(o_.input, o_, queue, settings_);
            if (!o_.output.empty()) io::require_writable(o_.output, prospect.x.shape().bytes() + 128, watch_temporary);
            for (const std::string& path : {o_.trace, o_.timeline})
                if (!path.empty()) io::require_writable(path, 0, watch_temporary);
            needed = prospect.bytes + prospect.certain;
        }  // its addresses count as memory where addresses are limited
        require_memory(o_.input, needed,
                       o_.dtype() == DType::f32 ? "use a smaller problem" : "use a smaller problem or --precision f32");
    }

    void read() {
        const bool generated = o_.input.starts_with("gen:");
        const std::string verb = generated ? "generate" : "read";
        watch_.start(verb);
        line_.stage(verb + " " + o_.input);
        data_ = io::load_tridiagonal(o_.input, o_.load(true, line_.bar()));
        line_.clear();
        if (!o_.quiet)
            for (const std::string& note : data_.notes) say(note);
        if (!generated) {
            watch_.start("validate");
            require_finite();
        }
        watch_.start("allocate");
        x_ = io::Array(data_.rhs.shape(), "x");
        // The solve shall not wait for pages.
        char* bytes = x_.as<char>();
        const std::int64_t count = x_.shape().bytes(), page = 4096;
#pragma omp parallel for schedule(static) if (count > std::int64_t{1} << 20)
        for (std::int64_t at = 0; at < count; at += page) bytes[at] = 0;
    }

    void require_finite() const {
        const std::string place = data_.first_not_finite();
        if (!place.empty()) throw Error(ErrorCode::bad_input, data_.name, place, "mend the array and save it anew");
    }

    void solve(Queue& queue) {
        const tridiagonal::Problem problem = data_.problem(x_);
        std::vector<Report> reports(static_cast<std::size_t>(o_.repeat));
        const bool on_host = queue.memory().kind != MemoryKind::device;
        if (on_host && !o_.no_roof && data_.rhs.shape().bytes() >= worth_measuring && !queue.context().state().profile().measured()) {
            watch_.start("measure machine");
            line_.stage("measure bandwidth and pace, once for this machine");
            tridiagonal::ensure_profile(queue.context());
        }
        ProblemRoof roof(data_, x_, queue);
        for (Report& report : reports) {
            // Roof and solve in turns, over the same memory; the roof writes x, so it comes first.
            if (!o_.no_roof) {
                watch_.start("measure roof");
                line_.stage("measure the roof");
                roof.sample();
            }
            watch_.start("solve");
            line_.stage("solve " + report::problem_text(data_.rows(), data_.systems()));
            settings_.report = &report;
            tridiagonal::solve(queue, problem, settings_);
            watch_.stop();
            if (!report.outcome.ok()) break;
            if (o_.repeat == 1 && compiled(queue, report)) solve_again(queue, problem, report);
        }
        if (o_.energy && reports.back().outcome.ok()) {
            watch_.start("measure energy");
            line_.stage("solve for two seconds to measure energy");
            settings_.report = nullptr;
            record_.energy = EnergyMeter(queue).measure([&] { return tridiagonal::solve(queue, problem, settings_).ok(); });
            watch_.stop();
        }
        planned_threads_ = planned_threads(queue, problem, settings_.algorithm);
        if (reports.back().outcome.ok()) time_kernels(queue, problem, reports);
        line_.clear();
        const auto failed =
            std::find_if(reports.begin(), reports.end(), [](const Report& report) { return !report.outcome.ok(); });
        if (failed != reports.end()) {
            record_.report = *failed;
            return;
        }
        const auto middle = reports.begin() + static_cast<std::ptrdiff_t>((reports.size() - 1) / 2);
        std::nth_element(reports.begin(), middle, reports.end(),
                         [](const Report& a, const Report& b) { return a.solve_s < b.solve_s; });
        record_.report = *middle;
        if (o_.energy || !o_.watts.empty() || settings_.objective != Objective::time)
            report::complete(record_.energy, record_.report, o_.watts, power_limits(device_at(queue.device_index())));
        Roof& found = record_.report.roof;
        found.bytes_per_s = roof.bytes_per_s();
        found.source = found.bytes_per_s > 0 ? "measured now" : "";
        found.fraction = found.bytes_per_s > 0 && record_.report.solve_s > 0
                             ? found.needed_bytes / record_.report.solve_s / found.bytes_per_s
                             : 0;
    }

    // A device that compiles its kernels at run time does so in the first solve of a kind: far slower than anything that computes.
    static bool compiled(const Queue& queue, const Report& report) {
        const auto hosts = host_devices();
        const bool on_host = std::ranges::find(hosts, std::string_view(report.outcome.device), &Device::name) != hosts.end();
        return !on_host && std::string_view(report.outcome.device) == queue.device() && report.solve_s > 0.2 && report.roof.needed_bytes / report.solve_s < 1e8;
    }

    void solve_again(Queue& queue, const tridiagonal::Problem& problem, Report& report) {
        const double first = report.solve_s;
        watch_.start("solve");
        tridiagonal::solve(queue, problem, settings_);
        watch_.stop();
        if (report.outcome.ok() && report.solve_s < first / 2 && !o_.quiet)
            say("the first solve took " + report::seconds_text(first) + ": kernels are compiled once and kept; the report is of a second one");
    }

    // Of a published mapping on an OpenCL device: its kernels one by one, in a solve of their own.
    void time_kernels(Queue& queue, const tridiagonal::Problem& problem, std::vector<Report>& reports) {
        const std::string_view on = reports.back().outcome.device;
        if ((settings_.algorithm != tridiagonal::Algorithm::truncated_spike && settings_.algorithm != tridiagonal::Algorithm::thomas) || on != queue.device() || !on.starts_with("opencl:")) return;
        const Device& device = device_at(find_device(queue.device()));
        settings_.report = nullptr;
        opencl::kernel_times(device, true);
        tridiagonal::solve(queue, problem, settings_);
        const opencl::KernelTimes times = opencl::kernel_times(device, false);
        if (times.solving <= 0) return;
        for (Report& report : reports) {
            if (times.marshalling > 0) report.phases.emplace_back("marshalling alone", times.marshalling);
            report.phases.emplace_back(std::string(times.kernels) + ", kernels alone", times.solving);
        }
    }

    int finish() {
        const Outcome& outcome = record_.report.outcome;
        if (!outcome.ok()) {
            // The input may be to blame where it was generated, and not looked at.
            if (outcome.reason == Reason::not_finite) require_finite();
            tell();
            say("not solved: " + std::string(name_of(outcome.reason)) + place(outcome) + hint(outcome) +
                (o_.output.empty() ? "" : "; " + o_.output + " was not written"));
            return numerical;
        }
        bool wrong = false;
        const double limit = std::max(backward_error_limit(data_.rhs.dtype()), 10 * o_.tolerance);
        if (!o_.no_check) {
            watch_.start("check");
            line_.stage("check the residual");
            record_.residual = backward_error(data_.problem(x_), threads_).worst;
            wrong = !(record_.residual <= limit);
        }
        if (!o_.output.empty() && !wrong) {
            watch_.start("write");
            line_.stage("write " + o_.output);
            io::save_npy(o_.output, x_.shape(), x_.data(), line_.bar(), watch_temporary);
            record_.output = o_.output;
        }
        write_traces();
        line_.clear();
        watch_.stop();
        tell();
        if (!wrong) return good;
        say("verification failed: backward error " + report::bound_text(record_.residual) + " is above " +
            report::bound_text(limit) + (o_.output.empty() ? "" : "; " + o_.output + " was not written"));
        return not_verified;
    }

    void write_traces() {
        if (o_.trace.empty() && o_.timeline.empty()) return;
        watch_.start("write trace");
        if (record_.report.trace.empty() && !o_.quiet) say("nothing was split or streamed: the trace has no events");
        const auto write = [](const std::string& path, const std::string& text) {
            if (path.empty()) return;
            io::AtomicFile file(path, watch_temporary);
            file.write(text.data(), text.size());
            file.commit();
        };
        write(o_.trace, report::chrome_trace(record_.report));
        write(o_.timeline, report::timeline_svg(record_.report));
    }

    // What is not finite then is not the input.
    std::string hint(const Outcome& outcome) const {
        if (outcome.reason != Reason::not_finite) return {};
        const bool single = data_.rhs.dtype() == DType::f32;
        return std::string(" (the input is finite: x, or what leads to it, is beyond ") + name_of(data_.rhs.dtype()) + "; scale the system" + (single ? ", or --precision f64)" : ")");
    }

    std::string place(const Outcome& outcome) const {
        std::string text;
        if (outcome.row >= 0) text += " at row " + std::to_string(outcome.row);
        if (outcome.system >= 0 && data_.systems() > 1) text += " of system " + std::to_string(outcome.system);
        return text;
    }

    // Of the one that computed; the drivers of others are not asked.
    static void describe(DeviceInfo& info) {
        const Device& device = device_at(find_device(info.name));
        if (device.description) info.description = device.description(device);
        info.modelled = device.modelled;
    }

    void tell() {
        watch_.stop();
        record_.input = o_.input;
        record_.description = data_.description;
        record_.shape = data_.rhs.shape().extents;
        record_.axis = data_.axis;
        record_.periodic = data_.periodic;
        record_.right_hand_sides =
            data_.diag.dims() <= 1 && data_.lower.dims() <= 1 && data_.upper.dims() <= 1 ? data_.systems() : 1;
        record_.device.name = record_.report.outcome.device;
        describe(record_.device);
        const bool several = record_.report.devices.size() > 1;
        record_.threads = record_.report.outcome.device == own_memory_ ? 0 : several ? threads_ : planned_threads_;
        record_.repeats = o_.repeat;
        record_.phases = watch_.steps();
        record_.total_s = watch_.total();
        record_.peak_bytes = report::peak_bytes();
        record_.machine = report::this_machine(build_commit());
        const bool taken = o_.output == "-";
        const std::string text = o_.json  ? report::json(record_)
                                 : o_.csv ? report::csv_header() + report::csv_line(record_)
                                          : report::text(record_, !taken && colour_on_stdout());
        if (!taken)
            print(text);
        else if (!o_.quiet)
            std::fputs(text.c_str(), stderr);
    }

    Options o_;
    ProgressLine line_;
    Stopwatch watch_;
    tridiagonal::Options settings_;
    io::TridiagonalData data_;
    io::Array x_;
    report::Record record_;
    int threads_ = 1, planned_threads_ = 1;
    std::string_view own_memory_ = "none";  // device that computes without the host's threads
};

}  // namespace

Command solve_command(CLI::App& parent) {
    auto options = std::make_shared<Options>();
    CLI::App* app = parent.add_subcommand("solve", "solve tridiagonal systems and report how it went");
    options->add_input(*app, options->input);
    app->add_option("-o,--output", options->output, "X.npy for the solution, shaped like rhs; '-' = stdout")->check(not_empty);
    options->add_run(*app);
    options->add_data(*app);
    options->add_periodic(*app);
    options->add_talk(*app);
    app->add_option("--tolerance", options->tolerance,
                    "accepted truncation error relative to max|x|; 0 = unit roundoff")
        ->capture_default_str();
    app->add_option("--repeat", options->repeat, "solve this many times and report the median")
        ->capture_default_str()
        ->transform(whole_number(1, 1000));
    app->add_flag("--energy", options->energy, "joules of a solve: by the device's energy counters, for which it is solved for two seconds more; estimated where there are none, by --watts or the device's power limit");
    options->add_objective(*app);
    app->add_option("--patience", options->patience, "seconds after which a call to one of several devices is given up, and its rows go to others; 0 = 30")->capture_default_str();
    app->add_option("--trace", options->trace, "FILE.json for what devices did in a split or streamed solve (Chrome's trace format)")->check(not_empty);
    app->add_option("--timeline", options->timeline, "FILE.svg: the same as a picture")->check(not_empty);
    app->add_flag("--csv", options->csv, "the report as comma-separated values on stdout")->excludes("--json");
    app->add_flag("--no-check", options->no_check, "do not compute the residual after the solve");
    app->add_flag("--no-roof", options->no_roof, "do not measure the bandwidth beside the solve");
    set_examples(*app, "  trifold solve 'gen:diffusion?rows=100000&number=10&contrast=1e4&seed=1'\n"
                       "  trifold solve problem.npz -o x.npy\n"
                       "  trifold solve batch.npz --axis 0 --precision f32 --json\n"
                       "  trifold solve 'gen:random?rows=100000' --algorithm two_pass --threads 1 --repeat 5\n");
    return {app, [options] { return Solve(*options).run(); }};
}

}  // namespace trifold::cli
