// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/general.hpp"

#include <algorithm>
#include <cstddef>

#include "backends/cuda/jit/program.hpp"
#include "backends/cuda/mesh/arguments.hpp"
#include "backends/cuda/mesh/functions.hpp"
#include "backends/cuda/mesh/rings.hpp"
#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/runtime/runtime.hpp"
#include "backends/cuda/tridiagonal/cell.hpp"
#include "problems/tridiagonal/array_operand.hpp"

namespace trifold::cuda {
namespace {

using mesh::Checked;
using mesh::CheckedSweep;
using tridiagonal::Algorithm;
using tridiagonal::array_operand;
using tridiagonal::Operand;
using tridiagonal::System;

bool one_matrix(const LineSolve& line) { return !line.coefficients || line.same_on_every_line; }
bool changes(const LineSolve& line) { return line.coefficients && mesh::mentions(line.coefficients, "step"); }

// Line solves by the batch kernels; a ring of one or two rows is none after folding.
bool ring(const Sweep& sweep, const LineSolve& line, const MeshShape& shape) {
    return shape.along(line.axis) > 2 && sweep.solution[static_cast<std::size_t>(line.axis)].low.edge == Edge::periodic;
}

/// The lines along an axis of packed values. Where a mesh has several lines, meshes are a level of their own, so that a line meets the
/// same neighbours in a kernel whatever the number of meshes, and all of them have the same roundings.
template <class T>
System lines_of(const MeshShape& shape, int axis, bool shared, T* values, T* lower, T* diag, T* upper) {
    const std::int64_t n = shape.along(axis), apart = axis == 0 ? 1 : axis == 1 ? shape.x : shape.x * shape.y, lines = shape.points() / n;
    const std::int64_t inner = axis == 0 ? std::min(lines, shape.y * shape.z) : apart, inner_stride = axis == 0 ? n : 1;
    System s;
    s.dtype = dtype_of<T>;
    s.rows = n;
    s.rhs = s.x = array_operand(values, apart, n * (axis == 0 ? inner : apart), inner_stride);
    T* const bands[3] = {lower, diag, upper};
    Operand* const operands[3] = {&s.lower, &s.diag, &s.upper};
    for (int k = 0; k < 3; ++k) *operands[k] = shared ? array_operand(bands[k]) : array_operand(bands[k], apart, s.rhs.level_stride[0], inner_stride);
    s.in_place = true;
    const std::int64_t outer = lines / inner;
    if (outer > 1 && inner > 1) {
        s.levels = 2;
        s.extent[0] = outer, s.extent[1] = inner;
        s.number_stride[0] = inner, s.number_stride[1] = 1;
        return s;
    }
    // One level where one is enough, since what is next to each other in memory decides how a batch is cut.
    s.levels = lines > 1 ? 1 : 0;
    const int kept = outer > 1 ? 0 : 1;
    s.extent[0] = lines;
    s.number_stride[0] = s.levels;
    for (Operand* operand : {&s.lower, &s.diag, &s.upper, &s.rhs, &s.x}) {
        operand->level_stride[0] = s.levels ? operand->level_stride[kept] : 0;
        operand->level_stride[1] = 0;
    }
    return s;
}

constexpr std::int64_t ring_slots_most = 1 << 17;
constexpr unsigned threads = 256;

unsigned blocks_for(std::int64_t items, std::int64_t block = threads) {
    return static_cast<unsigned>(std::clamp<std::int64_t>((items + block - 1) / block, 1, std::int64_t{1} << 30));
}

/// No more blocks than run at once: every thread looks at the state of the run first, all of them at one place of the second-level cache, which took five
/// times as long as the points did with a thread per point.
unsigned resident_blocks(std::int64_t items, const Chip& chip) { return std::min(blocks_for(items), 2048 / threads * static_cast<unsigned>(chip.multiprocessors)); }

/// Where things lie in the scratch.
template <class T>
struct Layout {
    std::size_t values, matrices, each_matrix, ends, parameters, failed, status, outcome, closings, sums, lines, total;
    std::vector<OpenedRing<T>> opened;  ///< of every line solve; not safe where there is no ring that can be opened
    std::size_t closing_rows = 0;

