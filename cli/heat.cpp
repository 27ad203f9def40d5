// SPDX-License-Identifier: BSD-3-Clause
// trifold heat: the heat equation on batches of meshes, by alternating directions.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "backends/power_limit.hpp"
#include "base/available_memory.hpp"
#include "base/nearest.hpp"
#include "base/number_text.hpp"
#include "build_info.hpp"
#include "common.hpp"
#include "energy.hpp"
#include "heat/heat.hpp"
#include "heat/parts.hpp"
#include "interrupt.hpp"
#include "io/atomic_file.hpp"
#include "io/npy.hpp"
#include "mesh_input.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report/format.hpp"
#include "report/heat_picture.hpp"
#include "report/render.hpp"
#include "roof.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

struct Options : CommonOptions {
    std::string mesh, initial = "spot", boundary = "dirichlet", conductivity = "1", source, output, plot, scheme = "douglas-gunn";
    std::int64_t batch = 1, iterations = 100, at_once = 0;
    double number = 1;
    std::optional<double> step;  // in place of number
    int snapshots = 0;
    bool energy = false, no_roof = false;
};

heat::Scheme scheme_from(const std::string& name) {
    static constexpr std::string_view known[] = {"douglas-gunn", "peaceman-rachford"};
    if (name == known[0]) return heat::Scheme::douglas_gunn;
    if (name == known[1]) return heat::Scheme::peaceman_rachford;
    throw Error(ErrorCode::usage, "--scheme", "unknown scheme '" + name + "'", nearest_hint(name, known));
}

// FIELD.npy and step 1200 of 5000: FIELD-1200.npy
std::string snapshot_name(const std::string& output, std::int64_t step, std::int64_t steps) {
    std::string number = std::to_string(step);
    number.insert(0, std::to_string(steps).size() - number.size(), '0');
    return output.substr(0, output.size() - 4) + "-" + number + ".npy";
}

template <class T>
class Run {
public:
    explicit Run(const Options& options) : o_(options), line_(options.quiet), shape_(mesh_from(options.mesh, options.batch)) {}

    int run() {
        Context context(o_.context());
        use_threads_of(context);
        Queue queue(context, o_.device);
        o_.note_watts(queue);
        copies_ = queue.memory().kind == MemoryKind::device;
        prepare();
        if (copies_) watch_.start("prepare device");
        line_.stage("prepare " + o_.device);
        heat::Parts<T> parts(queue, problem_, u_.as<T>(), at_once_);
        line_.clear();
        warn(parts);
        record_.device = o_.device;
        picture_.first = picture_.last = middle_line(parts);
        const bool good_run = steps(parts);
        line_.clear();
        if (good_run && !o_.output.empty()) write(o_.output);
        if (good_run && !o_.plot.empty()) plot();
        if (good_run) summarise(), measure(queue, parts);
        return finish(context, good_run);
    }

private:
    void prepare() {
        watch_.start("prepare");
        problem_.shape = shape_;
        problem_.sides = sides_from(o_.boundary, shape_);
        problem_.scheme = scheme_from(o_.scheme);
        const double bytes = static_cast<double>(shape_.points()) * sizeof(T);
        const io::Shape array = array_shape(shape_, dtype_of<T>);
        if (!o_.output.empty()) io::require_writable(o_.output, array.bytes() + 128, watch_temporary);
        if (!o_.plot.empty()) io::require_writable(o_.plot, 1 << 20, watch_temporary);
        settle_parts(bytes);
        for (int axis = 0; axis < 3; ++axis) problem_.spacing[static_cast<std::size_t>(axis)] = 1.0 / static_cast<double>(shape_.along(axis));
        read_coefficients();
        problem_.step = 1;
        settle_step(heat::mesh_number(problem_));
        u_ = initial(array);
    }

