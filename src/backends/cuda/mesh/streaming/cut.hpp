// SPDX-License-Identifier: BSD-3-Clause
// How a mesh is cut for the streaming kernels.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/cuda/mesh/plan.hpp"

namespace trifold::cuda::streaming {

/// rows.cuh.
struct RowsCut {
    int lanes = 0, segment_rows = 0;      ///< along a row, and R
    int rows = 0, warps = 0;              ///< of a lane (K), and of a block besides the one that brings planes
    int pitch = 0, depth = 0, chunk = 1;
    int threads = 0, blocks = 0;
    bool bringer = true;                  ///< a warp besides brings planes; else whoever leaves a place last
    bool apart = false;                   ///< rows are carried out through places of their own, so that no warp waits for another
    bool star = false;                    ///< right-hand sides read neighbours as vectors (star.cuh), two rows of a lane
    bool alike = false;                   ///< the segments between the first and the last one have the same factors, kept once
    bool ring = false;                    ///< lines along x are rings
    std::size_t shared = 0;

    bool fits() const noexcept { return lanes > 0; }
    /// Elements of the factors (lanes.cuh).
    int factors(int vector_values) const noexcept { return (5 * segment_rows * (alike ? 3 : lanes) + vector_values - 1) / vector_values * vector_values + (ring ? 8 : 4) * lanes; }
    int slab() const noexcept { return warps * (32 / lanes) * rows; }
};

/// Of lines along x: rows of their matrix but the first and the last one are the same; they are rings.
struct AlongX {
    bool alike = false, ring = false;
};

/// What the right-hand side reads: so many fields, so far away.
struct Reach {
    int fields = 0, x = 0, y = 0, z = 0;
};

/// Blocks go along z, with slabs of y; or, where `ahead`, along `ny` with slabs of `nz`, and lines along `ny` are eliminated on the way in segments of so many rows: these may be the mesh's z and y as well
/// (then the reach's, too). `shape`: whose lanes and segments are to be kept. `bulk`: rows are copied whole. `grouped`: kernels of other meshes run beside it (beside.hpp); only where `ahead`.
RowsCut cut_rows(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz, std::int64_t meshes, const Reach& reach, const AlongX& x = {}, int ahead = 0, const RowsCut* shape = nullptr, bool bulk = false, bool grouped = false);

/// Rows of a segment of lines along `ny` that are solved in parts of other passes, by the shape of a mesh alone; 0: ny has no divisor that would do.
int cut_segment(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz);

/// Distance of rows in shared memory, so that lanes meet in the fewest banks: how often they do.
int choose_pitch(RowsCut& cut, std::size_t value_bytes, int nx, int reach_x);
/// Bytes of shared memory; `reach.y` and `reach.z` are across and along the way of blocks.
std::size_t rows_shared(const RowsCut& cut, int vector_values, const Reach& reach);

/// columns.cuh.
struct ColumnsCut {
    int segment_rows = 0, segments = 0, columns = 0;  ///< R, S, W
    int stages = 1;                                   ///< sets of columns on their way
    bool prefetch = false, ring = false;              ///< ring: lines are
    int held_stages = 0;                              ///< planes of the field that the update reads; where there are some, whole planes are copied at once
    int threads = 0, blocks = 0;
    std::size_t shared = 0;

    bool fits() const noexcept { return columns > 0; }
};

/// Bytes of shared memory. behind, by_reach, alternates: as columns.cuh has them.
std::size_t columns_shared(const ColumnsCut& cut, std::size_t value_bytes, bool behind, bool by_reach, bool alternates = false);
/// Of these, elements of factors.
std::size_t columns_factors(const ColumnsCut& cut, std::size_t value_bytes, bool by_reach, bool alternates);

struct ColumnsAsked {
    int nx = 0;                           ///< lines across are solved backwards first, so that blocks go along them with columns of rows of nx points
    std::int64_t tasks_per_piece = 0;     ///< how many blocks' ways there are per piece of such a row; 0: no end of them
    int segment_rows = 0, segments = 0;   ///< to be kept; 0: whatever is best
    bool by_reach = false, alternates = false;
    bool ring = false;                    ///< in segments without a rest, two or more
    bool grouped = false;                 ///< kernels of other meshes run beside it (beside.hpp): how tasks are dealt does not matter
};

/// `fetched`: fields that the update reads.
ColumnsCut cut_columns(const Chip& chip, std::size_t value_bytes, int rows, int fetched, const ColumnsAsked& asked = {});

/// cut_timed.cpp: what was the best of many cuts that were timed on an H200, for lines in parts of batches in groups. Segments, lanes and rows of threads are by the shape of a mesh, for its bits.
struct TimedCut {
    std::size_t value_bytes;
    int nx, along, across;
    int segment, lanes, segment_rows;                                      ///< of lines ahead, and of lines along x
    int rows, warps, chunk, blocks, places;                                ///< of rows.cuh where there are groups; places of the ring for a right-hand side that reaches one plane
    bool apart;
    int columns_rows, columns_segments, columns, stages;                   ///< of columns.cuh; the last two where there are groups
    bool prefetch;
    int columns_blocks;
    int held_stages = 0;                                                   ///< whole planes, where fields and values are packed
    std::int64_t from = 0;                                                 ///< so many meshes, or more
    std::int64_t grouped_from = 0;                                         ///< in groups from so many meshes on, though they have few points; 0: as others
};

/// nullptr: not timed, the models above decide.
const TimedCut* timed_cut(std::size_t value_bytes, int nx, int along, int across, std::int64_t meshes);

/// With all that follows from it; not fitting where another GPU has less shared memory or another right-hand side needs more.
RowsCut rows_of(const TimedCut& timed, const Chip& chip, const Reach& reach, const AlongX& x);
ColumnsCut columns_of(const TimedCut& timed, const Chip& chip, bool packed, bool ring);

/// cut_parts.cpp: whether a step with lines along y in parts of `rows` and `columns` is reckoned to take less time than one in three passes.
bool parts_are_faster(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz, std::int64_t meshes, const RowsCut& rows, const ColumnsCut& columns, int segment);

/// whole.cuh: one block per multiprocessor has all passes.
struct WholeCut {
    RowsCut rows;
    std::vector<ColumnsCut> columns;
    int threads = 0;
    std::size_t shared = 0;

    bool fits() const noexcept { return threads > 0; }
};

/// Lines along y or z, `inner` side by side, cut as for a pass of their own.
struct LinesOfMeshes {
    int rows;
    std::int64_t inner, count;
    ColumnsCut cut;
    bool by_reach = false, alternates = false;
};

/// With the segments that passes of their own have, and so the same roundings. What has a rest does not fit.
WholeCut cut_whole(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz, std::int64_t meshes, const Reach& reach, const RowsCut& shape, const std::vector<LinesOfMeshes>& lines);

}  // namespace trifold::cuda::streaming
