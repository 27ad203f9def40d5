// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/streaming.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cuda/jit/program.hpp"
#include "backends/cuda/mesh/arguments.hpp"
#include "backends/cuda/mesh/remembered.hpp"
#include "backends/cuda/mesh/streaming/beside.hpp"
#include "backends/cuda/mesh/streaming/prepare.hpp"
#include "backends/cuda/mesh/streaming/program_text.hpp"
#include "backends/cuda/mesh/streaming/whole.hpp"
#include "backends/cuda/runtime/runtime.hpp"

namespace trifold::cuda {
namespace {

using mesh::Checked;
using streaming::Pass;
using streaming::Plan;
using streaming::SweepPlan;

auto ready(const Checked& checked, const Chip& chip) { return planned<streaming::plan_of, streaming::program>(checked, chip); }

const char* refuses(const Checked& checked, const Chip& chip) { return ready(checked, chip)->plan.refuses; }
std::string program(const Checked& checked, const Chip& chip) { return ready(checked, chip)->program; }

// ---- the run ----

/// Where things lie in the scratch.
struct Layout {
    std::size_t values, failed, arrived, tables, total;

    Layout(const Checked& checked, const Plan& plan) {
        const std::size_t each = size_of(checked.dtype);
        std::size_t count = 0;
        for (const SweepPlan& sweep : plan.sweeps)
            for (const Pass& pass : sweep.passes) count += streaming::factor_values(pass, checked.problem->shape);
        values = 0;
        failed = align(static_cast<std::size_t>(checked.problem->shape.points() + streaming::ends_of_segments(checked, plan)) * each);
        arrived = failed + align(static_cast<std::size_t>(checked.problem->shape.meshes));
        tables = arrived + align(sizeof(unsigned));
        total = tables + align(count * each);
    }
};

std::size_t bytes(const Checked& checked, const Chip& chip) {
    const auto prepared = ready(checked, chip);
    return prepared->plan.refuses ? 0 : Layout(checked, prepared->plan).total;
}

template <class T>
class StreamingRun {
public:
    StreamingRun(const MeshRun& run, const jit::Program& program, const Plan& plan)
        : run_(run), checked_(run.checked), program_(program), plan_(plan), layout_(checked_, plan), base_(static_cast<char*>(run.scratch)), arguments_(mesh_arguments<T>(checked_)) {
        arguments_.values = at(layout_.values);
        arguments_.failed = reinterpret_cast<unsigned char*>(base_ + layout_.failed);
        arguments_.state = run.state;
    }

    bool run(Failure& failure) {
        if (!prepare(failure)) return false;
        if (plan_.whole_threads > 0) return run_whole(failure);
        streaming::Beside beside;
        if (!beside.begin(run_.stream, plan_.groups, failure)) return false;
        const auto each = static_cast<std::int64_t>(checked_.sweeps.size());
        bool backwards = false;
        for (std::int64_t s = run_.from; s < run_.steps * each; ++s) {
            arguments_.sweep = static_cast<unsigned long long>(s);
            arguments_.step = run_.first_step + s / each;
            std::vector<Launch>& launches = launches_[static_cast<std::size_t>(s % each)];
            for (int group = 0; group < plan_.groups; ++group)
                if (!run_sweep(launches, group, s, backwards, beside, failure)) return false;
            for (const Launch& one : launches) backwards = backwards != one.turns;
        }
        return beside.end(failure);
    }

private:
    struct Launch {
        const void* kernel = nullptr;
        jit::LaunchShape shape;
        std::int64_t tasks = 0, at_once = 0;  ///< blocks' tasks in a mesh, and how many of these run at once; 0: threads' tasks
        const T* table = nullptr;
        T low = 0, high = 0;
        bool stays = false, long_tasks = false;  ///< blocks keep their places beside other groups' kernels too; rather one task more on a multiprocessor than none on another
        bool turns = true;  ///< the order of tasks, for the next pass
    };

