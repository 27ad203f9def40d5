// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/case.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "bench/harness/batch_order.hpp"
#include "bench/harness/core_rate.hpp"
#include "bench/harness/residual.hpp"
#include "devices/context_state.hpp"
#include "devices/threads.hpp"
#include "io/generators/generator.hpp"
#include "planner/calibrate.hpp"
#include "problems/tridiagonal/normalise.hpp"

namespace trifold::bench {

using tridiagonal::Algorithm;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::vector<int> Settings::thread_counts() const {
    if (threads > 0) return {threads};
    const int all = devices::usable_cores();
    return all > 1 ? std::vector{1, all} : std::vector{1};
}

static void copy(void* to, const void* from, std::size_t bytes) {
    constexpr std::size_t block = std::size_t{1} << 20;
    const auto blocks = static_cast<std::int64_t>((bytes + block - 1) / block);
#pragma omp parallel for
    for (std::int64_t k = 0; k < blocks; ++k) {
        const std::size_t at = static_cast<std::size_t>(k) * block;
        std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, std::min(block, bytes - at));
    }
}

Case::Case(const std::string& generator, DType dtype) {
    io::LoadOptions options;
    options.precision = dtype;
    data_ = io::generate_tridiagonal(io::parse_generator("gen:" + generator), options);
    x_ = io::Array(data_.rhs.shape(), "x");
    load_rhs();
}

tridiagonal::Problem Case::problem(bool in_place) const {
    tridiagonal::Problem problem = data_.problem(x_);
    if (in_place) problem.rhs = problem.x;
    return problem;
}

void Case::load_rhs() { copy(x_.data(), data_.rhs.data(), static_cast<std::size_t>(x_.shape().bytes())); }

ContextOptions options_with(int threads) {
    ContextOptions options;
    options.threads = threads;
    return options;
}

struct Group::Entry {
    std::string label;
    bool ours = false;
    Algorithm algorithm = Algorithm::automatic;
    std::unique_ptr<Baseline> peer;
    Outcome outcome;
    bool good = true;
};

Group::Group(Case& problem, int threads, bool in_place)
    : case_(problem), threads_(threads), in_place_(in_place), context_(options_with(threads)), queue_(context_) {
    tridiagonal::ensure_profile(context_);
}
Group::~Group() = default;

void Group::add_solver(const std::string& label, Algorithm algorithm) {
    auto entry = std::make_unique<Entry>();
    entry->label = label, entry->ours = true, entry->algorithm = algorithm;
    entries_.push_back(std::move(entry));
}

void Group::add_peer(std::unique_ptr<Baseline> peer, Record& record) {
    std::string why = peer->absent();
    if (why.empty()) why = peer->load(case_.data());
    if (!why.empty()) {
        const std::string note = peer->name() + ": " + why;
        if (std::find(record.notes.begin(), record.notes.end(), note) == record.notes.end()) record.notes.push_back(note);
        return;
    }
    auto entry = std::make_unique<Entry>();
    entry->label = peer->name(), entry->peer = std::move(peer);
    entries_.push_back(std::move(entry));
}

Runner Group::runner_of(Entry& entry) {
    Runner runner{entry.label, {}, {}, {}};
    if (entry.peer) {
        runner.prepare = [&entry] { entry.peer->restore(); };
        runner.run = [&entry] { entry.good = entry.peer->solve() && entry.good; };
        return runner;
    }
    if (in_place_) runner.prepare = [this] { case_.load_rhs(); };
    tridiagonal::Options options;
    options.algorithm = entry.algorithm;
    const tridiagonal::Problem problem = case_.problem(in_place_);
    runner.run = [this, &entry, options, problem] { entry.outcome = tridiagonal::solve(queue_, problem, options); };
    return runner;
}

// What all rows of a race are measured against; seconds are NaN where it was not measured.
struct Group::Measured {
    double roof = 0;  // bytes per second
    devices::Store store{};
    double reference_s = unknown, order_s = unknown, moving_s = unknown, computing_s = unknown;
    double additions = unknown, most_additions = unknown;  // per cycle
};

