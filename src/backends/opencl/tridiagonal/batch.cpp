// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/batch.hpp"

#include <algorithm>

#include "backends/opencl/tridiagonal/gpu_batch.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::System;

constexpr std::size_t pivoted_group = 64;

std::size_t row_bytes(const System& system) { return size_of(system.dtype) * static_cast<std::size_t>(system.rows); }

// Work items of the pivoted kernel. GPU: what keeps it busy, but no more scratch than half a gigabyte unless that leaves too few items.
std::size_t pivoted_slots(bool wide, const System& system, bool only_marked = false) {
    const auto systems = static_cast<std::size_t>(system.systems());
    if (!wide) return std::min(systems, 2 * most_drawers());
    constexpr std::size_t least = 1 << 11, budget = std::size_t{1} << 29;
    const std::size_t most = only_marked ? 1 << 14 : 1 << 18;  // a launch that mostly finds nothing to do
    return std::min(systems, std::clamp(budget / (4 * row_bytes(system)), least, most));
}

/// c' and d' of an item of columns.cl, four vectors of 64 bytes a row at most, and two rows for numbers.
std::size_t columns_bytes(const System& system) { return 2 * 4 * 64 * static_cast<std::size_t>(system.rows + 2); }

/// Systems side by side in every operand that is not a number.
bool in_lines(const System& system) {
    const tridiagonal::Operand* const operands[] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    return std::ranges::all_of(operands, [&](const auto* o) { return o->kind == tridiagonal::Operand::Kind::scalar || o->level_stride[system.levels - 1] == 1; });
}

/// Systems before the first one whose x begins a cache line, where the rows of all begin alike.
cl_long shift_to_line(const System& system) {
    const auto bytes = static_cast<std::int64_t>(size_of(system.dtype)), line = 64 / bytes;
    if (!in_lines(system) || system.x.row_stride % line != 0) return 0;
    return std::min((line - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(system.x.data) % 64) / bytes) % line, system.extent[system.levels - 1]);
}

/// The last kernel of a batch.
void enqueue_pivoted(Call& call, bool only_marked, Algorithm branch) {
    const bool wide = call.device.info.wide;
    const std::size_t slots = pivoted_slots(wide, call.system, only_marked);
    const auto rows = static_cast<cl_long>(call.system.rows);
    call.enqueue({"pivoted", "pivoted"}, slots, wide ? pivoted_group : 1, static_cast<cl_long>(slots), wide ? cl_long{1} : 4 * rows,
                 wide ? static_cast<cl_long>(slots) : cl_long{1}, static_cast<cl_int>(only_marked ? 1 + (wide && marks_twice(call.device.info, call.system)) : 0), call.telling(branch), call.outcome_buffer());
}

/// A vector unit's blocks of systems, drawn by tickets. tells: the outcome, where no system needs pivots.
void enqueue_columns(Call& call, bool tells) {
    call.enqueue({"columns", "columns"}, drawers(call.device.info.units), 1, static_cast<cl_int>(in_lines(call.system)), static_cast<cl_int>(past_caches(call.system)),
                 shift_to_line(call.system), static_cast<cl_int>(tells), call.telling(Algorithm::thomas), call.outcome_buffer());
}

void name_the_failure(Call& call) {
    const bool wide = call.device.info.wide;
    call.enqueue({"pivoted", "name_failure"}, wide ? 4096 : 1, wide ? pivoted_group : 1);
}

}  // namespace

std::size_t most_drawers() {
    static const std::size_t most = [] {
        int units = 1;
        for (int d = 0; d < device_count(); ++d) units = std::max(units, found(d).units);
        return static_cast<std::size_t>(units);
    }();
    return drawers(static_cast<int>(most));
}

std::size_t batch_scratch(bool wide, const System& system, Algorithm algorithm) {
    std::size_t work = pivoted_slots(wide, system) * 4 * row_bytes(system);
    if (!wide && algorithm == Algorithm::automatic && system.levels > 0) work = std::max(work, most_drawers() * columns_bytes(system));
    return ScratchParts(system).work + work;
}

void enqueue_batch(Call& call, Algorithm algorithm) {
    const bool wide = call.device.info.wide;
    const bool unpivoted_first = algorithm == Algorithm::automatic && (wide ? fits_on_chip(call.device.info, call.system) : call.system.levels > 0);
    call.use_state();
    if (unpivoted_first && wide) enqueue_on_chip(call, false);
    else if (unpivoted_first) enqueue_columns(call, false);
    enqueue_pivoted(call, unpivoted_first, unpivoted_first ? Algorithm::thomas : Algorithm::lu);
    call.told();
}

void enqueue_batch_on_trust(Call& call) {
    call.use_state();
    enqueue_on_chip(call, true);
    call.told();
}

void solve_batch(Call& call, Algorithm algorithm) {
    const bool in_two = algorithm == Algorithm::automatic && !call.device.info.wide && call.device.info.in_host_memory && call.system.levels > 0;
    if (!in_two) {
        enqueue_batch(call, algorithm);
        return call.wait();
    }
    call.use_state();
    enqueue_columns(call, true);
    call.wait();
    if (call.found().systems == 0) {  // not told
        enqueue_pivoted(call, true, Algorithm::thomas);
        call.wait();
    }
    call.told();
}

void enqueue_finite(Call& call) {
    const bool wide = call.device.info.wide;
    call.reset(Algorithm::automatic);
    const auto systems = static_cast<std::size_t>(call.system.systems());
    call.enqueue({"finite", "finite"}, std::min<std::size_t>(systems, wide ? 1 << 16 : 2 * most_drawers()), wide ? pivoted_group : 1);
    name_the_failure(call);
}

}  // namespace trifold::opencl
