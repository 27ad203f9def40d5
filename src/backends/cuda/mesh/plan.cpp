// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/plan.hpp"

#include <algorithm>

#include "backends/cuda/jit/program.hpp"
#include "backends/cuda/mesh/fused/fused.hpp"
#include "backends/cuda/mesh/general.hpp"
#include "backends/cuda/mesh/planes/planes.hpp"
#include "backends/cuda/mesh/resident/resident.hpp"
#include "backends/cuda/mesh/run.hpp"
#include "backends/cuda/mesh/streaming/streaming.hpp"
#include "backends/cuda/runtime/runtime.hpp"

namespace trifold::cuda {

using mesh::Checked;

bool chip_of(int device, Chip& chip, Failure& failure) {
    int major = 0, minor = 0, block = 0, multiprocessor = 0, l2 = 0;
    const auto ask = [&](int& value, cudaDeviceAttr what) { return good(cudaDeviceGetAttribute(&value, what, device), "asking what the GPU has", failure); };
    if (!ask(major, cudaDevAttrComputeCapabilityMajor) || !ask(minor, cudaDevAttrComputeCapabilityMinor) || !ask(chip.multiprocessors, cudaDevAttrMultiProcessorCount) ||
        !ask(block, cudaDevAttrMaxSharedMemoryPerBlockOptin) || !ask(multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor) || !ask(l2, cudaDevAttrL2CacheSize))
        return false;
    chip.architecture = 10 * major + minor;
    chip.shared_per_block = static_cast<std::size_t>(block), chip.shared_per_multiprocessor = static_cast<std::size_t>(multiprocessor);
    chip.l2 = static_cast<std::size_t>(l2);
    std::size_t free = 0;
    return good(cudaMemGetInfo(&free, &chip.memory), "asking how much memory a GPU has", failure);
}

std::span<const MeshKind* const> mesh_kinds() {
    static constexpr const MeshKind* kinds[] = {&resident_kind, &planes_kind, &streaming_kind, &fused_kind, &general_kind};
    return kinds;
}

namespace {

constexpr std::size_t state_bytes = 256;
static_assert(sizeof(MeshState) <= state_bytes);

// A run on one device, kind after kind.
class DeviceRun {
public:
    DeviceRun(int device, const Checked& checked, std::int64_t first_step, std::int64_t steps, const tridiagonal::Launch& launch)
        : device_(device), checked_(checked), first_step_(first_step), steps_(steps), stream_(static_cast<cudaStream_t>(launch.stream)),
          state_(static_cast<MeshState*>(launch.scratch)), scratch_(static_cast<char*>(launch.scratch) + state_bytes) {}

    bool run(SweepOutcome& outcome, Failure& failure) {
        Chip chip;
        if (!chip_of(device_, chip, failure) || !copy(state_, &found_, cudaMemcpyHostToDevice, failure)) return false;
        std::int64_t from = 0;
        for (const MeshKind* kind : mesh_kinds()) {
            if (kind->refuses(checked_, chip)) continue;
            if (!kind->run({checked_, chip, first_step_, steps_, from, stream_, scratch_, state_}, failure)) return false;
            if (!copy(&found_, state_, cudaMemcpyDeviceToHost, failure) || !good(cudaStreamSynchronize(stream_), "waiting for sweeps", failure)) return false;
            if (found_.refused_at == MeshState::none) break;
            from = static_cast<std::int64_t>(found_.refused_at);
            found_.refused_at = MeshState::none;
            if (!copy(state_, &found_, cudaMemcpyHostToDevice, failure)) return false;
        }
        tell(outcome);
        return true;
    }

private:
    bool copy(MeshState* to, const MeshState* from, cudaMemcpyKind way, Failure& failure) {
        return good(cudaMemcpyAsync(to, from, sizeof *to, way, stream_), "copying the state of a run", failure);
    }

