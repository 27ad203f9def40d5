// SPDX-License-Identifier: BSD-3-Clause
#include "api/device_sweep.hpp"

#include <string>
#include <vector>

#include "api/stage.hpp"
#include "devices/context_state.hpp"

namespace trifold {
namespace {

using tridiagonal::Operand;
using tridiagonal::StagedOperand;
using tridiagonal::System;

constexpr std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// A field as an operand: its rows along x.
StagedOperand staged(const AnyField& field, const MeshShape& shape) {
    System system;
    system.dtype = field.dtype;
    system.rows = shape.x, system.levels = 3;
    system.extent[0] = shape.meshes, system.extent[1] = shape.z, system.extent[2] = shape.y;
    Operand operand;
    operand.kind = Operand::Kind::view;
    operand.data = field.data;
    operand.row_stride = field.stride[0];
    operand.level_stride[0] = field.stride[3], operand.level_stride[1] = field.stride[2], operand.level_stride[2] = field.stride[1];
    return tridiagonal::stage_operand(operand, system, 0, shape.x - 1);
}

class DeviceSweep {
public:
    DeviceSweep(Queue& queue, const Device& device, const tridiagonal::Ops& ops, const mesh::Checked& checked)
        : queue_(queue), state_(queue.context().state()), device_(device), runtime_(*device.runtime), ops_(ops), checked_(checked), problem_(*checked.problem),
          fields_(problem_.fields.begin(), problem_.fields.end()), staged_(fields_.size()), same_as_(fields_.size(), -1) {}

    SweepOutcome run(std::int64_t first_step, std::int64_t steps) {
        enter();
        std::size_t bytes = 0;
        for (std::size_t f = 0; f < fields_.size(); ++f) bytes += plan_copy(f);
        devices::DeviceArena& memory = state_.device_memory(runtime_, device_.number, device_.name);
        const auto points = static_cast<double>(problem_.shape.points());
        copies_ = memory.take(bytes, "sweep", points);
        bring();
        on_device_ = checked_;
        moved_ = problem_;
        moved_.fields = fields_;
        on_device_.problem = &moved_;
        // What is needed may depend on where fields lie.
        std::size_t scratch = 0;
        require(ops_.mesh_scratch(ops_.number, on_device_, &scratch, failure_));
        const devices::DeviceBlock scratch_block = memory.take(scratch, "sweep", points);
        tridiagonal::Launch launch;
        launch.scratch = scratch_block.data(), launch.scratch_bytes = scratch;
        launch.stream = queue_.stream();
        SweepOutcome outcome;
        require(ops_.mesh_run(ops_.number, on_device_, first_step, steps, launch, outcome, failure_));
        fetch();
        outcome.device = ops_.device;
        return outcome;
    }

private:
    void require(bool good) const {
        if (!good) failure_.raise(std::string("device '") + device_.name + "'");
    }
    void wait() { require(runtime_.synchronize(device_.number, queue_.stream(), failure_)); }
    void copy(void* to, const void* from, std::size_t bytes) { require(runtime_.copy(device_.number, queue_.stream(), to, from, bytes, failure_)); }

    void enter() {
        bool capturing = false;
        require(runtime_.enter(device_.number, queue_.stream(), true, &capturing, failure_));
        if (capturing) throw Error(ErrorCode::usage, "sweep", "the queue's stream is being recorded into a graph, and sweep waits", "call it outside the recording");
    }

    bool lies_there(std::size_t f) {
        const AnyField& field = problem_.fields[f];
        const std::string name = "field " + std::to_string(f);
        Memory found;
        require(runtime_.where(device_.number, field.data, &found, failure_));
        if (found.kind == MemoryKind::device && found.index != device_.number)
            throw Error(ErrorCode::usage, name, "memory of device " + std::to_string(found.index) + " in a sweep on '" + device_.name + "'",
                        "copy it there, or take a Queue on its own device");
        if (found.kind != MemoryKind::device && field.memory.kind == MemoryKind::device)
            throw Error(ErrorCode::usage, name, std::string("host memory in a field that says it lies on '") + queue_.device() + "'",
                        "give a pointer of the device (allocate, cudaMalloc), or leave the field's memory at host");
        return found.kind == MemoryKind::device;
    }

    // A field that is the same array as one before it shares its copy.
    std::size_t plan_copy(std::size_t f) {
        const AnyField& field = problem_.fields[f];
        if (lies_there(f)) return 0;
        StagedOperand& s = staged_[f];
        s = staged(field, problem_.shape);
        const auto& strides = s.compact.level_stride;
        fields_[f].stride = {s.compact.row_stride, strides[2], strides[1], strides[0]};
        // Its own copy, or that of the same array before it.
        for (std::size_t g = 0; g < f && same_as_[f] < 0; ++g)
            if (problem_.fields[g].data == field.data && problem_.fields[g].stride == field.stride) same_as_[f] = static_cast<int>(g);
        if (same_as_[f] < 0) same_as_[f] = static_cast<int>(f);
        return same_as_[f] == static_cast<int>(f) ? align(s.bytes()) : 0;
    }

    bool copied(std::size_t f) const { return same_as_[f] == static_cast<int>(f); }

    void bring() {
        char* next = static_cast<char*>(copies_.data());
        for (std::size_t f = 0; f < fields_.size(); ++f) {
            if (same_as_[f] < 0) continue;
            if (!copied(f)) {
                fields_[f].data = fields_[static_cast<std::size_t>(same_as_[f])].data;
                continue;
            }
            const StagedOperand& s = staged_[f];
            fields_[f].data = next;
            next += align(s.bytes());
            if (s.dense) {
                copy(fields_[f].data, s.host.data, s.bytes());
            } else {
                const devices::Scratch packed = state_.scratch.take(s.bytes());
                s.pack(packed.data(), state_.threads);
                copy(fields_[f].data, packed.data(), s.bytes());
                wait();  // before the host's copy is given back
            }
            fields_[f].memory = {MemoryKind::device, device_.number};
        }
    }

    void fetch() {
        std::vector<bool> done(fields_.size());
        for (const Sweep& sweep : problem_.sweeps) {
            if (same_as_[static_cast<std::size_t>(sweep.target)] < 0) continue;
            const auto f = static_cast<std::size_t>(same_as_[static_cast<std::size_t>(sweep.target)]);
            if (done[f]) continue;
            done[f] = true;
            const StagedOperand& s = staged_[f];
            if (s.dense) {
                copy(s.host.data, fields_[f].data, s.bytes());
                wait();
            } else {
                const devices::Scratch packed = state_.scratch.take(s.bytes());
                copy(packed.data(), fields_[f].data, s.bytes());
                wait();
                s.unpack(packed.data(), state_.threads);
            }
        }
    }

    Queue& queue_;
    Context::State& state_;
    const Device& device_;
    const devices::Runtime& runtime_;
    const tridiagonal::Ops& ops_;
    const mesh::Checked& checked_;
    const MeshProblem& problem_;
    std::vector<AnyField> fields_;
    std::vector<StagedOperand> staged_;
    std::vector<int> same_as_;  // field whose copy is used; -1: none, it lies there
    mesh::Checked on_device_;
    MeshProblem moved_;
    devices::DeviceBlock copies_;
    mutable Failure failure_;
};

}  // namespace

SweepOutcome sweep_on_device(Queue& queue, const Device& device, const tridiagonal::Ops& ops, const mesh::Checked& checked, std::int64_t first_step,
                             std::int64_t steps) {
    return DeviceSweep(queue, device, ops, checked).run(first_step, steps);
}

}  // namespace trifold
