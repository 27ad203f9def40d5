// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/resident/resident.hpp"

#include <algorithm>

#include "backends/cuda/jit/program.hpp"
#include "backends/cuda/mesh/arguments.hpp"
#include "backends/cuda/mesh/remembered.hpp"
#include "backends/cuda/mesh/resident/prepare.hpp"
#include "backends/cuda/runtime/runtime.hpp"

namespace trifold::cuda {
namespace {

using mesh::Checked;
using resident::Plan;

resident::OnChip on_chip(const Chip& chip) { return {chip.shared_per_block, chip.shared_per_multiprocessor, chip.has_clusters()}; }

/// What a run needs besides fields.
template <class T>
struct Ready {
    const char* refuses = nullptr;
    Plan plan;
    std::vector<T> table;
    resident::Numbers<T> numbers{};
    std::string program;
};

template <class T>
std::shared_ptr<const Ready<T>> ready(const Checked& checked, const Chip& chip) {
    static Remembered<Ready<T>> remembered;
    return remembered.of(checked, chip, [&] {
        Ready<T> made;
        int blocks = 0;
        made.refuses = resident::prepare(checked, on_chip(chip), made.plan, blocks);
        if (!made.refuses) made.refuses = resident::factor(checked, made.plan, made.table, made.numbers);
        if (made.refuses) return made;
        made.program = resident::program(checked, made.plan, blocks);
        std::transform(checked.problem->parameters.begin(), checked.problem->parameters.end(), made.numbers.parameters, [](double value) { return static_cast<T>(value); });
        return made;
    });
}

/// By the type of the fields.
template <class Result, class Take>
Result ready_typed(const Checked& checked, const Chip& chip, Take take) {
    return checked.dtype == DType::f32 ? take(*ready<float>(checked, chip)) : take(*ready<double>(checked, chip));
}

const char* refuses(const Checked& checked, const Chip& chip) {
    return ready_typed<const char*>(checked, chip, [](const auto& one) { return one.refuses; });
}

/// Scratch: the factors, then every target as it was.
std::size_t table_bytes(const Checked& checked, const Plan& plan) { return align(static_cast<std::size_t>(plan.table(plan.lines)) * size_of(checked.dtype)); }
std::size_t target_bytes(const Checked& checked) { return align(static_cast<std::size_t>(checked.problem->shape.points()) * size_of(checked.dtype)); }

std::size_t bytes(const Checked& checked, const Chip& chip) {
    return ready_typed<std::size_t>(checked, chip, [&](const auto& one) -> std::size_t {
        if (one.refuses) return 0;
        const Plan& plan = one.plan;
        const auto targets = static_cast<std::size_t>(std::count_if(plan.field, plan.field + plan.fields, [](const resident::FieldPlan& field) { return field.target; }));
        return table_bytes(checked, plan) + targets * target_bytes(checked);
    });
}

std::string program(const Checked& checked, const Chip& chip) {
    return ready_typed<std::string>(checked, chip, [](const auto& one) { return one.program; });
}

bool launch_steps(const void* kernel, const Plan& plan, const Checked& checked, const MeshRun& run, const void* arguments, Failure& failure) {
    jit::LaunchShape shape{.blocks = static_cast<unsigned>(checked.problem->shape.meshes * plan.cluster), .threads = static_cast<unsigned>(plan.threads)};
    shape.shared = static_cast<std::size_t>(plan.elements()) * size_of(checked.dtype);
    shape.cluster = static_cast<unsigned>(plan.cluster), shape.stream = run.stream;
    if (!good(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared)), "asking for shared memory", failure)) return false;
    constexpr int portable = 8;
    if (plan.cluster > portable && !good(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "asking for large clusters", failure)) return false;
    void* list[] = {const_cast<void*>(arguments)};
    return jit::launch(kernel, shape, list, failure);
}

template <class T>
bool run_typed(const MeshRun& run, Failure& failure) {
    const Checked& checked = run.checked;
    const MeshProblem& problem = *checked.problem;
    const std::shared_ptr<const Ready<T>> prepared = ready<T>(checked, run.chip);
    const Plan& plan = prepared->plan;
    const std::vector<T>& table = prepared->table;
    resident::Arguments<T> arguments{};
    const auto each = static_cast<std::int64_t>(checked.sweeps.size());
    if (prepared->refuses || run.from % each)
        return failure.say(ErrorCode::internal, "meshes were to stay on chip that cannot", prepared->refuses ? prepared->refuses : "a step has been begun");
    const jit::Program* const compiled = jit::program(prepared->program, "sweeps on chip", failure);
    if (!compiled) return false;
    if (run.steps == 0) return true;
    std::size_t used = table_bytes(checked, plan);
    auto* const base = static_cast<char*>(run.scratch);
    if (!table.empty() && !good(cudaMemcpyAsync(base, table.data(), table.size() * sizeof(T), cudaMemcpyHostToDevice, run.stream), "copying factors", failure)) return false;
    arguments.table = reinterpret_cast<const T*>(base);
    for (int f = 0; f < plan.fields; ++f) {
        arguments.field[f] = field_view<T>(problem.fields[static_cast<std::size_t>(f)]);
        if (!plan.field[f].target) continue;
        arguments.before[f] = reinterpret_cast<T*>(base + used);
        used += target_bytes(checked);
    }
    arguments.numbers = prepared->numbers;
    arguments.state = run.state;
    arguments.first_step = run.first_step + run.from / each, arguments.steps = run.steps - run.from / each;
    arguments.from = static_cast<unsigned long long>(run.from);
    if (!launch_steps(compiled->kernel("steps"), plan, checked, run, &arguments, failure)) return false;
    const std::int64_t points = problem.shape.points();
    const jit::LaunchShape all{.blocks = static_cast<unsigned>(2 * run.chip.multiprocessors), .threads = 256, .stream = run.stream};
    return jit::launch(compiled->kernel("put_back"), all, failure, arguments, points);
}

bool run(const MeshRun& run, Failure& failure) { return run.checked.dtype == DType::f32 ? run_typed<float>(run, failure) : run_typed<double>(run, failure); }

}  // namespace

const MeshKind resident_kind{"resident", refuses, bytes, program, run};

}  // namespace trifold::cuda
