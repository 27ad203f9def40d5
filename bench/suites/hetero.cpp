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

#include "bench/suites/hetero_budget.hpp"
#include "bench/suites/hetero_choice.hpp"
#include "bench/suites/hetero_joules.hpp"
#include "bench/suites/hetero_peers.hpp"
#include "bench/suites/hetero_phases.hpp"
#include "bench/suites/hetero_resident.hpp"
#include "bench/suites/hetero_series.hpp"
#include "bench/suites/hetero_sets.hpp"
#include "bench/suites/hetero_sides.hpp"
#include "bench/suites/hetero_streamed.hpp"
#include "bench/suites/suites.hpp"
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

    /// Sizes in FP32, what is beside them, the same bytes in FP64.
    void run() {
        const bool one_size = settings_.rows > 0 || settings_.quick;
        const std::int64_t most = prepare(1280e6), least = one_size ? most : std::min<std::int64_t>(most, 256000000);
        std::vector<std::int64_t> sizes{least};
        while (!one_size && sizes.back() + least <= most) sizes.push_back(sizes.back() + least);
        // Of a size: what links and cores do side by side takes as long as three of the smallest ones, joules and rounds with few rows as one; in FP64 there are fewer rounds.
        const auto weight = [&](std::int64_t rows) { return static_cast<double>(rows) / static_cast<double>(least) + 1; };
        const auto ceiling = [&](std::int64_t rows) { return rows == least || rows == sizes.back() ? 3.0 : 0; };
        constexpr double in_f64 = 0.6, beside = 3, through_links = 2;
        double weights = beside + through_links;
        for (const std::int64_t rows : sizes) weights += (1 + in_f64) * weight(rows) + 2 * ceiling(rows);
        budget_ = Budget(left_, weights);
        for (const std::int64_t rows : sizes) {
            budget_.stage(weight(rows) + ceiling(rows));
            size<float>({.energy = true, .ceiling = ceiling(rows) > 0}, rows);
        }
        budget_.stage(through_links);
        stream<float>(most);
        budget_.stage(beside);
        Resident(context_, *arrays_, settings_.budget_scale, record_).run<float>(singles_beside_the_cpu(), least);
        peers<float>(*arrays_, std::min<std::int64_t>(least, 32000000), record_);
        budget_.done("data there, peers");
        arrays_->fill<double>(Matrix::dominant, most / 2);
        for (const std::int64_t rows : sizes) {
            budget_.stage(in_f64 * weight(rows) + ceiling(rows));
            size<double>({.energy = true, .ceiling = ceiling(rows) > 0}, rows / 2);
        }
    }

    /// Devices that were named: a half of the largest system and all of it, in both types; what links and cores do side by side, which takes most of the time, for the largest in FP32.
    void run_sets() {
        record_.suite = "hetero_sets", record_.title = "One system of the host's memory on every set of these devices";
        const std::int64_t most = prepare(512e6);
        budget_ = Budget(left_, 9.5);
        for (const bool whole : {false, true}) {
            budget_.stage(whole ? 4.5 : 1.5);
            size<float>({.energy = true, .ceiling = whole}, whole ? most : most / 2);
        }
        arrays_->fill<double>(Matrix::dominant, most / 2);
        for (const bool whole : {false, true}) {
            budget_.stage(whole ? 2 : 1.5);
            size<double>({.energy = true}, whole ? most / 2 : most / 4);
        }
    }

    void run_kinds() {
        const std::int64_t least = prepare(256e6), half = least / 2;
        const auto weight = [](const Given& given) { return given.ceiling ? (given.matrix == Matrix::poisson ? 5 : 3) : 1; };
        budget_ = Budget(left_, 16);
        const auto kind = [&]<class T>(const Given& given, std::int64_t rows, bool fill) {
            budget_.stage(weight(given));
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
    /// By the names of sets and devices, rows/s: cores and links side by side; pass by pass; a link alone.
    struct Ceilings {
        std::map<std::string, double> sum, phases, link;
    };

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

    std::vector<std::string> singles_beside_the_cpu() const {
        std::vector<std::string> names(sets_.names.begin(), sets_.names.begin() + static_cast<std::ptrdiff_t>(sets_.singles));
        std::erase(names, "cpu");
        return names;
    }

    /// 2^30 rows by each device with a link, alone.
    template <class T>
    void stream(std::int64_t most) {
        constexpr double wanted = 0x1p30;
        const std::int64_t rows = std::min(most, static_cast<std::int64_t>(wanted));
        for (const std::string& name : singles_beside_the_cpu()) streamed<T>(context_, name, *arrays_, wanted, rows, settings_.quick ? 3 : 5, 2 * side_s * settings_.budget_scale, record_);
        budget_.done("streamed");
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
                record_.note(name + ", " + name_of(dtype_of<T>) + ", " + given.name() + ": " + failure.what());
            }
        }
        std::vector<Side> sides;
        std::vector<Phases> phases;
        if (given.ceiling) measured_beside<T>(given, all, rows, sides, phases);
        double round_s = settings_.budget_scale * (static_cast<double>(sides.size()) + 1.5 * static_cast<double>(phases.size()));
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
            if (round >= 0) {
                for (Side& side : sides) side.measure<T>(*arrays_, rows, side_s * settings_.budget_scale);
                for (Phases& one : phases) one.measure(side_s * settings_.budget_scale);
            }
            if (round >= 2 && budget_.left() - static_cast<double>(all.size()) * joules_s < before_s - budget_.left()) break;
        }
        Ceilings ceilings;
        const char* const matrix = matrix_names[static_cast<int>(given.matrix)];
        for (const Side& side : sides) side.put<T>(matrix, rows, context_.threads(), record_, ceilings.sum, ceilings.link);
        for (const Phases& one : phases) {
            const auto found = std::find_if(all.begin(), all.end(), [&](const Series& series) { return series.name == one.name(); });
            one.put(matrix, name_of(dtype_of<T>), rows, found == all.end() ? nullptr : found->all.get(), record_, ceilings.phases);
        }
        std::map<std::string, const Series*> alone;
        for (const Series& one : all) put<T>(one, given, rows, problem, joules_s, alone, ceilings);
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

    /// What cores and links do side by side, of sets whose members, but for the cpu, have links; and pass by pass, where the matrix does not forget.
    template <class T>
    void measured_beside(const Given& given, const std::vector<Series>& all, std::int64_t rows, std::vector<Side>& sides, std::vector<Phases>& phases) {
        for (const Series& one : all) {
            const std::vector<std::string> parts = names_in(one.name);
            if (parts.size() < 2 || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
                    const Device& device = device_at(find_device(part));
                    return part != "cpu" && (!device.runtime || !device.runtime->open_stream);
                }))
                continue;
            // Whose rows are whose, as the last solve had it; devices that were left out are given a third, others 15 % at least, and as many as a copy has.
            double share = 2.0 / 3;
            for (const DeviceShare& part : one.report.devices)
                if (part.name == "cpu" && part.rows > 0 && part.rows < rows) share = std::min(0.85, static_cast<double>(part.rows) / static_cast<double>(rows));
            const double links = static_cast<double>(parts.size() - static_cast<std::size_t>(std::count(parts.begin(), parts.end(), "cpu")));
            share = std::min(share, std::max(0.15, 1 - 1.01 * links * static_cast<double>(Link::piece) / (static_cast<double>(rows) * sizeof(T))));
            const std::int64_t cut = static_cast<std::int64_t>(share * static_cast<double>(rows)) / 1024 * 1024;
            try {
                sides.push_back(Side::of<T>(one.name, parts, cut, rows, *arrays_, context_, fewer_));
                if (given.matrix == Matrix::poisson && std::count(parts.begin(), parts.end(), "cpu")) phases.push_back(Phases::of<T>(one.name, parts, cut, rows, *arrays_, {context_.threads(), fewer_.threads()}));
            } catch (const Error& error) {
                record_.note(one.name + ": links and passes not measured: " + error.what());
            }
        }
    }

    template <class T>
    void put(const Series& one, const Given& given, std::int64_t rows, const tridiagonal::Problem& problem, double joules_s, std::map<std::string, const Series*>& alone, const Ceilings& ceilings) {
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
        const auto of = [&](const char* key, const std::map<std::string, double>& bound, const std::vector<double>& times) {
            if (const auto found = bound.find(one.name); found != bound.end() && !times.empty()) row.set(key, n / median(times) / found->second);
        };
        of("of_the_ceiling", ceilings.sum, one.of_all), of("of_the_phases", ceilings.phases, one.of_all), of("of_the_link", ceilings.link, one.times);
        const report::TraceSummary figures = report::summary(one.report);
        if (figures.seconds > 0) row.set("together", figures.together_s / figures.seconds);
        for (const DeviceShare& share : one.report.devices) {
            row.set("share_" + share.name, static_cast<double>(share.rows) / n).set("rows_per_s_" + share.name, share.rows_per_s);
            if (!share.state.empty()) row.set("state_" + share.name, share.state);
        }
        if (given.energy) {
            Queue queue(context_, one.name);
            joules(queue, problem, one.report, watts_, n, joules_s, row);
        }
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

void run_hetero(const Settings& settings, Record& record) {
    if (settings.devices.empty()) Hetero(settings, record).run();
    else Hetero(settings, record).run_sets();
}
void run_hetero_kinds(const Settings& settings, Record& record) { Hetero(settings, record).run_kinds(); }
void run_hetero_choice(const Settings& settings, Record& record) { Hetero(settings, record).run_choice(); }

}  // namespace trifold::bench
