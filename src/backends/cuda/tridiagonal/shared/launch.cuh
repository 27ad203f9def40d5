// SPDX-License-Identifier: BSD-3-Clause
// One instantiation of a kernel for one shared matrix as a row of the table.
#pragma once

#include <algorithm>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/bands.cuh"
#include "backends/cuda/tridiagonal/shared/bands_in_place.cuh"
#include "backends/cuda/tridiagonal/shared/columns.cuh"
#include "backends/cuda/tridiagonal/shared/columns_ring.cuh"
#include "backends/cuda/tridiagonal/shared/kernels.hpp"
#include "backends/cuda/tridiagonal/shared/ring_rows.cuh"
#include "backends/cuda/tridiagonal/shared/ring_share.hpp"
#include "backends/cuda/tridiagonal/shared/rows.cuh"

namespace trifold::cuda {

inline constexpr int shared_block_bytes = most_shared_bytes - 128;  // less what is static

template <class T>
void set_array_range(SharedJob<T>& job) {
    job.lowest = job.highest = job.rhs.data;
    for (int l = 0; l < job.levels; ++l) (job.rhs.level_stride[l] < 0 ? job.lowest : job.highest) += (job.extent[l] - 1) * job.rhs.level_stride[l];
    (job.rhs.row_stride < 0 ? job.lowest : job.highest) += (job.rows - 1) * job.rhs.row_stride;
    ++job.highest;
}

// As many blocks as the device runs at once, or clusters of blocks; each takes one tile after another. Together: none begins before all can, since they wait for each other.
template <auto kernel, bool Together = false, class T, class... More>
void launch_persistent(SharedJob<T>& job, unsigned tiles, bool drawn, int threads, int bytes, cudaStream_t stream, const More&... more) {
    static PerDevice prepared;
    prepared.once([] {
        allow_shared_memory(kernel, shared_block_bytes);
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    });
    const auto cluster = static_cast<unsigned>(job.cluster);
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
    config.stream = stream;
    config.gridDim = dim3(cluster);
    cudaLaunchAttribute attribute[3];
    config.attrs = attribute;
    if (cluster > 1) {
        attribute[0] = cluster_of(cluster);
        config.numAttrs = 1;
    }
    static Residency residency;
    // Where tiles are not drawn, no more than it takes for that many turns: a last turn of few blocks would leave the memory idle.
    const unsigned most = residency(kernel, config, cluster) * cluster;
    job.turns = drawn ? 1 : (tiles + most - 1) / most;
    config.gridDim = dim3(drawn ? std::min(tiles, most) : ((tiles + job.turns - 1) / job.turns + cluster - 1) / cluster * cluster);
    if (Together) attribute[config.numAttrs].id = cudaLaunchAttributeCooperative, attribute[config.numAttrs++].val.cooperative = 1;
    if (!job.opening.outcome) while_the_kernel_before_ends(attribute[config.numAttrs++]);
    enqueue_kernel(config, kernel, job, more...);
}

template <class T, int R>
int columns_bytes(const SharedJob<T>& job) {
    return ColumnsLayout<T, R>(job.segments, job.across, column_slack<T>(job.copies), job.closed).total * static_cast<int>(sizeof(T));
}

// Whether x lies elsewhere, and is overwritten. Where it does not, what is written in part has just been read.
template <class T>
bool apart_from_x(const SharedJob<T>& job) {
    if (job.adds) return false;
    SharedJob<T> from = job, to = job;
    to.rhs = job.x;
    set_array_range(from), set_array_range(to);
    return to.highest <= from.lowest || from.highest <= to.lowest;
}

// Whether pieces of rows of x share sectors of 32 bytes with others, and lie apart from rhs.
template <class T>
bool parts_of_sectors(const SharedJob<T>& job) {
    constexpr std::int64_t sector = 32 / sizeof(T);
    const int last = job.levels - 1;
    if (job.x.level_stride[last] != 1) return false;
    bool whole = job.x.row_stride % sector == 0 && reinterpret_cast<std::uintptr_t>(job.x.data) % 32 == 0 && job.extent[last] % sector == 0;
    for (int l = 0; l < last; ++l) whole = whole && job.x.level_stride[l] % sector == 0;
    return !whole && apart_from_x(job);
}

template <class T, int R, int Threads, int MostRows>
bool cut_columns(SharedJob<T>& job, const SharedKernel<T>&) {
    const unsigned extent = job.extent[job.levels - 1];
    job.segments = (job.rows + R - 1) / R;
    // Pieces of rows of 512 bytes, or as many as threads suffice for, but 128; what is narrower than 256 goes in step.
    constexpr int widest = 512 / static_cast<int>(sizeof(T));
    // Where rows begin anywhere: up to 1024, for what a piece has at its ends costs most there.
    const bool apart = parts_of_sectors(job), odd = apart || (job.copies == ColumnCopies::elements && job.rhs.level_stride[job.levels - 1] == 1 && extent >= 32);
    job.across = odd ? 2 * widest : widest;
    while (job.across > widest / 4 && (job.across * job.segments > Threads || (odd && job.across / 2 >= static_cast<int>(extent)))) job.across /= 2;
    if (job.rows > MostRows || job.across * job.segments > Threads || job.across * job.segments % 32 != 0) return false;
    job.cluster = job.across < widest / 2 ? 2 : 1;
    job.draw = job.cluster == 1;
    set_array_range(job);
    // Sets that overlap, unless that makes a line's many more.
    const auto across = static_cast<unsigned>(job.across), over = 32 / static_cast<unsigned>(sizeof(T)) - 1;
    const unsigned sets = extent <= across ? 1 : (extent - over - 1) / (across - over) + 1;
    job.whole_sectors = apart && sets * across * 10 <= extent * 13;
    job.lines = job.whole_sectors;
    if ((job.copies == ColumnCopies::elements || job.whole_sectors) && job.rhs.level_stride[job.levels - 1] == 1 && extent >= 32) {
        job.lines = true;
        job.copies = ColumnCopies::lines;
        if (columns_bytes<T, R>(job) > shared_block_bytes) job.copies = ColumnCopies::rows;
    } else if (job.whole_sectors && job.copies == ColumnCopies::vectors) {
        job.whole_sectors = job.lines = false;
    }
    job.slack = column_slack<T>(job.copies);
    job.line_extent = job.lines ? extent : job.systems;
    job.tiles_per_line = job.whole_sectors ? sets : (job.line_extent + across - 1) / across;
    job.set_columns = job.whole_sectors ? across - over : column_slack<T>(job.copies) ? (extent + job.tiles_per_line - 1) / job.tiles_per_line : across;
    job.tiles = job.tiles_per_line * (job.systems / job.line_extent);
    return columns_bytes<T, R>(job) <= shared_block_bytes;
}

template <class T, int R, int Threads, int Blocks, bool Closed = false, bool Adds = false>
void launch_columns(SharedJob<T>& job, cudaStream_t stream) {
    const auto launch = [&]<ColumnCopies Copies>() {
        launch_persistent<solve_shared_columns<T, R, Copies, Threads, Blocks, Closed, Adds>>(job, job.tiles, job.draw > 0, job.across * job.segments, columns_bytes<T, R>(job), stream);
    };
    switch (job.copies) {
        case ColumnCopies::elements: return launch.template operator()<ColumnCopies::elements>();
        case ColumnCopies::vectors: return launch.template operator()<ColumnCopies::vectors>();
        case ColumnCopies::rows: return launch.template operator()<ColumnCopies::rows>();
        case ColumnCopies::tensors:
        case ColumnCopies::lines: return launch.template operator()<ColumnCopies::lines>();
    }
}

template <class T, int R>
int ring_bytes(const SharedJob<T>& job) {
    return columns_bytes<T, R>(job) + (ring_stages - 1) * job.segments * R * job.across * static_cast<int>(sizeof(T));
}

// Columns, rows and one level above; rows 16 bytes apart or multiples of that.
template <class T, int R>
bool encode_columns(const SharedJob<T>& job, const SharedOperand<T>& operand, TensorMap& map) {
    const int last = job.levels - 1;
    MapShape shape{operand.data, {job.extent[last], static_cast<std::uint64_t>(job.rows), job.levels > 1 ? job.extent[0] : 1}};
    shape.bytes[0] = static_cast<std::uint64_t>(operand.row_stride) * sizeof(T);
    shape.bytes[1] = job.levels > 1 ? static_cast<std::uint64_t>(operand.level_stride[0]) * sizeof(T) : shape.bytes[0];
    shape.box[0] = static_cast<std::uint32_t>(job.across), shape.box[1] = static_cast<std::uint32_t>(job.segments * R), shape.box[2] = 1;
    shape.dimensions = 3, shape.wide = sizeof(T) == 8, shape.lines = false;
    return encode(map, shape);
}

// Whether the copy engine takes rhs and x as tensors.
template <class T>
bool in_tensors(const SharedJob<T>& job) {
    constexpr int V = 16 / static_cast<int>(sizeof(T));
    const int last = job.levels - 1;
    if (job.copies != ColumnCopies::vectors || job.levels > 2 || !tensor_maps_exist()) return false;
    if (job.x.level_stride[last] != 1 || job.x.row_stride % V != 0 || reinterpret_cast<std::uintptr_t>(job.x.data) % 16 != 0) return false;
    for (const SharedOperand<T>* o : {&job.rhs, &job.x})
        if (o->row_stride < 0 || (last && (o->level_stride[0] < 0 || o->level_stride[0] % V != 0))) return false;
    return true;
}

// Sets of columns that are drawn; a line's last one should not be mostly others' room.
template <class T>
bool cut_lines(SharedJob<T>& job) {
    set_array_range(job);
    job.draw = 1;
    job.lines = true, job.line_extent = job.extent[job.levels - 1], job.set_columns = static_cast<unsigned>(job.across);
    job.tiles_per_line = (job.line_extent + job.set_columns - 1) / job.set_columns;
    job.tiles = job.tiles_per_line * (job.systems / job.line_extent);
    if (job.levels == 1) job.order = tile_order(job.x.row_stride * static_cast<std::int64_t>(sizeof(T)), job.across * static_cast<int>(sizeof(T)), job.tiles);
    return job.line_extent * 10 >= job.tiles_per_line * job.set_columns * 9;
}

template <class T, int R, int Threads, int MostRows>
bool cut_ring(SharedJob<T>& job, const SharedKernel<T>&) {
    constexpr int widest = 512 / static_cast<int>(sizeof(T));
    if (job.rows > MostRows || !in_tensors(job)) return false;
    job.segments = (job.rows + R - 1) / R;
    for (job.across = widest; job.across * job.segments > Threads;) job.across /= 2;
    return job.across * job.segments % 32 == 0 && cut_lines(job) && ring_bytes<T, R>(job) <= shared_block_bytes;
}

template <class T, int R, int Threads, int Blocks, bool Closed = false, bool Adds = false>
void launch_ring(SharedJob<T>& job, cudaStream_t stream) {
    ColumnMaps maps;
    if (!encode_columns<T, R>(job, job.rhs, maps.rhs) || !encode_columns<T, R>(job, job.x, maps.x)) return launch_columns<T, R, Threads, Blocks, Closed, Adds>(job, stream);
    launch_persistent<solve_shared_ring<T, R, Threads, Blocks, Closed, Adds>>(job, job.tiles, true, job.across * job.segments, ring_bytes<T, R>(job), stream, maps);
}

template <class T, int R>
int bands_bytes(const SharedJob<T>& job, int stages = 1) {
    return BandsLayout<T, R>(job.segments, job.across, job.cluster, job.copies != ColumnCopies::vectors, stages, job.joined).total * static_cast<int>(sizeof(T));
}

template <class T, int R>
int ring_bands_bytes(const SharedJob<T>& job) {
    return bands_bytes<T, R>(job, band_stages) + in_place_words<T>(job.segments, job.across) * static_cast<int>(sizeof(T));
}

// Rows in whole vectors, x apart from rhs, too long for a block that takes 256 bytes of each: two blocks do. (More tell each other too much.)
template <class T, int R, int Threads>
bool cut_halves(SharedJob<T>& job, const SharedKernel<T>&) {
    job.across = 256 / static_cast<int>(sizeof(T)), job.segments = Threads / job.across, job.cluster = 2;
    const int half = job.segments * R;
    if (job.copies != ColumnCopies::vectors || job.rows <= half || job.rows > 2 * half || !apart_from_x(job)) return false;
    set_array_range(job);
    job.line_extent = job.systems, job.set_columns = static_cast<unsigned>(job.across);
    job.tiles_per_line = job.tiles = (job.systems + job.set_columns - 1) / job.set_columns;
    job.draw = 1;
    return bands_bytes<T, R>(job) <= shared_block_bytes;
}

// Rows that begin anywhere as tensors: one level above them at most, which is more rows.
template <class T>
bool in_shifted_tensors(SharedJob<T>& job) {
    const std::int64_t row = job.rhs.row_stride, above = job.rhs.level_stride[0];
    if (job.levels > 2 || row <= 0 || !tensor_maps_exist()) return false;
    job.plane_rows = 0;
    if (job.levels == 1) return true;
    if (above <= 0 || above % row != 0 || above / row * job.extent[0] >= std::int64_t{1} << 31) return false;
    job.plane_rows = static_cast<unsigned>(above / row);
    return true;
}

// A tensor of those rows that begin at the same offset from a 16-byte boundary, begun a little before.
template <class T, int R>
bool encode_shifted(const SharedJob<T>& job, ShiftedMaps& maps) {
    constexpr unsigned E = tensor_offsets<T>;
    const std::uint64_t rows = job.rows + std::uint64_t{job.plane_rows} * (job.levels > 1 ? job.extent[0] - 1 : 0);
    for (unsigned e = 0; e < E; ++e) {
        T* const first = job.rhs.data + e * job.rhs.row_stride;
        const auto shift = reinterpret_cast<std::uintptr_t>(first) % 16 / sizeof(T);
        MapShape shape{first - shift, {job.extent[job.levels - 1] + shift, (rows - e + E - 1) / E}};
        shape.bytes[0] = static_cast<std::uint64_t>(job.rhs.row_stride) * E * sizeof(T);
        shape.box[0] = static_cast<std::uint32_t>(tensor_columns(job.across)) + E, shape.box[1] = static_cast<std::uint32_t>(job.segments * R) / E;
        shape.dimensions = 2, shape.wide = sizeof(T) == 8, shape.lines = false;
        if (!encode(maps.rhs[e], shape)) return false;
    }
    return true;
}

// Rows that begin anywhere, x apart from rhs: the widest pieces for which a cluster has room, where those of a block alone would be narrow. (Measured.)
template <class T, int R, int Threads>
bool cut_bands(SharedJob<T>& job, const SharedKernel<T>& kernel) {
    const unsigned extent = job.extent[job.levels - 1], over = 32 / static_cast<unsigned>(sizeof(T)) - 1;
    const bool tensors = in_shifted_tensors(job), anywhere = parts_of_sectors(job);
    // As tensors also where a block alone has half a kilobyte, unless blocks would have few rows, or, in single precision, a line is one set.
    const int narrow = tensors && anywhere && job.rows > 192 && (sizeof(T) == 8 || extent > 256) ? 1024 : 512;  // bytes
    int alone = 1024 / static_cast<int>(sizeof(T));
    while (alone * ((job.rows + R - 1) / R) > Threads) alone /= 2;
    if (alone * static_cast<int>(sizeof(T)) >= narrow || job.rhs.level_stride[job.levels - 1] != 1) return false;
    if (!anywhere) return cut_halves<T, R, Threads>(job, kernel);
    set_array_range(job);
    job.copies = ColumnCopies::lines;  // which wants room for x on its way out
    for (job.across = Threads / 2; job.across >= 64; job.across /= 2) {
        job.segments = Threads / job.across;
        job.cluster = (job.rows + job.segments * R - 1) / (job.segments * R);
        const auto across = static_cast<unsigned>(job.across);
        const unsigned sets = extent <= across ? 1 : (extent - over - 1) / (across - over) + 1;
        if (job.cluster > most_bands || sets * across * 10 > extent * 13 || bands_bytes<T, R>(job) > shared_block_bytes) continue;
        job.whole_sectors = job.lines = true;
        if (tensors && job.cluster > 1) job.copies = ColumnCopies::tensors;
        job.slack = column_slack<T>(job.copies);
        job.line_extent = extent;
        job.tiles_per_line = sets, job.set_columns = across - over;
        job.tiles = sets * (job.systems / extent);
        return true;
    }
    return false;
}

// Whether the device has clusters of more blocks than all must have.
inline bool has_large_clusters() {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && (major == 9 || major == 10);
}

// Where smaller bands fit whole clusters better than larger ones do, or these do not suffice. (Measured; of planes with few columns only the latter.) anywhere: rows begin anywhere.
template <class T>
bool in_small_bands(const SharedJob<T>& job, bool anywhere) {
    if (job.rows > 1024 && (sizeof(T) == 8 || !anywhere)) return true;
    const bool as_well = sizeof(T) == 8 && job.rows > 224 && job.rows <= 256;
    return anywhere && job.extent[job.levels - 1] > 1024 && job.rows > 128 && job.rows <= 448 && !as_well;
}

// The same by up to sixteen blocks, two on a multiprocessor, as tensors.
template <class T, int R, int Threads>
bool cut_gathered(SharedJob<T>& job, const SharedKernel<T>&) {
    const bool anywhere = parts_of_sectors(job);
    const unsigned extent = job.extent[job.levels - 1], over = anywhere ? 32 / static_cast<unsigned>(sizeof(T)) - 1 : 0;
    if (job.rows > 2048 || !in_small_bands(job, anywhere) || job.rhs.level_stride[job.levels - 1] != 1 || job.x.level_stride[job.levels - 1] != 1 || !apart_from_x(job) || !in_shifted_tensors(job)) return false;
    set_array_range(job);
    job.copies = ColumnCopies::tensors;
    const bool large = has_large_clusters();
    for (job.across = 1024 / static_cast<int>(sizeof(T)); job.across >= 64; job.across /= 2) {
        job.segments = Threads / job.across;
        job.cluster = (job.rows + job.segments * R - 1) / (job.segments * R);
        job.joined = joined_shift(job.across, job.cluster);
        const auto across = static_cast<unsigned>(job.across);
        const unsigned sets = extent <= across ? 1 : (extent - over - 1) / (across - over) + 1;
        if (job.cluster < 2 || job.cluster > (large ? most_gathered_bands : most_bands) || sets * across * 10 > extent * 13 || bands_bytes<T, R>(job) > shared_block_bytes) continue;
        job.whole_sectors = job.lines = true;
        job.slack = column_slack<T>(job.copies);
        job.line_extent = extent;
        job.tiles_per_line = sets, job.set_columns = across - over;
        job.tiles = sets * (job.systems / extent);
        ShiftedMaps maps;
        return encode_shifted<T, R>(job, maps);
    }
    return false;
}

template <class T, int R, int Threads>
void launch_gathered(SharedJob<T>& job, cudaStream_t stream) {
    ShiftedMaps maps;
    encode_shifted<T, R>(job, maps);  // as when it was cut
    launch_persistent<solve_shared_bands<T, R, Threads, ColumnCopies::tensors, 1, true>, true>(job, job.tiles * static_cast<unsigned>(job.cluster), true, Threads, bands_bytes<T, R>(job), stream, maps);
}

template <class T, int R, int Threads>
void launch_bands(SharedJob<T>& job, cudaStream_t stream) {
    const unsigned blocks = job.tiles * static_cast<unsigned>(job.cluster);
    if (job.copies == ColumnCopies::vectors) return launch_persistent<solve_shared_bands<T, R, Threads, ColumnCopies::vectors, 1>, true>(job, blocks, true, Threads, bands_bytes<T, R>(job), stream, ColumnMaps{});
    if (ShiftedMaps maps; job.copies == ColumnCopies::tensors && encode_shifted<T, R>(job, maps))
        return launch_persistent<solve_shared_bands<T, R, Threads, ColumnCopies::tensors, 1>, true>(job, blocks, true, Threads, bands_bytes<T, R>(job), stream, maps);
    job.copies = ColumnCopies::lines;
    launch_persistent<solve_shared_bands<T, R, Threads, ColumnCopies::lines, 1>, true>(job, blocks, false, Threads, bands_bytes<T, R>(job), stream, ColumnMaps{});
}

template <class T, int R, int Stages, bool Couple, bool Aside, int Threads, int Blocks>
bool cut_rows(SharedJob<T>& job, const SharedKernel<T>&) {
    constexpr int E = 16 / static_cast<int>(sizeof(T)), most = 32 * R;
    const int last = job.levels - 1;
    const std::int64_t apart = job.rhs.level_stride[last];
    job.parts = (job.rows + most - 1) / most;
    if ((job.parts > 1) != Couple || job.parts > std::min(most_shared_parts, Threads / 32)) return false;
    job.pitch = job.rows, job.groups = 1;
    if (!Couple) {
        // Where systems follow each other with gaps, they keep their offset from a 16-byte boundary.
        job.pitch += static_cast<int>(((apart - job.rows) % E + E) % E);
        if (job.pitch <= most) job.groups = static_cast<int>(std::min<std::int64_t>((most - job.rows) / job.pitch + 1, job.extent[last]));
        else job.pitch = job.rows;
    }
    if (job.closed) {
        const RingShare share = share_ring<T>(job.rows, R, job.pitch, job.groups);
        job.lanes = static_cast<std::uint8_t>(share.lanes), job.lane_rows = static_cast<std::uint8_t>(share.lane_rows), job.pitch = share.pitch, job.groups = share.rings;
    }
    job.rhs_apart = apart, job.x_apart = job.x.level_stride[last];
    job.spans = job.groups == 1 || apart == job.pitch;
    job.gaps = job.pitch != job.rows || (job.groups * job.rows) % E != 0 || apart % E != 0 || reinterpret_cast<std::uintptr_t>(job.rhs.data) % 16 != 0;
    for (int l = 0; l < last; ++l) job.gaps = job.gaps || job.rhs.level_stride[l] % E != 0;
    job.gaps = job.gaps && !job.closed;  // nobody reads them
    set_array_range(job);
    job.merged = job.groups > 1 && apart == job.pitch && job.x.level_stride[last] == job.pitch && job.pitch == job.rows;
    job.touch = !job.merged && apart_from_x(job);
    job.flags = Couple ? 0 : (job.groups + 3) / 4 * 4;
    job.line_extent = job.extent[last];
    job.tiles_per_line = (job.extent[last] + static_cast<unsigned>(job.groups) - 1) / static_cast<unsigned>(job.groups);
    job.tiles = job.tiles_per_line * (job.systems / job.extent[last]);
    return true;
}

template <class T, int R, int Stages, bool Aside>
int ring_rows_bytes(int warps, const SharedJob<T>& job) {
    return (RowsLayout<T, R, Stages>(warps, 1, job.flags, R * static_cast<int>(sizeof(T))).total + 15 & ~15) + ring_factors_bytes<T, R, Aside>;
}

template <class T, int R, int Stages, bool Couple, bool Aside, int Threads, int Blocks, bool Closed = false, bool Adds = false>
void launch_rows(SharedJob<T>& job, cudaStream_t stream) {
    const int warps = Couple ? job.parts : Threads / 32;
    const int bytes = Closed ? ring_rows_bytes<T, R, Stages, Aside>(warps, job) : RowsLayout<T, R, Stages, Aside>(warps, job.parts, job.flags).total;
    // A counter bears some 300 draws in a microsecond, so tiles are drawn four at a time and the smallest not at all; few tiles are for as many warps as there
    // are, or, where blocks share them, one's own. (Measured.)
    const int tile_bytes = 2 * static_cast<int>(sizeof(T)) * job.groups * job.rows;
    job.draw = tile_bytes < 3584 ? 0 : job.tiles < 1 << 15 ? (Couple ? 0 : tile_bytes < 6 << 10 ? 0 : 1) : Couple && sizeof(T) == 4 ? 2 : 4;
    const unsigned each = (Couple ? 1 : static_cast<unsigned>(warps)) * std::max(job.draw, 1u);
    constexpr auto kernel = [] {
        if constexpr (Closed) return solve_shared_ring_rows<T, R, Stages, Aside, Threads, Blocks>;
        else return solve_shared_rows<T, R, Stages, Couple, Aside, Threads, Blocks, Adds>;
    }();
    launch_persistent<kernel>(job, (job.tiles + each - 1) / each, job.draw > 0, 32 * warps, bytes, stream);
}

template <class T, int R, int Threads, int Blocks, int MostRows, bool Closed = false, bool Adds = false>
constexpr SharedKernel<T> columns_kernel() {
    return {R, true, false, false, Threads, cut_columns<T, R, Threads, MostRows>, launch_columns<T, R, Threads, Blocks, Closed, Adds>};
}

// Longer ones, by a cluster's blocks that have about as many rows each.
template <class T, int R, int Threads, int MostRows>
bool cut_ring_bands(SharedJob<T>& job, const SharedKernel<T>&) {
    job.across = 256 / static_cast<int>(sizeof(T));
    const int most = Threads / job.across * R, fewest = 5 * most / 4;
    if (job.rows < fewest || job.rows > MostRows || !in_tensors(job)) return false;
    job.cluster = (job.rows + most - 1) / most;
    // In place the kernel for one block each is as fast where blocks have fewer rows than they have room for. (Measured, as all of this.)
    if (8 * job.rows < 7 * job.cluster * most && !apart_from_x(job)) return false;
    job.segments = (job.rows + job.cluster * R - 1) / (job.cluster * R);
    ColumnMaps maps;
    return cut_lines(job) && ring_bands_bytes<T, R>(job) <= shared_block_bytes && encode_columns<T, R>(job, job.rhs, maps.rhs) && encode_columns<T, R>(job, job.x, maps.x);
}

template <class T, int R, int Threads, bool Adds = false>
void launch_ring_bands(SharedJob<T>& job, cudaStream_t stream) {
    const unsigned blocks = job.tiles * static_cast<unsigned>(job.cluster);
    const int threads = job.across * job.segments, bytes = ring_bands_bytes<T, R>(job);
    ColumnMaps maps;
    encode_columns<T, R>(job, job.rhs, maps.rhs), encode_columns<T, R>(job, job.x, maps.x);  // as when it was cut
    if constexpr (!Adds)
        if (apart_from_x(job)) return launch_persistent<solve_shared_bands<T, R, Threads, ColumnCopies::vectors, band_stages>, true>(job, blocks, true, threads, bytes, stream, maps);
    launch_persistent<solve_shared_bands_in_place<T, R, Threads, Adds>>(job, blocks, true, threads, bytes, stream, maps);
}

template <class T, int R, int Threads, int MostRows, bool Adds = false>
constexpr SharedKernel<T> ring_bands_kernel() {
    return {R, true, false, true, Threads, cut_ring_bands<T, R, Threads, MostRows>, launch_ring_bands<T, R, Threads, Adds>};
}

template <class T, int R, int Threads, int Blocks, int MostRows, bool Closed = false, bool Adds = false>
constexpr SharedKernel<T> ring_kernel() {
    return {R, true, false, false, Threads, cut_ring<T, R, Threads, MostRows>, launch_ring<T, R, Threads, Blocks, Closed, Adds>};
}

template <class T, int R, int Threads>
constexpr SharedKernel<T> gathered_kernel() {
    return {R, true, false, true, Threads, cut_gathered<T, R, Threads>, launch_gathered<T, R, Threads>};
}

template <class T, int R, int Threads>
constexpr SharedKernel<T> bands_kernel() {
    return {R, true, false, true, Threads, cut_bands<T, R, Threads>, launch_bands<T, R, Threads>};
}

template <class T, int R, int Stages, bool Aside, int Threads, int Blocks>
constexpr SharedKernel<T> ring_rows_kernel() {
    return {R, false, false, false, Threads, cut_rows<T, R, Stages, false, Aside, Threads, Blocks>, launch_rows<T, R, Stages, false, Aside, Threads, Blocks, true>};
}

template <class T, int R, int Stages, bool Couple, bool Aside, int Threads, int Blocks, bool Adds = false>
constexpr SharedKernel<T> rows_kernel() {
    return {R, false, Couple, false, Threads, cut_rows<T, R, Stages, Couple, Aside, Threads, Blocks>, launch_rows<T, R, Stages, Couple, Aside, Threads, Blocks, false, Adds>};
}

}  // namespace trifold::cuda