    // On the host boxes and large planes take as much again while they are advanced: of a batch, so many at once as there is memory for.
    void settle_parts(double bytes) {
        constexpr double stays_in_cache = 1 << 20;  // of a plane, on the cpu
        const double of_one = bytes / static_cast<double>(shape_.meshes), work = copies_ || (shape_.z == 1 && o_.device == "cpu" && of_one <= stays_in_cache) ? 0 : of_one;
        const double fields = of_one * ((o_.conductivity.ends_with(".npy") ? 1 : 0) + (o_.source.empty() ? 0 : 1));
        require_memory("heat", bytes + fields + work, "use a smaller mesh or batch, or --precision f32");
        at_once_ = o_.at_once;
        const double room = static_cast<double>(available_memory()) - bytes - fields;
        if (at_once_ > 0 || work * static_cast<double>(shape_.meshes) <= room) return;
        at_once_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(room / work)), cut_ = true;
    }

    void settle_step(double number_of_one) {
        const char* const name = o_.step ? "--step" : "--number";
        const double given = o_.step.value_or(o_.number);
        if (!(given > 0) || !std::isfinite(given))
            throw Error(ErrorCode::usage, name, number_text(given) + " is no " + (o_.step ? "step of time" : "mesh number"), "give a positive number");
        if (!(number_of_one > 0) || !std::isfinite(problem_.conductivity)) return;  // a conductivity is to blame, and named later
        problem_.step = o_.step ? given : given / number_of_one;
        const auto held = [](double value) { return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max(); };
        const double made = o_.step ? given * number_of_one : problem_.step;
        if (!held(given) || !held(made))
            throw Error(ErrorCode::usage, name, number_text(given) + " makes a " + (o_.step ? "mesh number" : "step") + " of " + number_text(made) + ", and " + name_of(dtype_of<T>) + " does not reach so far",
                        "with this mesh and conductivity a step of 1 is a mesh number of " + number_text(number_of_one));
    }

    void read_coefficients() {
        const auto [end, error] = std::from_chars(o_.conductivity.data(), o_.conductivity.data() + o_.conductivity.size(), problem_.conductivity);
        if (error != std::errc() || end != o_.conductivity.data() + o_.conductivity.size()) {
            if (!o_.conductivity.ends_with(".npy"))
                throw Error(ErrorCode::usage, "--conductivity", "'" + o_.conductivity + "' is neither a number nor an .npy file", "give one of them");
            conductivity_ = field_from(o_.conductivity, shape_, dtype_of<T>, false);
            problem_.conductivities = conductivity_.template as<T>();
        }
        if (o_.source.empty()) return;
        source_ = field_from(o_.source, shape_, dtype_of<T>, false);
        problem_.source = source_.template as<T>();
    }

    io::Array initial(const io::Shape& array) {
        const std::vector<std::string>& names = initial_names();
        if (o_.initial.ends_with(".npy")) return field_from(o_.initial, shape_, dtype_of<T>, true);
        const std::vector<std::string_view> known(names.begin(), names.end());
        if (std::find(names.begin(), names.end(), o_.initial) == names.end())
            throw Error(ErrorCode::usage, "--initial", "unknown field '" + o_.initial + "'", nearest_hint(o_.initial, known) + "; or name an .npy file");
        io::Array field(array, "--mesh");
        make_initial(o_.initial, shape_, field);
        return field;
    }

    void warn(const heat::Parts<T>& parts) {
        record_.parts = parts.count();
        if (!o_.quiet && parts.count() > 1)
            say("the batch is advanced in " + std::to_string(parts.count()) + " parts of " + std::to_string(parts.meshes()) + " meshes, one after the other" +
                (cut_ || parts.cut_for_memory() ? ": " + o_.device + " has no memory for more at once" : ""));
        record_.number = heat::mesh_number(problem_);
        if (o_.quiet || record_.number <= report::accurate_mesh_number) return;
        char text[160];
        std::snprintf(text, sizeof text, "mesh number %.3g is above %.3g: the shortest waves hardly decay in a step, and accuracy is lost (take a step of %.3g or less)",
                      record_.number, report::accurate_mesh_number, problem_.step / record_.number * report::accurate_mesh_number);
        say(text);
    }

    // From snapshot to snapshot, part by part: each is brought to the device and back once.
    bool steps(heat::Parts<T>& parts) {
        record_.reason = name_of(Reason::none);
        // What a first piece of a tenth of a second may be: where fields stay on chip between steps, pieces are not free.
        const double points_per_s = copies_ ? 2e10 : o_.device == "cpu" ? 4e8 : 1e7;
        steps_at_once_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(0.1 * points_per_s / static_cast<double>(parts.points_entered())));
        if (!o_.plot.empty()) most_at_once_ = std::max<std::int64_t>(1, o_.iterations / 40);
        for (std::int64_t done = 0; done < o_.iterations;) {
            const std::int64_t next = next_snapshot(done);
            for (std::int64_t part = 0; part < parts.count(); ++part) {
                if (copies_) watch_.start("copy");
                parts.enter(part);
                if (!steps_of(parts, part, done, next)) return false;
                if (copies_) watch_.start("copy");
                parts.fetch();
                watch_.stop();
            }
            done = next;
            if (done < o_.iterations && o_.snapshots > 0) write(snapshot_name(o_.output, done, o_.iterations));
        }
        return true;
    }

    // As many steps at a time as take about a tenth of a second.
    bool steps_of(heat::Parts<T>& parts, std::int64_t part, std::int64_t from, std::int64_t to) {
        for (std::int64_t done = from; done < to;) {
            const std::int64_t count = std::min({steps_at_once_, most_at_once_, to - done});
            watch_.start("solve");
            const auto start = Stopwatch::Clock::now();
            const SweepOutcome outcome = parts.advance(count);
            const double seconds = std::chrono::duration<double>(Stopwatch::Clock::now() - start).count();
            watch_.stop();
            record_.solve_s += seconds;
            record_.reason = name_of(outcome.reason);
            record_.device = outcome.device;
            if (!outcome.ok()) return failed(outcome);
            done += count;
            advanced_ += static_cast<double>(parts.points_entered()) * static_cast<double>(count);
            if (part == 0) note_change(parts, done, count);
            line_.stage("step " + std::to_string(done) + " of " + std::to_string(o_.iterations) +
                        (parts.count() > 1 ? ", part " + std::to_string(part + 1) + " of " + std::to_string(parts.count()) : "") + ", " +
                        report::rate_text(advanced_ / record_.solve_s, "points"));
            if (const auto bar = line_.bar())
                bar(static_cast<std::int64_t>(advanced_ / static_cast<double>(shape_.points())), o_.iterations);
            steps_at_once_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(0.1 * static_cast<double>(count) / std::max(seconds, 1e-9)), 1, 2 * steps_at_once_ + 1);
        }
        return true;
    }

    std::int64_t next_snapshot(std::int64_t done) const {
        if (o_.snapshots == 0) return o_.iterations;
        for (int k = 1; k <= o_.snapshots; ++k) {
            const std::int64_t at = o_.iterations * k / (o_.snapshots + 1);
            if (at > done) return at;
        }
        return o_.iterations;
    }

    bool failed(const SweepOutcome& outcome) {
        record_.place = "step " + std::to_string(outcome.step) + ", along " + "xyz"[std::max(outcome.axis, 0)] + ", mesh " + std::to_string(outcome.mesh);
        const std::int64_t at[3] = {outcome.x, outcome.y, outcome.z};
        for (int axis = 0; axis < 3; ++axis)  // -1: somewhere on the line
            if (at[axis] >= 0 && shape_.along(axis) > 1) record_.place.append(", ").append(1, "xyz"[axis]).append(" = ").append(std::to_string(at[axis]));
        return false;
    }

    void write(const std::string& path) {
        watch_.start("write");
        line_.stage("write " + path);
        io::save_npy(path, u_.shape(), u_.data(), line_.bar(), watch_temporary);
        record_.written.push_back(path);
        watch_.stop();
    }

    // ---- what --plot shows ----

    const T* middle_plane() const { return u_.as<T>() + shape_.z / 2 * shape_.x * shape_.y; }

    // Of the first mesh, which is in the first part.
    std::vector<float> middle_line(const heat::Parts<T>& parts) const {
        std::vector<T> row(static_cast<std::size_t>(shape_.x));
        parts.read((shape_.z / 2 * shape_.y + shape_.y / 2) * shape_.x, row);
        return {row.begin(), row.end()};
    }

    void note_change(const heat::Parts<T>& parts, std::int64_t done, std::int64_t steps) {
        if (o_.plot.empty()) return;
        std::vector<float> now = middle_line(parts);
        double largest = 0;
        for (std::size_t i = 0; i < now.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(now[i]) - static_cast<double>(picture_.last[i])));
        picture_.change.emplace_back(static_cast<double>(done), largest / static_cast<double>(steps));
        picture_.last = std::move(now);
    }

    // Every k-th value of a plane that is larger than anyone can see.
    void plot() {
        constexpr std::int64_t most = 512;
        const std::int64_t every_x = (shape_.x + most - 1) / most, every_y = (shape_.y + most - 1) / most;
        picture_.title = "trifold heat: " + o_.mesh + ", " + std::to_string(o_.iterations) + (o_.iterations == 1 ? " step, " : " steps, ") + o_.boundary +
                         (shape_.meshes > 1 ? ", the first of " + std::to_string(shape_.meshes) + " meshes" : "");
        if (shape_.z > 1) picture_.plane = ", plane z = " + std::to_string(shape_.z / 2);
        if (shape_.y > 1)
            for (std::int64_t y = every_y / 2; y < shape_.y; y += every_y, ++picture_.height) {
                picture_.width = 0;
                for (std::int64_t x = every_x / 2; x < shape_.x; x += every_x, ++picture_.width) picture_.field.push_back(static_cast<float>(middle_plane()[y * shape_.x + x]));
            }
        const std::string file = o_.plot.ends_with(".svg") ? report::svg(picture_) : report::png(picture_.field, picture_.width, picture_.height);
        io::AtomicFile out(o_.plot, watch_temporary);
        out.write(file.data(), file.size());
        out.commit();
        record_.written.push_back(o_.plot);
    }

    // After all that is asked for is written and summarised: the field is advanced further.
    void measure(const Queue& queue, heat::Parts<T>& parts) {
        if (!o_.no_roof && o_.iterations > 0 && u_.shape().bytes() >= worth_a_roof) {
            watch_.start("measure roof");
            line_.stage("measure the roof");
            record_.roof_bytes_per_s = stream_bandwidth(queue, static_cast<std::size_t>(u_.shape().bytes()), 2);
        }
        if (o_.energy && o_.iterations > 0) {
            watch_.start("measure energy");
            line_.stage("advance for two seconds to measure energy");
            // A long run is not repeated whole.
            const auto tenth = static_cast<std::int64_t>(0.2 * advanced_ / record_.solve_s / static_cast<double>(parts.points_entered()));
            const std::int64_t count = std::clamp<std::int64_t>(tenth, 1, o_.iterations);
            record_.energy = EnergyMeter(queue).measure([&] { return parts.advance(count).ok(); });
            const double times = static_cast<double>(shape_.points()) * static_cast<double>(o_.iterations) / (static_cast<double>(parts.points_entered()) * static_cast<double>(count));
            for (report::DeviceEnergy& one : record_.energy.devices) one.joules *= times;
            record_.energy_steps = count * record_.energy.solves;
        }
        if ((o_.energy || o_.watts.contains(record_.device)) && o_.iterations > 0) {
            Report whole;
            whole.solve_s = record_.solve_s, whole.outcome.device = queue.device();
            report::complete(record_.energy, whole, o_.watts, power_limits(device_at(queue.device_index())));
        }
        watch_.stop();
        line_.clear();
    }

    int finish(const Context& context, bool solved) {
        for (int axis = 0; axis < 3; ++axis)
            if (shape_.along(axis) > 1) record_.mesh.push_back(shape_.along(axis));
        record_.batch = shape_.meshes, record_.iterations = o_.iterations, record_.points = static_cast<double>(shape_.points());
        record_.dtype = dtype_of<T>, record_.scheme = o_.scheme, record_.boundary = o_.boundary, record_.initial = o_.initial;
        record_.conductivity = o_.conductivity, record_.source = o_.source;
        record_.ok = solved;
        record_.threads = record_.device == "cpu" ? context.threads() : 0;
        record_.step = problem_.step;
        record_.total_s = watch_.total(), record_.phases = watch_.steps();
        record_.peak_bytes = report::peak_bytes();
        record_.machine = report::this_machine(build_commit());
        const std::string text = o_.json ? report::json(record_) : report::text(record_);
        if (o_.output != "-") print(text);
        else if (!o_.quiet) std::fputs(text.c_str(), stderr);
        if (solved) return good;
        const std::string single = sizeof(T) == 4 ? " f32; scale it, or --precision f64)" : " f64; scale it)";
        const std::string hint = record_.reason == name_of(Reason::not_finite) ? " (what was given is finite: the field, or what leads to it, is beyond" + single : "";
        say("not solved: " + record_.reason + ", " + record_.place + hint + (o_.output.empty() ? "" : "; " + o_.output + " was not written"));
        return numerical;
    }

    void summarise() {
        const T* const u = u_.as<T>();
        double least = INFINITY, most = -INFINITY, sum = 0;
        const std::int64_t points = shape_.points();
        for (std::int64_t i = 0; i < points; ++i) {
            const auto v = static_cast<double>(u[i]);
            least = std::min(least, v), most = std::max(most, v), sum += v;
        }
        record_.least = least, record_.most = most, record_.mean = sum / static_cast<double>(points);
    }

    const Options& o_;
    ProgressLine line_;
    Stopwatch watch_;
    const MeshShape shape_;
    heat::Problem<T> problem_;
    io::Array u_, conductivity_, source_;
    report::HeatRecord record_;
    report::HeatPicture picture_;
    bool copies_ = false;             // to a device with memory of its own
    std::int64_t at_once_ = 0;        // meshes in a part
    bool cut_ = false;                // fewer than asked for
    std::int64_t steps_at_once_ = 1, most_at_once_ = INT64_MAX;
    double advanced_ = 0;       // points times steps, in record_.solve_s
};

