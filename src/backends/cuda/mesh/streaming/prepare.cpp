// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/prepare.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace trifold::cuda::streaming {

using mesh::Access;
using mesh::Checked;
using mesh::CheckedSweep;

template <class T>
bool append_factors(const LineMatrix<T>& matrix, const Pass& pass, std::vector<T>& values) {
    if (pass.rows.fits()) {
        const LaneTable<T> table(matrix, pass.rows.segment_rows, pass.rows.lanes);
        values.insert(values.end(), table.values.begin(), table.values.end());
        return table.safe;
    }
    const LineTable<T> table(matrix, pass.columns.segment_rows, pass.columns.segments);
    values.insert(values.end(), table.factors.begin(), table.factors.end());
    values.insert(values.end(), table.joins.begin(), table.joins.end());
    return table.safe;
}

bool rows_in_vectors(const AnyField& field, const MeshShape& shape, std::size_t value_bytes) {
    const std::int64_t V = 16 / static_cast<std::int64_t>(value_bytes);
    bool fits = shape.x % V == 0 && field.stride[0] == 1 && reinterpret_cast<std::uintptr_t>(field.data) % 16 == 0;
    for (std::size_t d = 1; d < 4; ++d) fits = fits && field.stride[d] % V == 0;
    return fits;
}

std::size_t factor_values(const Pass& pass) {
    return static_cast<std::size_t>(pass.rows.fits() ? (5 * pass.rows.segment_rows + 4) * pass.rows.lanes : 4 * pass.columns.segments * (pass.columns.segment_rows + 1));
}

template bool append_factors<float>(const LineMatrix<float>&, const Pass&, std::vector<float>&);
template bool append_factors<double>(const LineMatrix<double>&, const Pass&, std::vector<double>&);

namespace {

int fetched_by(const CheckedSweep& one, int solution) {
    int count = 0;
    for (int f = 0; f < std::min(one.update.fields, solution); ++f) count += one.update.field[static_cast<std::size_t>(f)].rows != 0;
    return count;
}

bool looks_beyond_single(const Access& access, const MeshShape& shape) {
    for (const mesh::FieldAccess& field : access.field) {
        if (shape.x < 2 && field.looks_along_x()) return true;
        for (int row = 0; row < rows_across * rows_across; ++row)
            if (field.rows >> row & 1) {
                if (shape.y < 2 && row % rows_across != max_reach) return true;
                if (shape.z < 2 && row / rows_across != max_reach) return true;
            }
    }
    return false;
}

template <class T>
bool safe(const Checked& checked, int s, const Pass& pass) {
    std::vector<T> values;
    return append_factors(matrix_of<T>(checked, s, pass.line), pass, values);
}

// Fields that the right-hand side reads, and how far away.
void reach_of(const CheckedSweep& one, Pass& pass) {
    for (int f = 0; one.sweep->rhs && f < one.rhs.fields; ++f) {
        const mesh::FieldAccess& access = one.rhs.field[static_cast<std::size_t>(f)];
        if (access.rows == 0) continue;
        pass.staged |= 1u << f;
        for (int row = 0; row < rows_across * rows_across; ++row)
            if (access.rows >> row & 1) {
                pass.reach.x = std::max<int>(pass.reach.x, access.along_x[static_cast<std::size_t>(row)]);
                pass.reach.y = std::max(pass.reach.y, std::abs(row % rows_across - max_reach)), pass.reach.z = std::max(pass.reach.z, std::abs(row / rows_across - max_reach));
            }
    }
    if (!pass.staged) pass.staged = 1u << one.sweep->target;
    pass.reach.fields = std::popcount(pass.staged);
}

// Small meshes, a few, have all their steps in one launch: launches would take longer than passes. Twice as many points are done as soon by passes.
constexpr std::int64_t most_points_of_whole = std::int64_t{1} << 19;

void plan_whole(const Checked& checked, const Chip& chip, SweepPlan& own, Plan& plan) {
    const MeshShape& shape = checked.problem->shape;
    const std::vector<LineSolve>& lines = checked.sweeps[0].sweep->lines;
    if (checked.sweeps.size() > 1 || own.passes.size() != 3 || shape.points() > most_points_of_whole) return;
    const std::size_t bytes = size_of(checked.dtype);
    for (std::size_t f = 0; f < checked.problem->fields.size(); ++f)
        if ((own.passes[0].staged >> f & 1) && !rows_in_vectors(checked.problem->fields[f], shape, bytes)) return;
    std::vector<LinesOfMeshes> cuts;
    for (std::size_t k = 1; k < lines.size(); ++k) {
        const std::int64_t inner = lines[k].axis == 1 ? shape.x : shape.x * shape.y, rows = shape.along(lines[k].axis);
        cuts.push_back({static_cast<int>(rows), inner, shape.points() / rows, own.passes[k].columns});
    }
    const WholeCut cut = cut_whole(chip, bytes, static_cast<int>(shape.x), static_cast<int>(shape.y), static_cast<int>(shape.z), shape.meshes, own.passes[0].reach, own.passes[0].rows, cuts);
    if (!cut.fits()) return;
    own.passes[0].rows = cut.rows;
    for (std::size_t k = 1; k < lines.size(); ++k) own.passes[k].columns = cut.columns[k - 1];
    plan.whole_threads = cut.threads, plan.whole_shared = cut.shared;
}

}  // namespace

