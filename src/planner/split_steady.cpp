// SPDX-License-Identifier: BSD-3-Clause
#include "planner/split_steady.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace trifold::tridiagonal {
namespace {

// Of the rows: what is seen of fewer says little of all.
constexpr double least_share = 1.0 / 16;

struct Span {
    double begin = std::numeric_limits<double>::infinity(), end = 0, rows = 0;
};

}  // namespace

Steady steady(std::span<const TraceEvent> trace, std::size_t devices, double rows, double seconds) {
    // Of two passes the first one, which ends where the host couples.
    double joins = std::numeric_limits<double>::infinity();
    for (const TraceEvent& event : trace)
        if (event.device < 0) joins = std::min(joins, event.begin_s);
    std::map<std::pair<int, std::int64_t>, Span> chunks;
    for (const TraceEvent& event : trace) {
        if (event.device < 0 || event.begin_s >= joins) continue;
        Span& chunk = chunks[{event.device, event.first}];
        chunk.begin = std::min(chunk.begin, event.begin_s), chunk.end = std::max(chunk.end, event.end_s), chunk.rows = static_cast<double>(event.rows);
    }
    // A device is ready when its first chunk is done: that one has waited for its programs.
    constexpr double never = std::numeric_limits<double>::infinity();
    std::vector<double> ready(devices, never);
    double end = 0;
    for (const auto& [of, chunk] : chunks) {
        if (static_cast<std::size_t>(of.first) < devices) ready[static_cast<std::size_t>(of.first)] = std::min(ready[static_cast<std::size_t>(of.first)], chunk.end);
        end = std::max(end, chunk.end);
    }
    Steady out;
    const double begin = devices > 0 ? *std::max_element(ready.begin(), ready.end()) : never;
    if (!(begin < end)) return out;
    std::vector<double> seen(devices, 0);
    double all = 0;
    for (const auto& [of, chunk] : chunks) {
        if (chunk.end <= begin || static_cast<std::size_t>(of.first) >= devices) continue;
        const double part = chunk.begin >= begin ? chunk.rows : chunk.rows * (chunk.end - begin) / (chunk.end - chunk.begin);
        seen[static_cast<std::size_t>(of.first)] += part, all += part;
    }
    if (all < least_share * rows) return out;
    for (const double one : seen) out.rows_per_s.push_back(one / (end - begin));
    out.seconds = rows / all * (end - begin) + std::max(0.0, seconds - end);
    return out;
}

}  // namespace trifold::tridiagonal
