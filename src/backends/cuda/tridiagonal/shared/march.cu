// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/march.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "backends/cuda/tridiagonal/device/segments.hpp"
#include "backends/cuda/tridiagonal/device/windows.hpp"
#include "backends/cuda/tridiagonal/general/packed.hpp"
#include "backends/cuda/tridiagonal/general/pieces.cuh"
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

template <class T>
inline constexpr int columns_of = sizeof(T) == 8 ? 32 : 64;  ///< of two warps

/// Rows of columns begin at multiples of so many bytes.
template <class T, int Bytes>
bool rows_begin_at(const TileOperand<T>& operand, const TileJob<T>& job) {
    const auto whole = [](std::int64_t stride) { return stride * static_cast<std::int64_t>(sizeof(T)) % Bytes == 0; };
    bool all = reinterpret_cast<std::uintptr_t>(operand.data) % Bytes == 0 && whole(operand.row_stride);
    for (int l = 0; l < 3; ++l) all = all && (job.outer_extent[l] == 1 || whole(operand.outer_stride[l]));
    return all;
}

/// Columns that a kernel holds in bands of the matrix, too, but walks down in less time: more rows than a block has, so many of them in all that two launches more are little beside the rest, and
/// rows that begin at sectors. (Measured: 1025 to 2048 rows 78 to 86 % of the roof instead of 63 to 79; where rows begin anywhere as fast as bands.)
template <class T>
bool before_bands(const System& system, const SharedKernel<T>& on_chip, const TileJob<T>& job) {
    constexpr std::int64_t least = 1025, least_of_all = std::int64_t{1} << 25;
    const bool large = system.rows >= least && system.rows * system.systems() >= least_of_all;
    return on_chip.bands && large && !system.in_place && rows_begin_at<T, 32>(job.operand[3], job) && rows_begin_at<T, 32>(job.operand[4], job);
}

/// Rows lie side by side, whole vectors from system to system.
template <class T>
bool lies_along_rows(const TileOperand<T>& operand, const TileJob<T>& job) {
    const auto vectors = [](std::int64_t stride) { return stride > 0 && stride * static_cast<std::int64_t>(sizeof(T)) % 16 == 0 && stride < (std::int64_t{1} << 35); };
    if (operand.row_stride != 1 || !vectors(operand.column_stride) || reinterpret_cast<std::uintptr_t>(operand.data) % 16) return false;
    for (int l = 0; l < 3; ++l)
        if (job.outer_extent[l] > 1 && !vectors(operand.outer_stride[l])) return false;
    return tensor_maps_exist();
}

/// In place x is kept in scratch until all of it is known: what a system lacks beyond a segment is still read then, and a system that fails keeps its right-hand side.
System apart_from_rhs(const System& system, void* x) {
    System apart = system;
    if (system.in_place) apart.x = Packed(system).at(x), apart.in_place = false;
    return apart;
}

/// x of what was solved, from scratch to its place.
template <class T>
struct Return {
    Pieces pieces;
    Levels levels;
    Source<T> from, to;
    const unsigned char* marks;
    const unsigned* wanted;  ///< not zero: others solve all
};

template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) return_kernel(const __grid_constant__ Return<T> job) {
    after_the_kernel_before();
    if (*const_cast<const volatile unsigned*>(job.wanted)) return;
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool) {
        if (job.marks[k]) return;
        std::int64_t index[4];
        job.levels.indices(k, index);
        const Line<T> from = line_of(job.from, index), to = line_of(job.to, index);
#pragma unroll 4
        for (std::int64_t i = first; i < end; i += step) __stcs(&to.at(i), from[i]);
    });
}

/// The right-hand sides and x, cut; without the matrix, which is no operand of theirs.
template <class T>
bool plan(const System& system, TileJob<T>& job, ColumnCut& cut, bool& along_rows) {
    constexpr std::int64_t fewest_columns = 12, most_tiles = std::int64_t{1} << 30;
    if (system.rows > most_rows || !has_clusters() || !have_one_matrix(system)) return false;
    job = tile_job<T>(system);
    for (int k = 0; k < 3; ++k) job.operand[k] = {};
    along_rows = !columns_side_by_side(job);
    if (const SharedPlan<T> on_chip = plan_shared<T>(system); on_chip.kernel && (along_rows || !before_bands<T>(system, *on_chip.kernel, job))) return false;
    if (!along_rows) {
        if (!cut_rhs(job, cut)) return false;
        if (!rows_begin_at<T, 32>(job.operand[4], job)) cut.columns -= 32 / static_cast<int>(sizeof(T));
        return true;
    }
    cut = {};
    cut.columns = columns_of<T>;
    return job.columns >= fewest_columns && system.systems() < most_tiles && job.columns < std::int64_t{1} << 31 && lies_along_rows(job.operand[3], job) && lies_along_rows(job.operand[4], job);
}

