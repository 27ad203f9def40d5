// SPDX-License-Identifier: BSD-3-Clause
#include "api/split_solve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "api/making_ready.hpp"
#include "backends/power_limit.hpp"
#include "backends/registry.hpp"
#include "devices/context_state.hpp"
#include "planner/split_steady.hpp"

namespace trifold::tridiagonal {
namespace {

// Below, one device has solved it before others have begun.
constexpr std::int64_t least_rows = 1 << 16;

// Who shares a solve with a device that is being made ready waits for it so long, where there is nothing else to do.
constexpr double most_wait_s = 1;

// One device takes a system of fewer bytes whole: its copies overlap with nothing, and need no joining.
constexpr double worth_streaming = 256.0 * (1 << 20);

const Ops& tridiagonal_ops(const Device& device) { return *static_cast<const Ops*>(find_cell(device, "tridiagonal").ops); }

double bytes_of(const System& system) {
    double words = 2;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper}) words += operand->kind == Operand::Kind::view;
    return words * static_cast<double>(system.rows) * static_cast<double>(size_of(system.dtype));
}

// The first element of lower may be nobody's.
const char* inside(const Operand& operand, const System& system) { return static_cast<const char*>(operand.data) + (system.rows > 1 ? size_of(system.dtype) : 0); }

// Drivers are asked where the arrays lie. Returns whether some is pageable for this one; throws where one is a device's.
bool pageable_for(const devices::Runtime& runtime, int number, const char* device, const System& system) {
    bool pageable = false;
    for (const auto& [name, operand] : {std::pair{"lower", &system.lower}, {"diag", &system.diag}, {"upper", &system.upper}, {"rhs", &system.rhs}, {"x", &system.x}}) {
        if (operand->kind != Operand::Kind::view || !operand->data || (operand == &system.x && system.in_place)) continue;
        // Of several devices one that does not tell will not solve either.
        Memory found;
        Failure ignored;
        const MemoryKind kind = runtime.where(number, inside(*operand, system), &found, ignored) ? found.kind : MemoryKind::host;
        if (kind == MemoryKind::device) throw Error(ErrorCode::usage, name, std::string("memory of '") + device + "' in a solve on several devices", "give arrays of the host");
        pageable = pageable || kind == MemoryKind::host;
    }
    return pageable && runtime.allocate_pinned;
}

// Of one device while these run.
std::string pace_key(const split::Part& of, const std::string& names, const SplitProblem& problem) { return "pace " + of.name + " of " + names + problem.kind(); }

// Once in a Context: what was learnt of another board or driver under the same name is forgotten.
void identify(Context::State& state, const Device& device, const std::vector<split::Part>& parts) {
    for (const Device* part : device.parts) {
        const std::string done = std::string("identified ") + part->name;
        if (!part->description || state.rates().tally(done) > 0 || std::none_of(parts.begin(), parts.end(), [&](const split::Part& one) { return one.name == part->name; })) continue;
        state.rates().set_tally(done, 1);
        state.identify(part->name, devices::identity_of(part->description(*part)));
    }
}

// What is known of the nearest size.
double pace_of(const devices::Rates& rates, const split::Part& of, const std::string& names, const SplitProblem& problem) {
    for (const double times : {1.0, 4.0, 0.25, 16.0, 1.0 / 16}) {
        SplitProblem near = problem;
        near.rows = times * problem.rows;
        if (const double pace = rates.of(pace_key(of, names, near)); pace > 0) return pace;
    }
    return 0;
}

double tolerance_of(const System& system, const Options& options) { return options.tolerance > 0 ? options.tolerance : unit_roundoff(system.dtype); }


bool fits(const split::Part& part, const System& system) {
    std::size_t free = 0, total = 0;
    Failure failure;
    return part.runtime->memory_info(part.number, &free, &total, failure) &&
           bytes_of(system) + static_cast<double>(part.ops->workspace(system, Algorithm::automatic, 1)) < 0.9 * static_cast<double>(free);
}

// Of those whose watts are not given. The processors' limit is of all that computes there: where several devices do, nobody tells what each of them draws.
void add_power_limits(const Device& device, std::vector<SplitMember>& members) {
    const auto on_host = std::count_if(members.begin(), members.end(), [](const SplitMember& member) { return !member.linked; });
    const auto add = [&](const Device& one) {
        for (SplitMember& member : members)
            if (member.name == one.name && !(member.watts > 0) && (member.linked || on_host == 1)) member.watts = power_limit(one).watts;
    };
    if (device.parts.empty()) add(device);
    for (const Device* part : device.parts) add(*part);
}

