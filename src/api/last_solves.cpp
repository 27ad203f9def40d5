// SPDX-License-Identifier: BSD-3-Clause
#include "api/last_solves.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "devices/context_state.hpp"

namespace trifold::tridiagonal {
namespace {

// Of coefficients that change a little from step to step.
constexpr double alike = 0.1;

std::uint64_t what_of(const System& system, const Options& options) {
    std::uint64_t bits = static_cast<std::uint64_t>(size_class(static_cast<double>(system.rows)));
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs}) bits = bits << 2 | static_cast<std::uint64_t>(operand->kind);
    return ((bits << 2 | static_cast<std::uint64_t>(options.objective)) << 2 | static_cast<std::uint64_t>(system.dtype)) << 1 | static_cast<std::uint64_t>(system.in_place);
}

std::uint64_t watts_of(const Options& options) {
    std::uint64_t bits = 0;
    for (const DeviceWatts& one : options.watts) bits = bits * 31 + std::bit_cast<std::uint64_t>(one.watts) + std::hash<std::string_view>()(one.device);
    return bits;
}

devices::Arrays arrays_of(const System& system) {
    devices::Arrays arrays;
    arrays.rows = system.rows;
    std::size_t k = 0;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x}) arrays.at[k++] = operand->kind == Operand::Kind::view ? operand->data : nullptr;
    return arrays;
}

}  // namespace

LastSolves::LastSolves(Context::State& state, const Device& set, const System& system, const Options& options) : state_(state), system_(system) {
    takes_part_ = set.parts.size() > 1 && may_split(system, options);
    if (!takes_part_) return;
    const devices::Shape shape{&set, what_of(system, options), watts_of(options)};
    const devices::Arrays arrays = arrays_of(system);
    if (!state.standings.find(shape, arrays, last_)) last_.shape = shape, last_.arrays = arrays;
    stands_ = last_.left > 0 && !(chosen().part.runtime && state.left_behind(chosen().part.name)) && as_before();
}

// In thousandths.
int LastSolves::dominance() {
    if (std::exchange(has_dominance_, true)) return dominance_;
    const double found = split::glance(system_);
    return dominance_ = std::isfinite(found) ? static_cast<int>(std::lround(1000 * found)) : -2000;
}

bool LastSolves::as_before() { return last_.known && std::abs(dominance() - last_.dominance) <= std::max(1.0, alike * std::abs(last_.dominance)); }

bool LastSolves::host_alone() const { return !chosen().part.runtime && chosen().part.ops == &split_host_ops(); }

void LastSolves::stood(double seconds, std::string_view branch) {
    last_.left -= 1, last_.not_looked += 1;
    if (std::hash<std::string_view>()(branch) != last_.branch) last_.known = false, last_.left = 0;
    else if (seconds > 0 && last_.times < devices::Standing::most) last_.rows_per_s[last_.times++] = static_cast<double>(system_.rows) / seconds;
    state_.standings.keep(last_);
}

void LastSolves::asked(bool pageable, bool several) {
    takes_part_ = takes_part_ && several;
    if (!takes_part_) return;
    const devices::Arrays arrays = last_.arrays;
    devices::Shape shape = last_.shape;
    shape.pageable = pageable;
    if (!(shape == last_.shape && last_.known) && !state_.standings.find(shape, last_)) last_ = {};
    last_.shape = shape, last_.arrays = arrays;
    if (last_.times > 0) {
        const OneChosen& one = chosen();
        const auto before = static_cast<std::size_t>(last_.times - 1);
        remember(state_.rates(), one.members, one.choice, one.problem, {.seconds = one.problem.rows / last_.rows_per_s[before], .before = {last_.rows_per_s, before}}, {});
    }
    last_.left = 0, last_.times = 0, last_.chosen = nullptr;
    known_ = last_.not_looked < devices::Standing::most && as_before();
    reach_.width = last_.width;
}

bool LastSolves::ended(std::shared_ptr<const OneChosen> one, const split::Reach* looked, std::string_view branch) {
    if (!takes_part_) return true;
    const std::size_t which = std::hash<std::string_view>()(branch);
    bool same = true;
    if (looked) {
        last_.width = looked->width, last_.not_looked = 0;
        last_.known = one || known_;
        if (one) last_.branch = which, last_.dominance = dominance();
    } else {
        same = which == last_.branch;
        last_.known = last_.known && same, last_.not_looked += 1;
    }
    if (one && last_.known && one->choice.stands > 0) {
        last_.left = std::min(one->choice.stands, devices::Standing::most - last_.not_looked);
        last_.chosen = std::move(one);
    }
    state_.standings.keep(last_);
    return same;
}

}  // namespace trifold::tridiagonal