// Out of place, what lies in the caches is better stored there, what does not past them: the roof is the higher one.
std::vector<devices::Store> Group::stores() const {
    if (in_place_) return {devices::Store::in_place};
    return {devices::Store::past_cache, devices::Store::regular};
}

std::vector<devices::RoofProbe> Group::roof_probes(const Pace& pace) const {
    const auto bytes = static_cast<std::size_t>(case_.x().shape().bytes());
    devices::StreamArrays arrays;
    for (const io::Array* array : {&case_.data().lower, &case_.data().diag, &case_.data().upper, &case_.data().rhs})
        arrays.read[arrays.reads++] = static_cast<const unsigned char*>(array->data());
    arrays.write = static_cast<unsigned char*>(case_.x().data());
    if (in_place_) arrays.read[3] = arrays.write;
    std::vector<devices::RoofProbe> probes;
    for (const devices::Store store : stores()) {
        probes.emplace_back(arrays, bytes, store, threads_);
        probes.back().measure(std::min(0.5, pace.budget_s / 20));
    }
    return probes;
}

void Group::run(const Pace& pace, const std::string& name, Record& record, const std::string& ratio_to) {
    std::vector<devices::RoofProbe> probes = roof_probes(pace);
    std::vector<Runner> runners;
    for (devices::RoofProbe& probe : probes) runners.push_back({"roof", {}, {}, [&probe] { return probe.sample(); }});
    for (auto& entry : entries_) runners.push_back(runner_of(*entry));
    std::optional<BatchOrder> order;
    if (batch_order_) {
        order.emplace(tridiagonal::normalise(case_.problem(true)), threads_);
        runners.push_back({"order of accesses", {}, {}, [&order] { return order->sample(); }});
    }
    std::optional<SingleCeiling> ceiling;
    const std::size_t alone = runners.size();
    if (ceiling_) {
        ceiling.emplace(*ceiling_, tridiagonal::normalise(case_.problem(in_place_)), threads_);
        runners.push_back({"moving alone", {}, {}, [&ceiling] { return ceiling->moving(); }});
        runners.push_back({"arithmetic alone", {}, {}, [&ceiling] { return ceiling->computing(); }});
    }
    runners.push_back({"core", {}, {}, [this] { return cycles_per_addition(threads_); }});
    const std::vector<Timing> timings = race(runners, pace);

    Measured measured;
    for (std::size_t k = 0; k < probes.size(); ++k)
        if (const double b = probes[k].bytes_per_pass() / timings[k].median; b > measured.roof) measured.roof = b, measured.store = stores()[k];
    for (std::size_t k = 0; k < entries_.size(); ++k)
        if (entries_[k]->label == ratio_to) measured.reference_s = timings[probes.size() + k].median;
    if (order) measured.order_s = timings[alone - 1].median;
    if (ceiling) measured.moving_s = timings[alone].median, measured.computing_s = timings[alone + 1].median;
    measured.additions = 1 / timings.back().median, measured.most_additions = 1 / timings.back().best;

    for (std::size_t k = 0; k < entries_.size(); ++k)
        record.rows.push_back(row_of(name, *entries_[k], timings[probes.size() + k], runners[probes.size() + k], measured, ratio_to));
}

