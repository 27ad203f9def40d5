// SPDX-License-Identifier: BSD-3-Clause
#include "backends/reference/mesh/sweep.hpp"

#include <algorithm>

#include "backends/reference/mesh/points.hpp"
#include "backends/reference/tridiagonal/line.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"
#include "problems/mesh/line_ends.hpp"
#include "problems/tridiagonal/array_operand.hpp"

namespace trifold::mesh::reference {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::array_operand;
using tridiagonal::System;
using tridiagonal::reference::LineResult;
using tridiagonal::reference::Scratch;

template <class T>
struct LineArrays {
    std::span<T> lower, diag, upper, rhs;

    System system(bool ring) const {
        System s;
        s.dtype = dtype_of<T>;
        s.rows = static_cast<std::int64_t>(rhs.size());
        s.lower = array_operand(lower.data()), s.diag = array_operand(diag.data()), s.upper = array_operand(upper.data());
        s.rhs = s.x = array_operand(rhs.data());
        s.in_place = true;
        s.periodic = ring;
        if (ring) s.top_right = array_operand(lower.data()), s.bottom_left = array_operand(&upper.back());
        return s;
    }
};

std::int64_t longest(const MeshShape& shape) { return std::max({shape.x, shape.y, shape.z}); }

template <class T>
System longest_line(const MeshShape& shape) {
    System s = LineArrays<T>{}.system(false);
    s.rows = longest(shape);
    s.periodic = s.rows > 2;
    return s;
}

template <class T>
class Run {
public:
    Run(const Checked& checked, const tridiagonal::Launch& launch, SweepOutcome& outcome)
        : checked_(checked), shape_(checked.problem->shape), launch_(launch), outcome_(outcome), scratch_(launch.scratch, launch.scratch_bytes),
          values_(scratch_.take<T>(shape_.points())), failed_(scratch_.take<unsigned char>(shape_.meshes)), points_(checked, values_.data()) {
        const std::int64_t n = longest(shape_);
        arrays_ = {scratch_.take<T>(n), scratch_.take<T>(n), scratch_.take<T>(n), scratch_.take<T>(n)};
    }

    static std::size_t bytes(const MeshShape& shape) {
        return Scratch::bytes_of<T>(shape.points()) + Scratch::bytes_of<unsigned char>(shape.meshes) + 4 * Scratch::bytes_of<T>(longest(shape)) +
               tridiagonal::reference::line_bytes(longest_line<T>(shape), Algorithm::lu);
    }

    /// False where a line failed.
    bool sweep(int number, std::int64_t step) {
        const CheckedSweep& one = checked_.sweeps[static_cast<std::size_t>(number)];
        right_hand_side(one, step);
        for (std::size_t k = 0; k < one.sweep->lines.size(); ++k) {
            const LineSolve& line = one.sweep->lines[k];
            each_line(line.axis, [&](std::int64_t mesh, const std::array<std::int64_t, 3>& start) {
                const unsigned char since = failed_[static_cast<std::size_t>(mesh)];
                if (since == 0 || since == k + 1) solve(one, number, k, step, mesh, start);
            });
        }
        update(one, step);
        return outcome_.failures == 0;
    }

private:
    T& value(std::int64_t mesh, std::int64_t x, std::int64_t y, std::int64_t z) {
        return values_[static_cast<std::size_t>(((mesh * shape_.z + z) * shape_.y + y) * shape_.x + x)];
    }

    template <class Visit>
    void each_point(Visit visit) {
        for (std::int64_t mesh = 0; mesh < shape_.meshes; ++mesh)
            for (std::int64_t z = 0; z < shape_.z; ++z)
                for (std::int64_t y = 0; y < shape_.y; ++y)
                    for (std::int64_t x = 0; x < shape_.x; ++x) visit(mesh, x, y, z);
    }

    template <class Visit>
    void each_line(int axis, Visit visit) {
        each_point([&](std::int64_t mesh, std::int64_t x, std::int64_t y, std::int64_t z) {
            const std::array<std::int64_t, 3> start{x, y, z};
            if (start[static_cast<std::size_t>(axis)] == 0) visit(mesh, start);
        });
    }

    void right_hand_side(const CheckedSweep& one, std::int64_t step) {
        each_point([&](std::int64_t mesh, std::int64_t x, std::int64_t y, std::int64_t z) {
            T result = one.sweep->rhs ? T(0) : points_.value(one.sweep->target, mesh, x, y, z);
            if (one.sweep->rhs) points_.evaluate(one.sweep->rhs, one.rhs, mesh, x, y, z, step, {&result, 1});
            value(mesh, x, y, z) = result;
        });
    }

