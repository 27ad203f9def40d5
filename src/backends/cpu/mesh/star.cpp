// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/star.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/mesh/star.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/mesh/star-inl.h"

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <limits>

#include "families/tridiagonal/mesh_rows.hpp"
#include "problems/mesh/linear.hpp"

namespace trifold::cpu {

template <class T>
Star<T> star_of(const mesh::CheckedSweep& one, const MeshProblem& problem) {
    constexpr std::int64_t shortest = 2 * 64 / sizeof(T);
    const std::int64_t n = problem.shape.x;
    if (!one.sweep->rhs || n < shortest) return {};
    const auto terms = mesh::linear_terms(one.sweep->rhs, problem.parameters);
    if (!terms || terms->empty()) return {};
    Star<T> star;
    // The one that is looked around in, and at most another one.
    for (const mesh::Term& term : *terms)
        if (term.dx != 0 || term.dy != 0 || term.dz != 0) star.field = term.field;
    if (star.field < 0) return {};
    const AnyField& field = problem.fields[static_cast<std::size_t>(star.field)];
    if (field.stride[0] != 1 || field.sides[0].low.edge == Edge::periodic) return {};
    double sum = 0, neighbours = 0, own = 0;
    for (const mesh::Term& term : *terms) {
        const int places[3] = {term.dx, term.dy, term.dz}, away = std::abs(term.dx) + std::abs(term.dy) + std::abs(term.dz);
        if (term.field != star.field) {
            if (away > 0 || star.other_field >= 0 || problem.fields[static_cast<std::size_t>(term.field)].stride[0] != 1) return {};
            star.other_field = term.field, star.other = static_cast<T>(term.coefficient);
            continue;
        }
        if (away > 1) return {};
        sum += term.coefficient;
        (away == 0 ? own : neighbours) += std::abs(term.coefficient);
        T* const numbers[3][2] = {{&star.west, &star.east}, {&star.south, &star.north}, {&star.below, &star.above}};
        for (int axis = 0; axis < 3; ++axis)
            if (places[axis] != 0) *numbers[axis][places[axis] > 0 ? 1 : 0] = static_cast<T>(term.coefficient);
    }
    if (neighbours > 4 * own) return {};
    // Rounding in the last place is not a part of the point's own.
    if (std::abs(sum) > 8 * std::numeric_limits<double>::epsilon() * own) star.own = static_cast<T>(sum);
    const mesh::Mirrored<T> low(field.sides[0], n, -1), high(field.sides[0], n, n);
    star.low_sign = low.sign, star.low_offset = low.offset, star.high_sign = high.sign, star.high_offset = high.offset;
    return star;
}

template <class T>
StarRows<T> star_rows(const Star<T>& star, const MeshProblem& problem, std::int64_t mesh, std::int64_t z, std::int64_t y, std::int64_t rows, std::vector<T>& copies) {
    const AnyField& field = problem.fields[static_cast<std::size_t>(star.field)];
    const std::int64_t n = problem.shape.x;
    const auto row_of = [mesh](const AnyField& f, std::int64_t k, std::int64_t j) { return static_cast<const T*>(f.data) + mesh * f.stride[3] + k * f.stride[2] + j * f.stride[1]; };
    const auto row = [&](std::int64_t k, std::int64_t j) { return row_of(field, k, j); };
    // Places among the copies: 0, 1 for rows south and north, then those below, then those above. All have room before the first pointer to one is taken.
    const auto copy = [&](const mesh::Mirrored<T>& at, const T* from, std::int64_t place) {
        if (const auto due = static_cast<std::size_t>(2 * (rows + 1) * n); copies.size() < due) copies.resize(due);
        return static_cast<const T*>(std::transform(from, from + n, copies.data() + place * n, at) - n);
    };
    StarRows<T> found{.here = row(z, y), .pitch = field.stride[1], .below_pitch = field.stride[1], .above_pitch = field.stride[1]};
    const auto along_y = [&](std::int64_t j, std::int64_t place) {
        const mesh::Mirrored<T> at(field.sides[1], problem.shape.y, j);
        return at.as_it_is() ? row(z, at.index) : copy(at, row(z, at.index), place);
    };
    const auto along_z = [&](std::int64_t k, std::int64_t place, std::int64_t& pitch) {
        const mesh::Mirrored<T> at(field.sides[2], problem.shape.z, k);
        if (at.as_it_is()) return row(at.index, y);
        pitch = n;
        for (std::int64_t r = rows - 1; r > 0; --r) copy(at, row(at.index, y + r), place + r);
        return copy(at, row(at.index, y), place);
    };
    found.below = star.below == 0 ? found.here : along_z(z - 1, 2, found.below_pitch), found.above = star.above == 0 ? found.here : along_z(z + 1, 2 + rows, found.above_pitch);
    if (star.other_field >= 0) {
        const AnyField& other = problem.fields[static_cast<std::size_t>(star.other_field)];
        found.other = row_of(other, z, y), found.other_pitch = other.stride[1];
    }
    found.south = along_y(y - 1, 0), found.north = along_y(y + rows, 1);
    return found;
}

HWY_EXPORT(star_f32);
HWY_EXPORT(star_f64);

template <>
void star_right_hand_sides(const Star<float>& star, const StarRows<float>& from, std::int64_t rows, std::int64_t n, float* to, std::int64_t pitch) {
    HWY_DYNAMIC_DISPATCH(star_f32)(star, from, rows, n, to, pitch);
}
template <>
void star_right_hand_sides(const Star<double>& star, const StarRows<double>& from, std::int64_t rows, std::int64_t n, double* to, std::int64_t pitch) {
    HWY_DYNAMIC_DISPATCH(star_f64)(star, from, rows, n, to, pitch);
}

template StarRows<float> star_rows(const Star<float>&, const MeshProblem&, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::vector<float>&);
template StarRows<double> star_rows(const Star<double>&, const MeshProblem&, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::vector<double>&);
template Star<float> star_of(const mesh::CheckedSweep&, const MeshProblem&);
template Star<double> star_of(const mesh::CheckedSweep&, const MeshProblem&);

}  // namespace trifold::cpu
#endif
