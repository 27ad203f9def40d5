// SPDX-License-Identifier: BSD-3-Clause
#include "problems/mesh/checked.hpp"

#include <cmath>
#include <string>

#include "problems/tridiagonal/overlap.hpp"
#include "trifold/error.hpp"
#include "trifold/view.hpp"

namespace trifold::mesh {
namespace {

constexpr const char* axis_name[3] = {"x", "y", "z"};

[[noreturn]] void misuse(const std::string& where, const std::string& message, const std::string& hint = {}) {
    throw Error(ErrorCode::usage, where, message, hint);
}

// Beyond every address, and with room for what is computed from it.
constexpr std::int64_t most_elements = std::int64_t{1} << 53;

void check_shape(const MeshShape& shape) {
    std::int64_t points = 1;
    for (const std::int64_t extent : {shape.x, shape.y, shape.z, shape.meshes}) {
        if (extent < 0) misuse("shape", "a negative extent, " + std::to_string(extent));
        if (__builtin_mul_overflow(points, extent, &points) || points > most_elements) misuse("shape", "more than 2^53 points");
    }
}

void check_sides(const std::string& where, const std::array<Sides, 3>& sides) {
    for (int axis = 0; axis < 3; ++axis) {
        const auto& [low, high] = sides[static_cast<std::size_t>(axis)];
        for (const Side& side : {low, high})
            if (static_cast<int>(side.edge) > static_cast<int>(Edge::periodic))
                misuse(where, std::string("a side of ") + axis_name[axis] + " is edge " + std::to_string(static_cast<int>(side.edge)) + " of the enumeration");
        if ((low.edge == Edge::periodic) != (high.edge == Edge::periodic))
            misuse(where, std::string("one side of ") + axis_name[axis] + " is periodic and the other is not", "make both periodic, or none");
        if (!std::isfinite(low.value) || !std::isfinite(high.value)) misuse(where, std::string("the value on a side of ") + axis_name[axis] + " is not finite");
    }
}

AnyView view_of(const AnyField& field, const MeshShape& shape) {
    AnyView view;
    view.data = field.data, view.dtype = field.dtype, view.memory = field.memory;
    view.axis = {shape.x, field.stride[0]};
    view.batch_dims = 3;
    view.batch[0] = {shape.meshes, field.stride[3]}, view.batch[1] = {shape.z, field.stride[2]}, view.batch[2] = {shape.y, field.stride[1]};
    return view;
}

void check_field(const std::string& where, const AnyField& field, const MeshProblem& problem, Memory device) {
    if (!field.data && problem.shape.points() > 0) misuse(where, "no memory (null pointer)");
    if (reinterpret_cast<std::uintptr_t>(field.data) % size_of(field.dtype))
        misuse(where, std::string("an address that is not a multiple of the size of ") + name_of(field.dtype));
    const std::int64_t extent[4] = {problem.shape.x, problem.shape.y, problem.shape.z, problem.shape.meshes};
    std::int64_t reach = 0;
    for (int d = 0; problem.shape.points() > 0 && d < 4; ++d) {
        const std::int64_t stride = field.stride[static_cast<std::size_t>(d)];
        std::int64_t far = 0;
        if (extent[d] == 1) continue;
        if (stride == INT64_MIN || __builtin_mul_overflow(stride < 0 ? -stride : stride, extent[d] - 1, &far) || __builtin_add_overflow(reach, far, &reach) || reach > most_elements)
            misuse(where, "points " + std::to_string(stride) + " elements apart, beyond every address", "strides count elements");
    }
    if (field.dtype != problem.fields[0].dtype)
        misuse(where, std::string(name_of(field.dtype)) + " where field 0 is " + name_of(problem.fields[0].dtype), "all fields have one type");
    if (field.memory.kind == MemoryKind::device && field.memory != device)
        misuse(where, "memory of device " + std::to_string(field.memory.index) + " where the queue's device works in another",
               "copy it there, or take a Queue on its own device");
    check_sides(where, field.sides);
}

void check_target(const std::string& where, const MeshProblem& problem, int target) {
    const AnyField& field = problem.fields[static_cast<std::size_t>(target)];
    if (!field.writable) misuse(where, "field " + std::to_string(target) + " is the target, and cannot be written", "give it as Field<double> or Field<float>, not const");
    const AnyView view = view_of(field, problem.shape);
    if (overlaps_itself(view)) misuse(where, "two points of field " + std::to_string(target) + " share an address", "give the target a stride along every axis");
    for (std::size_t f = 0; f < problem.fields.size(); ++f) {
        const AnyField& other = problem.fields[f];
        if (static_cast<int>(f) == target || (other.data == field.data && other.stride == field.stride)) continue;
        if (overlap(view, view_of(other, problem.shape)))
            misuse(where, "fields " + std::to_string(target) + " and " + std::to_string(f) + " share memory", "the target must lie apart from what is read");
    }
}

Access check_function(const PointFunction& function, int outputs, int fields, std::size_t parameters) {
    const std::string where = std::string("point function '") + function.name + "'";
    if (!function.source || !function.run_f32 || !function.run_f64) misuse(where, "is incomplete", "write it with TRIFOLD_POINT_FUNCTION");
    const Access access = access_of(function);
    const auto count = [](int number, const char* noun) { return std::to_string(number) + " " + noun + (number == 1 ? "" : "s"); };
    if (access.outputs != outputs) misuse(where, "has " + count(access.outputs, "result") + " where " + count(outputs, "result") + " " + (outputs == 1 ? "is" : "are") + " due");
    if (access.fields > fields) misuse(where, "reads field " + std::to_string(access.fields - 1) + " of " + std::to_string(fields));
    if (access.parameters > static_cast<int>(parameters))
        misuse(where, "reads parameter " + std::to_string(access.parameters - 1) + " of " + std::to_string(parameters));
    return access;
}

CheckedSweep check_sweep(const std::string& where, const Sweep& sweep, const MeshProblem& problem) {
    CheckedSweep checked;
    checked.sweep = &sweep;
    const int fields = static_cast<int>(problem.fields.size());
    if (sweep.target < 0 || sweep.target >= fields) misuse(where, "there is no field " + std::to_string(sweep.target) + " to be the target");
    check_target(where, problem, sweep.target);
    check_sides(where, sweep.solution);
    const std::size_t parameters = problem.parameters.size();
    if (sweep.rhs) checked.rhs = check_function(sweep.rhs, 1, fields, parameters);
    if (sweep.lines.size() > static_cast<std::size_t>(max_lines))
        misuse(where, std::to_string(sweep.lines.size()) + " line solves", "at most " + std::to_string(max_lines) + "; write several sweeps");
    for (const LineSolve& line : sweep.lines) {
        if (line.axis < 0 || line.axis > 2) misuse(where, "there is no axis " + std::to_string(line.axis), "0 is x, 1 is y, 2 is z");
        for (const double value : line.constant)
            if (!std::isfinite(value)) misuse(where, std::string("a coefficient along ") + axis_name[line.axis] + " is not finite");
        checked.coefficients.push_back(line.coefficients ? check_function(line.coefficients, 3, fields, parameters) : Access{});
    }
    if (sweep.update) {
        checked.update = check_function(sweep.update, 1, fields + 1, parameters);
        const std::array<int, 2> summands = summands_of(sweep.update);
        checked.adds = summands == std::array{sweep.target, fields} || summands == std::array{fields, sweep.target};
        for (const FieldAccess& access : checked.update.field)
            if (access.neighbours())
                misuse(std::string("point function '") + sweep.update.name + "'", "reads neighbours, which an update may not", "read them in the right-hand side of the next sweep");
    }
    return checked;
}

}  // namespace

Checked check(const MeshProblem& problem, Memory device) {
    check_shape(problem.shape);
    if (problem.fields.empty() || problem.fields.size() > static_cast<std::size_t>(max_fields))
        misuse("fields", std::to_string(problem.fields.size()) + " fields", "1 to " + std::to_string(max_fields) + " are supported");
    for (std::size_t f = 0; f < problem.fields.size(); ++f) check_field("field " + std::to_string(f), problem.fields[f], problem, device);
    Checked checked;
    checked.problem = &problem;
    checked.dtype = problem.fields[0].dtype;
    for (std::size_t s = 0; s < problem.sweeps.size(); ++s) checked.sweeps.push_back(check_sweep("sweep " + std::to_string(s), problem.sweeps[s], problem));
    return checked;
}

}  // namespace trifold::mesh
