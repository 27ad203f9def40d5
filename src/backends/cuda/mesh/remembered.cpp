// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/remembered.hpp"

#include <type_traits>

namespace trifold::cuda {
namespace {

class Key {
public:
    template <class... Values>
    void add(const Values&... values) {
        static_assert((std::is_arithmetic_v<Values> && ...));
        (text_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
    }
    void add(const Sides& sides) { add(static_cast<int>(sides.low.edge), sides.low.value, static_cast<int>(sides.high.edge), sides.high.value); }
    void add(const PointFunction& function) {
        if (function) text_.append(function.name).append(1, '\0').append(function.source);
        add(reinterpret_cast<std::uintptr_t>(function.run_f64));
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

}  // namespace

std::string problem_key(const mesh::Checked& checked, const Chip& chip) {
    const MeshProblem& problem = *checked.problem;
    Key key;
    key.add(static_cast<int>(checked.dtype), chip.architecture, chip.multiprocessors, chip.shared_per_block, chip.shared_per_multiprocessor, chip.l2, chip.memory, chip.moves_alone);
    key.add(problem.shape.x, problem.shape.y, problem.shape.z, problem.shape.meshes, problem.fields.size(), problem.sweeps.size(), problem.parameters.size());
    for (const AnyField& field : problem.fields) {
        key.add(reinterpret_cast<std::uintptr_t>(field.data));
        for (const std::int64_t stride : field.stride) key.add(stride);
        for (const Sides& sides : field.sides) key.add(sides);
    }
    for (const Sweep& sweep : problem.sweeps) {
        key.add(sweep.target, sweep.lines.size());
        key.add(sweep.rhs), key.add(sweep.update);
        for (const LineSolve& line : sweep.lines) {
            key.add(line.axis, line.same_on_every_line, line.constant[0], line.constant[1], line.constant[2]);
            key.add(line.coefficients);
        }
        for (const Sides& sides : sweep.solution) key.add(sides);
    }
    for (const double parameter : problem.parameters) key.add(parameter);
    return key.take();
}

}  // namespace trifold::cuda