    void solve(const CheckedSweep& one, int number, std::size_t k, std::int64_t step, std::int64_t mesh, const std::array<std::int64_t, 3>& start) {
        const LineSolve& line = one.sweep->lines[k];
        const auto axis = static_cast<std::size_t>(line.axis);
        const std::int64_t n = shape_.along(line.axis);
        const auto count = static_cast<std::size_t>(n);
        const LineArrays<T> arrays{arrays_.lower.first(count), arrays_.diag.first(count), arrays_.upper.first(count), arrays_.rhs.first(count)};
        std::array<std::int64_t, 3> at = start;
        for (std::int64_t i = 0; i < n; ++i) {
            at[axis] = i;
            T row[3] = {static_cast<T>(line.constant[0]), static_cast<T>(line.constant[1]), static_cast<T>(line.constant[2])};
            if (line.coefficients) points_.evaluate(line.coefficients, one.coefficients[k], mesh, at[0], at[1], at[2], step, row);
            const auto r = static_cast<std::size_t>(i);
            arrays.lower[r] = row[0], arrays.diag[r] = row[1], arrays.upper[r] = row[2];
            arrays.rhs[r] = value(mesh, at[0], at[1], at[2]);
        }
        const LineEnds<T> ends = fold_ends(one.sweep->solution[axis], n, arrays.lower.data(), arrays.diag.data(), arrays.upper.data());
        arrays.rhs.front() -= ends.low;
        arrays.rhs.back() -= ends.high;
        const LineResult result = tridiagonal::reference::solve_line<T>(arrays.system(ends.ring), Algorithm::lu, unit_roundoff(dtype_of<T>), scratch_);
        if (!result.verdict.good()) {
            at[axis] = result.verdict.row;
            failed_[static_cast<std::size_t>(mesh)] = static_cast<unsigned char>(k + 1);
            return fail(result.verdict.reason, number, line.axis, step, mesh, at);
        }
        for (std::int64_t i = 0; i < n; ++i) {
            at[axis] = i;
            value(mesh, at[0], at[1], at[2]) = arrays.rhs[static_cast<std::size_t>(i)];
        }
    }

    void fail(Reason reason, int number, int axis, std::int64_t step, std::int64_t mesh, const std::array<std::int64_t, 3>& at) {
        if (outcome_.failures++ > 0) return;
        outcome_.reason = reason, outcome_.step = step, outcome_.sweep = number, outcome_.axis = axis;
        outcome_.mesh = mesh, outcome_.x = at[0], outcome_.y = at[1], outcome_.z = at[2];
    }

    void update(const CheckedSweep& one, std::int64_t step) {
        const AnyField& target = checked_.problem->fields[static_cast<std::size_t>(one.sweep->target)];
        each_point([&](std::int64_t mesh, std::int64_t x, std::int64_t y, std::int64_t z) {
            if (failed_[static_cast<std::size_t>(mesh)]) return;
            T result = value(mesh, x, y, z);
            if (one.sweep->update) points_.evaluate(one.sweep->update, one.update, mesh, x, y, z, step, {&result, 1});
            static_cast<T*>(target.data)[x * target.stride[0] + y * target.stride[1] + z * target.stride[2] + mesh * target.stride[3]] = result;
        });
    }

    const Checked& checked_;
    const MeshShape shape_;
    const tridiagonal::Launch& launch_;
    SweepOutcome& outcome_;
    Scratch scratch_;
    std::span<T> values_;
    std::span<unsigned char> failed_;  // per mesh: 1 + the number of the line solve that failed
    Points<T> points_;
    LineArrays<T> arrays_;
};

template <class T>
void run(const Checked& checked, std::int64_t first_step, std::int64_t steps, const tridiagonal::Launch& launch, SweepOutcome& outcome) {
    Run<T> all(checked, launch, outcome);
    for (std::int64_t step = first_step; step < first_step + steps; ++step)
        for (std::size_t s = 0; s < checked.sweeps.size(); ++s)
            if (!all.sweep(static_cast<int>(s), step)) return;
}

}  // namespace

std::size_t sweep_bytes(const Checked& checked, int) {
    const MeshShape& shape = checked.problem->shape;
    return checked.dtype == DType::f32 ? Run<float>::bytes(shape) : Run<double>::bytes(shape);
}

void sweep(const Checked& checked, std::int64_t first_step, std::int64_t steps, const tridiagonal::Launch& launch, SweepOutcome& outcome) {
    outcome = {};
    outcome.device = "reference";
    outcome.reason = Reason::exact;
    if (checked.dtype == DType::f32) run<float>(checked, first_step, steps, launch, outcome);
    else run<double>(checked, first_step, steps, launch, outcome);
}

}  // namespace trifold::mesh::reference
