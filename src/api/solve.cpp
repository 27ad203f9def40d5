// SPDX-License-Identifier: BSD-3-Clause
// solve and its sisters: validate, plan, run the branches, fill the outcome.
#include <algorithm>
#include <optional>
#include <vector>

#include "api/check_options.hpp"
#include "api/device_solve.hpp"
#include "api/finite.hpp"
#include "api/host_solve.hpp"
#include "api/last_solves.hpp"
#include "api/split_solve.hpp"
#include "api/tabulate.hpp"
#include "base/number_text.hpp"
#include "devices/context_state.hpp"
#include "families/tridiagonal/branch.hpp"
#include "planner/decision.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "trifold/device_memory.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

void check_options(const Options& options) {
    if (!(options.tolerance >= 0 && options.tolerance < 1))
        throw Error(ErrorCode::usage, "tolerance", number_text(options.tolerance) + " is not a relative error",
                    "use 0 (unit roundoff of the type) or a value below 1");
    if (!(options.patience_s >= 0))
        throw Error(ErrorCode::usage, "patience", number_text(options.patience_s) + " is not a number of seconds", "use 0 (30 seconds) or more");
    if (static_cast<int>(options.algorithm) >= algorithm_count)
        throw Error(ErrorCode::usage, "algorithm", "value " + std::to_string(static_cast<int>(options.algorithm)) + " of the enumeration");
    if (static_cast<int>(options.objective) > static_cast<int>(Objective::edp))
        throw Error(ErrorCode::usage, "objective", "value " + std::to_string(static_cast<int>(options.objective)) + " of the enumeration");
}

namespace {

// Whether functions become arrays before this device looks at the system.
bool tabulates(const Ops& own, const System& system, Algorithm algorithm) {
    return has_generators(system) && !system.periodic && !system.offsets && own.refuses(system, algorithm);
}

// The system that is planned for.
System planned(const Queue& queue, const Problem& problem, Algorithm algorithm) {
    if (!problem.offsets.empty()) check_offsets_memory(queue, problem);
    const System system = normalise(problem, queue.memory());
    return tabulates(ops_of(queue), system, algorithm) ? with_tables(system) : system;
}

class Call {
public:
    Call(Queue& queue, const Problem& problem, System& system, const Options& options)
        : queue_(queue), state_(queue.context().state()), device_(device_at(queue.device_index())), problem_(problem), system_(system), options_(options), phases_(options.report != nullptr) {}

    Outcome run() {
        Outcome outcome;
        devices::Scratch tables;
        if (device_.runtime) placement_ = place(queue_, problem_, options_, false);
        if (tabulates(ops_of(queue_), system_, options_.algorithm)) {
            const auto start = Clock::now();
            tables = state_.scratch.take(tabulate_bytes(system_));
            tabulate(system_, tables.data(), state_.threads);
            tabulated_ = true;
            phases_.end("tabulate", start);
        }
        auto start = Clock::now();
        decision_ = decide(queue_, system_, options_.algorithm);
        phases_.end("plan", start);
        if (decision_.ops->enqueue && (placement_.first_there || !splits())) return on_device();
        if (placement_.first_there) require_host();
        if (options_.check_finite) {
            start = Clock::now();
            const bool finite = all_finite(system_, state_.threads, outcome);
            phases_.end("check input", start);
            if (!finite) {
                outcome.device = decision_.ops->device;
                if (options_.status) mark_unsolved(outcome);
                return outcome;
            }
        }
        bool tried = false;
        if (splits()) {
            if (!stands()) gather();
            start = Clock::now();
            if (const split::Part* const one = one_device()) {
                if (solved_by_one(*one, outcome)) return outcome;
                tried = true;
            } else if (team_ && !team_->host_alone()) {
                if (split_solved(outcome)) return outcome;
                tried = true;
            }
            // Nobody is asked for anything again who has not returned meanwhile.
            if (decision_.ops->enqueue && state_.left_behind(device_.name)) raise_left_behind(device_.name);
            if (decision_.ops->enqueue) outcome = on_device();
        }
        if (!decision_.ops->enqueue) outcome = on_host();
        if (team_ || stands()) host_has_solved(tried, seconds_since(start), outcome);
        else if (options_.report) add_left_behind(seconds_since(start));
        outcome.tried_other = outcome.tried_other || tried;
        outcome.tabulated = tabulated_;
        return outcome;
    }

