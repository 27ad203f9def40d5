// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/march.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/cuda/tridiagonal/batch_plan.hpp"
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
        // Tiles that overlap store whole sectors. In place one would find x where it looks for the right-hand side.
        if (!system.in_place && !rows_begin_at<T, 32>(job.operand[4], job)) cut.columns -= 32 / static_cast<int>(sizeof(T));
        return true;
    }
    cut = {};
    cut.columns = columns_of<T>;
    // Tensors are stored by 16 bytes: behind a last row that ends within these, what lies in the gap would be overwritten.
    const bool whole = job.rows * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
    return whole && job.columns >= fewest_columns && system.systems() < most_tiles && job.columns < std::int64_t{1} << 31 && lies_along_rows(job.operand[3], job) && lies_along_rows(job.operand[4], job);
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

/// How a system is cut, if it is.
template <class T>
struct Cut {
    TileJob<T> job;
    ColumnCut columns;
    bool along_rows = false, bands = false;  ///< bands: kernels that hold the matrix in bands come behind, and have what does not forget
    bool taken = false;

    explicit Cut(const System& system) : bands(plan_shared<T>(system).kernel), taken(plan(system, job, columns, along_rows) && (joins(system) || !system.in_place)) {}
    std::size_t tiles() const {
        std::size_t runs = taken;
        for (const std::int64_t extent : job.outer_extent) runs *= static_cast<std::size_t>(extent);
        return runs ? runs * static_cast<std::size_t>((job.columns + columns.columns - 1) / columns.columns) : 0;
    }
    bool joins(const System& system) const { return !bands && chunks_of(system) <= most_joined_chunks; }
};

/// Scratch: factors and what is known of chunks, marks, a few words; what chunks tell each other; then that of what is left to others.
template <class T>
struct Parts {
    std::size_t down, up_, reduce, finish, links, last, first, marks, words, rest, bytes;

    Parts(const System& system, const Cut<T>& cut, bool join) {
        const auto chunks = static_cast<std::size_t>(chunks_of(system)), joined = join ? chunks : 0;
        const std::size_t factors = up(3 * march_rows * chunks * sizeof(T)), told = up(joined * cut.tiles() * columns_of<T> * sizeof(T));
        down = factors;
        up_ = down + up(chunks * sizeof(T));
        reduce = up_ + up(chunks * sizeof(T));
        finish = reduce + up(3 * march_rows * joined * sizeof(T));
        links = finish + up(3 * march_rows * joined * sizeof(T));
        last = links + up(joined * sizeof(DominantLink<T>));
        first = last + told;
        marks = first + told;
        words = marks + up(static_cast<std::size_t>(system.systems()));
        rest = words + 256;
        bytes = rest + (cut.bands ? batch_scratch(system) : std::max(windows_scratch(system), pivoted_scratch(system)));
    }
};