std::vector<SplitMember> members_of(const Device& device, const std::vector<split::Part>& parts, const Options& options) {
    std::vector<SplitMember> members;
    for (const split::Part& part : parts) {
        SplitMember member{part.name, part.runtime != nullptr, 0};
        for (const DeviceWatts& known : options.watts)
            if (known.device == member.name) member.watts = known.watts;
        members.push_back(std::move(member));
    }
    if (options.objective != Objective::time) add_power_limits(device, members);
    return members;
}

}  // namespace

void raise_left_behind(const char* device) {
    throw Error(ErrorCode::device_unavailable, std::string("device '") + device + "'", split::not_returned, "a new Context tries again");
}

const Ops& split_host_ops() {
    static const Ops& ops = tridiagonal_ops(device_at(find_device("cpu")));
    return ops;
}

bool may_split(const System& system, const Options& options) { return options.algorithm == Algorithm::automatic && system.rows >= least_rows && !split::refuses(system); }

std::vector<split::Part> split_parts(const Context::State& state, const Device& device, const System& system, const Options& options, bool& pageable) {
    std::vector<split::Part> parts;
    if (state.left_behind(device.name)) raise_left_behind(device.name);
    const auto add = [&](const Device& one) {
        if (state.left_behind(one.name)) return;
        const Ops& ops = tridiagonal_ops(one);
        if (!ops.refuses(split::slice(system, 0, system.rows), Algorithm::automatic)) parts.push_back({one.name, &ops, one.runtime, one.number});
    };
    pageable = false;
    for (const Device* part : device.parts)
        if (part->runtime && !state.left_behind(part->name) && pageable_for(*part->runtime, part->number, part->name, system)) pageable = true;
    if (!may_split(system, options)) return parts;
    for (const Device* part : device.parts) add(*part);
    if (device.runtime && device.runtime->open_stream && bytes_of(system) >= worth_streaming) {
        add(device);
        pageable = pageable_for(*device.runtime, device.number, device.name, system);
    }
    return parts;
}

SplitProblem split_problem(const System& system, const Options& options, bool pageable) {
    SplitProblem problem;
    problem.rows = static_cast<double>(system.rows), problem.dtype = system.dtype, problem.in_place = system.in_place, problem.objective = options.objective, problem.pageable = pageable;
    return problem;
}

split::Reach look_before(const System& system, const Options& options, int threads) { return split::look(system, split_host_ops(), tolerance_of(system, options), threads); }

SplitTeam::SplitTeam(Context::State& state, const Device& device, const std::vector<split::Part>& all, const SplitProblem& problem, const split::Reach& reach, const Options& options)
    : state_(state), device_(device), all_(all), members_(members_of(device, all, options)), problem_(problem) {
    problem_.coupled = reach.width == 0, problem_.slowly = reach.width > 200;
    if (all.size() > 1) identify(state, device, all);
    choice_ = choose_members(state.rates(), members_, problem_);
    leave_out_late();
    for (std::size_t k = 0; k < all.size(); ++k)
        if (choice_.members >> k & 1) chosen_.push_back(all[k]);
}

// Where nobody is ready there is nobody who could do without them.
void SplitTeam::wait_for_late(const System& system, const split::Reach& reach, const Options& options, split::Setting& setting) {
    std::vector<char> late;
    for (const split::Part& part : chosen_) late.push_back(!make_ready(state_, part, system, reach, options));
    const double most_s = std::count(late.begin(), late.end(), 0) > 0 ? most_wait_s : setting.patience_s;
    for (std::size_t k = 0; k < late.size(); ++k) {
        setting.ready.emplace_back();
        if (late[k]) setting.ready.back() = {[&state = state_, part = chosen_[k]](double seconds) { return readiness(state, part, seconds); }, most_s};
    }
}

// Those that are being made ready, as long as there are others.
void SplitTeam::leave_out_late() {
    std::uint32_t late = 0;
    for (std::size_t k = 0; k < all_.size(); ++k)
        if (is_being_made_ready(state_, all_[k])) late |= 1u << k;
    const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << all_.size()) - 1);
    if ((choice_.members & late) == 0 || (all & ~late) == 0) return;
    choice_.members = (choice_.members & ~late) ? choice_.members & ~late : all & ~late;
    late_ = late, counts_ = false;
}