Row Group::row_of(const std::string& name, Entry& entry, const Timing& timing, const Runner& runner, const Measured& measured, const std::string& ratio_to) {
    Row row;
    const double needed = case_.needed_bytes(), roof = measured.roof, fraction = needed / timing.median / roof;
    row.set("case", name).set("solver", entry.label).set("threads", entry.peer ? 1.0 : threads_);
    row.set("rows", case_.rows()).set("systems", static_cast<double>(case_.data().systems())).set("dtype", name_of(case_.dtype()));
    row.set("in_place", in_place_).set("seconds", timing.median).set("best_s", timing.best).set("worst_s", timing.worst);
    row.set("samples", static_cast<double>(timing.samples)).set("rows_per_s", case_.rows() / timing.median);
    row.set("roof_bytes_per_s", roof).set("roof_store", devices::name_of(measured.store)).set("roof_threads", static_cast<double>(threads_));
    row.set("fraction", fraction);
    const double order_s = entry.peer ? unknown : measured.order_s;
    if (order_s == order_s) row.set("order_bytes_per_s", needed / order_s).set("fraction_of_order", order_s / timing.median).set("ceiling", needed / order_s / roof);
    const bool bounded = !entry.peer && entry.algorithm != Algorithm::lu;
    const double moving_s = bounded ? measured.moving_s : unknown, computing_s = bounded ? measured.computing_s : unknown;
    const double bound_s = std::max(moving_s, computing_s);
    if (bound_s == bound_s)
        row.set("moving_s", moving_s).set("computing_s", computing_s).set("ceiling", needed / bound_s / roof).set("fraction_of_ceiling", bound_s / timing.median).set("strict", true);
    row.set("additions_per_cycle", entry.peer ? unknown : measured.additions).set("most_additions_per_cycle", entry.peer ? unknown : measured.most_additions);
    if (fraction > 1.03) row.set("suspect", "above 1.03 of the roof: an error of this measurement");
    const double reference_s = measured.reference_s;
    if (reference_s == reference_s) row.set("speedup", reference_s / timing.median).set("speedup_over", ratio_to);
    if (entry.peer) {
        if (!entry.good) row.set("failed", true);
        row.set("backward_error", entry.peer->verifies() ? backward_error(case_.data(), entry.peer->x()) : unknown);
    } else {
        set_outcome(row, entry, timing, runner);
    }
    row.set("extra_bytes", timing.extra_bytes);

    char bounds[64] = "";
    if (order_s == order_s) std::snprintf(bounds, sizeof(bounds), ", %.1f %% of its order's %.1f", 100 * order_s / timing.median, needed / order_s / 1e9);
    if (bound_s == bound_s) std::snprintf(bounds, sizeof(bounds), ", moving alone %.0f %%, arithmetic %.0f %%", 100 * needed / moving_s / roof, 100 * needed / computing_s / roof);
    std::fprintf(stderr, "  %-44s %-16s %d thr %9.3f ms %9.1f Mrows/s %5.1f %% of %.1f GB/s, core %.1f%s%s%s\n", name.c_str(), entry.label.c_str(),
                 entry.peer ? 1 : threads_, timing.median * 1e3, case_.rows() / timing.median / 1e6, 100 * fraction, roof / 1e9, measured.additions, bounds,
                 entry.peer ? "" : (std::string("  ") + entry.outcome.branch).c_str(),
                 reference_s == reference_s && entry.label != ratio_to ? ("  x" + std::to_string(reference_s / timing.median).substr(0, 5)).c_str() : "");
    return row;
}

// The last run of another solver may have written x: once more for its own answer.
void Group::set_outcome(Row& row, Entry& entry, const Timing& timing, const Runner& runner) {
    if (in_place_) case_.load_rhs();
    runner.run();
    row.set("outcome", name_of(entry.outcome.reason)).set("branch", entry.outcome.branch).set("device", entry.outcome.device);
    row.set("tried_other", entry.outcome.tried_other).set("certified_share", entry.outcome.certified_share);
    row.set("certificate", entry.outcome.certificate).set("rescued", static_cast<double>(entry.outcome.rescued));
    if (!entry.outcome.ok()) row.set("failed", true);
    row.set("backward_error", backward_error(case_.data(), case_.x()));
    tridiagonal::Options options;
    options.algorithm = entry.algorithm;
    const Plan plan = tridiagonal::plan(queue_, case_.problem(in_place_), options);
    row.set("predicted_s", plan.predicted_s).set("predicted_over_measured", plan.predicted_s / timing.median);
}

}  // namespace trifold::bench