template <class T>
void solve(const System& system, const BatchLaunch& launch) {
    const Cut<T> cut(system);
    // Arrays that were copied here have lost their gaps, and may be in more tiles than scratch was asked for.
    const bool join = cut.joins(system) && launch.scratch_bytes >= Parts<T>(system, cut, true).bytes;
    const Parts<T> parts(system, cut, join);
    if (launch.scratch_bytes < parts.bytes) return;
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    auto* const words = reinterpret_cast<unsigned*>(scratch + parts.words);
    BatchLaunch rest = launch;
    rest.scratch = scratch + parts.rest, rest.scratch_bytes = launch.scratch_bytes - parts.rest;
    ColumnJob<T> job;
    March<T> march;
    march.along_rows = cut.along_rows, march.in_place = system.in_place;
    if (!cut.taken || (system.in_place && !join) || !march_job(cut.job, cut.columns, march.along_rows, job)) return cut.bands ? solve_batch(system, rest) : solve_windows(system, rest);

    MarchFactors<T> factors;
    factors.lower = band_of<T>(system.lower), factors.diag = band_of<T>(system.diag), factors.upper = band_of<T>(system.upper);
    factors.rows = static_cast<int>(system.rows), factors.chunks = static_cast<int>(chunks_of(system));
    // Where x takes the place of rhs, what is beyond a chunk could not be read again, nor what has failed be taken back: chunks are joined, whose x is stored when all of it is known.
    factors.forget = !system.in_place, factors.join = join;
    const auto at = [&](std::size_t part) { return reinterpret_cast<T*>(scratch + part); };
    factors.factors = at(0), factors.down = at(parts.down), factors.up = at(parts.up_), factors.reduce = at(parts.reduce), factors.finish = at(parts.finish);
    factors.links = reinterpret_cast<DominantLink<T>*>(scratch + parts.links);
    factors.forgotten = static_cast<T>(std::ldexp(std::numeric_limits<T>::epsilon() / 2, -static_cast<int>(neglect_margin)));
    factors.ahead = reinterpret_cast<int*>(words), factors.wanted = words + 1, factors.joined = words + 2;
    factors.all_left = &launch.outcome->handed_over, factors.done = &launch.outcome->judged;
    factors.marks = cut.bands ? static_cast<unsigned char*>(rest.scratch) : scratch + parts.marks, factors.systems = system.systems();
    launch_after(march_factor_kernel<T>, dim3(static_cast<unsigned>((factors.chunks * factor_pieces + factor_threads - 1) / factor_threads)), factor_block, 0, launch.stream, factors);

    march.factors = factors.factors, march.reduce = factors.reduce, march.finish = factors.finish, march.links = factors.links;
    march.ahead = factors.ahead, march.joined = factors.joined, march.wanted = factors.wanted, march.all_left = factors.all_left;
    march.last = at(parts.last), march.first = at(parts.first), march.chunks = factors.chunks;
    march.cut = MarchCut::of(job.tiles, march.chunks, std::int64_t{march_warps} * multiprocessors_of_current());
    march.reduce_cut = MarchCut::of(job.tiles, march.chunks, std::int64_t{march_reducers} * multiprocessors_of_current());
    job.marks = factors.marks, job.handed_over = &launch.outcome->marked;
    launch_march(job, march, MarchPass::whole_or_reduce, launch.stream);
    if (join) launch_march(job, march, MarchPass::join, launch.stream), launch_march(job, march, MarchPass::finish, launch.stream);
    if (cut.bands) return solve_batch_where(system, rest, &launch.outcome->handed_over);
    // Rows that lie side by side: windows are as fast in double precision, and three times as fast where the matrix needs no exchanges after all (measured).
    const bool windows_first = march.along_rows && sizeof(T) == 8;
    if (windows_first || !solve_all_on_chip(system, rest, factors.all_left)) solve_windows(system, rest, {.after_others = true});
    solve_pivoted(system, rest, factors.marks, &launch.outcome->marked);
}

/// Of few rows in all, launches are what a march takes: tiles that load the matrix for every system, from caches, are there twice as soon (measured: 4000 rows, 2^18 in all, 19 us instead of 49). Of
/// columns these keep so many rows, and load arrays, not numbers, element by element.
template <class T>
bool tiles_are_faster(const System& system, const Cut<T>& cut) {
    constexpr std::int64_t most_kept = 4096;
    const bool numbers = std::ranges::all_of(std::array{&system.lower, &system.diag, &system.upper}, [](const Operand* band) { return band->kind == Operand::Kind::scalar; });
    const std::int64_t enough = std::int64_t{1} << (!cut.along_rows && !numbers ? 19 : sizeof(T) == 8 ? 21 : 22);
    return !cut.bands && system.rows * system.systems() < enough && (cut.along_rows || system.rows <= most_kept) && !batch_refuses(system);
}

template <class T>
bool takes(const System& system) {
    const Cut<T> cut(system);
    return cut.taken && !tiles_are_faster(system, cut);
}

template <class T>
std::size_t scratch_of(const System& system) {
    const Cut<T> cut(system);
    return Parts<T>(system, cut, cut.joins(system)).bytes;
}

}  // namespace

bool takes_march(const System& system) {
    if (windows_refuse(system)) return false;
    return system.dtype == DType::f64 ? takes<double>(system) : takes<float>(system);
}

std::size_t march_scratch(const System& system) { return system.dtype == DType::f32 ? scratch_of<float>(system) : scratch_of<double>(system); }

void solve_march(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
