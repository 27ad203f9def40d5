// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/batch.hpp"

#include <algorithm>

namespace trifold::opencl {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::System;

constexpr std::size_t pivoted_group = 64;

std::size_t row_bytes(const System& system) { return size_of(system.dtype) * static_cast<std::size_t>(system.rows); }

// Work items of the pivoted kernel. GPU: what keeps it busy, but no more scratch than half a gigabyte unless that leaves too few items.
std::size_t pivoted_slots(bool wide, const System& system) {
    const auto systems = static_cast<std::size_t>(system.systems());
    if (!wide) return std::min(systems, 2 * most_drawers());
    constexpr std::size_t most = 1 << 18, least = 1 << 11, budget = std::size_t{1} << 29;
    return std::min(systems, std::clamp(budget / (4 * row_bytes(system)), least, most));
}

/// Numbers of c' and d' per item of columns.cl: four vectors of 64 bytes each.
std::size_t columns_bytes(const System& system) { return 2 * 4 * 64 * static_cast<std::size_t>(system.rows); }

void enqueue_pivoted(Call& call, bool only_marked) {
    const bool wide = call.device.info.wide;
    const std::size_t slots = pivoted_slots(wide, call.system);
    const auto rows = static_cast<cl_long>(call.system.rows);
    call.enqueue({"pivoted", "pivoted"}, slots, wide ? pivoted_group : 1, static_cast<cl_long>(slots), wide ? cl_long{1} : 4 * rows,
                 wide ? static_cast<cl_long>(slots) : cl_long{1}, static_cast<cl_int>(only_marked));
}

/// As in kernels/tiles.cl.
constexpr std::int64_t tile_rows = 8, tile_group = 128;

bool fits_a_group(const System& system) { return system.rows <= tile_rows * tile_group; }

void enqueue_tiles(Call& call) {
    const System& system = call.system;
    const std::int64_t parts = (system.rows + tile_rows - 1) / tile_rows, per_group = tile_group / parts;
    const std::int64_t lanes = system.levels > 0 ? system.extent[system.levels - 1] : 1;
    const std::int64_t groups = system.systems() / lanes * ((lanes + per_group - 1) / per_group);
    call.enqueue({"tiles", "tiles"}, static_cast<std::size_t>(groups * tile_group), tile_group, static_cast<cl_long>(parts));
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
    const bool unpivoted_first = algorithm == Algorithm::automatic && (wide ? fits_a_group(call.system) : call.system.levels > 0);
    call.reset(unpivoted_first ? Algorithm::thomas : Algorithm::lu);
    if (unpivoted_first && wide) enqueue_tiles(call);
    else if (unpivoted_first) call.enqueue({"columns", "columns"}, drawers(call.device.info.units), 1);
    enqueue_pivoted(call, unpivoted_first);
    name_the_failure(call);
}

void enqueue_finite(Call& call) {
    const bool wide = call.device.info.wide;
    call.reset(Algorithm::automatic);
    const auto systems = static_cast<std::size_t>(call.system.systems());
    call.enqueue({"finite", "finite"}, std::min<std::size_t>(systems, wide ? 1 << 16 : 2 * most_drawers()), wide ? pivoted_group : 1);
    name_the_failure(call);
}

}  // namespace trifold::opencl
