// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/fused/fused.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/jit/program.hpp"
#include "backends/cuda/mesh/arguments.hpp"
#include "backends/cuda/mesh/fused/prepare.hpp"
#include "backends/cuda/mesh/remembered.hpp"
#include "backends/cuda/runtime/runtime.hpp"

namespace trifold::cuda {
namespace {

using fused::Pass;
using fused::Plan;
using mesh::Checked;

auto ready(const Checked& checked, const Chip& chip) { return planned<fused::plan_of, fused::program>(checked, chip); }

const char* refuses(const Checked& checked, const Chip& chip) { return ready(checked, chip)->plan.refuses; }
std::string program(const Checked& checked, const Chip& chip) { return ready(checked, chip)->program; }

std::size_t value_bytes(const Checked& checked) { return align(static_cast<std::size_t>(checked.problem->shape.points()) * size_of(checked.dtype)); }

std::size_t bytes(const Checked& checked, const Chip& chip) {
    return ready(checked, chip)->plan.refuses ? 0 : value_bytes(checked) + align(static_cast<std::size_t>(checked.problem->shape.meshes));
}

/// As fused/pass.cuh.
template <class T>
struct PassArguments {
    T constant[3], twice[2];
    std::int64_t tasks;
};

template <class T>
class FusedRun {
public:
    FusedRun(const MeshRun& run, const jit::Program& program, const Plan& plan)
        : run_(run), checked_(run.checked), shape_(checked_.problem->shape), program_(program), plan_(plan), arguments_(mesh_arguments<T>(checked_)),
          parameters_(checked_.problem->parameters.begin(), checked_.problem->parameters.end()) {
        parameters_.resize(fused::parameter_count(checked_));
        arguments_.values = static_cast<T*>(run.scratch);
        arguments_.failed = reinterpret_cast<unsigned char*>(run.scratch) + value_bytes(checked_);
        arguments_.state = run.state;
        arguments_.sweep = static_cast<unsigned long long>(run.from);
    }

    bool run(Failure& failure) {
        if (!good(cudaMemsetAsync(arguments_.failed, 0, static_cast<std::size_t>(shape_.meshes), run_.stream), "clearing marks", failure)) return false;
        launches_.resize(plan_.sweeps.size());
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s)
            for (std::size_t k = 0; k < plan_.sweeps[s].passes.size(); ++k)
                if (!prepare(s, k, failure) || (run_.steps > 0 && !check(s, k, failure))) return false;
        const auto each = static_cast<std::int64_t>(checked_.sweeps.size()), end = run_.steps * each;
        T* const target = plan_.exchanged >= 0 ? arguments_.field[plan_.exchanged].data : nullptr;
        T* const other = arguments_.values;
        unsigned exchanging = 0;
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s) exchanging |= plan_.sweeps[s].exchanges ? 1u << s : 0u;
        for (std::int64_t number = run_.from; number < end; ++number) {
            const auto s = static_cast<std::size_t>(number % each);
            arguments_.sweep = static_cast<unsigned long long>(number), arguments_.step = run_.first_step + number / each;
            for (Launch& one : launches_[s]) {
                void* list[] = {&arguments_, parameters_.data(), &one.arguments};
                if (!jit::launch(one.kernel, one.shape, list, failure)) return false;
                arguments_.backwards = !arguments_.backwards;
            }
            if (plan_.sweeps[s].exchanges) std::swap(arguments_.values, arguments_.field[plan_.exchanged].data);
        }
        if (!exchanging || run_.from >= end) return true;
        const jit::LaunchShape all{.blocks = static_cast<unsigned>(4 * run_.chip.multiprocessors), .threads = 512, .stream = run_.stream};
        const MeshState* const state = run_.state;
        return jit::launch(program_.kernel("bring_back"), all, failure, state, target, static_cast<const T*>(other), shape_.points(), static_cast<unsigned long long>(run_.from), static_cast<unsigned long long>(end), exchanging,
                           static_cast<unsigned>(each));
    }

private:
    struct Launch {
        const void* kernel = nullptr;
        jit::LaunchShape shape;
        PassArguments<T> arguments{};
    };

    bool prepare(std::size_t s, std::size_t k, Failure& failure) {
        const Pass& pass = plan_.sweeps[s].passes[k];
        const LineSolve& line = checked_.sweeps[s].sweep->lines[k];
        const Sides& sides = checked_.sweeps[s].sweep->solution[static_cast<std::size_t>(line.axis)];
        Launch one;
        one.kernel = program_.kernel(fused::name_of_pass(s, k).c_str());
        if (!one.kernel) return failure.say(ErrorCode::device_unavailable, "a kernel is missing in a compiled program", "this is an error in Trifold");
        for (std::size_t c = 0; c < 3; ++c) one.arguments.constant[c] = static_cast<T>(line.constant[c]);
        one.arguments.twice[0] = static_cast<T>(2 * sides.low.value), one.arguments.twice[1] = static_cast<T>(2 * sides.high.value);
        const std::int64_t lines = shape_.x * shape_.y * shape_.z / shape_.along(line.axis);
        one.arguments.tasks = (lines + pass.cut.columns - 1) / pass.cut.columns * shape_.meshes;
        if (!good(cudaFuncSetAttribute(one.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(pass.cut.shared)), "asking for shared memory", failure)) return false;
        int at_once = 0;
        if (!good(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, one.kernel, pass.cut.threads, pass.cut.shared), "asking how many blocks run at once", failure)) return false;
        at_once *= run_.chip.multiprocessors;
        if (at_once < 1) return failure.say(ErrorCode::device_unavailable, "a compiled kernel does not fit on this GPU", "this is an error in Trifold");
        const std::int64_t turns = (one.arguments.tasks + at_once - 1) / at_once;
        one.shape = {.blocks = static_cast<unsigned>((one.arguments.tasks + turns - 1) / turns), .threads = static_cast<unsigned>(pass.cut.threads), .shared = pass.cut.shared, .early = true, .stream = run_.stream};
        launches_[s].push_back(one);
        return true;
    }

    bool check(std::size_t s, std::size_t k, Failure& failure) {
        const Pass& pass = plan_.sweeps[s].passes[k];
        if (!pass.made) return true;
        std::int64_t points = shape_.points();
        if (pass.alike) points /= shape_.meshes;
        void* list[] = {&arguments_, parameters_.data(), &points};
        const jit::LaunchShape all{.blocks = static_cast<unsigned>(std::min<std::int64_t>((points + 255) / 256, 8 * run_.chip.multiprocessors)), .threads = 256, .stream = run_.stream};
        return jit::launch(program_.kernel(fused::name_of_check(s, k).c_str()), all, list, failure);
    }

    const MeshRun& run_;
    const Checked& checked_;
    const MeshShape shape_;
    const jit::Program& program_;
    const Plan& plan_;
    MeshArguments<T> arguments_;
    std::vector<T> parameters_;
    std::vector<std::vector<Launch>> launches_;
};

bool run(const MeshRun& run, Failure& failure) {
    const auto prepared = ready(run.checked, run.chip);
    const jit::Program* const compiled = jit::program(prepared->program, "sweeps", failure);
    if (!compiled) return false;
    if (run.checked.dtype == DType::f32) return FusedRun<float>(run, *compiled, prepared->plan).run(failure);
    return FusedRun<double>(run, *compiled, prepared->plan).run(failure);
}

}  // namespace

const MeshKind fused_kind{"fused", refuses, bytes, program, run};

}  // namespace trifold::cuda