    std::int64_t first_mesh(int group) const { return checked_.problem->shape.meshes * group / plan_.groups; }

    /// The passes of a group's meshes.
    bool run_sweep(std::vector<Launch>& launches, int group, std::int64_t s, bool backwards, streaming::Beside& beside, Failure& failure) {
        arguments_.first_mesh = first_mesh(group), arguments_.meshes = first_mesh(group + 1) - first_mesh(group);
        for (Launch& one : launches) {
            // Once a line has no solution, targets are those of that sweep, in all groups: the pass that stores them runs ahead of nobody.
            if (&one == &launches.back() && s > run_.from && !beside.after_others(group, s - 1, failure)) return false;
            arguments_.backwards = backwards;
            one.shape.blocks = blocks_of(one), one.shape.stream = beside.stream(group);
            void* arguments[] = {&arguments_, parameters_.data(), &one.table, &one.low, &one.high};
            if (!jit::launch(one.kernel, one.shape, arguments, failure)) return false;
            backwards = backwards != one.turns;
        }
        return beside.done(group, s, failure);
    }

    /// Of the group's meshes. Alone, no more blocks than run at once, so that a block's next task is on its way while it has one; beside other groups' kernels a block has one task, and whoever has a place takes the next.
    unsigned blocks_of(const Launch& one) const {
        const std::int64_t tasks = one.tasks * arguments_.meshes;
        if (one.at_once == 0) return static_cast<unsigned>((tasks + one.shape.threads.x - 1) / one.shape.threads.x);
        if (plan_.groups > 1 && !one.stays) return static_cast<unsigned>(tasks);
        // Turns as equal as they can be.
        const std::int64_t turns = (tasks + one.at_once - 1) / one.at_once;
        return static_cast<unsigned>(one.long_tasks ? std::min(tasks, one.at_once) : (tasks + turns - 1) / turns);
    }

    T* at(std::size_t offset) const { return reinterpret_cast<T*>(base_ + offset); }

    bool run_whole(Failure& failure) {
        streaming::WholeRun<T> whole{};
        whole.from = static_cast<unsigned long long>(run_.from), whole.to = static_cast<unsigned long long>(run_.steps), whole.first_step = run_.first_step;
        whole.arrived = reinterpret_cast<unsigned*>(base_ + layout_.arrived);
        for (std::size_t k = 0; k < launches_[0].size(); ++k) whole.table[k] = launches_[0][k].table, whole.low[k] = launches_[0][k].low, whole.high[k] = launches_[0][k].high;
        const void* const kernel = program_.kernel("whole");
        if (!kernel) return failure.say(ErrorCode::device_unavailable, "a kernel is missing in a compiled program", "this is an error in Trifold");
        if (!good(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(plan_.whole_shared)), "asking for shared memory", failure)) return false;
        void* arguments[] = {&arguments_, parameters_.data(), &whole};
        return jit::launch(kernel, {.blocks = static_cast<unsigned>(run_.chip.multiprocessors), .threads = static_cast<unsigned>(plan_.whole_threads), .shared = plan_.whole_shared, .together = true, .stream = run_.stream}, arguments, failure);
    }