int run(Options& o) {
    if (!o.output.empty() && o.output != "-" && !o.output.ends_with(".npy")) throw Error(ErrorCode::usage, "-o " + o.output, "is not an .npy file", "name it *.npy, or - for stdout");
    if (o.output == "-" && terminal_on_stdout()) throw Error(ErrorCode::usage, "-o -", "stdout is a terminal", "name a file or redirect stdout");
    if (!o.plot.empty() && !o.plot.ends_with(".svg") && !o.plot.ends_with(".png"))
        throw Error(ErrorCode::usage, "--plot " + o.plot, "is neither an .svg nor a .png file", "name it *.svg for field, profile and change, *.png for the field");
    if (o.plot.ends_with(".png") && o.mesh.find('x') == std::string::npos) throw Error(ErrorCode::usage, "--plot " + o.plot, "a line is no image", "name it *.svg");
    if (o.device.find(',') != std::string::npos || o.device == "all")
        throw Error(ErrorCode::usage, "--device " + o.device, "one device advances meshes", "name one: cpu, cuda:N or reference");
    if (o.snapshots > 0 && (o.output.empty() || o.output == "-")) throw Error(ErrorCode::usage, "--snapshots", "have no name", "add -o FIELD.npy; they become FIELD-STEP.npy");
    o.watts = report::watts_from(o.watts_text);
    if (o.dtype() == DType::f32) return Run<float>(o).run();
    return Run<double>(o).run();
}

}  // namespace