Plan plan_of(const Checked& checked, const Chip& chip) {
    Plan plan;
    const auto refuse = [&](const char* why) {
        plan.refuses = why;
        return plan;
    };
    const MeshShape& shape = checked.problem->shape;
    if (checked.problem->parameters.size() > 256) return refuse("there are more than 256 parameters");
    if (!chip.has_clusters()) return refuse("they are made for compute capability 9.0");
    if (shape.x > 1024 || shape.y > 1024 || shape.z > 1024) return refuse("lines are longer than 1024");
    if (shape.x * shape.y * shape.z >= std::int64_t{1} << 31 || shape.points() >= std::int64_t{1} << 36) return refuse("a mesh or a batch is too large");
    for (const AnyField& field : checked.problem->fields)
        for (std::size_t axis = 0; axis < 3; ++axis)
            if (std::abs(field.stride[axis]) >= std::int64_t{1} << 31 || std::abs(field.stride[axis] * (shape.along(static_cast<int>(axis)) + 2)) >= std::int64_t{1} << 30)
                return refuse("a field is spread too far");
    for (std::size_t s = 0; s < checked.sweeps.size(); ++s) {
        const CheckedSweep& one = checked.sweeps[s];
        const std::vector<LineSolve>& lines = one.sweep->lines;
        if (lines.size() < 2 || lines[0].axis != 0) return refuse("lines do not begin with x and go on");
        for (std::size_t k = 1; k < lines.size(); ++k)
            if (lines[k].axis == 0) return refuse("lines along x follow others");
        for (std::size_t k = 0; k < lines.size(); ++k) {
            if (shape.along(lines[k].axis) < 2) return refuse("lines have one row");
            if (const char* const why = unknown_matrix(checked, static_cast<int>(s), static_cast<int>(k))) return refuse(why);
        }
        if (looks_beyond_single(one.rhs, shape)) return refuse("neighbours are read along an axis of one point");
        SweepPlan own;
        Pass first;
        const auto nx = static_cast<int>(shape.x), ny = static_cast<int>(shape.y), nz = static_cast<int>(shape.z);
        const std::size_t bytes = size_of(checked.dtype);
        reach_of(one, first);
        first.rows = cut_rows(chip, bytes, nx, ny, nz, shape.meshes, first.reach);
        if (!first.rows.fits()) return refuse("lines along x do not fit on the chip");
        own.passes.push_back(first);
        for (std::size_t k = 1; k < lines.size(); ++k) {
            Pass pass;
            pass.line = static_cast<int>(k);
            const bool last = k + 1 == lines.size();
            pass.columns = cut_columns(chip, bytes, static_cast<int>(shape.along(lines[k].axis)), last ? fetched_by(one, checked.solution_field()) : 0);
            if (!pass.columns.fits()) return refuse("lines do not fit on the chip");
            own.passes.push_back(pass);
        }
        plan_whole(checked, chip, own, plan);
        for (const Pass& pass : own.passes)
            if (!(checked.dtype == DType::f32 ? safe<float>(checked, static_cast<int>(s), pass) : safe<double>(checked, static_cast<int>(s), pass)))
                return refuse("a matrix needs pivots");
        plan.sweeps.push_back(own);
    }
    return plan;
}

}  // namespace trifold::cuda::streaming
