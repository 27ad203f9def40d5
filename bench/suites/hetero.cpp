// SPDX-License-Identifier: BSD-3-Clause
// One system of the host's memory on each device alone and on every set of them: oclspkt's figures 6 to 8, 10, 11 and its table 5.
// Arrays are pinned where the device can. Beside them, measured in the same run: the link alone and while the cpu solves, the cpu alone and while copies run; the
// sum of the two rates that were seen together is what a split can reach.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>

#include "backends/energy_counter.hpp"
#include "backends/opencl/kernel_times.hpp"
#include "backends/power_limit.hpp"
#include "bench/baselines/baseline.hpp"
#include "bench/suites/hetero_budget.hpp"
#include "bench/suites/hetero_choice.hpp"
#include "bench/suites/hetero_series.hpp"
#include "bench/suites/hetero_sets.hpp"
#include "bench/suites/hetero_sides.hpp"
#include "bench/suites/suites.hpp"
#include "report/energy.hpp"
#include "report/trace.hpp"
#include "trifold/device_memory.hpp"

namespace trifold::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Hetero {
public:
    Hetero(const Settings& settings, Record& record)
        : settings_(settings), record_(record), context_(options_with(settings.threads)), fewer_(options_with(std::max(1, context_.threads() - 1))), watts_(report::watts_from(settings.watts)) {}

    void run() {
        const bool one_size = settings_.rows > 0 || settings_.quick, sets = !settings_.devices.empty();
        if (sets) record_.suite = "hetero_sets", record_.title = "One system of the host's memory on every set of these devices";
        const std::int64_t most = prepare(1280e6), least = one_size ? most : std::min<std::int64_t>(most, 256000000);
        std::vector<std::int64_t> sizes{least};
        while (!one_size && sizes.back() + least <= most) sizes.push_back(sizes.back() + least);
        // Of a size: what links and cores do side by side takes as long as three of the smallest ones, joules and rounds with few rows as one.
        const auto weight = [&](std::int64_t rows, bool ceiling) { return static_cast<double>(rows) / static_cast<double>(least) + 1 + 3 * ceiling; };
        const auto ceiling = [&](std::int64_t rows) { return rows == least || rows == sizes.back(); };
        double weights = sets ? 0 : 3 + weight(most / 2, true);
        for (const std::int64_t rows : sizes) weights += weight(rows, ceiling(rows));
        budget_ = Budget(left_, weights);
        for (const std::int64_t rows : sizes) {
            budget_.stage(weight(rows, ceiling(rows)));
            size<float>({.energy = true, .ceiling = ceiling(rows)}, rows);
        }
        if (sets) return;
        budget_.stage(3);
        resident<float>(least);
        peers<float>(std::min<std::int64_t>(least, 32000000));
        budget_.done("data there, peers");
        budget_.stage(weight(most / 2, true));
        arrays_->fill<double>(Matrix::dominant, most / 2);
        size<double>({.energy = true, .ceiling = true}, most / 2);
    }

    void run_kinds() {
        const std::int64_t least = prepare(256e6), half = least / 2;
        budget_ = Budget(left_, 12);
        const auto kind = [&]<class T>(const Given& given, std::int64_t rows, bool fill) {
            budget_.stage(given.ceiling ? 3 : 1);
            if (fill) arrays_->fill<T>(given.matrix, rows);
            size<T>(given, rows);
        };
        kind.operator()<float>({}, least, false);
        kind.operator()<float>({.in_place = true}, least, false);
        kind.operator()<double>({}, half, true);
        kind.operator()<double>({.in_place = true}, half, false);
        kind.operator()<double>({.matrix = Matrix::random}, half, true);
        kind.operator()<double>({.matrix = Matrix::poisson, .ceiling = true}, half, true);
        kind.operator()<float>({.matrix = Matrix::poisson, .ceiling = true}, least, true);
        registered_.clear();
        kind.operator()<float>({.pageable = true}, half, true);
    }