/// The map of rhs or x, rows first. `operand`: of the job, whose outer levels are sorted.
template <class T>
bool encode_along_rows(const ColumnJob<T>& job, const TileOperand<T>& operand, TensorMap& map) {
    constexpr auto line = static_cast<std::uint32_t>(128 / sizeof(T));
    MapShape shape{operand.data,
                   {static_cast<std::uint64_t>(job.rows), static_cast<std::uint64_t>(job.columns), job.outer_extent[2], job.outer_extent[1], job.outer_extent[0]},
                   {},
                   {line, 32, 1, 1, 1},
                   5,
                   sizeof(T) == 8};
    const std::int64_t strides[4] = {operand.column_stride, operand.outer_stride[2], operand.outer_stride[1], operand.outer_stride[0]};
    for (int d = 0; d < 4; ++d) shape.bytes[d] = shape.extents[d + 1] > 1 ? static_cast<std::uint64_t>(strides[d]) * sizeof(T) : 16;
    shape.swizzled = true;
    return encode(map, shape);
}

template <class T>
bool march_job(const TileJob<T>& from, const ColumnCut& cut, bool along_rows, ColumnJob<T>& job) {
    if (!along_rows) return column_job(from, cut, job);
    TileJob<T> without = from;  // maps of columns are not wanted
    without.operand[3].data = nullptr;
    if (!column_job(without, cut, job)) return false;
    job.order = {};
    job.operand[3].data = from.operand[3].data;
    return encode_along_rows(job, job.operand[3], job.maps[3][0]) && encode_along_rows(job, job.operand[4], job.maps[2][0]);
}

/// Scratch: factors and what is known of chunks, marks, a few words; then that of what is left to others.
template <class T>
struct Parts {
    std::size_t down, up_, marks, words, x, rest, bytes;

    explicit Parts(const System& system) {
        const auto chunks = static_cast<std::size_t>(chunks_of(system));
        down = up(3 * march_rows * chunks * sizeof(T));
        up_ = down + up(chunks * sizeof(T));
        marks = up_ + up(chunks * sizeof(T));
        words = marks + up(static_cast<std::size_t>(system.systems()));
        x = words + 256;
        rest = x + (system.in_place ? up(static_cast<std::size_t>(Packed(system).elements) * sizeof(T)) : 0);
        bytes = rest + (plan_shared<T>(system).kernel ? batch_scratch(system) : std::max({windows_scratch(system), pivoted_scratch(system), takes_segments(system) ? segments_scratch(system) : 0}));
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
    March<T> march;
    const System apart = apart_from_rhs(system, scratch + parts.x);
    const bool bands = plan_shared<T>(system).kernel;
    if (!plan(apart, from, cut, march.along_rows) || !march_job(from, cut, march.along_rows, job)) return bands ? solve_batch(system, rest) : solve_windows(system, rest);

    MarchFactors<T> factors;
    factors.lower = band_of<T>(system.lower), factors.diag = band_of<T>(system.diag), factors.upper = band_of<T>(system.upper);
    factors.rows = static_cast<int>(system.rows), factors.chunks = static_cast<int>(chunks_of(system));
    factors.factors = reinterpret_cast<T*>(scratch), factors.down = reinterpret_cast<T*>(scratch + parts.down), factors.up = reinterpret_cast<T*>(scratch + parts.up_);
    factors.forgotten = static_cast<T>(std::ldexp(std::numeric_limits<T>::epsilon() / 2, -static_cast<int>(neglect_margin)));
    factors.ahead = reinterpret_cast<int*>(words), factors.wanted = words + 1;
    // Segments solve all themselves; what comes behind them would take that for what is left to it, and, in place, x for a right-hand side.
    if (bands || !takes_segments(system)) factors.all_left = &launch.outcome->handed_over;
    factors.done = &launch.outcome->judged;
    factors.marks = bands ? static_cast<unsigned char*>(rest.scratch) : scratch + parts.marks, factors.systems = system.systems();
    launch_after(march_factor_kernel<T>, dim3(static_cast<unsigned>((factors.chunks * factor_pieces + factor_threads - 1) / factor_threads)), factor_threads, 0, launch.stream, factors);

    march.factors = factors.factors, march.ahead = factors.ahead, march.chunks = factors.chunks;
    march.cut = MarchCut::of(job.tiles, march.chunks, std::int64_t{march_warps} * multiprocessors_of_current());
    job.marks = factors.marks, job.handed_over = &launch.outcome->marked;
    launch_march(job, march, launch.stream);
    if (system.in_place) {
        const Pieces pieces(system);
        launch_after(return_kernel<T>, pieces.blocks(), Pieces::block_threads, 0, launch.stream,
                     Return<T>{pieces, Levels(system), Source<T>(apart.x), Source<T>(system.x), factors.marks, factors.wanted});
    }
    if (bands) return solve_batch_where(system, rest, &launch.outcome->handed_over);
    if (takes_segments(system)) solve_segments(system, rest, factors.wanted);
    else solve_windows(system, rest, {.after_halos = true});
    solve_pivoted(system, rest, factors.marks, &launch.outcome->marked);
}

}  // namespace

bool takes_march(const System& system) {
    ColumnCut cut;
    bool along_rows;
    if (windows_refuse(system)) return false;
    const System apart = apart_from_rhs(system, nullptr);
    if (system.dtype == DType::f64) {
        TileJob<double> job;
        return plan(apart, job, cut, along_rows);
    }
    TileJob<float> job;
    return plan(apart, job, cut, along_rows);
}

std::size_t march_scratch(const System& system) { return system.dtype == DType::f32 ? Parts<float>(system).bytes : Parts<double>(system).bytes; }

void solve_march(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