    explicit Layout(const Checked& checked) {
        const MeshShape& shape = checked.problem->shape;
        std::int64_t closed_lines = 0;
        std::int64_t rows = 1, most_lines = 0;
        std::size_t line_bytes = 0;
        for (const CheckedSweep& one : checked.sweeps)
            for (const LineSolve& line : one.sweep->lines) {
                const std::int64_t n = shape.along(line.axis), count = shape.points() / n;
                rows = std::max(rows, one_matrix(line) ? n : shape.points());
                most_lines = std::max(most_lines, count);
                const bool is_ring = ring(*one.sweep, line, shape);
                opened.push_back(is_ring && one_matrix(line) && !changes(line) && one.coefficients[static_cast<std::size_t>(&line - one.sweep->lines.data())].fields == 0 ? open_ring(bands_of<T>(line, *checked.problem)) : OpenedRing<T>{});
                if (opened.back().safe) closing_rows += static_cast<std::size_t>(n), closed_lines = std::max(closed_lines, count);
                if (is_ring && !opened.back().safe) {
                    // As many threads as run at once, in no more than a gigabyte unless that leaves too few.
                    const std::int64_t fit = (std::int64_t{1} << 30) / (6 * n * static_cast<std::int64_t>(sizeof(T)));
                    const std::int64_t slots = (std::min(count, std::clamp<std::int64_t>(fit, 1 << 11, ring_slots_most)) + 63) / 64 * 64;
                    line_bytes = std::max(line_bytes, static_cast<std::size_t>(6 * n * slots) * sizeof(T));
                } else {
                    const System system = lines_of<T>(shape, line.axis, one_matrix(line), nullptr, nullptr, nullptr, nullptr);
                    line_bytes = std::max(line_bytes, tridiagonal_ops(0)->workspace(system, Algorithm::automatic, 1));
                }
            }
        total = 0;
        const auto take = [&](std::size_t bytes) {
            const std::size_t at = total;
            total += align(bytes);
            return at;
        };
        values = take(static_cast<std::size_t>(shape.points()) * sizeof(T));
        each_matrix = align(static_cast<std::size_t>(rows) * sizeof(T));
        matrices = take(3 * each_matrix);
        ends = take(2 * sizeof(T));
        parameters = take(checked.problem->parameters.size() * sizeof(T));
        failed = take(static_cast<std::size_t>(shape.meshes));
        status = take(static_cast<std::size_t>(most_lines));
        outcome = take(sizeof(DeviceOutcome));
        closings = take(closing_rows * sizeof(T));
        sums = take(static_cast<std::size_t>(closed_lines) * sizeof(T));
        lines = take(line_bytes);
    }
};

const char* refuses(const Checked&, const Chip&) { return nullptr; }

std::size_t bytes(const Checked& checked, const Chip&) {
    return checked.dtype == DType::f32 ? Layout<float>(checked).total : Layout<double>(checked).total;
}

/// How far a function reads along each axis, as the kernels have it.
std::string reach_of(const mesh::Access& access) {
    int reach[3] = {};
    for (int f = 0; f < access.fields; ++f) {
        const mesh::FieldAccess& field = access.field[static_cast<std::size_t>(f)];
        for (int row = 0; row < rows_across * rows_across; ++row)
            if (field.rows >> row & 1) {
                reach[0] = std::max<int>(reach[0], field.along_x[static_cast<std::size_t>(row)]);
                reach[1] = std::max(reach[1], std::abs(row % rows_across - max_reach)), reach[2] = std::max(reach[2], std::abs(row / rows_across - max_reach));
            }
    }
    return "Reach<" + std::to_string(reach[0]) + ", " + std::to_string(reach[1]) + ", " + std::to_string(reach[2]) + ">";
}

std::string number(const char* name, std::size_t sweep) { return name + std::to_string(sweep); }
std::string number(const char* name, std::size_t sweep, std::size_t line) { return name + std::to_string(sweep) + "_" + std::to_string(line); }

std::string program(const Checked& checked, const Chip&) {
    FunctionTexts functions;
    std::string kernels;
    const std::string call = "[&](const auto& near, const real* p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) { ";
    const auto lambda = [&](const PointFunction& function) {
        return call + (function ? functions.name_of(function) + "<real>(near, p, out, x, y, z, mesh, step); }" : std::string("}"));
    };
    const std::string head = "extern \"C\" __global__ void ", own = "(const __grid_constant__ MeshArguments<real> a, const __grid_constant__ Extents extents";
    const std::string line_argument = ", const __grid_constant__ LineArguments<real> line";
    const auto flag = [](const PointFunction& function) { return function ? "true" : "false"; };
    for (std::size_t s = 0; s < checked.sweeps.size(); ++s) {
        const Sweep& sweep = *checked.sweeps[s].sweep;
        const std::string target = std::to_string(sweep.target);
        kernels += head + number("rhs_", s) + own + ") { rhs_points<real, fields, " + reach_of(checked.sweeps[s].rhs) + ">(a, extents, " + target + ", " + flag(sweep.rhs) + ", " + lambda(sweep.rhs) + "); }\n";
        kernels += head + number("update_", s) + own + ") { update_points<real, fields, " + reach_of(checked.sweeps[s].update) + ">(a, extents, " + target + ", " + flag(sweep.update) + ", " + lambda(sweep.update) + "); }\n";
        for (std::size_t k = 0; k < sweep.lines.size(); ++k)
            kernels += head + number("matrix_", s, k) + own + line_argument + ") { matrix_points<real, fields, " + reach_of(checked.sweeps[s].coefficients[k]) + ">(a, extents, line, " + lambda(sweep.lines[k].coefficients) + "); }\n";
    }
    kernels += head + "ends" + own + line_argument + ") { subtract_ends(a, line); }\n";
    kernels += head + "judge" + own + line_argument + ", LinesFound found) { judge_lines(a, line, found); }\n";
    kernels += head + "sums" + own + line_argument + ", const __grid_constant__ Closing<real> closing) { sum_ends(a, line, closing); }\n";
    kernels += head + "close" + own + line_argument + ", const __grid_constant__ Closing<real> closing) { close_rings(a, line, closing); }\n";
    kernels += head + "rings" + own + line_argument + ", real* scratch) { ring_lines(a, line, scratch, " + std::to_string(-static_cast<int>(Reason::singular)) + ", " +
               std::to_string(-static_cast<int>(Reason::not_finite)) + "); }\n";
    return functions.text() + "#include \"backends/cuda/mesh/rings.cuh\"\nusing namespace trifold::cuda;\nusing real = " + (checked.dtype == DType::f32 ? "float" : "double") +
           ";\nconstexpr int fields = " + std::to_string(checked.problem->fields.size()) + ";\n" + kernels;
}

template <class T>
class GeneralRun {
public:
    GeneralRun(const MeshRun& run, const jit::Program& program)
        : run_(run), checked_(run.checked), shape_(checked_.problem->shape), program_(program), layout_(checked_), base_(static_cast<char*>(run.scratch)),
          arguments_(mesh_arguments<T>(checked_)) {
        arguments_.parameters = at<T>(layout_.parameters);
        arguments_.values = at<T>(layout_.values);
        arguments_.failed = at<unsigned char>(layout_.failed);
        arguments_.state = run.state;
        for (int axis = 0; axis < 3; ++axis) extents_.along[axis] = divisor_of(shape_.along(axis));
    }