    void run_choice() {
        const std::int64_t least = prepare(64e6), half = least / 2;
        budget_ = Budget(left_ > 0 ? left_ : 60 * settings_.budget_scale, 11);
        const auto kind = [&]<class T>(const Given& given, std::int64_t rows, bool fill) {
            budget_.stage(given.in_place ? 2 : 1);  // the right-hand side is made anew before every solve
            if (fill) arrays_->fill<T>(given.matrix, rows);
            const tridiagonal::Problem problem = arrays_->problem<T>(rows, given.in_place);
            Choice one(given, dtype_of<T>, rows, context_.threads(), budget_);
            for (std::size_t k = 0; k < sets_.names.size(); ++k) one.add(series(sets_.names[k]), k < sets_.singles);
            one.race([&](Series& series) { return solve<T>(series, given, problem); }, record_);
            budget_.done(given.name().c_str());
            write_record(record_, settings_.out);
        };
        kind.operator()<float>({}, least, false);
        kind.operator()<float>({}, least / 4, false);
        kind.operator()<float>({.in_place = true}, least, false);
        kind.operator()<float>({.matrix = Matrix::poisson}, least, true);
        for (const Matrix matrix : {Matrix::dominant, Matrix::random, Matrix::poisson}) {
            kind.operator()<double>({.matrix = matrix}, half, true);
            if (matrix == Matrix::dominant) kind.operator()<double>({.in_place = true}, half, false);
        }
        registered_.clear();
        kind.operator()<float>({.pageable = true}, half, true);
    }

private:
    /// Arrays, full of a dominant system and pinned where the devices can; rows of the largest system in FP32.
    std::int64_t prepare(double wanted) {
        if (settings_.quick) wanted = 16e6;
        if (settings_.rows > 0) wanted = settings_.rows;
        const std::int64_t most = rows_that_fit(wanted, DType::f32, 5);
        const std::size_t bytes = static_cast<std::size_t>(most) * 4;
        arrays_ = std::make_unique<Arrays>(bytes);
        arrays_->fill<float>(Matrix::dominant, most);
        sets_ = sets_here(settings_.devices);
        const auto start = Clock::now();
        for (const DeviceInfo& device : context_.devices())
            if (std::find(sets_.names.begin(), sets_.names.begin() + static_cast<std::ptrdiff_t>(sets_.singles), device.name) != sets_.names.begin() + static_cast<std::ptrdiff_t>(sets_.singles)) {
                Row row;
                record_.rows.push_back(std::move(row.set("kind", "device").set("devices", device.name).set("description", device.description)));
            }
        std::vector<const devices::Runtime*> served;  // one registration serves all devices of a kind
        for (std::size_t k = 0; k < sets_.singles; ++k) {
            const Queue queue(context_, sets_.names[k]);
            const devices::Runtime* const runtime = device_at(queue.device_index()).runtime;
            if (!runtime || std::count(served.begin(), served.end(), runtime)) continue;
            served.push_back(runtime);
            for (int a = 0; a < 5; ++a) registered_.emplace_back(queue, arrays_->at<void>(a), bytes);
        }
        std::fprintf(stderr, "  filled in %.1f s; pinned: %.1f s, %.1f GB/s\n", std::chrono::duration<double>(start - begin_).count(), seconds_since(start), 5 * static_cast<double>(bytes) / seconds_since(start) * 1e-9);
        if (settings_.seconds > 0) left_ = std::max(1.0, settings_.seconds - seconds_since(begin_));
        return most;
    }

    Series series(const std::string& name) { return {.name = name, .queue = std::make_unique<Queue>(context_, name), .learning = {}, .times = {}, .of_all = {}, .trials = {}, .beside = {}, .all = nullptr, .who = {}, .report = {}, .outcome = {}, .error = NAN, .look_s = 0, .choosing = {}, .learnt = {}, .log = {}}; }

