// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/prepare.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "backends/cuda/mesh/planes/segments.hpp"

namespace trifold::cuda::streaming {

using mesh::Access;
using mesh::Checked;
using mesh::CheckedSweep;

template <class T>
bool append_factors(const LineMatrix<T>& matrix, const LineMatrix<T>& parted, const Pass& pass, std::vector<T>& values) {
    const auto append = [&](const std::vector<T>& more) { values.insert(values.end(), more.begin(), more.end()); };
    const int H = pass.segment, S = H ? static_cast<int>(parted.diag.size()) / H : 0;
    bool safe = true;
    if (pass.kind == PassKind::rows) {
        const LaneTable<T> table(matrix, pass.rows.segment_rows, pass.rows.lanes, pass.rows.alike);
        append(table.values), safe = table.safe;
    } else if (pass.kind == PassKind::columns) {
        const LineTable<T> table(matrix, pass.columns.segment_rows, pass.columns.segments);
        const auto R = static_cast<std::ptrdiff_t>(pass.columns.segment_rows);
        if (pass.by_reach) {
            for (std::ptrdiff_t s = 0; s < pass.columns.segments; ++s) {
                values.insert(values.end(), table.factors.begin() + 4 * s * R, table.factors.begin() + 4 * (s + 1) * R);
                values.insert(values.end(), table.reach.begin() + s * R, table.reach.begin() + (s + 1) * R);
            }
        } else {
            append(table.factors);
        }
        append(table.joins), append(table.closing), safe = table.safe;
        if (pass.alternates) append(table.begins);
    }
    if (H == 0) return safe;
    const LineTable<T> ahead(parted, H, S);
    if (pass.kind == PassKind::joins) return append(ahead.joins), append(ahead.closing), ahead.safe;
    const auto factor = [&](int row, int which) { return ahead.factors[static_cast<std::size_t>((4 * (row / H) + which) * H + row % H)]; };
    for (int row = 0; row < S * H; ++row) {
        if (pass.kind == PassKind::rows) values.insert(values.end(), {factor(row, 0), factor(row, 1), ahead.reach[static_cast<std::size_t>(row)]});
        else values.insert(values.end(), {factor(row, 2), factor(row, 3)});
    }
    if (pass.kind == PassKind::rows) values.insert(values.end(), {parted.low, parted.high});
    return safe && ahead.safe;
}

bool rows_in_vectors(const AnyField& field, const MeshShape& shape, std::size_t value_bytes) {
    const std::int64_t V = 16 / static_cast<std::int64_t>(value_bytes);
    bool fits = shape.x % V == 0 && field.stride[0] == 1 && reinterpret_cast<std::uintptr_t>(field.data) % 16 == 0;
    for (std::size_t d = 1; d < 4; ++d) fits = fits && field.stride[d] % V == 0;
    return fits;
}

bool staged_in_vectors(const Checked& checked, unsigned staged) {
    bool fits = true;
    for (std::size_t f = 0; f < checked.problem->fields.size(); ++f)
        if (staged >> f & 1) fits = fits && rows_in_vectors(checked.problem->fields[f], checked.problem->shape, size_of(checked.dtype));
    return fits;
}

std::size_t factor_values(const Pass& pass, const MeshShape& shape) {
    const int own = pass.kind == PassKind::rows ? (5 * pass.rows.segment_rows + 8) * pass.rows.lanes + 3 : pass.columns.segments * (5 * pass.columns.segment_rows + 8);
    return static_cast<std::size_t>(own) + (pass.segment ? static_cast<std::size_t>(4 * shape.along(pass.parts_axis) + 2) : 0);
}

template bool append_factors<float>(const LineMatrix<float>&, const LineMatrix<float>&, const Pass&, std::vector<float>&);
template bool append_factors<double>(const LineMatrix<double>&, const LineMatrix<double>&, const Pass&, std::vector<double>&);

namespace {

int fetched_by(const CheckedSweep& one, int solution) {
    int count = 0;
    for (int f = 0; f < std::min(one.update.fields, solution); ++f) count += one.update.field[static_cast<std::size_t>(f)].rows != 0;
    return count;
}

/// Whether planes of what the update reads, one field, lie side by side, so that each is one copy; lines go along the slower axis of a plane.
bool reads_packed_planes(const Checked& checked, const CheckedSweep& one, int axis) {
    const MeshShape& shape = checked.problem->shape;
    bool packed = axis == 1;
    for (int f = 0; f < std::min(one.update.fields, checked.solution_field()); ++f) {
        const AnyField& field = checked.problem->fields[static_cast<std::size_t>(f)];
        if (one.update.field[static_cast<std::size_t>(f)].rows) packed = packed && field.stride[1] == shape.x && rows_in_vectors(field, shape, size_of(checked.dtype));
    }
    return packed;
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
    return append_factors(matrix_of<T>(checked, s, pass.line), pass.segment ? matrix_of<T>(checked, s, pass.parts_axis) : LineMatrix<T>{}, pass, values);
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

/// Lines along z or y in parts of the other passes: by the shape of a mesh alone, for its bits.
struct Parts {
    int segment = 0;  ///< rows; 0: no
    int axis = 1;               ///< of these lines
    int along = 0, across = 0;  ///< points along it, and along the axis that is neither it nor x
    Reach reach;                ///< y: along it, z: across
    RowsCut rows;
    ColumnsCut columns;
    const TimedCut* timed = nullptr;
    bool alternates = false;    ///< never parts, but passes with the segments of planes
};

/// Boxes of which a batch is solved in one pass.
Parts parts_of(const Checked& checked, const planes::Segments& box, const Pass& first) {
    Parts parts;
    const int V = static_cast<int>(16 / size_of(checked.dtype));
    parts.rows.star = box.rows % V == 0 && staged_in_vectors(checked, first.staged);
    parts.alternates = true, parts.axis = 2, parts.segment = box.rows_z;
    parts.rows.lanes = box.count, parts.rows.segment_rows = box.rows, parts.rows.rows = 2;
    parts.columns.segments = box.count, parts.columns.segment_rows = box.rows_y;
    return parts;
}

Parts parts_of(const Checked& checked, const Chip& chip, const CheckedSweep& one, const Reach& reach, const AlongX& along_x) {
    const MeshShape& shape = checked.problem->shape;
    const std::vector<LineSolve>& lines = one.sweep->lines;
    if (lines.size() != 3 || lines[1].axis != 1 || lines[2].axis != 2) return {};
    const std::size_t bytes = size_of(checked.dtype);
    const auto nx = static_cast<int>(shape.x);
    // Rows of a plane of z are side by side in memory, those of y are not. Each line's matrix is the same for all, so that solving along z before y differs by roundings alone, unless sides have values.
    const auto subtracts = [&](std::size_t axis) { return one.sweep->solution[axis].low.value != 0 || one.sweep->solution[axis].high.value != 0; };
    for (const int axis : {2, 1}) {
        if (axis == 2 && (subtracts(1) || subtracts(2))) continue;
        Parts parts;
        parts.axis = axis;
        parts.along = static_cast<int>(shape.along(axis)), parts.across = static_cast<int>(shape.along(3 - axis));
        parts.reach = reach;
        if (axis == 2) std::swap(parts.reach.y, parts.reach.z);
        const int fetched = fetched_by(one, checked.solution_field());
        parts.timed = reach.fields == 1 && fetched == 1 ? timed_cut(bytes, nx, parts.along, parts.across, shape.meshes) : nullptr;
        parts.segment = parts.timed ? parts.timed->segment : cut_segment(chip, bytes, nx, parts.along, parts.across);
        if (parts.segment == 0 || (is_ring(one, shape, axis) && parts.segment == parts.along)) continue;
        RowsCut kept;
        ColumnsAsked asked{.nx = nx, .ring = is_ring(one, shape, 3 - axis)};
        if (parts.timed) {
            kept.lanes = parts.timed->lanes, kept.segment_rows = parts.timed->segment_rows, kept.rows = bytes == 8 ? 1 : 2;
            asked.segment_rows = parts.timed->columns_rows, asked.segments = parts.timed->columns_segments;
        }
        parts.rows = cut_rows(chip, bytes, nx, parts.along, parts.across, 1, parts.reach, along_x, parts.segment, parts.timed ? &kept : nullptr);
        parts.columns = cut_columns(chip, bytes, parts.across, fetched, asked);
        if (parts.rows.fits() && parts.columns.fits()) return parts;
    }
    return {};
}

// Small meshes, a few, have all their steps in one launch: launches would take longer than passes. Twice as many points are done as soon by passes.
constexpr std::int64_t most_points_of_whole = std::int64_t{1} << 19;

void plan_whole(const Checked& checked, const Chip& chip, SweepPlan& own, Plan& plan) {
    const MeshShape& shape = checked.problem->shape;
    const std::vector<LineSolve>& lines = checked.sweeps[0].sweep->lines;
    if (checked.sweeps.size() > 1 || own.passes.size() != 3 || shape.points() > most_points_of_whole) return;
    const std::size_t bytes = size_of(checked.dtype);
    if (!staged_in_vectors(checked, own.passes[0].staged)) return;
    RowsCut rows = own.passes[0].rows;
    rows.star = rows.star && bytes == 8;  // in floats it would take more registers than are left beside columns
    std::vector<LinesOfMeshes> cuts;
    for (std::size_t k = 1; k < lines.size(); ++k) {
        const int axis = lines[static_cast<std::size_t>(own.passes[k].line)].axis;
        const std::int64_t inner = axis == 1 ? shape.x : shape.x * shape.y, rows = shape.along(axis);
        cuts.push_back({static_cast<int>(rows), inner, shape.points() / rows, own.passes[k].columns, own.passes[k].by_reach, own.passes[k].alternates});
    }
    const WholeCut cut = cut_whole(chip, bytes, static_cast<int>(shape.x), static_cast<int>(shape.y), static_cast<int>(shape.z), shape.meshes, own.passes[0].reach, rows, cuts);
    if (!cut.fits()) return;
    own.passes[0].rows = cut.rows;
    for (std::size_t k = 1; k < lines.size(); ++k) own.passes[k].columns = cut.columns[k - 1];
    plan.whole_threads = cut.threads, plan.whole_shared = cut.shared;
}

// Groups of meshes, whose kernels run beside each other's (beside.hpp): of batches whose passes take long enough for launches to be nothing, and in three dimensions more of them where there are many meshes.
int groups_of(const MeshShape& shape) {
    constexpr std::int64_t least_points = std::int64_t{1} << 24, least_of_many = 12'000'000, many = 16;
    const bool boxes = shape.z > 1 && shape.meshes >= many;
    if (shape.meshes < 2 || shape.points() < (boxes ? least_of_many : least_points)) return 1;
    return boxes ? static_cast<int>(std::clamp<std::int64_t>((shape.points() + (1 << 22) - 1) >> 22, 2, 4)) : 2;
}

/// A pass for each line solve. With parts: what decides roundings is as it is there.
const char* plan_in_passes(const Checked& checked, const Chip& chip, const CheckedSweep& one, Pass first, const Parts& parts, const AlongX& along_x, int groups, SweepPlan& own) {
    const MeshShape& shape = checked.problem->shape;
    const std::vector<LineSolve>& lines = one.sweep->lines;
    const std::size_t bytes = size_of(checked.dtype);
    first.rows = cut_rows(chip, bytes, static_cast<int>(shape.x), static_cast<int>(shape.y), static_cast<int>(shape.z), shape.meshes, first.reach, along_x, 0, parts.segment ? &parts.rows : nullptr);
    if (!first.rows.fits()) return "lines along x do not fit on the chip";
    own.passes.push_back(first);
    for (std::size_t k = 1; k < lines.size(); ++k) {
        Pass pass;
        pass.kind = PassKind::columns, pass.by_reach = parts.segment && (k == 1 || parts.alternates), pass.alternates = parts.alternates && k == 1;
        pass.line = parts.segment ? k == 1 ? parts.axis : 3 - parts.axis : static_cast<int>(k);
        const int axis = lines[static_cast<std::size_t>(pass.line)].axis;
        const auto rows = static_cast<int>(shape.along(axis));
        ColumnsAsked asked{.ring = is_ring(one, shape, axis)};
        asked.by_reach = pass.by_reach, asked.alternates = pass.alternates;
        if (parts.segment && k == 1) asked.segment_rows = parts.segment, asked.segments = rows / parts.segment;
        else if (parts.segment) asked.segment_rows = parts.columns.segment_rows, asked.segments = parts.columns.segments;
        const int fetched = k + 1 == lines.size() ? fetched_by(one, checked.solution_field()) : 0;
        pass.columns = cut_columns(chip, bytes, rows, fetched, asked);
        // In groups with the same segments.
        if (pass.columns.fits() && shape.z == 1 && groups > 1)
            pass.columns = cut_columns(chip, bytes, rows, fetched, {.segment_rows = pass.columns.segment_rows, .segments = pass.columns.segments, .ring = asked.ring, .grouped = true});
        if (!pass.columns.fits()) return "lines do not fit on the chip";
        own.passes.push_back(pass);
    }
    return nullptr;
}

/// Rows with what of lines in parts goes forwards, their ends, and columns with what goes backwards. false: in three passes a step takes less time.
bool plan_in_parts(const Checked& checked, const Chip& chip, const CheckedSweep& one, Pass first, const Parts& parts, const AlongX& along_x, int groups, SweepPlan& own) {
    const MeshShape& shape = checked.problem->shape;
    const std::size_t bytes = size_of(checked.dtype);
    const std::int64_t tasks_per_piece = parts.along / parts.segment * shape.meshes;
    if (shape.points() <= most_points_of_whole) return false;
    first.rows = cut_rows(chip, bytes, static_cast<int>(shape.x), parts.along, parts.across, shape.meshes, parts.reach, along_x, parts.segment, &parts.rows, staged_in_vectors(checked, first.staged), groups > 1);
    first.segment = parts.segment, first.parts_axis = parts.axis;
    Pass joins, last;
    joins.kind = PassKind::joins, joins.line = joins.parts_axis = parts.axis, joins.segment = parts.segment;
    // Of 64 registers, in vectors.
    for (int each = static_cast<int>(16 / bytes); joins.each == 1 && each > 1; each /= 2)
        if (shape.x % each == 0 && each * (parts.along / parts.segment) * static_cast<int>(bytes) <= 128) joins.each = each;
    last.segment = parts.segment, last.parts_axis = parts.axis;
    last.kind = PassKind::columns, last.line = 3 - parts.axis;
    last.columns = cut_columns(chip, bytes, parts.across, fetched_by(one, checked.solution_field()),
                               {.nx = static_cast<int>(shape.x), .tasks_per_piece = groups > 1 ? 0 : tasks_per_piece, .segment_rows = parts.columns.segment_rows, .segments = parts.columns.segments, .ring = parts.columns.ring, .grouped = groups > 1});
    if (parts.timed && groups > 1 && staged_in_vectors(checked, first.staged)) {
        if (const RowsCut rows = rows_of(*parts.timed, chip, parts.reach, along_x); rows.fits()) first.rows = rows;
        if (const ColumnsCut columns = columns_of(*parts.timed, chip, reads_packed_planes(checked, one, 3 - parts.axis), parts.columns.ring); columns.fits()) last.columns = columns;
    }
    if (!first.rows.fits() || !last.columns.fits()) return false;
    if (groups == 1 && !parts_are_faster(chip, bytes, static_cast<int>(shape.x), parts.along, parts.across, shape.meshes, first.rows, last.columns, parts.segment)) return false;
    const auto nx = static_cast<int>(shape.x);
    // Pieces of 128 bytes of short rows; of longer pieces, or rows, nothing is gained, and what rows store would lie far apart (512^3: 8 % of columns).
    const std::size_t piece_bytes = static_cast<std::size_t>(last.columns.columns) * bytes, row_bytes = static_cast<std::size_t>(nx) * bytes;
    last.piece = (!parts.timed || groups == 1) && nx % last.columns.columns == 0 && piece_bytes <= 128 && row_bytes <= 1024 ? last.columns.columns : nx;
    first.piece = joins.piece = last.piece;
    own.passes = {first, joins, last};
    return true;
}

}  // namespace

std::int64_t ends_of_segments(const Checked& checked, const Plan& plan) {
    std::int64_t most = 0;
    for (const SweepPlan& sweep : plan.sweeps)
        for (const Pass& pass : sweep.passes)
            if (pass.segment) most = std::max(most, 2 * (checked.problem->shape.points() / pass.segment));
    return most;
}

Plan plan_of(const Checked& checked, const Chip& chip) {
    Plan plan;
    plan.moves_alone = chip.moves_alone;
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
    plan.groups = groups_of(shape);
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
        Pass first;
        reach_of(one, first);
        const planes::Segments box = planes::segments_of(checked);
        const AlongX along_x{.alike = checked.dtype == DType::f32 ? same_rows(matrix_of<float>(checked, static_cast<int>(s), 0)) : same_rows(matrix_of<double>(checked, static_cast<int>(s), 0)), .ring = is_ring(one, shape, 0)};
        const Parts parts = box ? parts_of(checked, box, first) : parts_of(checked, chip, one, first.reach, along_x);
        // Timed, in place of three passes.
        if (plan.groups == 1 && checked.sweeps.size() == 1 && parts.timed && parts.timed->grouped_from && shape.meshes >= parts.timed->grouped_from) plan.groups = 3;
        SweepPlan own;
        if (parts.segment == 0 || parts.alternates || !plan_in_parts(checked, chip, one, first, parts, along_x, plan.groups, own)) {
            if (const char* const why = plan_in_passes(checked, chip, one, first, parts, along_x, plan.groups, own)) return refuse(why);
            plan_whole(checked, chip, own, plan);
        }
        for (const Pass& pass : own.passes)
            if (!(checked.dtype == DType::f32 ? safe<float>(checked, static_cast<int>(s), pass) : safe<double>(checked, static_cast<int>(s), pass)))
                return refuse("a matrix needs pivots");
        plan.sweeps.push_back(own);
    }
    return plan;
}

}  // namespace trifold::cuda::streaming
