// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/march.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "backends/cuda/tridiagonal/device/segments.hpp"
#include "backends/cuda/tridiagonal/device/windows.hpp"
#include "backends/cuda/tridiagonal/pivoted.hpp"
#include "backends/cuda/tridiagonal/shared/march_factor.cuh"
#include "backends/cuda/tridiagonal/shared/plan.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

constexpr std::int64_t most_rows = std::int64_t{1} << 30;
constexpr double neglect_margin = 4;  ///< what need not be known is so much less than roundoff, as log2

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
std::int64_t chunks_of(const System& system) { return (system.rows + march_rows - 1) / march_rows; }

template <class T>
SharedBand<T> band_of(const Operand& from) {
    if (from.kind == Operand::Kind::scalar) return {nullptr, static_cast<T>(from.value), 0};
    return {static_cast<const T*>(from.data), T(0), from.row_stride};
}

/// The right-hand sides and x as columns; without the matrix, which is no operand of theirs.
template <class T>
bool plan(const System& system, TileJob<T>& job, ColumnCut& cut) {
    if (system.in_place || system.rows > most_rows || !has_clusters() || !have_one_matrix(system) || plan_shared<T>(system).kernel) return false;
    job = tile_job<T>(system);
    for (int k = 0; k < 3; ++k) job.operand[k] = {};
    return columns_side_by_side(job) && cut_rhs(job, cut);
}

/// Segments of a column: as few as leave no warp without work for long, each of which reads its ends once more.
template <class T>
void cut_rows(const ColumnJob<T>& job, March<T>& march) {
    const std::int64_t across = job.tiles, warps = std::int64_t{march_warps} * multiprocessors_of_current(), chunks = march.chunks;
    std::int64_t best = 0;
    for (std::int64_t segments = 1; segments <= std::clamp<std::int64_t>(chunks / 4, 1, 1024); ++segments) {
        const std::int64_t each = (chunks + segments - 1) / segments, ends = segments > 1 ? 2 : 0, cost = (across * segments + warps - 1) / warps * (each + ends + 2);
        if (segments > 1 && cost >= best) continue;
        best = cost;
        march.segment_chunks = static_cast<int>(each), march.segments = static_cast<unsigned>((chunks + each - 1) / each);
    }
    march.units = static_cast<unsigned>(across) * march.segments;
}

/// Scratch: factors and what is known of chunks, marks, a few words; then that of what is left to others.
template <class T>
struct Parts {
    std::size_t down, up_, marks, words, rest, bytes;

    explicit Parts(const System& system) {
        const auto chunks = static_cast<std::size_t>(chunks_of(system));
        down = up(3 * march_rows * chunks * sizeof(T));
        up_ = down + up(chunks * sizeof(T));
        marks = up_ + up(chunks * sizeof(T));
        words = marks + up(static_cast<std::size_t>(system.systems()));
        rest = words + 256;
        bytes = rest + std::max({windows_scratch(system), pivoted_scratch(system), takes_segments(system) ? segments_scratch(system) : 0});
    }
};

template <class T>
void solve(const System& system, const BatchLaunch& launch) {
    const Parts<T> parts(system);
    if (launch.scratch_bytes < parts.bytes) return;
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    auto* const words = reinterpret_cast<unsigned*>(scratch + parts.words);
    BatchLaunch rest = launch;
    rest.scratch = scratch + parts.rest, rest.scratch_bytes = launch.scratch_bytes - parts.rest;
    TileJob<T> from;
    ColumnCut cut;
    ColumnJob<T> job;
    if (!plan(system, from, cut) || !column_job(from, cut, job)) return solve_windows(system, rest);

    MarchFactors<T> factors;
    factors.lower = band_of<T>(system.lower), factors.diag = band_of<T>(system.diag), factors.upper = band_of<T>(system.upper);
    factors.rows = static_cast<int>(system.rows), factors.chunks = static_cast<int>(chunks_of(system));
    factors.factors = reinterpret_cast<T*>(scratch), factors.down = reinterpret_cast<T*>(scratch + parts.down), factors.up = reinterpret_cast<T*>(scratch + parts.up_);
    factors.forgotten = static_cast<T>(std::ldexp(std::numeric_limits<T>::epsilon() / 2, -static_cast<int>(neglect_margin)));
    factors.ahead = reinterpret_cast<int*>(words), factors.wanted = words + 1;
    factors.all_left = &launch.outcome->handed_over, factors.done = &launch.outcome->judged;
    factors.marks = scratch + parts.marks, factors.systems = system.systems();
    launch_after(march_factor_kernel<T>, dim3(static_cast<unsigned>((factors.chunks * factor_pieces + factor_threads - 1) / factor_threads)), factor_threads, 0, launch.stream, factors);

    March<T> march;
    march.factors = factors.factors, march.ahead = factors.ahead, march.chunks = factors.chunks;
    cut_rows(job, march);
    job.marks = factors.marks, job.handed_over = &launch.outcome->marked;
    launch_march(job, march, launch.stream);
    if (takes_segments(system)) solve_segments(system, rest, factors.wanted);
    else solve_windows(system, rest, {.after_halos = true});
    solve_pivoted(system, rest, factors.marks, &launch.outcome->marked);
}

}  // namespace

bool takes_march(const System& system) {
    ColumnCut cut;
    if (windows_refuse(system)) return false;
    if (system.dtype == DType::f64) {
        TileJob<double> job;
        return plan(system, job, cut);
    }
    TileJob<float> job;
    return plan(system, job, cut);
}

std::size_t march_scratch(const System& system) { return system.dtype == DType::f32 ? Parts<float>(system).bytes : Parts<double>(system).bytes; }

void solve_march(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