    bool run(Failure& failure) {
        const std::vector<T> parameters(checked_.problem->parameters.begin(), checked_.problem->parameters.end());
        if (!parameters.empty() && !good(cudaMemcpyAsync(at<T>(layout_.parameters), parameters.data(), parameters.size() * sizeof(T), cudaMemcpyHostToDevice, run_.stream),
                                         "copying parameters", failure))
            return false;
        std::vector<T> closings;
        for (const OpenedRing<T>& one : layout_.opened)
            if (one.safe) closings.insert(closings.end(), one.q.begin(), one.q.end());
        if (!closings.empty() && !good(cudaMemcpyAsync(at<T>(layout_.closings), closings.data(), closings.size() * sizeof(T), cudaMemcpyHostToDevice, run_.stream), "copying what closes rings", failure))
            return false;
        const auto each = static_cast<std::int64_t>(checked_.sweeps.size());
        for (std::int64_t s = run_.from; s < run_.steps * each; ++s) {
            if (!sweep(s, each, failure)) return false;
            if (s % look_every == look_every - 1) {
                bool stopped = false;
                if (!look(stopped, failure)) return false;
                if (stopped) return true;
            }
        }
        return true;
    }

private:
    static constexpr std::int64_t look_every = 256;  // sweeps that are enqueued before it is seen that a line failed

