// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/planes/planes.hpp"

#include <algorithm>
#include <vector>

#include "backends/cuda/jit/program.hpp"
#include "backends/cuda/mesh/arguments.hpp"
#include "backends/cuda/mesh/planes/prepare.hpp"
#include "backends/cuda/mesh/remembered.hpp"
#include "backends/cuda/mesh/streaming/beside.hpp"
#include "backends/cuda/mesh/streaming/program_text.hpp"
#include "backends/cuda/runtime/runtime.hpp"
#include "backends/cuda/tridiagonal/block/tensor_map.hpp"

namespace trifold::cuda {
namespace {

using mesh::Checked;
using planes::Plan;

auto ready(const Checked& checked, const Chip& chip) { return planned<planes::plan_of, planes::program>(checked, chip); }

const char* refuses(const Checked& checked, const Chip& chip) { return ready(checked, chip)->plan.refuses; }
std::string program(const Checked& checked, const Chip& chip) { return ready(checked, chip)->program; }

/// Where things lie in the scratch.
struct Scratch {
    std::size_t values = 0, beside, ends, solved, failed, tables, total;

    Scratch(const Checked& checked, const Plan& plan) {
        const std::size_t each = size_of(checked.dtype), field = static_cast<std::size_t>(checked.problem->shape.points()) * each, of_ends = align(2 * field / static_cast<std::size_t>(plan.segments.rows_z));
        beside = align(field), ends = beside + align(field), solved = ends + of_ends, failed = solved + of_ends;
        tables = failed + align(2 * static_cast<std::size_t>(checked.problem->shape.meshes));
        const auto count = checked.dtype == DType::f32 ? planes::layout_of<float>(checked, plan).tables() : planes::layout_of<double>(checked, plan).tables();
        total = tables + align(static_cast<std::size_t>(count) * each);
    }
};

std::size_t bytes(const Checked& checked, const Chip& chip) {
    const auto prepared = ready(checked, chip);
    return prepared->plan.refuses ? 0 : Scratch(checked, prepared->plan).total;
}

template <class T>
class PlanesRun {
public:
    PlanesRun(const MeshRun& run, const jit::Program& program, const Plan& plan)
        : run_(run), checked_(run.checked), shape_(run.checked.problem->shape), plan_(plan), layout_(planes::layout_of<T>(checked_, plan)), scratch_(checked_, plan), base_(static_cast<char*>(run.scratch)),
          first_(program.kernel("first")), step_(program.kernel("step")), last_(program.kernel("last")), ends_(program.kernel("ends")), settle_(program.kernel("settle")), arguments_(mesh_arguments<T>(checked_)) {
        arguments_.values = at(scratch_.values);
        arguments_.state = run.state;
    }

    bool run(Failure& failure) {
        const std::int64_t passes = run_.steps - run_.from;
        if (passes <= 0) return true;
        if (!prepare(failure)) return false;
        streaming::Beside beside;
        if (!beside.begin(run_.stream, plan_.groups, failure)) return false;
        for (std::int64_t done = 0; done <= passes; ++done)
            for (int group = 0; group < plan_.groups; ++group) {
                // What a failure leaves lies in one of two fields. A pass stores where that two passes before it did, and may overwrite it once all others are past that one.
                if (done >= 2 && !beside.after_others(group, done - 2, failure)) return false;
                if (!pass(group, done, passes, beside.stream(group), failure) || !beside.done(group, done, failure)) return false;
            }
        if (!beside.end(failure)) return false;
        const T* const field = at(scratch_.beside);
        const unsigned char* const failed = marks(0);
        return jit::launch(settle_, {.blocks = static_cast<unsigned>(std::min<std::int64_t>(shape_.meshes, 1024)), .threads = 1024, .stream = run_.stream}, failure, arguments_, field, failed, run_.from, passes);
    }

private:
    T* at(std::size_t offset) const { return reinterpret_cast<T*>(base_ + offset); }
    unsigned char* marks(std::int64_t sweep) const { return reinterpret_cast<unsigned char*>(base_ + scratch_.failed) + (sweep & 1) * shape_.meshes; }
    std::int64_t first_mesh(int group) const { return shape_.meshes * group / plan_.groups; }

    /// Behind `done` steps the field lies in the caller's array where that is even, or all, and beside it else.
    bool pass_of(std::int64_t done, std::int64_t passes, planes::Pass<T>& pass, Failure& failure) const {
        const AnyField& target = checked_.problem->fields[static_cast<std::size_t>(checked_.sweeps[0].sweep->target)];
        const std::int64_t packed = shape_.x * shape_.y * shape_.z, sweep = run_.from + done;
        T *const own = static_cast<T*>(target.data), *const beside = at(scratch_.beside);
        const auto lies_beside = [&](std::int64_t steps) { return steps % 2 != 0 && steps < passes; };
        pass.up = (run_.first_step + sweep) % 2 == 0;
        const bool from_beside = done > 0 && lies_beside(done - 1), to_beside = lies_beside(done);
        pass.from = from_beside ? beside : own, pass.from_apart = from_beside ? packed : target.stride[3];
        pass.to = to_beside ? beside : own, pass.to_apart = to_beside ? packed : target.stride[3];
        pass.ends = at(scratch_.ends), pass.solved = at(scratch_.solved), pass.tables = at(scratch_.tables);
        pass.failed = marks(sweep), pass.failed_before = marks(sweep - 1);
        const std::int64_t ends = 2 * layout_.segments_z * layout_.plane() * shape_.meshes, all = packed * shape_.meshes;
        const bool good = !layout_.swizzled() || (map(pass.map_from, pass.from, packed, shape_.meshes, pass.from_apart) && map(pass.map_to, pass.to, packed, shape_.meshes, pass.to_apart) &&
                                                  map(pass.map_values, arguments_.values, all) && map(pass.map_ends, pass.ends, ends) && map(pass.map_solved, pass.solved, ends));
        return good || failure.say(ErrorCode::device_unavailable, "the driver refuses to describe planes as tensors", "this is an error in Trifold");
    }