    /// Sets in turns, so that what disturbs one disturbs all; beside them the cores and the link.
    template <class T>
    void size(const Given& given, std::int64_t rows) {
        const tridiagonal::Problem problem = arrays_->problem<T>(rows, given.in_place);
        std::vector<Series> all;
        for (const std::string& name : sets_.names) {
            try {
                Series one = series(name);
                while (learns(one) && (one.learning.size() < 3 || budget_.left() > 0.75 * budget_.given())) one.learning.push_back(solve<T>(one, given, problem));
                if (const std::vector<std::string> parts = names_in(name); parts.size() > 1) one.all = std::make_unique<AllTogether>(parts, context_.threads());
                all.push_back(std::move(one));
            } catch (const Error& failure) {
                note(name + ", " + name_of(dtype_of<T>) + ", " + given.name() + ": " + failure.what());
            }
        }
        std::vector<Side> sides = given.ceiling ? sides_of<T>(all, rows) : std::vector<Side>();
        double round_s = settings_.budget_scale * static_cast<double>(sides.size());
        for (const Series& one : all) round_s += (one.all ? 2 : 1) * one.learning.back();
        const int rounds = std::clamp(static_cast<int>(2.5 * settings_.budget_scale / round_s), round_s < 1.5 ? 7 : 3, 15);
        const double joules_s = given.energy ? std::min(0.8 * settings_.budget_scale, 0.3 * budget_.left() / static_cast<double>(std::max<std::size_t>(all.size(), 1))) : 0;
        std::mt19937 random(1);
        for (int round = -1; round < rounds; ++round) {
            const double before_s = budget_.left();
            // In another order every time: what follows a long solve of a GPU finds the cores asleep.
            std::vector<Series*> order;
            for (Series& one : all) order.push_back(&one);
            std::shuffle(order.begin(), order.end(), random);
            for (Series* const one : order) {
                if (round < 0) break;
                // Trials are what learning costs, which hetero_choice tells.
                one->times.push_back(settled(*one, [&](Series& series) { return solve<T>(series, given, problem); }, most_trials));
                if (const std::string who = chosen(one->report); ++one->who[who] && one->all && who == one->name && !given.ceiling) one->of_all.push_back(one->times.back());
                if (round == 0) one->error = arrays_->backward_error<T>(rows, given.in_place);
            }
            for (Series& one : all) {
                if (!one.all) continue;
                // Beside what its parts do in a row, for as long as each of them: in a row.
                if (given.ceiling) together<T>(*one.all, given, rows);
                std::vector<double> row;
                for (const auto start = Clock::now(); row.empty() || (given.ceiling && round >= 0 && seconds_since(start) < side_s * settings_.budget_scale);) {
                    row.push_back(together<T>(*one.all, given, rows));
                    if (!std::isfinite(row.back())) break;
                }
                if (std::isfinite(row.back()) && round >= 0) one.of_all.push_back(median(row));
            }
            if (round >= 0)
                for (Side& side : sides) side.measure<T>(*arrays_, rows, side_s * settings_.budget_scale);
            if (round >= 2 && budget_.left() - static_cast<double>(all.size()) * joules_s < before_s - budget_.left()) break;
        }
        std::map<std::string, double> ceiling, link;
        for (const Side& side : sides) side.put<T>(matrix_names[static_cast<int>(given.matrix)], rows, context_.threads(), record_, ceiling, link);
        std::map<std::string, const Series*> alone;
        for (const Series& one : all) put<T>(one, given, rows, problem, joules_s, alone, ceiling, link);
        budget_.done((std::string(name_of(dtype_of<T>)) + " " + given.name()).c_str());
        // What is done is kept, should the rest take longer than there is time.
        write_record(record_, settings_.out);
    }

    template <class T>
    double solve(Series& one, const Given& given, const tridiagonal::Problem& problem) {
        if (given.in_place) arrays_->refill_rhs<T>(problem.rhs.rows());
        tridiagonal::Options options;
        options.report = &one.report;
        const auto start = Clock::now();
        one.outcome = tridiagonal::solve(*one.queue, problem, options);
        const double seconds = seconds_since(start);
        for (const auto& [name, passed] : one.report.phases)
            if (name == "look for decay") one.look_s = passed;
            else if (name == "choose devices") one.choosing.push_back(passed);
            else if (name == "learn") one.learnt.push_back(passed);
        if (names_in(one.name).size() > 1) one.log += (one.log.empty() ? "" : "; ") + std::to_string(std::lround(1e6 * seconds)) + " " + chosen(one.report) + (on_trial(one) ? " trial" : "");
        return seconds;
    }