    bool prepare(Failure& failure) {
        parameters_.assign(checked_.problem->parameters.begin(), checked_.problem->parameters.end());
        parameters_.resize(streaming::parameter_count(checked_));
        std::vector<T> numbers;
        launches_.resize(plan_.sweeps.size());
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s)
            for (std::size_t k = 0; k < plan_.sweeps[s].passes.size(); ++k) {
                const Pass& pass = plan_.sweeps[s].passes[k];
                Launch one;
                if (plan_.whole_threads == 0) one.kernel = program_.kernel(streaming::name_of_pass(s, k).c_str());
                const streaming::LineMatrix<T> matrix = streaming::matrix_of<T>(checked_, static_cast<int>(s), pass.line);
                one.table = at(layout_.tables) + numbers.size();
                one.low = matrix.low, one.high = matrix.high;
                streaming::append_factors(matrix, pass.segment ? streaming::matrix_of<T>(checked_, static_cast<int>(s), pass.parts_axis) : streaming::LineMatrix<T>{}, pass, numbers);
                one.turns = pass.kind != streaming::PassKind::joins;
                if (plan_.whole_threads == 0 && !shape_of(pass, s, one, failure)) return false;
                launches_[s].push_back(one);
            }
        return good(cudaMemsetAsync(arguments_.failed, 0, layout_.tables - layout_.failed, run_.stream), "clearing marks", failure) &&
               (numbers.empty() || good(cudaMemcpyAsync(at(layout_.tables), numbers.data(), numbers.size() * sizeof(T), cudaMemcpyHostToDevice, run_.stream), "copying factors", failure));
    }

    bool shape_of(const Pass& pass, std::size_t s, Launch& one, Failure& failure) {
        const MeshShape& shape = checked_.problem->shape;
        if (!one.kernel) return failure.say(ErrorCode::device_unavailable, "a kernel is missing in a compiled program", "this is an error in Trifold");
        const std::int64_t points = shape.x * shape.y * shape.z;
        // Blocks that come early would keep those of other groups out.
        one.shape = {.threads = static_cast<unsigned>(pass.threads()), .shared = pass.shared(), .early = plan_.groups == 1};
        if (pass.kind == streaming::PassKind::joins) {
            one.tasks = points / shape.along(pass.parts_axis) / pass.each;
            return true;
        }
        if (!good(cudaFuncSetAttribute(one.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(pass.shared())), "asking for shared memory", failure)) return false;
        int at_once = 0;
        if (!good(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, one.kernel, pass.threads(), pass.shared()), "asking how many blocks run at once", failure)) return false;
        if (at_once < 1) return failure.say(ErrorCode::device_unavailable, "a compiled kernel does not fit on this GPU", "this is an error in Trifold");
        one.at_once = std::int64_t{at_once} * run_.chip.multiprocessors;
        if (pass.kind == streaming::PassKind::rows) {
            one.stays = shape.z == 1;
            const int axis = pass.segment ? pass.parts_axis : 2;
            const std::int64_t along = shape.along(axis), across = shape.along(3 - axis);
            one.tasks = (across + pass.rows.slab() - 1) / pass.rows.slab() * ((along + pass.rows.chunk - 1) / pass.rows.chunk);
        } else if (pass.segment) {
            one.long_tasks = true;
            one.tasks = (shape.x + pass.columns.columns - 1) / pass.columns.columns * (shape.along(pass.parts_axis) / pass.segment);
        } else {
            const int axis = checked_.sweeps[s].sweep->lines[static_cast<std::size_t>(pass.line)].axis;
            const std::int64_t inner = axis == 1 ? shape.x : shape.x * shape.y;
            one.tasks = (inner + pass.columns.columns - 1) / pass.columns.columns * (points / (inner * shape.along(axis)));
        }
        return true;
    }

    const MeshRun& run_;
    const Checked& checked_;
    const jit::Program& program_;
    const Plan& plan_;
    const Layout layout_;
    char* const base_;
    MeshArguments<T> arguments_;
    std::vector<T> parameters_;
    std::vector<std::vector<Launch>> launches_;
};

bool run(const MeshRun& run, Failure& failure) {
    const auto prepared = ready(run.checked, run.chip);
    const jit::Program* const compiled = jit::program(prepared->program, "sweeps", failure);
    if (!compiled) return false;
    if (run.checked.dtype == DType::f32) return StreamingRun<float>(run, *compiled, prepared->plan).run(failure);
    return StreamingRun<double>(run, *compiled, prepared->plan).run(failure);
}

}  // namespace

const MeshKind streaming_kind{"streaming", refuses, bytes, program, run};

}  // namespace trifold::cuda
