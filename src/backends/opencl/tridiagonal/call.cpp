// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/call.hpp"

#include <bit>
#include <cstring>

#include "trifold/tridiagonal.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

constexpr std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

word bits_of(const Operand& operand, DType dtype) {
    if (dtype == DType::f64) return std::bit_cast<word>(operand.value);
    return static_cast<word>(std::bit_cast<std::uint32_t>(static_cast<float>(operand.value)));
}

}  // namespace

Reach reach_of(const Operand& operand, const System& system, std::int64_t first, std::int64_t last) {
    const auto bytes = static_cast<std::int64_t>(size_of(system.dtype));
    std::int64_t low = first * operand.row_stride, high = last * operand.row_stride;
    if (low > high) std::swap(low, high);
    for (int d = 0; d < system.levels; ++d) {
        const std::int64_t span = (system.extent[d] - 1) * operand.level_stride[d];
        (span < 0 ? low : high) += span;
    }
    const char* const base = static_cast<const char*>(operand.data);
    return {base + low * bytes, base + (high + 1) * bytes - 1};
}

const Operand& operand_of(const System& system, int k) {
    const Operand* const all[operands] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    return *all[k];
}

std::optional<Reach> reach_of(const System& system, int k) {
    const std::int64_t first = k == 0 ? 1 : 0, last = k == 2 ? system.rows - 2 : system.rows - 1;
    if (operand_of(system, k).kind != Operand::Kind::view || first > last) return {};
    return reach_of(operand_of(system, k), system, first, last);
}

ScratchParts::ScratchParts(const System& system) {
    const auto systems = static_cast<std::size_t>(system.systems());
    marks = 0;
    verdicts = up(systems);
    work = verdicts + up(8 * systems);
}

Call::Call(OpenDevice& open, const System& of, const tridiagonal::Launch& how, void* outcome)
    : device(open), on(how.stream ? *static_cast<DeviceQueue*>(how.stream) : open.main), system(of), launch(how), lock_(open.mutex), touched_(open), outcome_(outcome ? outcome : &own_found_) {}

void Call::make() {
    const System& s = system;
    Source* const sources[operands] = {&job.lower, &job.diag, &job.upper, &job.rhs, &job.x};
    std::optional<Reach> reach[operands];
    for (int k = 0; k < operands; ++k)
        if ((reach[k] = reach_of(s, k))) touched_.add(reach[k]->first, reach[k]->last, k == 4);
    if (launch.scratch_bytes > 0) touch(launch.scratch, launch.scratch_bytes);
    touch(outcome_, sizeof(Found));
    // From system 0 on: kernels count from there, and take an offset below 0 for none.
    if (launch.status) touch(launch.status, static_cast<std::size_t>(s.number + s.systems()));
    touched_.make();

    job.rows = s.rows, job.systems = s.systems(), job.levels = s.levels, job.number = s.number;
    for (int d = 0; d < 4; ++d) job.extent[d] = d < s.levels ? s.extent[d] : 1, job.number_stride[d] = d < s.levels ? s.number_stride[d] : 0;
    const auto bytes = static_cast<std::int64_t>(size_of(s.dtype));
    for (int k = operands - 1; k >= 0; --k) {
        Source& to = *sources[k];
        const Operand& from = operand_of(s, k);
        if (!reach[k]) {
            buffers[k] = buffers[4];
            to.bits = from.kind == Operand::Kind::scalar ? bits_of(from, s.dtype) : 0;
            continue;
        }
        Place place = touched_.at(reach[k]->first);
        buffers[k] = std::move(place.buffer);
        to.is_view = 1;
        to.offset = static_cast<word>(place.offset) / bytes + (static_cast<const char*>(from.data) - reach[k]->first) / bytes;
        to.row_stride = from.row_stride;
        for (int d = 0; d < s.levels; ++d) to.level_stride[d] = from.level_stride[d];
    }
    outcome_place_ = touched_.at(outcome_);
    if (launch.scratch_bytes > 0) scratch_place_ = touched_.at(launch.scratch);
    if (launch.status) status_place_ = touched_.at(launch.status);
    found_ = &outcome_place_.buffer;
    scratch_ = launch.scratch_bytes > 0 ? &scratch_place_.buffer : found_;
    status_ = launch.status ? &status_place_.buffer : found_;
    const ScratchParts parts(s);
    const auto base = static_cast<word>(launch.scratch_bytes > 0 ? scratch_place_.offset : outcome_place_.offset);
    where_ = {base + static_cast<word>(parts.work), base + static_cast<word>(parts.marks), base + static_cast<word>(parts.verdicts),
              static_cast<word>(outcome_place_.offset), launch.status ? static_cast<word>(status_place_.offset) : -1};
}

Place Call::work() const { return {*scratch_, static_cast<std::size_t>(where_.work), 0}; }

void Call::set_common(KernelArguments& arguments) const {
    arguments.set(0, job);
    arguments.set(1, where_);
    for (cl_uint k = 0; k < 5; ++k) arguments.set(2 + k, buffers[k]);
    arguments.set(7, *scratch_);
    arguments.set(8, *found_);
    arguments.set(9, *status_);
}

Found Call::fresh(tridiagonal::Algorithm branch) const {
    Found value{};
    value.first = ~0u, value.row = -1, value.rows = system.rows, value.systems = system.systems(), value.branch = static_cast<word>(branch);
    value.reason = static_cast<int>(Reason::exact);
    return value;
}

void Call::reset(tridiagonal::Algorithm branch) { store(fresh(branch)); }

void Call::use_state() {
    if (!on.fresh) {
        cl::Kernel& kernel = device.kernel({"pivoted", "reset_state"}, DType::f32);
        kernel.setArg(0, on.state);
        run(kernel, 1, 1);
    }
    on.fresh = false;  // until all that is to follow is enqueued
    found_ = &on.state;
    where_.found = 0;
}

void Call::store(const Found& value) {
    // PoCL's buffers are the host's memory, and nothing that is enqueued has to do with it yet: neither a launch nor a program is needed.
    if (device.info.in_host_memory && device.info.is_pocl()) return void(*static_cast<Found*>(outcome_) = value);
    cl::Kernel& kernel = device.kernel({"pivoted", "reset"}, DType::f32);
    kernel.setArg(0, outcome_place_.buffer);
    kernel.setArg(1, static_cast<cl_long>(outcome_place_.offset));
    kernel.setArg(2, value);
    run(kernel, 1, 1);
}

void read_found(const Found& from, Outcome& to) {
    using tridiagonal::Algorithm;
    const auto asked = static_cast<Algorithm>(from.branch);
    to.failures = from.failures, to.rescued = from.rescued;
    // As on the cpu: where every system needed pivots, that is the branch.
    const bool all_pivoted = from.rescued > 0 && from.rescued + from.failures == from.systems;
    to.branch = name_of(all_pivoted ? Algorithm::lu : asked);
    to.tried_other = from.tried_other || (asked != Algorithm::lu && from.rescued + from.failures > 0);
    to.reason = Reason::exact;
    if (from.residual) to.residual = std::bit_cast<double>(from.residual);
    if (from.failures == 0) {
        to.reason = static_cast<Reason>(from.reason);
        return;
    }
    to.system = from.first, to.row = from.row;
    to.reason = static_cast<Reason>(from.reason);
}

}  // namespace trifold::opencl
