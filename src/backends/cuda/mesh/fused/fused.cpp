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

constexpr std::size_t flag_bytes = 4096;  ///< a word for each line solve: whether one of its kept matrices is not symmetric

std::size_t bytes(const Checked& checked, const Chip& chip) {
    const auto prepared = ready(checked, chip);
    return prepared->plan.refuses ? 0 : value_bytes(checked) + align(static_cast<std::size_t>(checked.problem->shape.meshes)) + flag_bytes + fused::kept_bytes(prepared->plan, size_of(checked.dtype));
}

/// As fused/pass.cuh.
template <class T>
struct PassArguments {
    T constant[3], twice[2];
    std::int64_t tasks;
};

/// As fused/kept.cuh.
template <class T>
struct KeptArguments {
    T* memory;
    unsigned* asymmetric;
    bool symmetric;
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
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s) {
            const bool rows = static_cast<bool>(plan_.sweeps[s].rows);
            if (plan_.sweeps[s].apart && !(rows ? prepare_rows(s, failure) : prepare_rhs(s, failure))) return false;
            for (std::size_t k = 0; k < plan_.sweeps[s].passes.size(); ++k)
                if ((!(rows && k == 0) && !prepare(s, k, failure)) || (run_.steps > 0 && !check(s, k, failure))) return false;
        }
        if (run_.steps > 0 && !keep(failure)) return false;
        const auto each = static_cast<std::int64_t>(checked_.sweeps.size()), end = run_.steps * each;
        T* const target = plan_.exchanged >= 0 ? arguments_.field[plan_.exchanged].data : nullptr;
        T* const other = arguments_.values;
        unsigned exchanging = 0;
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s) exchanging |= plan_.sweeps[s].exchanges ? 1u << s : 0u;
        for (std::int64_t number = run_.from; number < end; ++number) {
            const auto s = static_cast<std::size_t>(number % each);
            arguments_.sweep = static_cast<unsigned long long>(number), arguments_.step = run_.first_step + number / each;
            for (Launch& one : launches_[s]) {
                void* list[] = {&arguments_, parameters_.data(), &one.arguments, &one.kept};
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
        KeptArguments<T> kept{};
        const Pass* pass = nullptr;
        std::string keeps;  ///< name of the kernel that keeps its matrices
    };

    /// As many blocks as take turns of equal length.
    bool share_out(Launch& one, std::int64_t tasks, bool in_turns, Failure& failure) const {
        int at_once = 0;
        if (!good(cudaFuncSetAttribute(one.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(one.shape.shared)), "asking for shared memory", failure)) return false;
        if (!good(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, one.kernel, static_cast<int>(one.shape.threads.x), one.shape.shared), "asking how many blocks run at once", failure)) return false;
        at_once *= run_.chip.multiprocessors;
        if (at_once < 1) return failure.say(ErrorCode::device_unavailable, "a compiled kernel does not fit on this GPU", "this is an error in Trifold");
        const std::int64_t turns = in_turns ? (tasks + at_once - 1) / at_once : 1;
        one.shape.blocks = static_cast<unsigned>(in_turns ? (tasks + turns - 1) / turns : std::min<std::int64_t>(tasks, at_once));
        return true;
    }

    bool find(Launch& one, const std::string& name, Failure& failure) const {
        one.kernel = program_.kernel(name.c_str());
        return one.kernel || failure.say(ErrorCode::device_unavailable, "a kernel is missing in a compiled program", "this is an error in Trifold");
    }

    bool prepare_rhs(std::size_t s, Failure& failure) {
        Launch one;
        if (!find(one, fused::name_of_rhs(s), failure)) return false;
        one.shape = {.threads = 256, .early = true, .stream = run_.stream};
        const std::int64_t pieces = fused::rhs_pieces(plan_.sweeps[s], shape_);
        one.arguments.tasks = 1;
        if (plan_.sweeps[s].rhs_alike) {
            int at_once = 0;
            if (!good(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, one.kernel, static_cast<int>(one.shape.threads.x), 0), "asking how many blocks run at once", failure)) return false;
            one.arguments.tasks = meshes_each(pieces, static_cast<std::int64_t>(at_once) * run_.chip.multiprocessors);
        }
        const std::int64_t each = one.arguments.tasks, tasks = (shape_.meshes + each - 1) / each * pieces;
        launches_[s].push_back(one);
        return share_out(launches_[s].back(), tasks, false, failure);
    }

    bool prepare_rows(std::size_t s, Failure& failure) {
        const fused::RowsPlan& rows = plan_.sweeps[s].rows;
        Launch one;
        if (!find(one, fused::name_of_rows(s), failure)) return false;
        arguments_of_line(one, s, 0);
        // A block for each task: those that come while the pass before ends would lie on few multiprocessors.
        one.shape = {.blocks = static_cast<unsigned>(rows.pieces(shape_) * shape_.meshes), .threads = static_cast<unsigned>(32 * rows.warps), .early = true, .stream = run_.stream};
        if (rows.beside > 0) {
            int at_once = 0;
            one.shape.shared = rows.shared;
            if (!good(cudaFuncSetAttribute(one.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(rows.shared)), "asking for shared memory", failure)) return false;
            if (!good(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, one.kernel, static_cast<int>(one.shape.threads.x), rows.shared), "asking how many blocks run at once", failure)) return false;
            const std::int64_t pieces = rows.pieces(shape_), each = rows.alike ? meshes_each(pieces, static_cast<std::int64_t>(at_once) * run_.chip.multiprocessors) : 1;
            one.arguments.tasks = each, one.shape.blocks = static_cast<unsigned>((shape_.meshes + each - 1) / each * pieces);
        }
        launches_[s].push_back(one);
        return true;
    }

    void arguments_of_line(Launch& one, std::size_t s, std::size_t k) const {
        const Sweep& sweep = *checked_.sweeps[s].sweep;
        const Sides& sides = sweep.solution[static_cast<std::size_t>(sweep.lines[k].axis)];
        for (std::size_t c = 0; c < 3; ++c) one.arguments.constant[c] = static_cast<T>(sweep.lines[k].constant[c]);
        one.arguments.twice[0] = static_cast<T>(2 * sides.low.value), one.arguments.twice[1] = static_cast<T>(2 * sides.high.value);
    }

    /// Meshes that a task takes one after the other: what is held is made once for all of them, and blocks should end at about the same time.
    std::int64_t meshes_each(std::int64_t pieces, std::int64_t at_once) const {
        constexpr std::int64_t making = 2;  // as long as so many meshes
        std::int64_t best = shape_.meshes, best_time = 0;
        for (std::int64_t chunks = 1; chunks <= shape_.meshes; ++chunks) {
            const std::int64_t each = (shape_.meshes + chunks - 1) / chunks, tasks = (shape_.meshes + each - 1) / each * pieces;
            const std::int64_t time = (tasks + at_once - 1) / std::max<std::int64_t>(at_once, 1) * (each + making);
            if (best_time == 0 || time < best_time) best = each, best_time = time;
        }
        return best;
    }

    /// Eliminates the matrices that are kept, and asks whether they are symmetric: then a third less of them is read.
    bool keep(Failure& failure) {
        char* at = static_cast<char*>(run_.scratch) + value_bytes(checked_) + align(static_cast<std::size_t>(shape_.meshes));
        unsigned* const flags = reinterpret_cast<unsigned*>(at);
        at += flag_bytes;
        std::vector<Launch*> kept;
        for (std::vector<Launch>& sweep : launches_)
            for (Launch& one : sweep)
                if (one.pass && one.pass->kept) kept.push_back(&one);
        if (kept.empty()) return true;
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s)
            if (plan_.sweeps[s].kept && !keep_values(s, at, failure)) return false;
        if (!good(cudaMemsetAsync(flags, 0, flag_bytes, run_.stream), "clearing marks", failure)) return false;
        for (std::size_t k = 0; k < kept.size(); ++k) {
            const Pass& pass = *kept[k]->pass;
            kept[k]->kept = {reinterpret_cast<T*>(at), flags + k, false};
            at += align(static_cast<std::size_t>(pass.kept_sets * pass.kept_words) * sizeof(T));
            Launch one = *kept[k];
            if (!find(one, one.keeps, failure) || !share_out(one, pass.kept_sets, true, failure)) return false;
            one.shape.early = false;
            void* list[] = {&arguments_, parameters_.data(), &one.arguments, &one.kept};
            if (!jit::launch(one.kernel, one.shape, list, failure)) return false;
        }
        std::vector<unsigned> asymmetric(kept.size());
        if (!good(cudaMemcpyAsync(asymmetric.data(), flags, kept.size() * sizeof(unsigned), cudaMemcpyDeviceToHost, run_.stream), "asking whether matrices are symmetric", failure)) return false;
        if (!good(cudaStreamSynchronize(run_.stream), "eliminating matrices", failure)) return false;
        for (std::size_t k = 0; k < kept.size(); ++k) {
            kept[k]->kept.symmetric = !asymmetric[k];
            if (asymmetric[k]) continue;
            kept[k]->shape.shared = kept[k]->pass->shared_symmetric;
            if (!share_out(*kept[k], kept[k]->arguments.tasks, true, failure)) return false;
        }
        return true;
    }

    /// What a right-hand side keeps, at `at`, which moves on.
    bool keep_values(std::size_t s, char*& at, Failure& failure) {
        const fused::KeptValues& values = plan_.sweeps[s].kept;
        Launch one = launches_[s].front();
        one.kept.memory = launches_[s].front().kept.memory = reinterpret_cast<T*>(at);
        at += align(static_cast<std::size_t>(values.words * values.meshes) * sizeof(T));
        if (!find(one, fused::name_of_keep_rhs(s), failure)) return false;
        one.shape = {.blocks = static_cast<unsigned>(8 * run_.chip.multiprocessors), .threads = 256, .stream = run_.stream};
        void* list[] = {&arguments_, parameters_.data(), &one.arguments, &one.kept};
        return jit::launch(one.kernel, one.shape, list, failure);
    }

    bool prepare(std::size_t s, std::size_t k, Failure& failure) {
        const Pass& pass = plan_.sweeps[s].passes[k];
        const LineSolve& line = checked_.sweeps[s].sweep->lines[k];
        Launch one;
        if (!find(one, fused::name_of_pass(s, k), failure)) return false;
        one.pass = &pass, one.keeps = fused::name_of_keep(s, k);
        arguments_of_line(one, s, k);
        const std::int64_t lines = shape_.x * shape_.y * shape_.z / shape_.along(line.axis);
        one.arguments.tasks = (lines + pass.cut.columns - 1) / pass.cut.columns * shape_.meshes;
        one.shape = {.threads = static_cast<unsigned>(pass.cut.threads), .shared = pass.cut.shared, .early = true, .stream = run_.stream};
        if (!share_out(one, one.arguments.tasks, true, failure)) return false;
        if (pass.in_registers) one.shape.blocks = static_cast<unsigned>(one.arguments.tasks);  // one each, as rows have
        launches_[s].push_back(one);
        return true;
    }

    bool check(std::size_t s, std::size_t k, Failure& failure) {
        const Pass& pass = plan_.sweeps[s].passes[k];
        if (!pass.made || pass.kept) return true;
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