bool SplitTeam::host_alone() const { return chosen_.size() == 1 && chosen_[0].ops == &split_host_ops(); }

const split::Part* SplitTeam::one_device() const {
    return all_.size() > 1 && chosen_.size() == 1 && !host_alone() && (chosen_[0].runtime || !problem_.in_place) ? &chosen_[0] : nullptr;
}

std::shared_ptr<const OneChosen> SplitTeam::one_chosen() const {
    if (!one_for_good()) return nullptr;
    auto one = std::make_shared<OneChosen>(OneChosen{chosen_[0], members_, problem_, choice_, {}, {}});
    if (choice_.stands > 0) one->plan = plan(), add_left_out(one->left_out);
    return one;
}

bool SplitTeam::begins() const { return all_.size() > 1 && !host_alone() && state_.rates().tally(met_key()) == 0; }

std::string SplitTeam::met_key() const { return "met " + names_of(members_, choice_.members) + problem_.kind(); }

void SplitTeam::learn(double seconds, std::span<const DeviceShare> shares, std::span<const TraceEvent> trace) {
    if (all_.size() < 2 || left_behind_ || !counts_) return;
    devices::Rates& rates = state_.rates();
    SplitTime time{.seconds = seconds, .first = begins()};
    Steady seen;
    if (time.first) {
        seen = steady(trace, chosen_.size(), problem_.rows, seconds), time.steady_s = seen.seconds;
        rates.set_tally(met_key(), 1);
    }
    std::vector<SplitWork> work(members_.size());
    for (std::size_t k = 0; k < members_.size(); ++k)
        for (std::size_t d = 0; d < shares.size(); ++d) {
            if (shares[d].name != members_[k].name) continue;
            work[k].rows = static_cast<double>(shares[d].rows);
            for (const TraceEvent& event : trace)
                if (event.device == static_cast<int>(d) && std::string_view(event.phase) == "kernel") work[k].kernel_s += event.end_s - event.begin_s;
        }
    // Of the pace that a device has beside the others.
    for (std::size_t d = 0; d < seen.rows_per_s.size(); ++d)
        for (std::size_t k = 0; k < members_.size(); ++k)
            if (members_[k].name == chosen_[d].name) work[k].rows = seen.rows_per_s[d] * seen.seconds;
    remember(rates, members_, choice_, problem_, time, work);
    if (solved_as_thought_)
        for (std::size_t k = 0; k < chosen_.size(); ++k) {
            const double pace = seen.rows_per_s.empty() ? paces_seen_[k] : seen.rows_per_s[k];
            if (pace > 0) rates.saw(pace_key(chosen_[k], names_of(members_, choice_.members), problem_), pace);
        }
    state_.keep_rates();
}

void SplitTeam::add_left_out(std::vector<DeviceShare>& shares) const {
    const std::string why = choice_.learning ? "left out: what the others do without it is being timed" : std::string("left out: ") + name_of(problem_.objective) + " is less without it";
    for (std::size_t k = 0; k < all_.size(); ++k)
        if (!(choice_.members >> k & 1)) shares.push_back({.name = all_[k].name, .state = late_ >> k & 1 ? std::string("left out: ") + split::not_ready : why});
    for (const Device* part : device_.parts)
        if (std::none_of(all_.begin(), all_.end(), [&](const split::Part& one) { return one.name == part->name; }) && state_.left_behind(part->name))
            shares.push_back({.name = part->name, .state = std::string("left out: ") + split::not_returned});
}