    void fill(Report& report, const Outcome& outcome, double total_s) {
        report.roof = {};
        report.rows = system_.rows, report.systems = system_.systems();
        report.layout = layout_name(system_), report.dtype = system_.dtype;
        report.plan = several_ && (team_ || stands()) ? std::move(split_plan_) : explain(queue_, system_, options_.algorithm);
        report.outcome = outcome;
        report.total_s = total_s, report.solve_s = solve_s_;
        report.phases = phases_.take();
        report.roof.needed_bytes = needed_bytes(system_);
        report.workspace_bytes = workspace_bytes_;
        report.devices = std::move(shares_), report.trace = std::move(trace_);
    }

    /// After run, or what it throws.
    bool rhs_intact() const { return !system_.in_place || (!stores_ && !times_.stores); }

private:
    bool splits() {
        if (!asked_) {
            const auto start = Clock::now();
            last_.emplace(state_, device_, system_, options_), asked_ = true;
            if (stands()) several_ = true;
            else parts_ = split_parts(state_, device_, system_, options_, pageable_), several_ = parts_.size() > 1;
            if (stands() && options_.report) split_plan_ = last_->chosen().plan;
            if (stands() || !parts_.empty()) solve_s_ += phases_.end("choose devices", start);
        }
        return stands() || !parts_.empty();
    }

    bool stands() const { return last_ && last_->stands(); }

    // Who solves it: as the last ones of its shape, where these were one device's, else after a look.
    void gather() {
        const auto choosing = Clock::now();
        const SplitProblem problem = split_problem(system_, options_, pageable_);
        last_->asked(pageable_, several_);
        if (const split::Reach* const last = last_->reach()) team_.emplace(state_, device_, parts_, problem, *last, options_);
        solve_s_ += phases_.end("choose devices", choosing);
        if (!team_ || !team_->one_for_good()) {
            const auto looking = Clock::now();
            // As many threads as will solve it: a team that changes its size is made anew.
            reach_ = look_before(system_, options_, split::host_threads(parts_, state_.threads)), looked_ = true;
            looking_s_ = phases_.end("look for decay", looking);
            solve_s_ += looking_s_;
            team_.emplace(state_, device_, parts_, problem, reach_, options_);
        }
        if (options_.report && several_) split_plan_ = team_->plan();
    }

    // What it took is known of a matrix of this kind, if it was one.
    void learn(double seconds, const Outcome& outcome, std::span<const DeviceShare> shares = {}, std::span<const TraceEvent> trace = {}) {
        const auto start = Clock::now();
        if (stands()) last_->stood(seconds, outcome.branch);
        else if (last_->ended(team_->one_chosen(), looked_ ? &reach_ : nullptr, outcome.branch)) team_->learn(seconds, shares, trace);
        if (several_) phases_.end("learn", start);
    }

    void add_left_out() {
        if (!stands()) return team_->add_left_out(shares_);
        const std::vector<DeviceShare>& left_out = last_->chosen().left_out;
        shares_.insert(shares_.end(), left_out.begin(), left_out.end());
    }

    void add_failed(std::span<const DeviceShare> shares) {
        if (std::ranges::none_of(shares, [](const DeviceShare& share) { return share.state.starts_with("retired: "); })) return;
        for (const DeviceShare& share : shares)
            if (!share.state.empty()) shares_.push_back({.name = share.name, .state = share.state});
    }

    const split::Part* one_device() const {
        if (stands()) return last_->host_alone() ? nullptr : &last_->chosen().part;
        return team_->one_device();
    }

