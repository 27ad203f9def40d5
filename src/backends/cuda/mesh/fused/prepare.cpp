// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/fused/prepare.hpp"

#include <algorithm>
#include <cmath>

#include "backends/cuda/mesh/bands.hpp"
#include "problems/mesh/line_ends.hpp"

namespace trifold::cuda::fused {

using mesh::Access;
using mesh::Checked;
using mesh::CheckedSweep;

std::array<int, 3> reach_of(const Access& access) {
    std::array<int, 3> reach{};
    for (const mesh::FieldAccess& field : access.field)
        for (int row = 0; row < rows_across * rows_across; ++row)
            if (field.rows >> row & 1) {
                reach[0] = std::max<int>(reach[0], field.along_x[static_cast<std::size_t>(row)]);
                reach[1] = std::max(reach[1], std::abs(row % rows_across - max_reach)), reach[2] = std::max(reach[2], std::abs(row / rows_across - max_reach));
            }
    return reach;
}

namespace {

/// Words of a set of lines as kept.cuh has them, and what less shared memory is needed where the matrices turn out symmetric.
void keep(const mesh::Checked& checked, const LinesOfMesh& lines, Pass& pass) {
    const std::int64_t S = pass.cut.segments, W = pass.cut.columns, plane = static_cast<std::int64_t>(pass.cut.rows) * pass.cut.threads;
    const std::int64_t sets = (lines.lines + W - 1) / W;
    pass.kept = true;
    pass.kept_words = (lines.ring ? 5 : 4) * S * W + 3 * plane + 2 * W;
    pass.kept_sets = pass.one ? 1 : pass.alike ? sets : sets * checked.problem->shape.meshes;
    pass.shared_symmetric = pass.cut.shared - static_cast<std::size_t>(plane) * size_of(checked.dtype);
}

bool reads(const Access& access, int f) { return f < access.fields && access.field[static_cast<std::size_t>(f)].rows != 0; }

int reads_of(const Access& access) {
    int count = 0;
    for (const mesh::FieldAccess& field : access.field)
        for (int row = 0; row < rows_across * rows_across; ++row) count += field.rows >> row & 1 ? 2 * field.along_x[static_cast<std::size_t>(row)] + 1 : 0;
    return count;
}

bool is_target(const Checked& checked, int f);

/// Where the rest is kept.
int reads_of_targets(const Checked& checked, const Access& access) {
    Access own = access;
    for (int f = 0; f < std::min<int>(access.fields, static_cast<int>(checked.problem->fields.size())); ++f)
        if (!is_target(checked, f)) own.field[static_cast<std::size_t>(f)].rows = 0;
    return reads_of(own);
}

bool is_target(const Checked& checked, int f) {
    const void* const data = checked.problem->fields[static_cast<std::size_t>(f)].data;
    return std::any_of(checked.sweeps.begin(), checked.sweeps.end(), [&](const CheckedSweep& one) { return checked.problem->fields[static_cast<std::size_t>(one.sweep->target)].data == data; });
}

template <class T>
bool dominated(const LineSolve& line, const Sides& sides, const MeshProblem& problem) {
    Bands<T> m = bands_of<T>(line, problem);
    const std::size_t n = m.diag.size();
    if (sides.low.edge != Edge::periodic) {
        mesh::fold_ends(sides, static_cast<std::int64_t>(n), m.lower.data(), m.diag.data(), m.upper.data());
        m.lower.front() = m.upper.back() = 0;
    }
    for (std::size_t i = 0; i < n; ++i)
        if (!(std::fabs(m.diag[i]) > std::fabs(m.lower[i]) + std::fabs(m.upper[i])) || !std::isfinite(m.diag[i])) return false;
    return true;
}

/// One line solve; nullptr, or why not.
const char* plan_pass(const Checked& checked, const Chip& chip, const CheckedSweep& one, std::size_t k, bool keeps, Pass& pass) {
    const LineSolve& line = one.sweep->lines[k];
    const MeshProblem& problem = *checked.problem;
    const MeshShape& shape = problem.shape;
    const Access& read = one.coefficients[k];
    const Sides& sides = one.sweep->solution[static_cast<std::size_t>(line.axis)];
    const std::int64_t n = shape.along(line.axis);
    if (n < 2) return "lines have one row";
    pass.ring = sides.low.edge == Edge::periodic;
    if (pass.ring && n < 3) return "rings have two rows";
    pass.made = static_cast<bool>(line.coefficients);
    pass.alike = !pass.made || line.same_on_every_line || !mesh::mentions(line.coefficients, "mesh");
    pass.one = !pass.made || (line.same_on_every_line && read.fields == 0);
    if (pass.made) {
        if (mesh::mentions(line.coefficients, "step")) return "a matrix changes from step to step";
        for (int f = 0; f < read.fields; ++f) {
            if (!reads(read, f)) continue;
            if (is_target(checked, f)) return "a matrix is read from a target";
            if (problem.fields[static_cast<std::size_t>(f)].stride[3] != 0) pass.alike = false;
        }
        const std::array<int, 3> reach = reach_of(read);
        for (int axis = 0; axis < 3; ++axis)
            if (reach[static_cast<std::size_t>(axis)] > shape.along(axis)) return "a function looks further than a mesh reaches";
    } else if (!(checked.dtype == DType::f32 ? dominated<float>(line, sides, problem) : dominated<double>(line, sides, problem))) {
        return "a matrix needs pivots";
    }
    // How lines are cut decides roundings, and must not depend on the number of meshes.
    LinesOfMesh lines;
    lines.axis = line.axis, lines.rows = static_cast<int>(n), lines.lines = shape.x * shape.y * shape.z / n, lines.ring = pass.ring;
    if (shape.meshes < 2 && !pass.one) pass.alike = false;
    if (keeps) pass.cut = cut_kept(chip, size_of(checked.dtype), lines, shape.meshes);
    if (pass.cut.fits()) keep(checked, lines, pass);
    else pass.cut = cut_lines(chip, size_of(checked.dtype), lines);
    return pass.cut.fits() ? nullptr : "lines do not fit on a multiprocessor";
}

bool packed(const AnyField& field, const MeshShape& shape) {
    return field.stride[0] == 1 && field.stride[1] == shape.x && field.stride[2] == shape.x * shape.y && field.stride[3] == shape.x * shape.y * shape.z;
}

}  // namespace

std::int64_t rhs_pieces(const SweepPlan& sweep, const MeshShape& shape) {
    const std::int64_t deep = sweep.rhs_points * sweep.rhs_groups, rows_y = shape.z > 1 ? 8 : 8 * deep, rows_z = shape.z > 1 ? deep : 1;
    return (shape.x + 31) / 32 * ((shape.y + rows_y - 1) / rows_y) * ((shape.z + rows_z - 1) / rows_z);
}

std::int64_t RowsPlan::pieces(const MeshShape& shape) const {
    if (beside > 0) {
        const std::int64_t rows_y = beside * 32 / lanes, rows_z = warps / beside;
        return (shape.y + rows_y - 1) / rows_y * ((shape.z + rows_z - 1) / rows_z);
    }
    const std::int64_t chunks = ((shape.z > 1 ? shape.z : shape.y) + deep - 1) / deep, beside = shape.z > 1 ? shape.y : chunks, lines = 32 * warps / lanes;
    return (beside + lines - 1) / lines * (shape.z > 1 ? chunks : 1);
}

std::size_t kept_bytes(const Plan& plan, std::size_t value_bytes) {
    std::size_t bytes = 0;
    for (const SweepPlan& sweep : plan.sweeps) {
        for (const Pass& pass : sweep.passes)
            if (pass.kept) bytes += align(static_cast<std::size_t>(pass.kept_sets * pass.kept_words) * value_bytes);
        bytes += align(static_cast<std::size_t>(sweep.kept.words * sweep.kept.meshes) * value_bytes);
    }
    return bytes;
}

namespace {

/// Where meshes share what a right-hand side keeps, a thread holds it from mesh to mesh. Else arrays of a mesh, or it is made anew where their words take longer than divisions: an H200, ms of 100 steps without and with them: doubles
/// 48^3 x 72 31.2 and 25.8, 256^3 73.4 and 80.3; floats 256^3 36.9 and 39.4. The same two functions in all three, so that a mesh has the bits among others that it has alone.
KeptValues kept_values(const Checked& checked, const Chip& chip, const CheckedSweep& one) {
    constexpr int few_arrays = 2, most_arrays = 4, most_held = 8;
    const MeshShape& shape = checked.problem->shape;
    const auto fields = static_cast<int>(checked.problem->fields.size());
    KeptValues kept;
    kept.split = resident::split_invariants(one.sweep->rhs.source, [&](int field) { return field >= fields || is_target(checked, field); }, resident::Keep::costly);
    if (kept.split.kept == 0 || kept.split.kept > most_held) return kept;
    bool alike = shape.meshes > 1 && !mesh::mentions(one.sweep->rhs, "mesh");
    for (int f = 0; f < std::min(one.rhs.fields, fields); ++f)
        if (reads(one.rhs, f) && !is_target(checked, f) && checked.problem->fields[static_cast<std::size_t>(f)].stride[3] != 0) alike = false;
    const std::vector<resident::Place> places = resident::places_of(kept.split);
    int arrays = 0;
    for (const resident::Place& place : places) arrays = std::max(arrays, place.array + 1);
    const std::int64_t points = shape.x * shape.y * shape.z;
    const bool at_hand = static_cast<std::size_t>(arrays * points) * size_of(checked.dtype) <= chip.l2 / 2;
    kept.meshes = alike ? 1 : shape.meshes;
    kept.held = alike || checked.dtype == DType::f32 || arrays > (at_hand ? most_arrays : few_arrays);
    if (kept.held) return kept;
    kept.words = arrays * points;
    for (const resident::Place& place : places) {
        kept.values.push_back({place.array * points, kept.words, place.axis});
        if (place.axis >= 0) kept.words += points / shape.along(place.axis);
    }
    return kept;
}

/// Where lines along y and z make their matrices too: with those kept and shared 128^3 x 16 is faster.
bool large(const MeshShape& shape) { return shape.x * shape.y * shape.z >= std::int64_t{1} << 23; }

/// The right-hand side and lines along x in one pass of warps, and no matrices kept, where a box is large. By the shape of a mesh alone, since it decides roundings.
RowsPlan plan_rows(const Checked& checked, const CheckedSweep& one, const KeptValues& kept) {
    constexpr int least_rows = 4, most_rows = 8, most_kept = 8, deep = 32;
    RowsPlan plan;
    const MeshShape& shape = checked.problem->shape;
    const int n = static_cast<int>(shape.x);
    if (one.sweep->lines.size() < 2 || one.sweep->lines.front().axis != 0 || reach_of(one.rhs)[0] > 1 || reach_of(one.coefficients.front())[0] > 1 || kept.split.kept > most_kept) return plan;
    if (shape.z == 1 || !large(shape)) return plan;
    for (const int lanes : {4, 8, 16, 32})
        if (n % lanes == 0 && n / lanes >= least_rows && n / lanes <= most_rows && plan.lanes == 0) plan.lanes = lanes, plan.rows = n / lanes;
    if (plan.lanes == 0) return plan;
    // Registers for all that a lane has: spilled, it is more than what the pass moves.
    plan.warps = 8, plan.blocks = checked.dtype == DType::f64 ? 1 : 2;
    for (plan.deep = deep; plan.deep > 1 && shape.y * shape.z * plan.lanes / 32 / plan.deep < 1600;) plan.deep /= 2;
    return plan;
}

/// The same in smaller meshes, which hold what does not change, and go from mesh to mesh where these share it (held.cuh). By the shape of a mesh alone, likewise. An H200, ms of 100 steps, right-hand side and lines along x two passes, and so: 96^3 x 72
/// 81.3 and 63.9 in floats, 152.7 and 108.8 in doubles, 48^3 x 72 10.9 and 9.7, 19.7 and 15.8, 128^3 x 16 45.4 and 34.5, 79.8 and 67.8; a mesh alone of 128^3 4.9 and 5.6, 9.0 and 9.4.
RowsPlan plan_held(const Checked& checked, const Chip& chip, const CheckedSweep& one, const KeptValues& kept, bool alike) {
    constexpr int most_rows = 5, most_kept = 8;
    constexpr std::size_t of_the_system = 1024;
    RowsPlan plan;
    const MeshShape& shape = checked.problem->shape;
    const int n = static_cast<int>(shape.x);
    const std::array<int, 3> reach = reach_of(one.rhs);
    if (one.sweep->lines.size() < 2 || one.sweep->lines.front().axis != 0 || reach[0] > 1 || reach_of(one.coefficients.front())[0] > 1 || kept.split.kept > most_kept || shape.z == 1) return plan;
    for (const int lanes : {4, 8, 16, 32})
        if (n % lanes == 0 && n / lanes >= 2 && n / lanes <= most_rows && plan.lanes == 0) plan.lanes = lanes, plan.rows = n / lanes;
    if (plan.lanes == 0) return plan;
    const bool wide = checked.dtype == DType::f64;
    plan.warps = wide ? 6 : 8, plan.blocks = 2, plan.beside = wide ? 3 : 4, plan.stages = 3, plan.alike = alike;
    int fields = 0, most_fields = 0;
    for (int f = 0; f < std::min<int>(one.rhs.fields, static_cast<int>(checked.problem->fields.size())); ++f) {
        if (!reads(one.rhs, f) || (!is_target(checked, f) && kept.split.kept > 0)) continue;
        ++most_fields;
        if (checked.problem->fields[static_cast<std::size_t>(f)].stride[3] != 0) plan.tiled |= 1u << f, ++fields;
    }
    const int lines = 32 / plan.lanes, tile = (plan.beside * lines + 2 * reach[1]) * (plan.warps / plan.beside + 2 * reach[2]) * n, own = plan.warps * lines * (n + (plan.rows % 2 == 0 ? plan.lanes : 0));
    const auto shared = [&](int count) { return static_cast<std::size_t>(plan.stages * count * tile + own) * size_of(checked.dtype); };
    plan.shared = shared(fields);
    return static_cast<std::size_t>(plan.blocks) * (shared(most_fields) + of_the_system) > chip.shared_per_multiprocessor ? RowsPlan{} : plan;
}

/// Lines across memory beside rows: by the shape of a mesh alone, likewise. Left as it is where lines cannot be cut evenly.
void plan_columns(const Checked& checked, const Chip& chip, const CheckedSweep& one, std::size_t k, Pass& pass) {
    const int axis = one.sweep->lines[k].axis, words = static_cast<int>(size_of(checked.dtype) / 4), n = static_cast<int>(checked.problem->shape.along(axis));
    constexpr int least_rows = 4, most_rows = 16;
    const int registers = words > 1 ? 128 : 80;
    if (!pass.made || axis == 0 || reach_of(one.coefficients[k])[static_cast<std::size_t>(axis)] > 1) return;
    Cut cut;
    for (int rows = most_rows; rows >= least_rows && !cut.rows; --rows)
        if (n % rows == 0 && (!pass.ring || (n / rows & (n / rows - 1)) == 0)) cut.rows = rows;
    if (!cut.rows) return;
    cut.segments = n / cut.rows;
    for (cut.columns = 32 / words; cut.columns >= 8 / words; cut.columns /= 2) {
        cut.threads = cut.columns * cut.segments;
        cut.blocks = std::min({65536 / (cut.threads * registers), 2048 / cut.threads, 8});
        if (cut.blocks >= 2) break;
    }
    if (cut.blocks < 2 || cut.threads % 32) return;
    cut.shared = static_cast<std::size_t>((pass.ring ? 7 : 6) * cut.threads + cut.columns) * size_of(checked.dtype);
    if (static_cast<std::size_t>(cut.blocks) * (cut.shared + 1024) > chip.shared_per_multiprocessor) return;
    pass.in_registers = true, pass.kept = false, pass.kept_sets = 0, pass.cut = cut;
}

/// `keeps`: matrices that are functions of the point are kept through the run.
Plan plan_of(const Checked& checked, const Chip& chip, bool keeps) {
    Plan plan;
    const auto refuse = [&](const char* why) {
        plan.refuses = why;
        return plan;
    };
    const MeshProblem& problem = *checked.problem;
    const MeshShape& shape = problem.shape;
    if (problem.parameters.size() > 256) return refuse("there are more than 256 parameters");
    if (checked.sweeps.size() > 32) return refuse("it has more than 32 sweeps");
    if (!chip.has_clusters()) return refuse("they are made for compute capability 9.0");
    if (shape.points() < 1 || shape.x > 4096 || shape.y > 4096 || shape.z > 4096 || shape.x * shape.y * shape.z >= std::int64_t{1} << 30) return refuse("a mesh is too large");
    for (const AnyField& field : problem.fields)
        for (std::size_t axis = 0; axis < 3; ++axis)
            if (std::abs(field.stride[axis] * (shape.along(static_cast<int>(axis)) + 2)) >= std::int64_t{1} << 30) return refuse("a field is spread too far");
    for (const CheckedSweep& one : checked.sweeps) {
        if (one.sweep->lines.empty()) return refuse("a sweep has no lines");
        SweepPlan own;
        const std::array<int, 3> reach = reach_of(one.rhs);
        for (int axis = 0; axis < 3; ++axis)
            if (reach[static_cast<std::size_t>(axis)] > shape.along(axis)) return refuse("a function looks further than a mesh reaches");
        for (std::size_t k = 0; k < one.sweep->lines.size(); ++k) {
            Pass pass;
            if (const char* const why = plan_pass(checked, chip, one, k, keeps, pass)) return refuse(why);
            own.passes.push_back(pass);
        }
        own.apart = own.passes.front().kept && one.sweep->rhs;
        if (own.apart) own.kept = kept_values(checked, chip, one);
        if (own.apart && own.passes.front().made) own.rows = plan_rows(checked, one, own.kept);
        if (own.apart && own.passes.front().made && !own.rows) own.rows = plan_held(checked, chip, one, own.kept, own.passes.front().alike && own.kept.meshes < shape.meshes);
        if (own.rows) own.passes.front().kept = false, own.passes.front().kept_sets = 0, own.kept.values.clear(), own.kept.words = 0, own.kept.held = true;
        for (std::size_t k = 1; own.rows && large(shape) && k < own.passes.size(); ++k) plan_columns(checked, chip, one, k, own.passes[k]);
        // Warps that wait at the same time do more than points that share neighbours do.
        const int words_read = (own.kept.count() > 0 ? reads_of_targets(checked, one.rhs) + own.kept.count() : reads_of(one.rhs)) * static_cast<int>(size_of(checked.dtype) / 4);
        own.rhs_points = words_read > 16 && own.kept.count() == 0 ? 1 : 4, own.rhs_blocks = own.kept.count() > 0 ? 2 : own.rhs_points > 1 ? 3 : 5;
        own.rhs_alike = own.kept.held && own.kept.meshes < shape.meshes;
        own.rhs_groups = !own.rhs_alike && own.rhs_points > 1 && shape.points() >= std::int64_t{1} << 23 ? 2 : 1;
        const void* const target = problem.fields[static_cast<std::size_t>(one.sweep->target)].data;
        int names = 0;
        for (std::size_t f = 0; f < problem.fields.size(); ++f) {
            if (problem.fields[f].data != target) continue;
            ++names;
            if (own.passes.size() == 1 && one.sweep->rhs && !own.apart && reads(one.rhs, static_cast<int>(f)) && one.rhs.field[f].neighbours()) own.exchanges = true;
        }
        if (own.exchanges) {
            if (names > 1) return refuse("a target has a second name");
            if (!packed(problem.fields[static_cast<std::size_t>(one.sweep->target)], shape)) return refuse("a target that is read around its points has gaps");
            if (plan.exchanged >= 0 && plan.exchanged != one.sweep->target) return refuse("two targets are read around their points");
            plan.exchanged = one.sweep->target;
        }
        plan.sweeps.push_back(own);
    }
    if (plan.sweeps.empty()) return refuse("there is nothing to do");
    return plan;
}

}  // namespace

Plan plan_of(const Checked& checked, const Chip& chip) {
    Plan plan = plan_of(checked, chip, true);
    return kept_bytes(plan, size_of(checked.dtype)) > chip.memory / 2 ? plan_of(checked, chip, false) : plan;
}

}  // namespace trifold::cuda::fused