    template <class U>
    U* at(std::size_t offset) const {
        return reinterpret_cast<U*>(base_ + offset);
    }

    const void* kernel(const std::string& name) const { return program_.kernel(name.c_str()); }

    bool look(bool& stopped, Failure& failure) const {
        MeshState state;
        if (!good(cudaMemcpyAsync(&state, run_.state, sizeof state, cudaMemcpyDeviceToHost, run_.stream), "reading the state", failure)) return false;
        if (!good(cudaStreamSynchronize(run_.stream), "waiting for sweeps", failure)) return false;
        stopped = state.failed_at != MeshState::none;
        return true;
    }

    bool sweep(std::int64_t number_of_all, std::int64_t each, Failure& failure) {
        const auto s = static_cast<std::size_t>(number_of_all % each);
        const Sweep& sweep = *checked_.sweeps[s].sweep;
        arguments_.sweep = static_cast<unsigned long long>(number_of_all);
        arguments_.step = run_.first_step + number_of_all / each;
        const jit::LaunchShape points{.blocks = resident_blocks(shape_.points(), run_.chip), .threads = threads, .stream = run_.stream};
        if (!jit::launch(kernel(number("rhs_", s)), points, failure, arguments_, extents_)) return false;
        for (std::size_t k = 0; k < sweep.lines.size(); ++k)
            if (!solve(sweep, s, k, failure)) return false;
        return jit::launch(kernel(number("update_", s)), points, failure, arguments_, extents_);
    }