    // One of several, alone. False: it could not, and the host's own shall, which in place needs the right-hand side as it was.
    bool solved_by_one(const split::Part& part, Outcome& outcome) {
        Queue alone(queue_.context(), part.name);
        Report report;
        Options options = options_;
        if (options_.report || (team_ && team_->begins())) options.report = &report;
        options.check_finite = false;  // done
        options.workspace = {};        // is the host's
        const auto start = Clock::now();
        std::string why;
        System system = normalise(problem_, alone.memory());
        Call call(alone, problem_, system, options);
        try {
            outcome = call.run();
            if (outcome.reason == Reason::unstable) why = "it finds the system unstable";
        } catch (const Error& error) {
            if (error.code() == ErrorCode::usage || !call.rhs_intact()) throw;
            why = error.what();
        }
        if (!why.empty() && call.rhs_intact()) {
            shares_.push_back({.name = part.name, .state = "retired: " + why});
            if (state_.has_log()) state_.log("device '" + part.name + "' " + shares_.back().state);
            return outcome = Outcome{}, false;
        }
        if (options.report) call.fill(report, outcome, seconds_since(start));
        learn(seconds_since(start), outcome, report.devices, report.trace);
        outcome.tabulated = outcome.tabulated || tabulated_;
        if (!options_.report) return true;
        solve_s_ += report.solve_s, workspace_bytes_ = report.workspace_bytes;
        phases_.add(report.phases);
        shares_ = std::move(report.devices), trace_ = std::move(report.trace);
        if (shares_.empty()) shares_.push_back({.name = part.name, .rows = system_.rows, .chunks = 1, .busy_s = report.solve_s,
                           .rows_per_s = static_cast<double>(system_.rows) / report.solve_s, .state = {}});
        add_left_out();
        return true;
    }

    // Chosen to, or since the others could not: then that is what they cost.
    void host_has_solved(bool tried, double seconds, const Outcome& outcome) {
        learn(seconds, outcome);
        const bool for_others = tried && !shares_.empty();  // who have failed
        if ((tried && !for_others) || device_.parts.size() < 2 || !options_.report) return;
        shares_.push_back(host_share(seconds, for_others ? "took what was left" : ""));
        if (!for_others) add_left_out();
    }

    // Of those that were named nobody is asked for anything any more, or the system is not worth it.
    void add_left_behind(double seconds) {
        for (const Device* part : device_.parts)
            if (state_.left_behind(part->name)) shares_.push_back({.name = part->name, .state = std::string("left out: ") + split::not_returned});
        if (!shares_.empty()) shares_.push_back(host_share(seconds, "took what was left"));
    }

    DeviceShare host_share(double seconds, const char* state) const {
        const double rows = static_cast<double>(system_.rows);
        return {.name = decision_.ops->device, .rows = system_.rows, .chunks = 1, .busy_s = seconds, .rows_per_s = rows / seconds, .state = state};
    }

    bool split_solved(Outcome& outcome) {
        const auto start = Clock::now();
        stores_ = true;
        split::Result result = team_->solve(system_, reach_, options_);
        stores_ = result.solved;
        const double seconds = seconds_since(start);
        solve_s_ += seconds;
        // Who solves alone for good is not looked at: several have to be worth the look.
        if (result.solved) learn(seconds + (several_ && team_->chosen().size() > 1 ? looking_s_ : 0), result.outcome, result.devices, result.trace);
        if (options_.report) {
            phases_.add(result.phases);
            // Where it is given up, what counts is who does it then, and who has failed.
            if (result.solved) shares_ = std::move(result.devices), trace_ = std::move(result.trace);
            else if (several_) add_failed(result.devices);
        }
        if (!result.solved) {
            if (state_.has_log()) state_.log("not split: " + result.why);
            return false;
        }
        outcome = result.outcome;
        outcome.tabulated = tabulated_;
        if (options_.status) options_.status[system_.number] = static_cast<std::int8_t>(outcome.reason);
        return true;
    }

    Outcome on_host() {
        stores_ = true;
        HostSolve host(state_, system_, decision_, options_, phases_);
        const Outcome outcome = host.run();
        solve_s_ += host.seconds(), workspace_bytes_ = host.workspace_bytes();
        return outcome;
    }

    Outcome on_device() {
        Outcome outcome = solve_on_device(queue_, device_, *decision_.ops, system_, problem_.matrix.transposed, decision_.branch[0], placement_,
                                          options_, options_.report != nullptr, times_);
        outcome.tabulated = tabulated_;
        solve_s_ = times_.solve, workspace_bytes_ = times_.workspace_bytes;
        if (!options_.report) return outcome;
        if (times_.to_device > 0) phases_.add("to device", times_.to_device);
        phases_.add(name_of(decision_.branch[0]), times_.solve);
        if (times_.from_device > 0) phases_.add("from device", times_.from_device);
        return outcome;
    }

    // Who computes in place of the device reads the host's memory.
    void require_host() const {
        throw Error(ErrorCode::device_unavailable, std::string("device '") + device_.name + "'",
                    std::string("cannot solve this itself: ") + (decision_.delegated_because ? decision_.delegated_because : "") + "; '" +
                        decision_.ops->device + "' would, from host memory, but " + placement_.first_there + " lies on the device",
                    "copy the arrays to the host, and give all of them as host memory");
    }