Command heat_command(CLI::App& parent) {
    auto options = std::make_shared<Options>();
    CLI::App* app = parent.add_subcommand("heat", "the heat equation on meshes, by alternating directions");
    app->add_option("--mesh", options->mesh, "cells along x, y and z of a unit box, at least 3 each: 128x128, 96x96x96")->required();
    app->add_option("--batch", options->batch, "meshes that are solved side by side")->capture_default_str()->transform(whole_number(1, std::int64_t{1} << 40));
    app->add_option("--iterations", options->iterations, "steps of time")->capture_default_str()->transform(whole_number(0, std::int64_t{1} << 40));
    CLI::Option* const number = app->add_option("--number", options->number, "the step as a mesh number: step x conductivity / spacing^2")->capture_default_str();
    app->add_option("--step", options->step, "the step of time itself, in place of --number")->excludes(number);
    app->add_option("--scheme", options->scheme, "douglas-gunn, or in two dimensions peaceman-rachford")->capture_default_str();
    app->add_option("--initial", options->initial, "spot, mode, random, or FILE.npy shaped (batch, z, y, x)")->capture_default_str();
    app->add_option("--boundary", options->boundary, "dirichlet, neumann, periodic; or per side: x-=dirichlet:1,x+=neumann,y=periodic")->capture_default_str();
    app->add_option("--conductivity", options->conductivity, "a number, or FILE.npy shaped (z, y, x)")->capture_default_str();
    app->add_option("--source", options->source, "FILE.npy shaped (z, y, x)")->check(not_empty);
    app->add_option("-o,--output", options->output, "FIELD.npy for the field at the end; '-' = stdout")->check(not_empty);
    app->add_option("--snapshots", options->snapshots, "as many fields on the way, as FIELD-STEP.npy")->capture_default_str()->transform(whole_number(0, 10000));
    app->add_option("--plot", options->plot, "FILE.svg: the field, a profile, how it settles; FILE.png: the field")->check(not_empty);
    app->add_option("--device", options->device, "where to run; see: trifold devices")->capture_default_str();
    app->add_option("--at-once", options->at_once, "meshes that the device holds together; 0 = as many as fit")->capture_default_str()->transform(whole_number(0, std::int64_t{1} << 40));
    options->add_threads(*app);
    app->add_option("--precision", options->precision, "f32 or f64 (default)");
    app->add_flag("--energy", options->energy, "joules of the run: by the device's energy counters, for which it is advanced for two seconds more; estimated where there are none, by --watts or the device's power limit");
    options->add_watts(*app);
    app->add_flag("--no-roof", options->no_roof, "do not measure the bandwidth after the run");
    options->add_talk(*app);
    set_examples(*app, "  trifold heat --mesh 128x128 --batch 100 --iterations 120 --precision f32\n"
                       "  trifold heat --mesh 128x128 --batch 1500 --iterations 120 --precision f32 --device cuda:0 --energy --json\n"
                       "  trifold heat --mesh 64x64x64 --boundary x=periodic,y=neumann,z-=dirichlet:1 --iterations 200 -o field.npy --snapshots 4\n");
    return {app, [options] { return run(*options); }};
}

}  // namespace trifold::cli