    void tell(SweepOutcome& outcome) const {
        outcome = {};
        outcome.reason = Reason::exact;
        outcome.rescued = static_cast<std::int64_t>(found_.rescued);
        if (found_.failed_at == MeshState::none) return;
        const std::size_t odd = found_.failed_at & 1;
        const unsigned long long first = found_.first[odd];
        outcome.failures = std::max<std::int64_t>(static_cast<std::int64_t>(found_.failures[odd]), 1);
        const auto each = static_cast<std::int64_t>(checked_.sweeps.size()), at = static_cast<std::int64_t>(found_.failed_at);
        const MeshShape& shape = checked_.problem->shape;
        outcome.reason = static_cast<Reason>(-static_cast<int>(first & 7));
        outcome.step = first_step_ + at / each;
        outcome.sweep = static_cast<int>(at % each);
        outcome.axis = checked_.problem->sweeps[static_cast<std::size_t>(outcome.sweep)].lines[static_cast<std::size_t>(first >> 56)].axis;
        auto point = static_cast<std::int64_t>(first << 8 >> 12);
        outcome.x = point % shape.x, point /= shape.x;
        outcome.y = point % shape.y, point /= shape.y;
        outcome.z = point % shape.z, outcome.mesh = point / shape.z;
        if (first & 8) (outcome.axis == 0 ? outcome.x : outcome.axis == 1 ? outcome.y : outcome.z) = -1;
    }

    const int device_;
    const Checked& checked_;
    const std::int64_t first_step_, steps_;
    const cudaStream_t stream_;
    MeshState* const state_;
    void* const scratch_;
    MeshState found_;
};

}  // namespace

bool mesh_bytes(int device, const Checked& checked, std::size_t* bytes, Failure& failure) {
    const OnDevice on(device);
    Chip chip;
    if (!chip_of(device, chip, failure)) return false;
    *bytes = 0;
    for (const MeshKind* kind : mesh_kinds())
        if (!kind->refuses(checked, chip)) *bytes = std::max(*bytes, kind->bytes(checked, chip));
    *bytes += state_bytes;
    return true;
}

bool mesh_run(int device, const Checked& checked, std::int64_t first_step, std::int64_t steps, const tridiagonal::Launch& launch, SweepOutcome& outcome, Failure& failure) {
    const OnDevice on(device);
    return DeviceRun(device, checked, first_step, steps, launch).run(outcome, failure);
}

bool mesh_moves(int device, const Checked& checked, std::int64_t steps, const tridiagonal::Launch& launch, Failure& failure) {
    const OnDevice on(device);
    Chip chip;
    if (!chip_of(device, chip, failure)) return false;
    chip.moves_alone = true;
    const auto stream = static_cast<cudaStream_t>(launch.stream);
    auto* const state = static_cast<MeshState*>(launch.scratch);
    const MeshState nothing;
    const MeshKind& kind = planes_kind.refuses(checked, chip) ? streaming_kind : planes_kind;
    if (const char* const why = kind.refuses(checked, chip)) return failure.say(ErrorCode::bad_input, why);
    return good(cudaMemcpyAsync(state, &nothing, sizeof nothing, cudaMemcpyHostToDevice, stream), "copying the state of a run", failure) &&
           kind.run({checked, chip, 0, steps, 0, stream, static_cast<char*>(launch.scratch) + state_bytes, state}, failure) && good(cudaStreamSynchronize(stream), "waiting for sweeps", failure);
}

bool mesh_compile(const Checked& checked, int architecture, bool moves_alone, int kind, const char** name, const char** refuses, Failure& failure) {
    Chip chip;
    chip.architecture = architecture, chip.moves_alone = moves_alone;
    const std::span<const MeshKind* const> kinds = mesh_kinds();
    *name = *refuses = nullptr;
    if (kind < 0 || static_cast<std::size_t>(kind) >= kinds.size()) return true;
    const MeshKind& one = *kinds[static_cast<std::size_t>(kind)];
    *name = one.name, *refuses = one.refuses(checked, chip);
    std::string cubin;
    return *refuses || jit::machine_code(one.program(checked, chip), one.name, architecture, cubin, failure);
}

}  // namespace trifold::cuda