    void mark_unsolved(const Outcome& outcome) {
        std::fill(options_.status, options_.status + system_.systems(), static_cast<std::int8_t>(Reason::none));
        options_.status[outcome.system] = static_cast<std::int8_t>(outcome.reason);
    }

    Queue& queue_;
    Context::State& state_;
    const Device& device_;
    const Problem& problem_;
    Placement placement_;
    System& system_;
    const Options& options_;
    Decision decision_;
    std::size_t workspace_bytes_ = 0;
    DeviceTimes times_;
    bool tabulated_ = false, stores_ = false;  // stores_: x may have been written, but not by on_device
    double solve_s_ = 0;
    Phases phases_;
    std::vector<split::Part> parts_;
    std::optional<LastSolves> last_;
    std::optional<SplitTeam> team_;
    bool looked_ = false;
    double looking_s_ = 0;
    Plan split_plan_;
    split::Reach reach_;
    bool asked_ = false, pageable_ = false, several_ = false;  // several_: devices that could solve it
    std::vector<DeviceShare> shares_;
    std::vector<TraceEvent> trace_;
};

// Nothing was solved. The status may lie in the device's memory.
void fill_status(const Queue& queue, std::int8_t* status, std::int64_t systems) {
    const std::vector<std::int8_t> none(static_cast<std::size_t>(systems), static_cast<std::int8_t>(Reason::none));
    if (memory_of(queue, status).kind == MemoryKind::device) copy(queue, status, none.data(), none.size());
    else std::ranges::copy(none, status);
}

}  // namespace

Outcome solve(Queue& queue, const Problem& problem, const Options& options) {
    check_options(options);
    if (!problem.offsets.empty()) check_offsets_memory(queue, problem);
    System system = normalise(problem, queue.memory());
    if (system.rows == 0 || system.systems() == 0) {
        Outcome nothing;
        nothing.device = queue.device();
        if (options.status) fill_status(queue, options.status, system.systems());
        if (options.report) {
            *options.report = {};
            options.report->rows = system.rows, options.report->systems = system.systems();
            options.report->layout = layout_name(system), options.report->dtype = system.dtype;
            options.report->plan = explain(queue, system, options.algorithm);
            options.report->outcome = nothing;
        }
        return nothing;
    }
    const bool bare = options.algorithm == Algorithm::automatic && !options.report && !options.check_finite;
    if (bare) {
        const Ops& ops = ops_of(queue);
        if (solves_small(ops, system)) {
            Outcome outcome;
            ops.solve_small(system, outcome);
            if (options.status) *options.status = static_cast<std::int8_t>(outcome.reason);
            return outcome;
        }
        if (solves_few_small(ops, system)) return solve_few(ops, system, options);
    }
    check_workspace(problem, options.workspace);
    const auto start = Clock::now();
    Call call(queue, problem, system, options);
    const Outcome outcome = call.run();
    if (options.report) call.fill(*options.report, outcome, seconds_since(start));
    return outcome;
}

Outcome solve(Context& context, const Problem& problem, const Options& options) {
    Queue queue(context);
    return solve(queue, problem, options);
}

bool try_solve(Queue& queue, const Problem& problem, const Options& options, Outcome& outcome, std::string& error) noexcept try {
    outcome = Outcome{};
    try {
        outcome = solve(queue, problem, options);
        return true;
    } catch (const std::exception& caught) {
        error = caught.what();
        return false;
    }
} catch (...) {
    return false;
}

Plan plan(Queue& queue, const Problem& problem, const Options& options) {
    check_options(options);
    const System system = planned(queue, problem, options.algorithm);
    Plan made = explain(queue, system, options.algorithm);
    const Device& device = device_at(queue.device_index());
    if (device.parts.size() > 1) plan_split(queue.context().state(), device, system, options, made);
    return made;
}

std::vector<WorkspaceNeed> workspace(Queue& queue, const Problem& problem, const Options& options) {
    check_options(options);
    const System system = planned(queue, problem, options.algorithm);
    WorkspaceNeed need;
    if (system.rows == 0 || system.systems() == 0) return {need};
    need.bytes = workspace_bound(queue, system, options.algorithm);
    if (decide(queue, system, options.algorithm).ops->enqueue) need.memory = queue.memory(), need.alignment = 256;
    return {need};
}

}  // namespace trifold::tridiagonal
