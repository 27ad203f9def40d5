// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/executor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "families/tridiagonal/split/attempt.hpp"
#include "families/tridiagonal/split/seam.hpp"

namespace trifold::tridiagonal::split {
namespace {

// dx is cut off where it has fallen below so much of the tolerance: then what lies beyond may be 2^40 times smaller than what is beside the boundary.
// Where that takes too many rows, where it is as small as the tolerance; every equation near the boundary is looked at in any case.
constexpr double strict = 0x1p-42, weak = 0x1p-4;
constexpr std::int64_t longest_window = 16384;
constexpr int places = 12;

}  // namespace

const char* refuses(const System& system) {
    if (system.levels != 0 || system.offsets) return "a split takes one system";
    if (system.periodic) return "a split takes no periodic system";
    if (system.accumulate) return "a split stores x and does not add to it";
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x}) {
        if (operand->kind == Operand::Kind::generator) return "a split reads arrays and scalars, not generators";
        if (operand->kind == Operand::Kind::view && operand->row_stride != 1) return "a split needs rows that lie side by side";
    }
    return nullptr;
}

int host_threads(std::span<const Part> parts, int threads) {
    const auto streams = std::count_if(parts.begin(), parts.end(), [](const Part& part) { return part.runtime; });
    return threads >= 4 ? std::max(threads - static_cast<int>(streams), 1) : threads;
}

Reach look(const System& system, const Ops& host, double tolerance, int threads) {
    const auto width = Windows(system, host).width({strict * tolerance, weak * tolerance}, std::min(longest_window, system.rows / 16), places, threads);
    return {width.rows, width.close};
}

double glance(const System& system) {
    constexpr int rows = 3;  // each of its numbers is a page of its own, which takes a microsecond to reach
    constexpr double most = 100;  // a coupling may be 0
    double sum = 0;
    for (int k = 0; k < rows; ++k) {
        const std::int64_t row = system.rows / (rows + 1) * (k + 1);
        const double beside = std::abs(entry(system.lower, row, system.dtype)) + std::abs(entry(system.upper, row, system.dtype));
        sum += std::min(std::abs(entry(system.diag, row, system.dtype)), most * beside) / std::max(beside, std::numeric_limits<double>::min()) - 1;
    }
    return sum / rows;
}

Result solve(const System& system, const Setting& setting) {
    const auto start = Clock::now();
    Result result;
    result.why = "the matrix does not forget";
    if (setting.reach.width > 0) result = solve_joined(system, setting, setting.reach.width, setting.reach.close, start);
    if (result.solved || !setting.couple) return result;
    Setting again = setting;
    again.left_behind = result.left_behind;
    Result coupled = solve_coupled(system, again, start);
    coupled.left_behind.insert(coupled.left_behind.end(), result.left_behind.begin(), result.left_behind.end());
    if (!coupled.solved) coupled.why = result.why + "; " + coupled.why;
    coupled.phases.insert(coupled.phases.begin(), result.phases.begin(), result.phases.end());
    coupled.trace.insert(coupled.trace.begin(), result.trace.begin(), result.trace.end());
    return coupled;
}

}  // namespace trifold::tridiagonal::split
