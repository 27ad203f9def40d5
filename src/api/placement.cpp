// SPDX-License-Identifier: BSD-3-Clause
#include "api/placement.hpp"

#include <string>

#include "backends/registry.hpp"
#include "problems/tridiagonal/read_rows.hpp"

namespace trifold::tridiagonal {
namespace {

// The kernels of the queue's device can use this address.
bool usable(const Queue& queue, const char* name, const void* address, bool reaches_pinned) {
    const Device& device = device_at(queue.device_index());
    Memory found;
    Failure failure;
    if (!device.runtime->where(device.number, address, &found, failure)) failure.raise(std::string("device '") + device.name + "'");
    if (found.kind == MemoryKind::device && found.index != device.number)
        throw Error(ErrorCode::usage, name, "memory of device " + std::to_string(found.index) + " in a solve on '" + device.name + "'",
                    "copy it there, or take a Queue on its own device");
    return found.kind == MemoryKind::device || (found.kind == MemoryKind::registered && reaches_pinned);
}

}  // namespace

Placement place(const Queue& queue, const Problem& problem, const Options& options, bool reaches_pinned) {
    Placement out;
    const char* const names[] = {"lower", "diag", "upper", "rhs", "x"};
    constexpr Array arrays[] = {Array::lower, Array::diag, Array::upper, Array::rhs, Array::x};
    const AnyView* const views[] = {std::get_if<AnyView>(&problem.matrix.lower), std::get_if<AnyView>(&problem.matrix.diag),
                                    std::get_if<AnyView>(&problem.matrix.upper), &problem.rhs, &problem.x};
    for (int k = 0; k < 5; ++k) {
        if (!views[k]) continue;
        // Where it begins that nobody reads need not be the device's. An array of which nothing is read, as of the couplings of one row, is nowhere.
        const AnyView read = read_rows(problem, arrays[k], *views[k]);
        if (!read.data || read.rows() == 0 || read.systems() == 0) continue;
        out.there[k] = usable(queue, names[k], read.data, reaches_pinned);
        if (!out.there[k] && views[k]->memory.kind == MemoryKind::device)
            throw Error(ErrorCode::usage, names[k], std::string("host memory in a view that says it lies on '") + queue.device() + "'",
                        "give a pointer of the device (allocate, cudaMalloc), or leave the view's memory at host");
        const char*& first = out.there[k] ? out.first_there : out.first_here;
        if (!first) first = names[k];
    }
    if (options.status) out.status_there = usable(queue, "Options::status", options.status, reaches_pinned);
    return out;
}

bool check_offsets_memory(const Queue& queue, const Problem& problem) {
    const Device& device = device_at(queue.device_index());
    if (!device.runtime || problem.offsets.empty()) return true;
    Memory found;
    Failure failure;
    if (!device.runtime->where(device.number, problem.offsets.data(), &found, failure)) failure.raise(std::string("device '") + device.name + "'");
    if (found.kind == MemoryKind::device)
        throw Error(ErrorCode::usage, "offsets", "memory of device " + std::to_string(found.index) + ", but the host reads them", "give host memory; what the device needs of them is copied there");
    return found.kind == MemoryKind::registered;
}

}  // namespace trifold::tridiagonal