split::Result SplitTeam::solve(const System& system, const split::Reach& reach, const Options& options) {
    split::Setting setting;
    setting.parts = chosen_;
    setting.host = &split_host_ops();
    setting.threads = state_.threads;
    setting.tolerance = tolerance_of(system, options);
    setting.reach = reach;
    setting.scratch = &state_.scratch;
    setting.kits = &state_.kits;
    if (options.patience_s > 0) setting.patience_s = options.patience_s;
    // One device couples windows of its own better than chunks, where it holds the system. Of a set it may be the only one that is left.
    setting.couple = device_.parts.size() > 1 || !fits(chosen_[0], system);
    devices::Rates& rates = state_.rates();
    const std::string names = names_of(members_, choice_.members);
    for (const split::Part& part : chosen_) setting.rows_per_s.push_back(pace_of(rates, part, names, problem_));
    if (all_.size() > 1) wait_for_late(system, reach, options, setting);
    split::Result result = split::solve(system, setting);
    for (DeviceShare& share : result.devices)
        for (const char* const why : {split::not_ready, split::not_returned})
            if (share.state.ends_with(why)) share.state = std::string("left out: ") + why, counts_ = false;
    for (const split::Part& part : chosen_)
        if (std::count(result.left_behind.begin(), result.left_behind.end(), part.name)) {
            state_.leave_behind(part.name), left_behind_ = true;
            if (part.runtime) state_.kits.leave_behind(*part.runtime, part.number);
        }
    solved_as_thought_ = result.solved && result.coupled == problem_.coupled;
    paces_seen_ = result.rows_per_s;
    if (solved_as_thought_ && all_.size() < 2 && paces_seen_[0] > 0) rates.saw(pace_key(chosen_[0], names, problem_), paces_seen_[0]);
    add_left_out(result.devices);
    if (state_.has_log())
        for (const DeviceShare& share : result.devices)
            if (!share.state.empty()) state_.log("device '" + share.name + "' " + share.state);
    return result;
}

namespace {

void add_candidates(const devices::Rates& rates, std::span<const SplitMember> members, const SplitProblem& problem, const SplitChoice& choice, Plan& plan) {
    const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << std::min<std::size_t>(members.size(), 5)) - 1);
    for (std::uint32_t set = 1; set <= all; ++set) {
        const SplitEstimate known = estimate_members(rates, members, problem, set);
        Candidate one;
        one.algorithm = problem.coupled ? "coupled" : problem.slowly ? "joined_slowly" : "joined";
        one.device = names_of(members, set);
        one.predicted_s = known.seconds;
        one.taken = set == choice.members;
        one.why = one.taken ? (choice.learning ? "taken to be timed" : std::string("least ") + name_of(problem.objective)) : "";
        one.why += std::string(one.why.empty() ? "" : "; ") + (known.seen > 0 ? "as it was seen" : known.seconds == known.seconds ? "predicted from its devices alone" : "not known yet");
        plan.candidates.push_back(std::move(one));
    }
    const SplitEstimate taken = estimate_members(rates, members, problem, choice.members);
    if (!(plan.predicted_s == plan.predicted_s)) plan.predicted_s = taken.seconds;
}

Plan plan_of(std::span<const SplitMember> members) {
    Plan plan;
    plan.predicted_s = std::numeric_limits<double>::quiet_NaN();
    plan.device = names_of(members, static_cast<std::uint32_t>((std::uint64_t{1} << members.size()) - 1));
    plan.why = "chunks are handed out while it is being solved; joined where they meet if the matrix forgets, else coupled in two passes";
    plan.profile = "what solves of this Context and those before have seen";
    return plan;
}

}  // namespace

Plan SplitTeam::plan() const {
    Plan plan = plan_of(members_);
    plan.branch = {problem_.coupled ? "coupled" : "joined"};
    add_candidates(state_.rates(), members_, problem_, choice_, plan);
    return plan;
}

void plan_split(Context::State& state, const Device& device, const System& system, const Options& options, Plan& plan) {
    bool pageable = false;
    const std::vector<split::Part> parts = split_parts(state, device, system, options, pageable);
    if (parts.size() < 2) return;
    const std::vector<SplitMember> members = members_of(device, parts, options);
    SplitProblem problem = split_problem(system, options, pageable);
    plan = plan_of(members);
    plan.branch = {"joined", "coupled"};
    // Shapes do not tell how soon the matrix forgets.
    for (const auto& [slowly, coupled] : std::initializer_list<std::pair<bool, bool>>{{false, false}, {true, false}, {false, true}}) {
        problem.slowly = slowly, problem.coupled = coupled;
        // Not known for the one does not mean that it is as for the other.
        const double before = plan.predicted_s;
        add_candidates(state.rates(), members, problem, choose_members(state.rates(), members, problem), plan);
        if (coupled) plan.predicted_s = before;
    }
}

}  // namespace trifold::tridiagonal
