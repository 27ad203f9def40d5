// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/path.hpp"

#include <algorithm>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/tridiagonal/block/one_system.hpp"
#include "backends/cuda/tridiagonal/device/certified.hpp"
#include "backends/cuda/tridiagonal/device/segments.hpp"
#include "backends/cuda/tridiagonal/device/two_pass.hpp"
#include "backends/cuda/tridiagonal/device/windows.hpp"
#include "backends/cuda/tridiagonal/few_rows.hpp"
#include "backends/cuda/tridiagonal/general/added.hpp"
#include "backends/cuda/tridiagonal/general/alike.hpp"
#include "backends/cuda/tridiagonal/general/one_ring.hpp"
#include "backends/cuda/tridiagonal/general/rings.hpp"
#include "backends/cuda/tridiagonal/pivoted.hpp"
#include "backends/cuda/tridiagonal/shared/march.hpp"

namespace trifold::cuda {

using tridiagonal::Algorithm;
using tridiagonal::System;

namespace {

Path long_columns(const System& system) {
    if (takes_march(system)) return {Algorithm::thomas, march_scratch, solve_march, nullptr, false, true, true};
    if (takes_segments(system)) return {Algorithm::two_pass, segments_scratch, [](const System& all, const BatchLaunch& launch) { solve_segments(all, launch); }, nullptr, false, true, true};
    return {};
}

Path few_rows_path() {
    const auto nothing = [](const System&) { return std::size_t{0}; };
    const auto in_one_launch = [](const System& system, const BatchLaunch& launch) { return solve_few_rows(system, launch), true; };
    return {Algorithm::lu, nothing, solve_few_rows, in_one_launch, true};
}

Path other_path(const System& system, Algorithm algorithm) {
    if (system.periodic) {
        const auto in_one_launch = [](const System& ring, const BatchLaunch& launch) {
            const bool fits = one_ring_fits(ring) && launch.scratch_bytes >= one_ring_scratch(ring);
            if (fits) solve_one_ring(ring, launch);
            return fits;
        };
        return {Algorithm::thomas, [](const System& ring) { return std::max(rings_scratch(ring), one_ring_scratch(ring)); }, solve_rings, in_one_launch, true, true, false, rings_least_scratch};
    }
    if (system.accumulate && fits_few_rows(system)) return few_rows_path();
    if (system.accumulate) return {Algorithm::thomas, added_scratch, solve_added, nullptr, true, true, false, added_least_scratch};
    if (algorithm == Algorithm::automatic ? takes_few_rows(system) : algorithm == Algorithm::lu && fits_few_rows(system)) return few_rows_path();
    if (algorithm == Algorithm::automatic && !batch_refuses(system)) {
        if (halos_before_batch(system)) return {Algorithm::thomas, batch_scratch, solve_halos_and_batch, nullptr, true, true};
        return {Algorithm::thomas, batch_scratch, solve_batch, solve_in_one_launch, true};
    }
    if (algorithm == Algorithm::certified)
        return {Algorithm::certified, certified_scratch, [](const System& one, const BatchLaunch& launch) { solve_certified(one, launch, false); }, nullptr, true, true};
    if (algorithm == Algorithm::automatic && (!certified_refuses(system) || several_in_halos(system)))
        return {Algorithm::certified, certified_scratch, [](const System& one, const BatchLaunch& launch) { solve_certified(one, launch, true); }, nullptr, true, true};
    if (algorithm == Algorithm::automatic && !windows_refuse(system))
        // Arrays that are copied to the device lose their gaps: what is asked for here has to do for solve_certified as well.
        return {Algorithm::certified, certified_scratch, [](const System& all, const BatchLaunch& launch) { solve_windows(all, launch); }, nullptr, false, true};
    if (algorithm != Algorithm::lu && !two_pass_refuses(system))
        return {Algorithm::two_pass, two_pass_scratch, [](const System& all, const BatchLaunch& launch) { solve_two_pass(all, launch); }};
    return {Algorithm::lu, pivoted_scratch, [](const System& all, const BatchLaunch& launch) { solve_pivoted(all, launch); }};
}

}  // namespace

Path path_for(const System& system, Algorithm algorithm) {
    if (algorithm == Algorithm::automatic && !system.periodic && !system.accumulate) {
        if (takes_alike(system)) return {Algorithm::thomas, alike_scratch, solve_alike, nullptr, true, true, true};
        if (const Path path = long_columns(system); path.enqueue) return path;
    }
    return other_path(system, algorithm);
}

Path path_within(const System& system, Algorithm algorithm, std::size_t scratch_bytes) {
    const Path path = path_for(system, algorithm);
    return path.dispensable && scratch_bytes < path.scratch(system) ? other_path(system, algorithm) : path;
}

std::size_t scratch_for(const System& system, Algorithm algorithm) {
    const Path path = path_for(system, algorithm);
    const std::size_t bytes = std::max(path.scratch(system), one_system_scratch(system));  // it wants no gaps
    return path.dispensable ? std::max(bytes, other_path(system, algorithm).scratch(system)) : bytes;
}

std::size_t least_scratch(const System& system, Algorithm algorithm) { return std::max(other_path(system, algorithm).least_scratch(system), one_system_scratch(system)); }

void enqueue_path(const Path& path, const System& system, const BatchLaunch& launch) {
    if (path.in_one_launch && path.in_one_launch(system, launch)) return;
    const std::int64_t systems = system.systems();
    if (!path.resets) reset_outcome(launch.outcome, system.rows, systems, static_cast<int>(path.branch), launch.stream);
    if (launch.status) enqueue_fill(launch.status + system.number, static_cast<int>(Reason::exact), static_cast<std::size_t>(systems), launch.stream);
    path.enqueue(system, launch);
}

}  // namespace trifold::cuda
