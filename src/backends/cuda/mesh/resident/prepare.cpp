// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/resident/prepare.hpp"

#include <algorithm>
#include <cstddef>

#include "backends/cuda/mesh/bands.hpp"
#include "backends/cuda/mesh/functions.hpp"
#include "backends/cuda/mesh/resident/factors.hpp"
#include "backends/cuda/mesh/resident/invariants.hpp"

namespace trifold::cuda::resident {
namespace {

using mesh::Access;
using mesh::Checked;
using mesh::CheckedSweep;
using mesh::FieldAccess;

static_assert(even == static_cast<int>(Edge::even) && odd == static_cast<int>(Edge::odd) && periodic == static_cast<int>(Edge::periodic) && most_kept >= max_fields);

std::size_t at(int k) { return static_cast<std::size_t>(k); }

/// Ghosts that a function needs of a field, and whether it looks off the axes.
void look(const FieldAccess& access, FieldPlan& field) {
    if (access.rows == 0) return;
    field.kept = true;
    for (int row = 0; row < rows_across * rows_across; ++row) {
        if (!(access.rows >> row & 1)) continue;
        const int away[3] = {access.along_x[at(row)], std::abs(row % rows_across - max_reach), std::abs(row / rows_across - max_reach)};
        for (int axis = 0; axis < 3; ++axis) field.ghosts[axis] = std::max(field.ghosts[axis], away[axis]);
        field.diagonal = field.diagonal || (away[0] > 0) + (away[1] > 0) + (away[2] > 0) > 1;
    }
}

bool valued(const Side& side) { return side.edge == Edge::odd && side.value != 0; }

void describe_fields(const Checked& checked, Plan& plan) {
    const MeshProblem& problem = *checked.problem;
    plan.fields = static_cast<int>(problem.fields.size());
    for (int f = 0; f < plan.fields; ++f) {
        FieldPlan& field = plan.field[f];
        for (const CheckedSweep& one : checked.sweeps) {
            look(one.rhs.field[at(f)], field), look(one.update.field[at(f)], field);
            for (const Access& access : one.coefficients) look(access.field[at(f)], field);
            if (one.sweep->target == f) field.kept = field.target = true;
        }
        const AnyField& data = problem.fields[at(f)];
        for (int axis = 0; axis < 3; ++axis) {
            field.one[axis] = !field.target && field.ghosts[axis] == 0 && data.stride[at(axis)] == 0;
            field.edge[axis][0] = static_cast<int>(data.sides[at(axis)].low.edge), field.edge[axis][1] = static_cast<int>(data.sides[at(axis)].high.edge);
        }
    }
}

const char* describe_sweeps(const Checked& checked, Plan& plan) {
    for (const CheckedSweep& one : checked.sweeps) {
        const Sweep& sweep = *one.sweep;
        SweepPlan& own = plan.sweep[plan.sweeps++];
        own.first_line = plan.lines, own.lines = static_cast<int>(sweep.lines.size()), own.target = sweep.target, own.looks_away = false;
        FieldPlan read;
        look(one.rhs.field[at(sweep.target)], read);
        own.looks_away = read.ghosts[0] + read.ghosts[1] + read.ghosts[2] > 0;
        for (std::size_t k = 0; k < sweep.lines.size(); ++k) {
            const LineSolve& line = sweep.lines[k];
            if (plan.lines == most_lines) return "it has more than 16 line solves";
            const bool varies = line.coefficients && (!line.same_on_every_line || one.coefficients[k].fields > 0);
            if (line.coefficients && mesh::mentions(line.coefficients, "step")) return "a matrix changes from step to step";
            if (plan.mesh[2] == 1 && line.axis == 2) return "lines have one row";
            for (int f = 0; varies && f < one.coefficients[k].fields; ++f)
                if (plan.field[f].target && one.coefficients[k].field[at(f)].rows != 0) return "a matrix is read from a target";
            const Sides& sides = sweep.solution[at(line.axis)];
            plan.line[plan.lines++] = {line.axis, sides.low.edge == Edge::periodic && checked.problem->shape.along(line.axis) > 2, valued(sides.low) || valued(sides.high), !line.coefficients, varies, false, varies && looks_symmetric(line.coefficients.source, line.axis), {static_cast<int>(sides.low.edge), static_cast<int>(sides.high.edge)}};
            if (varies && sides.low.edge == Edge::periodic && !plan.line[plan.lines - 1].ring) return "rings have two rows";
        }
    }
    return nullptr;
}

/// The right-hand side of a sweep, cut where it is the same in every step.
Split split_of(const CheckedSweep& one, const Plan& plan) {
    if (!one.sweep->rhs) return {};
    return split_invariants(one.sweep->rhs.source, [&](int field) { return field >= plan.fields || plan.field[field].target; }, Keep::costly);
}

/// False: none is worth it.
bool cut_right_hand_sides(const Checked& checked, Plan& plan) {
    bool any = false;
    std::vector<std::string> rest(at(plan.sweeps));
    for (int s = 0; s < plan.sweeps; ++s) {
        const Split split = split_of(checked.sweeps[at(s)], plan);
        if (split.kept == 0 || split.kept > most_values) continue;
        SweepPlan& own = plan.sweep[s];
        own.kept = split.kept, rest[at(s)] = split.rest, any = true;
        const std::vector<Place> places = places_of(split);
        for (std::size_t v = 0; v < places.size(); ++v) own.value[v] = {places[v].array, places[v].axis}, own.arrays = std::max(own.arrays, places[v].array + 1);
    }
    for (int f = 0; any && f < plan.fields; ++f) {
        FieldPlan& field = plan.field[f];
        field.once = field.kept && !field.target;
        for (int s = 0; s < plan.sweeps; ++s) {
            const CheckedSweep& one = checked.sweeps[at(s)];
            const bool read = plan.sweep[s].kept == 0 ? one.rhs.field[at(f)].rows != 0 : rest[at(s)].find("at(" + std::to_string(f) + ",") != std::string::npos;
            if (read || one.update.field[at(f)].rows != 0) field.once = false;
        }
    }
    return any;
}

/// A second name for a target would not see what is done to the copy on chip.
bool has_second_name(const MeshProblem& problem, const Plan& plan) {
    for (int f = 0; f < plan.fields; ++f)
        for (int g = 0; g < plan.fields; ++g)
            if (f != g && plan.field[f].target && plan.field[g].kept && problem.fields[at(f)].data == problem.fields[at(g)].data) return true;
    return false;
}

std::string list(std::initializer_list<int> values) {
    std::string text = "{";
    for (const int value : values) text.append(std::to_string(value)).append(", ");
    return text.append("}");
}

std::string list(const int (&v)[3]) { return list({v[0], v[1], v[2]}); }
std::string yes(bool b) { return b ? "true" : "false"; }

std::string text_of(const Plan& plan) {
    std::string text("{");
    text += std::to_string(plan.vector) + ", " + list(plan.mesh) + ", " + std::to_string(plan.cluster) + ", " + std::to_string(plan.threads) + ", " +
                       std::to_string(plan.slab_rows) + ", " + std::to_string(plan.abreast) + ", " + std::to_string(plan.turn_rows) + ", {";
    for (const AxisCut& cut : plan.cut) text += list({cut.segments, cut.rows}) + ", ";
    text += "}, " + std::to_string(plan.fields) + ", " + std::to_string(plan.lines) + ", " + std::to_string(plan.sweeps) + ",\n    {";
    for (int f = 0; f < plan.fields; ++f) {
        const FieldPlan& field = plan.field[f];
        text.append("{").append(yes(field.kept)) += ", " + yes(field.target) + ", " + yes(field.once) + ", " + yes(field.diagonal) + ", " + list(field.ghosts) + ", {" + yes(field.one[0]) + ", " + yes(field.one[1]) + ", " +
                yes(field.one[2]) + "}, {";
        for (const auto& edge : field.edge) text += list({edge[0], edge[1]}) + ", ";
        text += "}}, ";
    }
    text += "},\n    {";
    for (int l = 0; l < plan.lines; ++l) text.append("{").append(std::to_string(plan.line[l].axis)) += ", " + yes(plan.line[l].ring) + ", " + yes(plan.line[l].ends) + ", " + yes(plan.line[l].constant) + ", " + yes(plan.line[l].varies) + ", " + yes(plan.line[l].held) + ", " + yes(plan.line[l].symmetric) + ", " + list({plan.line[l].edge[0], plan.line[l].edge[1]}) + "}, ";
    text += "}, {";
    for (int s = 0; s < plan.sweeps; ++s) {
        const SweepPlan& sweep = plan.sweep[s];
        text.append("{").append(std::to_string(sweep.first_line)) += ", " + std::to_string(sweep.lines) + ", " + std::to_string(sweep.target) + ", " + yes(sweep.looks_away) + ", " + std::to_string(sweep.kept) + ", " + std::to_string(sweep.arrays) + ", {";
        for (int v = 0; v < sweep.kept; ++v) text += list({sweep.value[v].array, sweep.value[v].axis}) + ", ";
        text += "}}, ";
    }
    return text + "}}";
}

/// rhs or update of every sweep as one template.
std::string functions_of(const Checked& checked, const Plan& plan, bool update, FunctionTexts& functions) {
    std::string text = std::string("    template <int s, class Near, class Parameters>\n    static __device__ __forceinline__ real ") + (update ? "update" : "rhs") +
                       "(const Near& near, const Parameters& p, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) {\n        real out[1];\n";
    int s = 0;
    for (const CheckedSweep& one : checked.sweeps) {
        const PointFunction& function = update ? one.sweep->update : one.sweep->rhs;
        const std::string itself = std::to_string(update ? checked.solution_field() : one.sweep->target);
        text += "        if constexpr (s == " + std::to_string(s) + ") ";
        const bool cut = !update && plan.sweep[s].kept > 0;
        ++s;
        if (cut) text += functions.name_of(function.name, split_of(one, plan).rest) + "<real>(near, p, out, x, y, z, mesh, step);\n";
        else text += function ? functions.name_of(function) + "<real>(near, p, out, x, y, z, mesh, step);\n" : "out[0] = near.template at<" + itself + ", 0, 0, 0>();\n";
    }
    return text + "        return out[0];\n    }\n";
}

/// What right-hand sides are cut at.
std::string invariants_of(const Checked& checked, const Plan& plan, FunctionTexts& functions) {
    std::string text = "    template <int s, class Near, class Parameters>\n    static __device__ __forceinline__ void keep(const Near& near, const Parameters& p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) {\n";
    for (int s = 0; s < plan.sweeps; ++s)
        if (const CheckedSweep& one = checked.sweeps[at(s)]; plan.sweep[s].kept > 0)
            text += "        if constexpr (s == " + std::to_string(s) + ") " + functions.name_of(one.sweep->rhs.name, split_of(one, plan).once) + "<real>(near, p, out, x, y, z, mesh, step);\n";
    return text + "    }\n";
}

/// The rows of matrices that vary, likewise; by the number of the line solve.
std::string coefficients_of(const Checked& checked, const Plan& plan, FunctionTexts& functions) {
    std::string text = "    template <int l, class Near, class Parameters>\n    static __device__ __forceinline__ void coefficients(const Near& near, const Parameters& p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) {\n";
    int l = 0;
    for (const CheckedSweep& one : checked.sweeps)
        for (const LineSolve& line : one.sweep->lines) {
            if (plan.varies(l)) text += "        if constexpr (l == " + std::to_string(l) + ") " + functions.name_of(line.coefficients) + "<real>(near, p, out, x, y, z, mesh, step);\n";
            ++l;
        }
    return text + "    }\n";
}

}  // namespace

const char* prepare(const Checked& checked, const OnChip& chip, Plan& plan, int& blocks) {
    const MeshProblem& problem = *checked.problem;
    const MeshShape& shape = problem.shape;
    constexpr std::int64_t longest = 1 << 15, most_points = 1 << 22;
    plan = {};
    if (shape.points() == 0 || checked.sweeps.empty()) return "there is nothing to do";
    if (shape.x > longest || shape.y > longest || shape.z > longest || shape.x * shape.y * shape.z > most_points) return "a mesh is too large for the memory of a cluster";
    if ((shape.x > 1) + (shape.y > 1) + (shape.z > 1) < 2) return "a mesh has one axis";
    if (shape.meshes > (1 << 26)) return "there are too many meshes for one launch";
    if (problem.parameters.size() > at(most_parameters)) return "it has more than 64 parameters";
    if (checked.sweeps.size() > at(most_sweeps)) return "it has more than 8 sweeps";
    plan.vector = 16 / static_cast<int>(size_of(checked.dtype));
    for (int axis = 0; axis < 3; ++axis) plan.mesh[axis] = static_cast<int>(shape.along(axis));
    describe_fields(checked, plan);
    for (int f = 0; f < plan.fields; ++f)
        for (int axis = 0; axis < 3; ++axis)
            if (plan.field[f].ghosts[axis] > plan.mesh[axis]) return "a function looks further than a mesh reaches";
    // Planes are cut along x and y alone, and what lies beyond them is nobody's.
    for (int f = 0; f < plan.fields; ++f)
        if (plan.mesh[2] == 1 && plan.field[f].ghosts[2] > 0) return "a function looks beyond a plane";
    if (has_second_name(problem, plan)) return "a target has a second name";
    if (const char* why = describe_sweeps(checked, plan)) return why;
    Plan whole = plan, parted = plan;
    int blocks_parted = 0;
    const bool whole_fits = choose_cut(whole, chip, blocks), parted_fits = cut_right_hand_sides(checked, parted) && choose_cut(parted, chip, blocks_parted);
    if (!whole_fits && !parted_fits) return "a mesh does not fit on chip";
    // Kept values make clusters larger. An H200, floats, Gpoint-steps/s with kept values and without: 32^3 on eight blocks 110 and 87, on four without 48; before neighbours shared values, 160^2 on eight and four 140 and 101, 224^2 on sixteen and eight 128 and 93.
    const int most = plan.mesh[2] == 1 ? 16 : 8;
    const bool better = parted_fits && (!whole_fits || parted.cluster <= std::max(whole.cluster, std::min(2 * whole.cluster, most)));
    plan = better ? parted : whole;
    if (better) blocks = blocks_parted;
    spread(plan, chip, shape.meshes, blocks);
    return nullptr;
}

template <class T>
const char* factor(const Checked& checked, const Plan& plan, std::vector<T>& table, Numbers<T>& numbers) {
    int l = 0;
    table.clear();
    for (const CheckedSweep& one : checked.sweeps)
        for (const LineSolve& line : one.sweep->lines) {
            const int axis = line.axis, n = plan.mesh[axis];
            if (plan.varies(l)) {
                const Sides& sides = one.sweep->solution[at(axis)];
                numbers.ends[l][0] = static_cast<T>(2 * sides.low.value), numbers.ends[l][1] = static_cast<T>(2 * sides.high.value);
                ++l;
                continue;
            }
            Bands<T> bands = bands_of<T>(line, *checked.problem);
            const SegmentShape shape{n, plan.segments(axis), plan.cut[axis].rows, plan.padded_rows(axis), plan.padded_segments(axis), plan.alike(l)};
            if (!append_factors<T>(shape, one.sweep->solution[at(axis)], bands.lower, bands.diag, bands.upper, table, numbers.ends[l])) return "a matrix needs pivots";
            ++l;
        }
    return nullptr;
}

template const char* factor<float>(const Checked&, const Plan&, std::vector<float>&, Numbers<float>&);
template const char* factor<double>(const Checked&, const Plan&, std::vector<double>&, Numbers<double>&);

std::string program(const Checked& checked, const Plan& plan, int blocks) {
    FunctionTexts functions;
    const std::string rhs = functions_of(checked, plan, false, functions), update = functions_of(checked, plan, true, functions), invariants = invariants_of(checked, plan, functions), coefficients = coefficients_of(checked, plan, functions);
    return functions.text() + "#include \"backends/cuda/mesh/resident/kernel.cuh\"\nusing namespace trifold::cuda::resident;\nstruct Problem {\n    using real = " +
           (checked.dtype == DType::f32 ? "float" : "double") + ";\n    static constexpr Plan plan = " + text_of(plan) + ";\n" + rhs + update + invariants + coefficients +
           "};\nextern \"C\" __global__ void __launch_bounds__(" + std::to_string(plan.threads) + ", " + std::to_string(blocks) +
           ") steps(const __grid_constant__ Arguments<Problem::real> a) {\n    extern __shared__ int4 shared[];\n"
           "    run<Problem>(a, reinterpret_cast<Problem::real*>(shared), static_cast<std::int64_t>(blockIdx.x) / Problem::plan.cluster);\n}\n"
           "extern \"C\" __global__ void put_back(const __grid_constant__ Arguments<Problem::real> a, std::int64_t points) {\n"
           "    put_back<Problem>(a, points, static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, static_cast<std::int64_t>(gridDim.x) * blockDim.x);\n}\n";
}

}  // namespace trifold::cuda::resident