    bool solve(const Sweep& sweep, std::size_t s, std::size_t k, Failure& failure) {
        const LineSolve& solve = sweep.lines[k];
        const auto axis = static_cast<std::size_t>(solve.axis);
        LineArguments<T> line{};
        line.lower = at<T>(layout_.matrices), line.diag = at<T>(layout_.matrices + layout_.each_matrix), line.upper = at<T>(layout_.matrices + 2 * layout_.each_matrix);
        line.ends = at<T>(layout_.ends);
        line.rows = shape_.along(solve.axis), line.lines = shape_.points() / line.rows;
        line.axis = solve.axis, line.number = static_cast<int>(k);
        line.shared = one_matrix(solve), line.has_function = static_cast<bool>(solve.coefficients);
        const Sides& sides = sweep.solution[axis];
        bool values_on_sides = false;
        for (int side = 0; side < 2; ++side) {
            const Side& one = side == 0 ? sides.low : sides.high;
            line.edge[side] = static_cast<unsigned char>(one.edge);
            line.twice[side] = one.edge == Edge::odd ? static_cast<T>(2 * one.value) : T(0);
            values_on_sides = values_on_sides || line.twice[side] != T(0);
        }
        for (int c = 0; c < 3; ++c) line.constant[c] = static_cast<T>(solve.constant[static_cast<std::size_t>(c)]);
        const Opening opening = opening_of(s, k);
        const bool opens = opening.ring.safe;
        line.opens = opens, line.opened[0] = opening.ring.first, line.opened[1] = opening.ring.last;
        const jit::LaunchShape matrix{.blocks = resident_blocks(line.shared ? line.rows : shape_.points(), run_.chip), .threads = threads, .stream = run_.stream};
        const jit::LaunchShape lines{.blocks = resident_blocks(line.lines, run_.chip), .threads = threads, .stream = run_.stream};
        if (!jit::launch(kernel(number("matrix_", s, k)), matrix, failure, arguments_, extents_, line)) return false;
        if (line.shared && values_on_sides && !jit::launch(kernel("ends"), lines, failure, arguments_, extents_, line)) return false;
        if (ring(sweep, solve, shape_) && !opens) return solve_rings(line, failure);
        const System system = lines_of<T>(shape_, solve.axis, line.shared, arguments_.values, line.lower, line.diag, line.upper);
        const tridiagonal::Ops& ops = *tridiagonal_ops(0);
        int device = 0;
        if (!good(cudaGetDevice(&device), "asking for the device", failure)) return false;
        tridiagonal::Launch launch;
        launch.scratch = base_ + layout_.lines, launch.scratch_bytes = layout_.total - layout_.lines;
        launch.tolerance = unit_roundoff(dtype_of<T>);
        launch.status = at<std::int8_t>(layout_.status);
        launch.stream = run_.stream;
        auto* const outcome = at<DeviceOutcome>(layout_.outcome);
        if (!ops.enqueue(device, system, Algorithm::automatic, launch, outcome, failure)) return false;
        const LinesFound found{launch.status, &outcome->failures, &outcome->rescued, &outcome->first};
        const jit::LaunchShape few{.blocks = std::min(lines.blocks.x, 4u * static_cast<unsigned>(run_.chip.multiprocessors)), .threads = threads, .stream = run_.stream};
        if (!jit::launch(kernel("judge"), few, failure, arguments_, extents_, line, found)) return false;
        if (!opens) return true;
        const std::int64_t apart = solve.axis == 0 ? 1 : solve.axis == 1 ? shape_.x : shape_.x * shape_.y;
        const Closing<T> closing{at<T>(layout_.closings) + opening.rows_before, at<T>(layout_.sums), opening.ring.weight, opening.ring.scale, divisor_of(apart), divisor_of(line.rows)};
        const jit::LaunchShape points{.blocks = resident_blocks(shape_.points(), run_.chip), .threads = threads, .stream = run_.stream};
        return jit::launch(kernel("sums"), lines, failure, arguments_, extents_, line, closing) && jit::launch(kernel("close"), points, failure, arguments_, extents_, line, closing);
    }

    struct Opening {
        const OpenedRing<T>& ring;
        std::size_t rows_before;
    };

    Opening opening_of(std::size_t sweep, std::size_t line) const {
        std::size_t number = line, rows = 0;
        for (std::size_t s = 0; s < sweep; ++s) number += checked_.sweeps[s].sweep->lines.size();
        for (std::size_t l = 0; l < number; ++l) rows += layout_.opened[l].q.size() * layout_.opened[l].safe;
        return {layout_.opened[number], rows};
    }

    bool solve_rings(const LineArguments<T>& line, Failure& failure) {
        const auto room = static_cast<std::int64_t>((layout_.total - layout_.lines) / (6 * static_cast<std::size_t>(line.rows) * sizeof(T)));
        const std::int64_t slots = std::min({room / 64 * 64, (line.lines + 63) / 64 * 64, ring_slots_most});
        const jit::LaunchShape shape{.blocks = blocks_for(slots, 64), .threads = 64, .stream = run_.stream};
        return jit::launch(kernel("rings"), shape, failure, arguments_, extents_, line, at<T>(layout_.lines));
    }

    const MeshRun& run_;
    const Checked& checked_;
    const MeshShape shape_;
    const jit::Program& program_;
    const Layout<T> layout_;
    char* const base_;
    MeshArguments<T> arguments_;
    Extents extents_;
};

bool run(const MeshRun& run, Failure& failure) {
    const jit::Program* const compiled = jit::program(program(run.checked, run.chip), "sweeps", failure);
    if (!compiled) return false;
    if (run.checked.dtype == DType::f32) return GeneralRun<float>(run, *compiled).run(failure);
    return GeneralRun<double>(run, *compiled).run(failure);
}

}  // namespace

const MeshKind general_kind{"general", refuses, bytes, program, run};

}  // namespace trifold::cuda
