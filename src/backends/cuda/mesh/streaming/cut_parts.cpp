// SPDX-License-Identifier: BSD-3-Clause
// Lines along y or z in parts of other passes, or in a pass of their own: both have the same bits, so the faster one may be taken by what a batch has of multiprocessors.
#include <algorithm>
#include <cmath>

#include "backends/cuda/mesh/streaming/cut.hpp"

namespace trifold::cuda::streaming {
namespace {

// Microseconds, fitted to 32 meshes and batches of 64^3 to 512^3 points in both precisions, run both ways on an H200 (rms 10 %).
struct Rates {
    double plane, plane_row, plane_point;  ///< of rows: the chain of a plane, more of it per row of a lane, and what a multiprocessor takes for a point
    double turn, turn_row, turn_point;     ///< of columns
    double fixed, end;                     ///< launches, and an end of a segment
    double passes, pass_point;             ///< three passes
};

constexpr Rates in_floats{1.85, 0.0285, 0.373e-3, 1.8, 0.003, 0.424e-3, 8.6, 3.9e-6, 13.7, 1 / 131e3}, in_doubles{2.0, 0.018, 0.62e-3, 0.16, 0.003, 0.866e-3, 13.9, 4.4e-6, 21.2, 1 / 68.2e3};

/// Tasks in turns of as many as run at once; `time` of so many on every multiprocessor. In the last turn some multiprocessors have one less, which helps the others.
template <class Time>
double in_turns(std::int64_t tasks, std::int64_t multiprocessors, int blocks, Time time) {
    const std::int64_t at_once = multiprocessors * blocks, rest = tasks % at_once;
    const double each = static_cast<double>(rest) / static_cast<double>(multiprocessors);
    return static_cast<double>(tasks / at_once) * time(static_cast<double>(blocks)) + (rest ? time(0.3 * std::ceil(each) + 0.7 * each) : 0);
}

std::int64_t ceiling(std::int64_t n, std::int64_t of) { return (n + of - 1) / of; }

}  // namespace

bool parts_are_faster(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz, std::int64_t meshes, const RowsCut& rows, const ColumnsCut& columns, int segment) {
    const Rates& of = value_bytes == 4 ? in_floats : in_doubles;
    const double points = static_cast<double>(nx) * ny * nz * static_cast<double>(meshes);
    const std::int64_t slabs = ceiling(nz, rows.slab()) * ceiling(ny, rows.chunk) * meshes, sets = ceiling(nx, columns.columns) * (ny / segment) * meshes;
    const double plane = rows.slab() * rows.lanes * rows.segment_rows, set = columns.columns * columns.segments * columns.segment_rows;  // points, those that lanes pass in vain too
    const double narrow = static_cast<std::size_t>(columns.columns) * value_bytes < 256 ? 1.07 : 1;  // pieces of rows, as measured with nothing computed
    const double forwards = in_turns(slabs, chip.multiprocessors, rows.blocks, [&](double beside) { return (rows.chunk + 2) * std::max(of.plane + of.plane_row * rows.segment_rows * rows.rows, beside * plane * of.plane_point); });
    const double backwards = in_turns(sets, chip.multiprocessors, columns.blocks, [&](double beside) { return segment * std::max(of.turn + of.turn_row * columns.segment_rows, beside * set * of.turn_point * narrow); });
    return of.fixed + points / segment * of.end + forwards + backwards < of.passes + points * of.pass_point;
}

}  // namespace trifold::cuda::streaming