    /// Parts of planes of an array, 128 bytes in a row.
    bool map(TensorMap& to, const T* data, std::int64_t elements, std::int64_t meshes = 1, std::int64_t apart = 0) const {
        MapShape shape;
        shape.data = const_cast<T*>(data), shape.dimensions = 3, shape.wide = sizeof(T) == 8, shape.swizzled = true;
        shape.extents[0] = layout_.in_line, shape.extents[1] = static_cast<std::uint64_t>(elements / layout_.in_line), shape.extents[2] = static_cast<std::uint64_t>(meshes);
        shape.bytes[0] = 128, shape.bytes[1] = static_cast<std::uint64_t>(meshes > 1 ? apart : elements) * sizeof(T);
        shape.box[0] = layout_.in_line, shape.box[1] = static_cast<std::uint32_t>(layout_.part() / layout_.in_line), shape.box[2] = 1;
        return encode(to, shape);
    }

    bool pass(int group, std::int64_t done, std::int64_t passes, cudaStream_t stream, Failure& failure) {
        planes::Pass<T> pass{};
        if (!pass_of(done, passes, pass, failure)) return false;
        arguments_.first_mesh = first_mesh(group), arguments_.meshes = first_mesh(group + 1) - arguments_.first_mesh;
        arguments_.sweep = static_cast<unsigned long long>(run_.from + done), arguments_.step = run_.first_step + run_.from + done;
        void* of_step[] = {&arguments_, parameters_.data(), &pass};
        const auto blocks = static_cast<unsigned>(arguments_.meshes * layout_.segments_z * layout_.blocks);
        // Blocks that come early would keep those of other groups out; and the first ones read what was copied before them.
        const bool early = plan_.early && done > 0;
        const void* const kernel = done == 0 ? first_ : done < passes ? step_ : last_;
        if (!jit::launch(kernel, {.blocks = blocks, .threads = static_cast<unsigned>(layout_.threads()), .shared = static_cast<std::size_t>(layout_.shared_bytes()), .early = early, .cluster = static_cast<unsigned>(layout_.blocks), .stream = stream}, of_step, failure)) return false;
        if (done == passes) return true;
        constexpr unsigned threads = 256;
        T* const solved = at(scratch_.solved);
        const std::int64_t lines = arguments_.meshes * layout_.plane() / plan_.each;
        return jit::launch(ends_, {.blocks = static_cast<unsigned>((lines + threads - 1) / threads), .threads = threads, .early = plan_.early, .stream = stream}, failure, arguments_, pass, solved);
    }

    bool prepare(Failure& failure) {
        if (!first_ || !step_ || !last_ || !ends_ || !settle_) return failure.say(ErrorCode::device_unavailable, "a kernel is missing in a compiled program", "this is an error in Trifold");
        parameters_.assign(checked_.problem->parameters.begin(), checked_.problem->parameters.end());
        parameters_.resize(streaming::parameter_count(checked_));
        planes::tables_of(checked_, plan_, tables_);
        for (const void* const kernel : {first_, step_, last_})
            if (!good(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, layout_.shared_bytes()), "asking for shared memory", failure)) return false;
        return good(cudaMemsetAsync(marks(0), 0, scratch_.tables - scratch_.failed, run_.stream), "clearing marks", failure) &&
               good(cudaMemcpyAsync(at(scratch_.tables), tables_.data(), tables_.size() * sizeof(T), cudaMemcpyHostToDevice, run_.stream), "copying factors", failure);
    }

    const MeshRun& run_;
    const Checked& checked_;
    const MeshShape& shape_;
    const Plan& plan_;
    const planes::Layout<T> layout_;
    const Scratch scratch_;
    char* const base_;
    const void *const first_, *const step_, *const last_, *const ends_, *const settle_;
    MeshArguments<T> arguments_;
    std::vector<T> parameters_, tables_;
};

bool run(const MeshRun& run, Failure& failure) {
    const auto prepared = ready(run.checked, run.chip);
    const jit::Program* const compiled = jit::program(prepared->program, "sweeps", failure);
    if (!compiled) return false;
    if (run.checked.dtype == DType::f32) return PlanesRun<float>(run, *compiled, prepared->plan).run(failure);
    return PlanesRun<double>(run, *compiled, prepared->plan).run(failure);
}

}  // namespace

const MeshKind planes_kind{"planes", refuses, bytes, program, run};

}  // namespace trifold::cuda
