// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "backends/opencl/runtime/memory.hpp"

namespace trifold::opencl {
namespace {

void size_text(char (&out)[32], std::size_t bytes) {
    const double b = static_cast<double>(bytes);
    if (b >= 1 << 30) std::snprintf(out, sizeof out, "%.1f GiB", b / (1 << 30));
    else if (b >= 1 << 20) std::snprintf(out, sizeof out, "%.0f MiB", b / (1 << 20));
    else std::snprintf(out, sizeof out, "%zu bytes", bytes);
}

// OpenCL does not say what others hold.
bool memory_info(int device, std::size_t* free, std::size_t* total, Failure&) {
    *total = found(device).memory;
    *free = *total - std::min(*total, reserved(device));
    return true;
}

bool allocate(int device, std::size_t bytes, void** memory, Failure& failure) {
    *memory = nullptr;
    if (bytes == 0) return true;
    std::size_t free = 0, total = 0;
    memory_info(device, &free, &total, failure);
    const std::size_t block = found(device).largest_block;
    if (bytes <= std::min(free, block)) return guarded("allocating device memory", failure, [&] { *memory = reserve(device, bytes); });
    char asked[32], left[32], all[32], most[32], message[200];
    size_text(asked, bytes), size_text(left, free), size_text(all, total), size_text(most, block);
    std::snprintf(message, sizeof message, "%s asked for, %s free of %s, at most %s at once", asked, left, all, most);
    return failure.say(ErrorCode::bad_input, message, "solve fewer rows or systems at a time, use f32, or free what else is held on this device");
}

void release(int, void* memory) { give_back(memory); }

Memory where(int, const void* address) {
    const Place place = place_of(address);
    return place.device < 0 ? Memory{} : Memory{MemoryKind::device, place.device};
}

bool copy(int device, void*, void* to, const void* from, std::size_t bytes, Failure& failure) {
    if (bytes == 0) return true;
    return guarded("copying", failure, [&] {
        OpenDevice& d = open_device(device);
        const Place target = place_of(to), source = place_of(from);
        if (target.device >= 0 && source.device >= 0) d.queue.enqueueCopyBuffer(source.buffer, target.buffer, source.offset, target.offset, bytes);
        else if (target.device >= 0) d.queue.enqueueWriteBuffer(target.buffer, CL_TRUE, target.offset, bytes, from);
        else if (source.device >= 0) d.queue.enqueueReadBuffer(source.buffer, CL_TRUE, source.offset, bytes, to);
        else std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
    });
}

bool synchronize(int device, void*, Failure& failure) {
    return guarded("waiting for the device", failure, [&] { open_device(device).queue.finish(); });
}

bool enter(int device, void* stream, bool wait, bool* capturing, Failure& failure) {
    *capturing = false;
    if (stream)
        return failure.say(ErrorCode::usage, "a stream for an OpenCL device: buffers of another context cannot be reached from there",
                           "leave it out: Trifold has a queue of its own for each device");
    return !wait || synchronize(device, stream, failure);
}

/// A mark waits for what is enqueued, and looks at the host's clock.
using Moment = std::chrono::steady_clock::time_point;

bool mark(int device, void*, void** event, Failure& failure) {
    return guarded("marking the queue", failure, [&] {
        // Times of events would need a queue that takes them, and then microseconds pass between kernels; NVIDIA's markers in another queue are not in order.
        open_device(device).queue.finish();
        *event = new Moment(std::chrono::steady_clock::now());
    });
}

bool seconds(int, void* from, void* to, double* seconds, Failure&) {
    *seconds = std::chrono::duration<double>(*static_cast<Moment*>(to) - *static_cast<Moment*>(from)).count();
    return true;
}

void release_mark(int, void* event) { delete static_cast<Moment*>(event); }

bool bandwidth(int device, void*, int reads, bool in_place, std::size_t bytes, double* bytes_per_s, Failure& failure) {
    *bytes_per_s = 0;
    return guarded("measuring the memory's bandwidth", failure, [&] {
        OpenDevice& d = open_device(device);
        const std::size_t vectors = bytes / 16;
        std::vector<cl::Buffer> arrays;
        for (int k = 0; k < 5; ++k) arrays.emplace_back(d.context, CL_MEM_READ_WRITE, k < reads || (k == 4 && !in_place) ? 16 * vectors : 16);
        const std::lock_guard lock(d.mutex);
        for (cl::Buffer& array : arrays) d.queue.enqueueFillBuffer(array, 0, 0, array.getInfo<CL_MEM_SIZE>());
        cl::Kernel& kernel = d.kernel({"stream", "stream"}, DType::f32);
        for (int k = 0; k < 5; ++k) kernel.setArg(static_cast<cl_uint>(k), arrays[static_cast<std::size_t>(k == 4 && in_place ? reads - 1 : k)]);
        kernel.setArg(5, static_cast<cl_int>(reads));
        kernel.setArg(6, static_cast<cl_ulong>(vectors));
        std::vector<double> rates;
        const std::size_t local = d.info.wide ? 256 : 1, items = d.info.wide ? static_cast<std::size_t>(d.info.units) * 2048 : static_cast<std::size_t>(d.info.units);
        for (int pass = 0; pass < 9; ++pass) {
            const double s = d.run_timed(kernel, items, local);
            rates.push_back(static_cast<double>(16 * vectors) * (reads + 1) / s);
        }
        std::sort(rates.begin(), rates.end());
        *bytes_per_s = rates[rates.size() / 2];
    });
}

}  // namespace

const devices::Runtime& runtime() {
    static const devices::Runtime table = [] {
        devices::Runtime r;
        r.allocate = allocate;
        r.release = release;
        r.memory_info = memory_info;
        r.where = where;
        r.copy = copy;
        r.synchronize = synchronize;
        r.enter = enter;
        r.mark = mark;
        r.seconds = seconds;
        r.release_mark = release_mark;
        r.bandwidth = bandwidth;
        return r;
    }();
    return table;
}

}  // namespace trifold::opencl