    /// Of sets whose members, but for the cpu, have links.
    template <class T>
    std::vector<Side> sides_of(const std::vector<Series>& all, std::int64_t rows) {
        std::vector<Side> sides;
        for (const Series& one : all) {
            const std::vector<std::string> parts = names_in(one.name);
            if (parts.size() < 2 || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
                    const Device& device = device_at(find_device(part));
                    return part != "cpu" && (!device.runtime || !device.runtime->open_stream);
                }))
                continue;
            // Whose rows are whose, as the last solve had it; devices that were left out are given a third, others 15 % at least, since copies are of 32 MiB.
            double share = 2.0 / 3;
            for (const DeviceShare& part : one.report.devices)
                if (part.name == "cpu" && part.rows > 0 && part.rows < rows) share = std::min(0.85, static_cast<double>(part.rows) / static_cast<double>(rows));
            try {
                sides.push_back(Side::of<T>(one.name, parts, static_cast<std::int64_t>(share * static_cast<double>(rows)) / 1024 * 1024, rows, *arrays_, context_, fewer_));
            } catch (const Error& error) {
                note(one.name + ": links not measured: " + error.what());
            }
        }
        return sides;
    }

    template <class T>
    void put(const Series& one, const Given& given, std::int64_t rows, const tridiagonal::Problem& problem, double joules_s, std::map<std::string, const Series*>& alone, const std::map<std::string, double>& ceiling,
             const std::map<std::string, double>& link) {
        const double n = static_cast<double>(rows), seconds = median(one.times), rate = n / seconds;
        const std::vector<std::string> parts = names_in(one.name);
        if (parts.size() == 1) alone[one.name] = &one;
        Row row;
        row.set("kind", "solve").set("matrix", given.name()).set("devices", one.name).set("dtype", name_of(dtype_of<T>)).set("rows", n).set("threads", static_cast<double>(context_.threads()));
        row.set("rounds", static_cast<double>(one.times.size())).set("seconds", seconds).set("rows_per_s", rate).set("least_seconds", *std::min_element(one.times.begin(), one.times.end()));
        row.set("branch", one.outcome.branch).set("reason", name_of(one.outcome.reason)).set("ok", one.outcome.ok()).set("backward_error", one.error);
        row.set("learning_solves", static_cast<double>(one.learning.size())).set("trial_solves", static_cast<double>(one.trials.size())).set("learning_rows_per_s", n / median(one.learning)).set("first_seconds", one.learning.front());
        if (parts.size() > 1) {
            double sum = 0, least = INFINITY;
            const Series* best = nullptr;
            bool all = true;
            for (const std::string& part : parts) {
                const auto found = alone.find(part);
                all = all && found != alone.end();
                if (found == alone.end()) continue;
                const double its = median(found->second->times);
                sum += n / its;
                if (its < least) best = found->second, least = its;
            }
            row.set("look_s", one.look_s).set("solves", one.log);
            row.set("chosen", std::max_element(one.who.begin(), one.who.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first);
            if (!one.of_all.empty()) row.set("all_rows_per_s", n / median(one.of_all));
            if (all) row.set("of_the_sum", rate / sum).set("of_the_best", round_by_round(*best, one));
        }
        if (const auto found = ceiling.find(one.name); found != ceiling.end() && !one.of_all.empty()) row.set("of_the_ceiling", n / median(one.of_all) / found->second);
        if (const auto found = link.find(one.name); found != link.end()) row.set("of_the_link", rate / found->second);
        const report::TraceSummary figures = report::summary(one.report);
        if (figures.seconds > 0) row.set("together", figures.together_s / figures.seconds);
        for (const DeviceShare& share : one.report.devices) {
            row.set("share_" + share.name, static_cast<double>(share.rows) / n).set("rows_per_s_" + share.name, share.rows_per_s);
            if (!share.state.empty()) row.set("state_" + share.name, share.state);
        }
        if (given.energy) joules(one.name, problem, one.report, n, joules_s, row);
        std::fprintf(stderr, "  %-20s %s %s %.3g rows: %.0f Mrows/s, while learning %.0f\n", one.name.c_str(), name_of(dtype_of<T>), given.name().c_str(), n, rate * 1e-6, n / median(one.learning) * 1e-6);
        record_.rows.push_back(std::move(row));
    }

    template <class T>
    double together(AllTogether& all, const Given& given, std::int64_t rows) {
        if (given.in_place) arrays_->refill_rhs<T>(rows);
        T* arrays[5];
        for (int k = 0; k < 5; ++k) arrays[k] = arrays_->at<T>(k == 4 && given.in_place ? 3 : k);
        return all.solve(arrays, rows);
    }

    /// Over most of a second where there is time, since counters move in steps; estimated from watts where there is none.
    void joules(const std::string& name, const tridiagonal::Problem& problem, const Report& report, double rows, double least_s, Row& row) {
        Queue queue(context_, name);
        const Device& device = device_at(queue.device_index());
        std::vector<EnergyCounter> counters;
        if (device.parts.empty()) counters.emplace_back(device);
        for (const Device* part : device.parts) counters.emplace_back(*part);
        std::vector<double> before;
        for (EnergyCounter& counter : counters) before.push_back(counter.joules());
        int solves = 0;
        for (const auto start = Clock::now(); solves == 0 || seconds_since(start) < least_s; ++solves) tridiagonal::solve(queue, problem);
        report::Energy energy;
        for (std::size_t k = 0; k < counters.size(); ++k) {
            const double joules = (counters[k].joules() - before[k]) / solves;
            const bool measured = std::isfinite(joules);
            energy.devices.push_back({counters[k].device(), joules, measured ? "measured" : "unknown", measured ? counters[k].source() : counters[k].why_not()});
        }
        report::complete(energy, report, watts_, power_limits(device));
        row.set("joules", energy.joules).set("joules_kind", energy.kind).set("joules_note", energy.note).set("rows_per_joule", rows / energy.joules);
    }

    /// Data where the device computes: no transfers. OpenCL's devices with memory of their own too, though their boards are CUDA's: they have the published mappings.
    template <class T>
    void resident(std::int64_t rows) {
        std::vector<std::string> names(sets_.names.begin() + 1, sets_.names.begin() + static_cast<std::ptrdiff_t>(sets_.singles));
        for (const Device* device : registered_devices())
            if (std::string_view(device->name).starts_with("opencl:") && device->runtime && !why_unavailable(*device) && !std::count(names.begin(), names.end(), device->name)) names.emplace_back(device->name);
        for (const std::string& name : names) {
            const bool opencl = name.starts_with("opencl:");
            Queue queue(context_, name);
            if (queue.memory().kind != MemoryKind::device && !opencl) continue;
            try {
                DeviceArray<T> on[5];
                tridiagonal::Problem problem = arrays_->problem<T>(rows, false);
                if (queue.memory().kind == MemoryKind::device) {
                    for (int a = 0; a < 5; ++a) {
                        on[a] = DeviceArray<T>(queue, rows);
                        if (a < 4) on[a].upload(std::span<const T>(arrays_->at<T>(a), static_cast<std::size_t>(rows)));
                    }
                    const auto view = [&](int a) { return View<const T>::rows(std::span<const T>(on[a].data(), static_cast<std::size_t>(rows)), on[a].memory()); };
                    problem.matrix = {view(0), view(1), view(2)}, problem.rhs = view(3);
                    problem.x = View<T>::rows(std::span<T>(on[4].data(), static_cast<std::size_t>(rows)), on[4].memory());
                }
                for (const auto algorithm : {tridiagonal::Algorithm::automatic, tridiagonal::Algorithm::truncated_spike})
                    if (opencl || algorithm == tridiagonal::Algorithm::automatic) resident_by(queue, name, algorithm, problem);
            } catch (const Error& error) {
                note(name + ", data there: " + error.what());
            }
        }
    }

    void resident_by(Queue& queue, const std::string& name, tridiagonal::Algorithm algorithm, const tridiagonal::Problem& problem) {
        tridiagonal::Options options;
        options.algorithm = algorithm;
        std::vector<double> times, marshalling, kernels;
        Outcome outcome;
        const Device& device = device_at(queue.device_index());
        const bool published = algorithm == tridiagonal::Algorithm::truncated_spike;
        for (int round = 0; round < (published ? 7 : 4); ++round) {
            const bool apart = round >= 4;  // kernel by kernel
            if (apart) opencl::kernel_times(device, true);
            const auto start = Clock::now();
            outcome = tridiagonal::solve(queue, problem, options);
            if (round > 0 && !apart) times.push_back(seconds_since(start));
            if (!apart) continue;
            const opencl::KernelTimes its = opencl::kernel_times(device, false);
            marshalling.push_back(its.marshalling), kernels.push_back(its.solving);
        }
        Row row;
        const double rows = static_cast<double>(problem.rhs.rows());
        row.set("kind", "resident").set("devices", name).set("algorithm", tridiagonal::name_of(algorithm)).set("dtype", name_of(problem.rhs.dtype)).set("rows", rows);
        row.set("seconds", median(times)).set("rows_per_s", rows / median(times)).set("branch", outcome.branch).set("reason", name_of(outcome.reason)).set("ok", outcome.ok());
        if (published) row.set("kernels_s", median(kernels)).set("marshalling_s", median(marshalling)).set("kernels_rows_per_s", rows / median(kernels)).set("marshalled_rows_per_s", rows / (median(kernels) + median(marshalling)));
        std::fprintf(stderr, "  %s, data there, %s: %.1f ms%s\n", name.c_str(), tridiagonal::name_of(algorithm), 1e3 * median(times),
                     published ? (", kernels " + std::to_string(1e3 * median(kernels)) + " ms, marshalling " + std::to_string(1e3 * median(marshalling)) + " ms").c_str() : "");
        record_.rows.push_back(std::move(row));
    }

    /// Sequential elimination and LAPACK's, which oclspkt's figure 7 has too; one thread.
    template <class T>
    void peers(std::int64_t rows) {
        io::TridiagonalData data;
        io::Array* const to[] = {&data.lower, &data.diag, &data.upper, &data.rhs};
        for (int k = 0; k < 4; ++k) {
            *to[k] = io::Array({.dtype = dtype_of<T>, .extents = {rows}}, "peers");
            std::copy_n(arrays_->at<T>(k), rows, to[k]->as<T>());
        }
        data.axis = 0;
        for (const auto& peer : {thomas_loop(), lapack_gtsv(), mkl_dtsvb()}) {
            if (const std::string why = peer->absent(); !why.empty()) {
                note(peer->name() + ": " + why);
                continue;
            }
            if (const std::string why = peer->load(data); !why.empty()) {
                note(peer->name() + ": " + why);
                continue;
            }
            std::vector<double> times;
            for (int round = 0; round < 2; ++round) {
                peer->restore();
                const auto start = Clock::now();
                if (!peer->solve()) note(peer->name() + ": failed");
                times.push_back(seconds_since(start));
            }
            const double seconds = *std::min_element(times.begin(), times.end());
            Row row;
            row.set("kind", "peer").set("devices", peer->name()).set("dtype", name_of(dtype_of<T>)).set("rows", static_cast<double>(rows)).set("threads", 1.0);
            row.set("seconds", seconds).set("rows_per_s", static_cast<double>(rows) / seconds);
            record_.rows.push_back(std::move(row));
        }
    }

    void note(const std::string& text) {
        if (std::find(record_.notes.begin(), record_.notes.end(), text) == record_.notes.end()) record_.notes.push_back(text);
    }

    static constexpr int most_trials = 2;   // of a set in a round
    static constexpr double side_s = 0.12;  // that cores, links and sets run for in a round

    const Settings& settings_;
    Record& record_;
    const Clock::time_point begin_ = Clock::now();
    double left_ = 0;  // of the time that it may take, when the arrays are there; 0 = no limit
    Budget budget_{0, 1};
    Context context_, fewer_;
    report::Watts watts_;
    Sets sets_;
    std::unique_ptr<Arrays> arrays_;
    std::vector<RegisteredMemory> registered_;
};

}  // namespace

void run_hetero(const Settings& settings, Record& record) { Hetero(settings, record).run(); }
void run_hetero_kinds(const Settings& settings, Record& record) { Hetero(settings, record).run_kinds(); }
void run_hetero_choice(const Settings& settings, Record& record) { Hetero(settings, record).run_choice(); }

}  // namespace trifold::bench
