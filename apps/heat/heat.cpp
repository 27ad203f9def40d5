// SPDX-License-Identifier: BSD-3-Clause
#include "heat/heat.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "heat/stencils.hpp"
#include "trifold/error.hpp"

namespace trifold::heat {
namespace {

std::string text_of(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

template <class T>
void check(const Problem<T>& problem) {
    const MeshShape& shape = problem.shape;
    for (const double spacing : problem.spacing)
        if (!(spacing > 0) || !std::isfinite(spacing)) throw Error(ErrorCode::usage, "spacing", text_of(spacing) + " is no spacing", "give positive numbers");
    if (problem.scheme == Scheme::peaceman_rachford && shape.z > 1)
        throw Error(ErrorCode::usage, "scheme", "Peaceman and Rachford's is for two dimensions", "use Douglas and Gunn's");
    if (!problem.conductivities && !(problem.conductivity > 0 && std::isfinite(problem.conductivity)))
        throw Error(ErrorCode::bad_input, "conductivity", text_of(problem.conductivity) + " is not positive and finite", "heat flows from hot to cold");
    const std::int64_t cells = shape.x * shape.y * shape.z;
    const auto place = [&](std::int64_t i) {
        return "x = " + std::to_string(i % shape.x) + ", y = " + std::to_string(i / shape.x % shape.y) + ", z = " + std::to_string(i / (shape.x * shape.y));
    };
    for (std::int64_t i = 0; problem.conductivities && i < cells; ++i)
        if (!(problem.conductivities[i] > 0) || !std::isfinite(problem.conductivities[i]))
            throw Error(ErrorCode::bad_input, "conductivity", text_of(static_cast<double>(problem.conductivities[i])) + " at " + place(i) + " is not positive and finite",
                        "heat flows from hot to cold; use a small number for an insulator");
    for (std::int64_t i = 0; problem.source && i < cells; ++i)
        if (!std::isfinite(problem.source[i])) throw Error(ErrorCode::bad_input, "source", "not finite at " + place(i));
    if (!(problem.step > 0) || !std::isfinite(problem.step)) throw Error(ErrorCode::usage, "step", text_of(problem.step) + " is no step of time", "give a positive number");
}

std::array<Sides, 3> without_values(std::array<Sides, 3> sides) {
    for (Sides& axis : sides) axis.low.value = axis.high.value = 0;
    return sides;
}

// Periodic where u is, else mirrored.
std::array<Sides, 3> of_conductivity(const std::array<Sides, 3>& sides) {
    std::array<Sides, 3> own{};
    for (std::size_t axis = 0; axis < 3; ++axis)
        if (sides[axis].low.edge == Edge::periodic) own[axis] = {{Edge::periodic}, {Edge::periodic}};
    return own;
}

}  // namespace

template <class T>
double mesh_number(const Problem<T>& problem) {
    const MeshShape& shape = problem.shape;
    double conductivity = problem.conductivity, spacing = INFINITY;
    if (problem.conductivities) conductivity = *std::max_element(problem.conductivities, problem.conductivities + shape.x * shape.y * shape.z);
    for (int axis = 0; axis < 3; ++axis)
        if (shape.along(axis) > 1) spacing = std::min(spacing, problem.spacing[static_cast<std::size_t>(axis)]);
    return problem.step * conductivity / (spacing * spacing);
}

template <class T>
Heat<T>::Heat(Queue& queue, const Problem<T>& problem, T* u) : queue_(queue), shape_(problem.shape), nothing_(static_cast<std::size_t>(std::max<std::int64_t>(shape_.x, 0))) {
    check(problem);
    const bool varies = problem.conductivities != nullptr, heated = problem.source != nullptr, solid = shape_.z > 1;
    std::array<Sides, 3> sides = problem.sides;
    for (int axis = 0; axis < 3; ++axis)
        if (shape_.along(axis) == 1) sides[static_cast<std::size_t>(axis)] = {};
    const MeshShape one{shape_.x, shape_.y, shape_.z, 1};
    std::array<std::int64_t, 4> for_all = Field<const T>::packed(nullptr, one).stride;
    for_all[3] = 0;
    const std::int64_t cells = one.points();
    fields_ = {Field<T>::packed(u, shape_, sides), Field<const T>::strided(varies ? on_device(problem.conductivities, cells) : nullptr, for_all, of_conductivity(sides)),
               heated ? Field<const T>::strided(on_device(problem.source, cells), for_all)
                      : Field<const T>::strided(on_device(nothing_.data(), shape_.x), {1, 0, 0, 0})};
    if (!varies) fields_[1] = fields_[2];  // not read
    for (const double spacing : problem.spacing) parameters_.push_back(problem.step * (varies ? 1 : problem.conductivity) / (spacing * spacing));
    parameters_.push_back(problem.step);
    const auto line = [&](int axis) {
        static constexpr PointFunction varying[3] = {varying_x, varying_y, varying_z};
        LineSolve solve;
        solve.axis = axis;
        const double half = parameters_[static_cast<std::size_t>(axis)] / 2;
        if (varies) solve.coefficients = varying[axis];
        else solve.constant = {-half, 1 + 2 * half, -half};
        return solve;
    };
    if (problem.scheme == Scheme::peaceman_rachford) {
        sweeps_ = {{varies ? varying_half_step_y : heated ? heated_half_step_y : half_step_y, {line(0)}, {}, 0, sides},
                   {varies ? varying_half_step_x : heated ? heated_half_step_x : half_step_x, {line(1)}, {}, 0, sides}};
        return;
    }
    const PointFunction flat = varies ? heated ? heated_varying_increment_2d : varying_increment_2d : heated ? heated_increment_2d : increment_2d;
    const PointFunction deep = varies ? heated ? heated_varying_increment_3d : varying_increment_3d : heated ? heated_increment_3d : increment_3d;
    Sweep all{solid ? deep : flat, {}, add_increment, 0, without_values(sides)};
    for (int axis = 0; axis < 3; ++axis)
        if (shape_.along(axis) > 1) all.lines.push_back(line(axis));
    sweeps_ = {all};
}

template <class T>
const T* Heat<T>::on_device(const T* values, std::int64_t count) {
    if (queue_.memory().kind != MemoryKind::device) return values;
    return copies_.emplace_back(queue_, std::span(values, static_cast<std::size_t>(count))).data();
}

template <class T>
SweepOutcome Heat<T>::advance(std::int64_t steps) {
    const SweepOutcome outcome = sweep(queue_, {shape_, fields_, sweeps_, parameters_}, steps, {.first_step = done_});
    if (outcome.ok()) done_ += steps;
    return outcome;
}

template double mesh_number<float>(const Problem<float>&);
template double mesh_number<double>(const Problem<double>&);
template class Heat<float>;
template class Heat<double>;

}  // namespace trifold::heat
