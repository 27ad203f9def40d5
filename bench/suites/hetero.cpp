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
#include "bench/baselines/baseline.hpp"
#include "bench/harness/paired.hpp"
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
        const bool one_size = settings_.rows > 0 || settings_.quick;
        if (!settings_.devices.empty()) record_.suite = "hetero_sets", record_.title = "One system of the host's memory on every set of these devices";
        const std::int64_t most = prepare(1280e6), least = one_size ? most : std::min<std::int64_t>(most, 256000000);
        std::vector<std::int64_t> sizes{least};
        while (!one_size && sizes.back() + least <= most) sizes.push_back(sizes.back() + least);
        for (const std::int64_t rows : sizes) size<float>({.energy = true, .ceiling = rows == least || rows == sizes.back()}, rows);
        if (!settings_.devices.empty()) return;
        resident<float>(least);
        peers<float>(std::min<std::int64_t>(least, 64000000));
        arrays_->fill<double>(Matrix::dominant, most / 2);
        size<double>({.energy = true, .ceiling = true}, most / 2);
    }

    void run_kinds() {
        const std::int64_t least = prepare(256e6), half = least / 2;
        size<float>({}, least);
        size<float>({.in_place = true}, least);
        arrays_->fill<double>(Matrix::dominant, half);
        size<double>({}, half);
        size<double>({.in_place = true}, half);
        arrays_->fill<double>(Matrix::random, half);
        size<double>({.matrix = Matrix::random}, half);
        arrays_->fill<double>(Matrix::poisson, half);
        size<double>({.matrix = Matrix::poisson}, half);
        arrays_->fill<float>(Matrix::poisson, least);
        size<float>({.matrix = Matrix::poisson}, least);
        registered_.clear();
        arrays_->fill<float>(Matrix::dominant, half);
        size<float>({.pageable = true}, half);
    }

    void run_choice() {
        const std::int64_t least = prepare(128e6), half = least / 2;
        choice<float>({}, least);
        choice<float>({}, least / 8);
        choice<float>({.in_place = true}, least);
        arrays_->fill<float>(Matrix::poisson, least);
        choice<float>({.matrix = Matrix::poisson}, least);
        for (const Matrix matrix : {Matrix::dominant, Matrix::random, Matrix::poisson}) {
            arrays_->fill<double>(matrix, half);
            choice<double>({.matrix = matrix}, half);
            if (matrix == Matrix::dominant) choice<double>({.in_place = true}, half);
        }
        registered_.clear();
        arrays_->fill<float>(Matrix::dominant, half);
        choice<float>({.pageable = true}, half);
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
        std::fprintf(stderr, "  pinned: %.1f s, %.1f GB/s\n", seconds_since(start), 5 * static_cast<double>(bytes) / seconds_since(start) * 1e-9);
        return most;
    }

    /// The first solve of a set makes buffers; by the next ones the planner learns who is worth taking part, as its plans say.
    static bool learns(const Series& one) {
        if (one.learning.size() < 2) return true;
        return one.learning.size() < 40 && std::any_of(one.report.plan.candidates.begin(), one.report.plan.candidates.end(), [&](const Candidate& next) { return next.taken && next.why.starts_with("taken to be timed"); });
    }

    Series series(const std::string& name) { return {.name = name, .queue = std::make_unique<Queue>(context_, name), .learning = {}, .times = {}, .of_all = {}, .all = nullptr, .who = {}, .report = {}, .outcome = {}, .error = NAN, .look_s = 0, .log = {}}; }

    /// What the planner chooses of a set beside its best single device, in turns; that one twice, since what differs between its two times is the machine's.
    template <class T>
    void choice(const Given& given, std::int64_t rows) {
        const tridiagonal::Problem problem = arrays_->problem<T>(rows, given.in_place);
        std::vector<Series> all;
        std::vector<std::vector<double>> again(sets_.singles);
        for (const std::string& name : sets_.names) {
            all.push_back(series(name));
            while (learns(all.back()) || (names_in(name).size() == 1 && all.back().learning.size() < 4)) all.back().learning.push_back(solve<T>(all.back(), given, problem));
        }
        const auto least = [](const Series& one) { return *std::min_element(one.learning.begin(), one.learning.end()); };
        const double best = least(*std::min_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(sets_.singles), [&](const Series& a, const Series& b) { return least(a) < least(b); }));
        std::vector<std::pair<Series*, std::vector<double>*>> turns;
        for (std::size_t k = 0; k < all.size(); ++k) {
            if (k < sets_.singles && least(all[k]) > 4 * best) continue;  // not the best one, however the rounds go
            turns.emplace_back(&all[k], &all[k].times);
            if (k < sets_.singles) turns.emplace_back(&all[k], &again[k]);
        }
        double round_s = 0;
        for (const auto& turn : turns) round_s += turn.first->learning.back();
        const int rounds = std::clamp(static_cast<int>(3 * settings_.budget_scale / round_s), 9, 41);
        std::mt19937 random(1);
        for (int round = 0; round < rounds; ++round) {
            std::shuffle(turns.begin(), turns.end(), random);
            for (const auto& [one, times] : turns) {
                times->push_back(solve<T>(*one, given, problem));
                ++one->who[chosen(one->report)];
            }
        }
        for (std::size_t k = sets_.singles; k < all.size(); ++k) {
            const std::vector<std::string> parts = names_in(all[k].name);
            std::size_t first = sets_.singles;
            for (std::size_t s = 0; s < sets_.singles; ++s)
                if (std::count(parts.begin(), parts.end(), all[s].name) && !all[s].times.empty() && (first == sets_.singles || median(all[s].times) < median(all[first].times))) first = s;
            if (first == sets_.singles) continue;
            const Series& single = all[first];
            const Paired ratio = paired(single.times, all[k].times), itself = paired(single.times, again[first]);
            const auto total = [](const std::vector<double>& times) { return std::accumulate(times.begin(), times.end(), 0.0); };
            Row row;
            row.set("kind", "choice").set("matrix", given.name()).set("devices", all[k].name).set("dtype", name_of(dtype_of<T>)).set("rows", static_cast<double>(rows));
            row.set("threads", static_cast<double>(context_.threads())).set("rounds", static_cast<double>(rounds)).set("seconds", median(all[k].times)).set("ok", all[k].outcome.ok());
            row.set("chosen", std::max_element(all[k].who.begin(), all[k].who.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first);
            row.set("best", single.name).set("best_seconds", median(single.times)).set("of_the_best", ratio.median).set("of_the_best_low", ratio.low).set("of_the_best_high", ratio.high);
            row.set("of_itself", itself.median).set("of_itself_low", itself.low).set("of_itself_high", itself.high).set("total_of_the_best", total(single.times) / total(all[k].times));
            row.set("verdict", verdict(ratio, itself)).set("solves", all[k].log);
            std::fprintf(stderr, "  %-22s %s %-20s %.3g rows: %s, %.3f (%.3f to %.3f) of %s, itself %.3f to %.3f: %s\n", all[k].name.c_str(), name_of(dtype_of<T>), given.name().c_str(), static_cast<double>(rows), chosen(all[k].report).c_str(),
                         ratio.median, ratio.low, ratio.high, single.name.c_str(), itself.low, itself.high, verdict(ratio, itself));
            record_.rows.push_back(std::move(row));
        }
        write_record(record_, settings_.out);
    }

    /// Sets in turns, so that what disturbs one disturbs all; beside them the cores and the link.
    template <class T>
    void size(const Given& given, std::int64_t rows) {
        const tridiagonal::Problem problem = arrays_->problem<T>(rows, given.in_place);
        std::vector<Series> all;
        for (const std::string& name : sets_.names) {
            try {
                Series one = series(name);
                while (learns(one)) one.learning.push_back(solve<T>(one, given, problem));
                if (const std::vector<std::string> parts = names_in(name); parts.size() > 1) one.all = std::make_unique<AllTogether>(parts, context_.threads());
                all.push_back(std::move(one));
            } catch (const Error& failure) {
                note(name + ", " + name_of(dtype_of<T>) + ", " + given.name() + ": " + failure.what());
            }
        }
        std::vector<Side> sides = given.ceiling ? sides_of<T>(all, rows) : std::vector<Side>();
        double round_s = settings_.budget_scale * static_cast<double>(sides.size());
        for (const Series& one : all) round_s += (one.all ? 2 : 1) * one.learning.back();
        const int rounds = std::clamp(static_cast<int>(2.5 * settings_.budget_scale / round_s), round_s < 1.5 ? 5 : 3, 15);
        std::mt19937 random(1);
        for (int round = -1; round < rounds; ++round) {
            // In another order every time: what follows a long solve of a GPU finds the cores asleep.
            std::vector<Series*> order;
            for (Series& one : all) order.push_back(&one);
            std::shuffle(order.begin(), order.end(), random);
            for (Series* const one : order) {
                if (round < 0) break;
                one->times.push_back(solve<T>(*one, given, problem));
                if (const std::string who = chosen(one->report); ++one->who[who] && one->all && who == one->name) one->of_all.push_back(one->times.back());
                if (round == 0) one->error = arrays_->backward_error<T>(rows, given.in_place);
            }
            for (Series& one : all)
                if (one.all)
                    if (const double seconds = together<T>(*one.all, given, rows); std::isfinite(seconds) && round >= 0) one.of_all.push_back(seconds);
            if (round >= 0)
                for (Side& side : sides) side.measure<T>(*arrays_, rows, 0.12 * settings_.budget_scale);
        }
        std::map<std::string, double> ceiling, link;
        for (const Side& side : sides) side.put<T>(rows, context_.threads(), record_, ceiling, link);
        std::map<std::string, const Series*> alone;
        for (const Series& one : all) put<T>(one, given, rows, problem, alone, ceiling, link);
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
        if (names_in(one.name).size() > 1) one.log += (one.log.empty() ? "" : "; ") + std::to_string(std::lround(1e6 * seconds)) + " " + chosen(one.report);
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
    void put(const Series& one, const Given& given, std::int64_t rows, const tridiagonal::Problem& problem, std::map<std::string, const Series*>& alone, const std::map<std::string, double>& ceiling,
             const std::map<std::string, double>& link) {
        const double n = static_cast<double>(rows), seconds = median(one.times), rate = n / seconds;
        const std::vector<std::string> parts = names_in(one.name);
        if (parts.size() == 1) alone[one.name] = &one;
        Row row;
        row.set("kind", "solve").set("matrix", given.name()).set("devices", one.name).set("dtype", name_of(dtype_of<T>)).set("rows", n).set("threads", static_cast<double>(context_.threads()));
        row.set("rounds", static_cast<double>(one.times.size())).set("seconds", seconds).set("rows_per_s", rate).set("least_seconds", *std::min_element(one.times.begin(), one.times.end()));
        row.set("branch", one.outcome.branch).set("reason", name_of(one.outcome.reason)).set("ok", one.outcome.ok()).set("backward_error", one.error);
        row.set("learning_solves", static_cast<double>(one.learning.size())).set("learning_rows_per_s", n / median(one.learning)).set("first_seconds", one.learning.front());
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
        if (given.energy) joules(one.name, problem, one.report, n, row);
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

    /// Who took part: "cpu,cuda:0".
    static std::string chosen(const Report& report) {
        std::string names;
        for (const DeviceShare& share : report.devices)
            if (share.rows > 0) names += (names.empty() ? "" : ",") + share.name;
        return names.empty() ? report.outcome.device : names;
    }

    /// Over a second at least, since counters move in steps; estimated from watts where there is none.
    void joules(const std::string& name, const tridiagonal::Problem& problem, const Report& report, double rows, Row& row) {
        Queue queue(context_, name);
        const Device& device = device_at(queue.device_index());
        std::vector<EnergyCounter> counters;
        if (device.parts.empty()) counters.emplace_back(device);
        for (const Device* part : device.parts) counters.emplace_back(*part);
        std::vector<double> before;
        for (EnergyCounter& counter : counters) before.push_back(counter.joules());
        int solves = 0;
        for (const auto start = Clock::now(); seconds_since(start) < 0.8 * settings_.budget_scale; ++solves) tridiagonal::solve(queue, problem);
        report::Energy energy;
        for (std::size_t k = 0; k < counters.size(); ++k) {
            const double joules = (counters[k].joules() - before[k]) / solves;
            const bool measured = std::isfinite(joules);
            energy.devices.push_back({counters[k].device(), joules, measured ? "measured" : "unknown", measured ? counters[k].source() : counters[k].why_not()});
        }
        report::complete(energy, report, watts_);
        row.set("joules", energy.joules).set("joules_kind", energy.kind).set("joules_note", energy.note).set("rows_per_joule", rows / energy.joules);
    }

    /// Data where the device computes: no transfers.
    template <class T>
    void resident(std::int64_t rows) {
        for (std::size_t k = 1; k < sets_.singles; ++k) {
            const std::string& name = sets_.names[k];
            Queue queue(context_, name);
            const bool opencl = name.starts_with("opencl:");
            if (queue.memory().kind != MemoryKind::device && !opencl) continue;
            for (const auto algorithm : {tridiagonal::Algorithm::automatic, tridiagonal::Algorithm::truncated_spike}) {
                if (algorithm != tridiagonal::Algorithm::automatic && !opencl) continue;
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
                    tridiagonal::Options options;
                    options.algorithm = algorithm;
                    std::vector<double> times;
                    Outcome outcome;
                    for (int round = 0; round < 4; ++round) {
                        const auto start = Clock::now();
                        outcome = tridiagonal::solve(queue, problem, options);
                        if (round > 0) times.push_back(seconds_since(start));
                    }
                    Row row;
                    row.set("kind", "resident").set("devices", name).set("algorithm", tridiagonal::name_of(algorithm)).set("dtype", name_of(dtype_of<T>)).set("rows", static_cast<double>(rows));
                    row.set("seconds", median(times)).set("rows_per_s", static_cast<double>(rows) / median(times)).set("branch", outcome.branch).set("reason", name_of(outcome.reason));
                    row.set("ok", outcome.ok());
                    record_.rows.push_back(std::move(row));
                } catch (const Error& error) {
                    note(name + ", data there: " + error.what());
                }
            }
        }
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

    const Settings& settings_;
    Record& record_;
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
