// SPDX-License-Identifier: BSD-3-Clause
// Lines along y in parts of other passes, or in a pass of their own: both have the same bits, so the faster one may be taken by what a batch has of multiprocessors.
#include <algorithm>
#include <cmath>

#include "backends/cuda/mesh/streaming/cut.hpp"

namespace trifold::cuda::streaming {
namespace {

// Microseconds, fitted to 66 meshes and batches of 64^3 to 512^3 points run both ways on an H200 (rms 8 to 10 %; the slower way is taken where the other would have been at most 17 % faster).
struct Rates {
    double plane, plane_row, plane_point;  ///< of rows: the chain of a plane, more of it per row of a lane, and what a multiprocessor takes for a point
    double turn, turn_row, turn_point;     ///< of columns
    double fixed, end;                     ///< launches, and an end of a segment
    double passes, pass_point;             ///< three passes
};

constexpr Rates in_floats{1.83, 0.033, 0.374e-3, 1.54, 0.0066, 0.448e-3, 8.7, 3.9e-6, 15.6, 1 / 129e3}, in_doubles{2.31, 0.018, 0.825e-3, 0.17, 0.0072, 0.892e-3, 10.1, 6.0e-6, 6.4, 1 / 61.9e3};

/// Tasks in turns of as many as run at once; `time` of so many on every multiprocessor. In the last turn some multiprocessors have one less, which helps the others.
template <class Time>
double in_turns(std::int64_t tasks, std::int64_t multiprocessors, int blocks, Time time) {
    const std::int64_t at_once = multiprocessors * blocks, rest = tasks % at_once;
    const double each = static_cast<double>(rest) / static_cast<double>(multiprocessors);
    return static_cast<double>(tasks / at_once) * time(static_cast<double>(blocks)) + (rest ? time(0.3 * std::ceil(each) + 0.7 * each) : 0);
}

std::int64_t ceiling(std::int64_t n, std::int64_t of) { return (n + of - 1) / of; }

}  // namespace

bool parts_are_faster(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz, std::int64_t meshes, const RowsCut& rows, const ColumnsCut& columns, int segment_y) {
    const Rates& of = value_bytes == 4 ? in_floats : in_doubles;
    const double points = static_cast<double>(nx) * ny * nz * static_cast<double>(meshes);
    const std::int64_t slabs = ceiling(nz, rows.slab()) * ceiling(ny, rows.chunk) * meshes, sets = ceiling(nx, columns.columns) * (ny / segment_y) * meshes;
    const double plane = rows.slab() * rows.lanes * rows.segment_rows, set = columns.columns * columns.segments * columns.segment_rows;  // points, those that lanes pass in vain too
    const double forwards = in_turns(slabs, chip.multiprocessors, rows.blocks, [&](double beside) { return (rows.chunk + 2) * std::max(of.plane + of.plane_row * rows.segment_rows * rows.rows, beside * plane * of.plane_point); });
    const double backwards = in_turns(sets, chip.multiprocessors, columns.blocks, [&](double beside) { return segment_y * std::max(of.turn + of.turn_row * columns.segment_rows, beside * set * of.turn_point); });
    return of.fixed + points / segment_y * of.end + forwards + backwards < of.passes + points * of.pass_point;
}

}  // namespace trifold::cuda::streaming
