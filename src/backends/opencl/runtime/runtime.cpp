// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "backends/opencl/runtime/memory.hpp"
#include "backends/opencl/runtime/pinned.hpp"

namespace trifold::opencl {
namespace {

// OpenCL does not say what others hold.
std::size_t left(int device) {
    const std::size_t all = found(device).memory;
    return all - std::min(all, reserved(device));
}

// Who asks will take it at once, and drivers allow a part of the memory only in one buffer, mostly a quarter.
bool memory_info(int device, std::size_t* free, std::size_t* total, Failure&) {
    *total = found(device).memory;
    *free = std::min(left(device), found(device).largest_block);
    return true;
}

bool allocate(int device, std::size_t bytes, void** memory, Failure& failure) {
    *memory = nullptr;
    if (bytes == 0) return true;
    const std::size_t free = left(device), total = found(device).memory, block = found(device).largest_block;
    if (bytes <= std::min(free, block)) return guarded("allocating device memory", failure, [&] { *memory = reserve(device, bytes); });
    char asked[32], there[32], all[32], most[32], message[200];
    size_text(asked, bytes), size_text(there, free), size_text(all, total), size_text(most, block);
    std::snprintf(message, sizeof message, "%s asked for, %s free of %s, at most %s at once", asked, there, all, most);
    return failure.say(ErrorCode::bad_input, message, "solve fewer rows or systems at a time, use f32, or free what else is held on this device");
}

// What was enqueued on trust may need it once more.
void release(int device, void* memory) {
    OpenDevice& d = open_device(device);
    const std::lock_guard lock(d.order);
    Failure ignored;
    d.settle(ignored);
    give_back(memory);
}

bool where(int, const void* address, Memory* found, Failure&) {
    const int device = device_of(address);
    *found = device >= 0 ? Memory{MemoryKind::device, device} : is_pinned(address) ? Memory{MemoryKind::registered, 0} : Memory{};
    return true;
}

bool settle(int device, Failure& failure) {
    bool good = true;
    return guarded("waiting for the device", failure, [&] { good = open_device(device).settle(failure); }) && good;
}

/// A stream of ours, or the device's own queue.
DeviceQueue& queue_of(int device, void* stream) { return stream ? *static_cast<DeviceQueue*>(stream) : open_device(device).main; }

// From and to pinned memory a stream's copies are on their way when this returns; the user's queue gives memory back that may be freed at once.
bool copy(int device, void* stream, void* to, const void* from, std::size_t bytes, Failure& failure) {
    if (bytes == 0) return true;
    if (!stream && !settle(device, failure)) return false;
    return guarded("copying", failure, [&] {
        const cl::CommandQueue& queue = queue_of(device, stream).queue;
        const Place target = place_of(to), source = place_of(from);
        const cl_bool waits = !stream || !is_pinned(target.device >= 0 ? from : to, bytes);
        if (target.device >= 0 && source.device >= 0) queue.enqueueCopyBuffer(source.buffer, target.buffer, source.offset, target.offset, bytes);
        else if (target.device >= 0) queue.enqueueWriteBuffer(target.buffer, waits, target.offset, bytes, from);
        else if (source.device >= 0) queue.enqueueReadBuffer(source.buffer, waits, source.offset, bytes, to);
        else std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
        if (!waits) queue.flush();
    });
}

bool synchronize(int device, void* stream, Failure& failure) {
    if (!stream && !settle(device, failure)) return false;
    return guarded("waiting for the device", failure, [&] { queue_of(device, stream).queue.finish(); });
}

// Times of streams are the device's.
bool open_stream(int device, void** stream, Failure& failure) {
    return guarded("making a queue", failure, [&] { *stream = new DeviceQueue(open_device(device), CL_QUEUE_PROFILING_ENABLE); });
}

void close_stream(int, void* stream) {
    auto* const queue = static_cast<DeviceQueue*>(stream);
    clFinish(queue->queue());
    delete queue;
}

bool allocate_pinned(int device, std::size_t bytes, void** memory, Failure& failure) {
    return guarded("allocating pinned memory of the host", failure, [&] { *memory = pin_new(open_device(device), bytes); });
}

bool register_host(int device, void* memory, std::size_t bytes, Failure& failure) {
    return guarded("registering memory of the host", failure, [&] { pin(open_device(device), memory, bytes); });
}

void release_pinned(int, void* memory) { unpin(memory); }

bool enter(int device, void* stream, bool wait, bool* capturing, Failure& failure) {
    *capturing = false;
    if (stream)
        return failure.say(ErrorCode::usage, "a stream for an OpenCL device: buffers of another context cannot be reached from there",
                           "leave it out: Trifold has a queue of its own for each device");
    return !wait || synchronize(device, stream, failure);
}

/// In a stream a marker of its own, which has the device's time. In the device's own queue the host's clock, after all that is enqueued: times of events would need a queue
/// that takes them, and then microseconds pass between kernels.
struct Mark {
    cl::Event event;
    std::chrono::steady_clock::time_point moment;
};

bool mark(int device, void* stream, void** event, Failure& failure) {
    if (!stream && !settle(device, failure)) return false;
    return guarded("marking the queue", failure, [&] {
        const cl::CommandQueue& queue = queue_of(device, stream).queue;
        auto made = std::make_unique<Mark>();
        if (stream) queue.enqueueMarkerWithWaitList(nullptr, &made->event), queue.flush();
        else queue.finish(), made->moment = std::chrono::steady_clock::now();
        *event = made.release();
    });
}

// Sleeps: a driver that spins takes a core from those who solve.
void await(const cl::Event& event) {
    for (auto pause = std::chrono::microseconds(10); event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() > CL_COMPLETE; pause = std::min(2 * pause, std::chrono::microseconds(80)))
        std::this_thread::sleep_for(pause);
    event.wait();  // throws where it failed
}

bool seconds(int, void* from, void* to, double* seconds, Failure& failure) {
    return guarded("reading a mark", failure, [&] {
        const Mark &first = *static_cast<Mark*>(from), &last = *static_cast<Mark*>(to);
        *seconds = std::chrono::duration<double>(last.moment - first.moment).count();
        if (!last.event() || !first.event()) return;
        await(first.event), await(last.event);
        *seconds = 1e-9 * (static_cast<double>(last.event.getProfilingInfo<CL_PROFILING_COMMAND_END>()) - static_cast<double>(first.event.getProfilingInfo<CL_PROFILING_COMMAND_END>()));
    });
}

bool wait_for(int device, void* stream, void* event, Failure& failure) {
    return guarded("waiting for another queue", failure, [&] {
        const cl::Event& awaited = static_cast<Mark*>(event)->event;
        const std::vector<cl::Event> list{awaited};
        if (awaited()) queue_of(device, stream).queue.enqueueBarrierWithWaitList(&list);
    });
}

void release_mark(int, void* event) { delete static_cast<Mark*>(event); }

void set_array(cl::Kernel& kernel, cl_uint at, const Place& place, std::size_t size) { kernel.setArg(at, place.buffer), kernel.setArg(at + 1, static_cast<cl_long>(place.offset / size)); }

bool copy_strided(int device, void* stream, const devices::StridedCopy& copy, Failure& failure) {
    if (!stream && !settle(device, failure)) return false;
    return guarded("copying", failure, [&] {
        OpenDevice& d = open_device(device);
        DeviceQueue& on = queue_of(device, stream);
        const Place from = place_of(copy.from), to = place_of(copy.to);
        cl_long8 extent, from_stride, to_stride;
        const int missing = devices::StridedCopy::most_dims - copy.dims;
        for (int k = 0; k < devices::StridedCopy::most_dims; ++k) {
            const bool there = k >= missing;
            extent.s[k] = there ? copy.extent[k - missing] : 1;
            from_stride.s[k] = there ? copy.from_stride[k - missing] : 0, to_stride.s[k] = there ? copy.to_stride[k - missing] : 0;
        }
        const std::lock_guard lock(d.mutex);
        cl::Kernel& kernel = d.kernel({"strided_copy", "copy_strided"}, copy.dtype);
        kernel.setArg(0, static_cast<cl_long>(copy.elements())), kernel.setArg(1, extent), kernel.setArg(2, from_stride), kernel.setArg(3, to_stride);
        set_array(kernel, 4, from, size_of(copy.dtype)), set_array(kernel, 6, to, size_of(copy.dtype));
        constexpr std::int64_t most = 1 << 20;
        d.run(on, kernel, static_cast<std::size_t>(std::min(copy.elements(), most)), 64);
        on.queue.flush();
    });
}

bool gather_ends(int device, void* stream, DType dtype, std::int64_t count, std::int64_t rows, const void* y, const void* g, const void* h, void* ends, Failure& failure) {
    return guarded("gathering the ends of parts", failure, [&] {
        OpenDevice& d = open_device(device);
        DeviceQueue& on = queue_of(device, stream);
        const Place places[] = {place_of(y), place_of(g), place_of(h), place_of(ends)};
        const std::lock_guard lock(d.mutex);
        cl::Kernel& kernel = d.kernel({"combine", "gather_ends"}, dtype);
        kernel.setArg(0, static_cast<cl_long>(count)), kernel.setArg(1, static_cast<cl_long>(rows));
        for (cl_uint k = 0; k < 4; ++k) set_array(kernel, 2 + 2 * k, places[k], size_of(dtype));
        d.run(on, kernel, static_cast<std::size_t>(count), 64);
        on.queue.flush();
    });
}

bool combine(int device, void* stream, DType dtype, std::int64_t count, std::int64_t rows, void* x, const void* g, const void* h, const void* factors, double* sizes, Failure& failure) {
    return guarded("adding up a chunk's parts", failure, [&] {
        OpenDevice& d = open_device(device);
        DeviceQueue& on = queue_of(device, stream);
        const Place places[] = {place_of(x), place_of(g), place_of(h), place_of(factors)}, found = place_of(sizes);
        const std::lock_guard lock(d.mutex);
        on.queue.enqueueFillBuffer(found.buffer, cl_uint{0}, found.offset, 2 * static_cast<std::size_t>(count) * sizeof(double));
        cl::Kernel& kernel = d.kernel({"combine", "combine"}, dtype);
        // A part's items are whole groups of whatever size the kernel is allowed.
        const auto group = static_cast<std::int64_t>(d.group_of(kernel, 64));
        constexpr std::int64_t most = 1 << 18;
        const std::int64_t items = std::clamp((rows + group - 1) / group, std::int64_t{1}, std::max<std::int64_t>(most / group / count, 4)) * group;
        kernel.setArg(0, static_cast<cl_long>(rows)), kernel.setArg(1, static_cast<cl_long>(items));
        for (cl_uint k = 0; k < 4; ++k) set_array(kernel, 2 + 2 * k, places[k], size_of(dtype));
        set_array(kernel, 10, found, sizeof(cl_int));
        d.run(on, kernel, static_cast<std::size_t>(count * items), static_cast<std::size_t>(group));
        on.queue.flush();
    });
}

// Of a coupling that is no array some buffer is named, which is not read.
void set_coupling(cl::Kernel& kernel, cl_uint at, DType dtype, const void* array, double value, const Place& other) {
    const Place place = array ? place_of(array) : other;
    kernel.setArg(at, place.buffer), kernel.setArg(at + 1, static_cast<cl_long>(array ? place.offset / size_of(dtype) : 0));
    if (dtype == DType::f32) kernel.setArg(at + 2, static_cast<cl_float>(value));
    else kernel.setArg(at + 2, value);
    kernel.setArg(at + 3, static_cast<cl_int>(array != nullptr));
}

constexpr std::size_t pieces_in_group = 64;

bool close_pieces(int device, void* stream, const devices::Pieces& p, Failure& failure) {
    return guarded("closing a chunk's pieces", failure, [&] {
        OpenDevice& d = open_device(device);
        DeviceQueue& on = queue_of(device, stream);
        const Place rhs = place_of(p.rhs), known = place_of(p.known);
        const std::lock_guard lock(d.mutex);
        cl::Kernel& kernel = d.kernel({"pieces", "close_pieces"}, p.dtype);
        kernel.setArg(0, static_cast<cl_long>(p.count)), kernel.setArg(1, static_cast<cl_long>(p.rows));
        set_coupling(kernel, 2, p.dtype, p.lower, p.lower_value, rhs);
        set_coupling(kernel, 6, p.dtype, p.upper, p.upper_value, rhs);
        kernel.setArg(10, rhs.buffer), kernel.setArg(11, static_cast<cl_long>(rhs.offset / size_of(p.dtype)));
        kernel.setArg(12, known.buffer), kernel.setArg(13, static_cast<cl_long>(known.offset / size_of(p.dtype)));
        d.run(on, kernel, static_cast<std::size_t>(p.count), pieces_in_group);
        on.queue.flush();
    });
}

bool judge_pieces(int device, void* stream, const devices::Pieces& p, float* worst, Failure& failure) {
    return guarded("judging a chunk's pieces", failure, [&] {
        OpenDevice& d = open_device(device);
        DeviceQueue& on = queue_of(device, stream);
        const Place x = place_of(p.x), known = place_of(p.known), found = place_of(worst);
        const std::lock_guard lock(d.mutex);
        on.queue.enqueueFillBuffer(found.buffer, cl_uint{0}, found.offset, sizeof(float));
        cl::Kernel& kernel = d.kernel({"pieces", "judge_pieces"}, p.dtype);
        kernel.setArg(0, static_cast<cl_long>(p.count)), kernel.setArg(1, static_cast<cl_long>(p.rows));
        kernel.setArg(2, x.buffer), kernel.setArg(3, static_cast<cl_long>(x.offset / size_of(p.dtype)));
        kernel.setArg(4, known.buffer), kernel.setArg(5, static_cast<cl_long>(known.offset / size_of(p.dtype)));
        kernel.setArg(6, found.buffer), kernel.setArg(7, static_cast<cl_long>(found.offset / sizeof(cl_int)));
        d.run(on, kernel, static_cast<std::size_t>(p.count), pieces_in_group);
        on.queue.flush();
    });
}

bool bandwidth(int device, void*, int reads, bool in_place, std::size_t bytes, double* bytes_per_s, Failure& failure) {
    *bytes_per_s = 0;
    return guarded("measuring the memory's bandwidth", failure, [&] {
        OpenDevice& d = open_device(device);
        const std::size_t vectors = bytes / 16;
        std::vector<cl::Buffer> arrays;
        for (int k = 0; k < 5; ++k) arrays.emplace_back(d.context, CL_MEM_READ_WRITE, k < reads || (k == 4 && !in_place) ? 16 * vectors : 16);
        const std::lock_guard lock(d.mutex);
        for (cl::Buffer& array : arrays) d.main.queue.enqueueFillBuffer(array, 0, 0, array.getInfo<CL_MEM_SIZE>());
        cl::Kernel& kernel = d.kernel({"stream", "stream"}, DType::f32);
        for (int k = 0; k < 5; ++k) kernel.setArg(static_cast<cl_uint>(k), arrays[static_cast<std::size_t>(k == 4 && in_place ? reads - 1 : k)]);
        kernel.setArg(5, static_cast<cl_int>(reads));
        kernel.setArg(6, static_cast<cl_ulong>(vectors));
        std::vector<double> rates;
        const std::size_t local = d.info.wide ? 256 : 1, items = d.info.wide ? static_cast<std::size_t>(d.info.units) * 2048 : static_cast<std::size_t>(d.info.units);
        // Nine passes; of a device that needs seconds for them, three.
        constexpr double long_enough_s = 2;
        double spent = 0;
        for (int pass = 0; pass < 9 && (pass < 3 || spent < long_enough_s); ++pass) {
            const double s = d.run_timed(kernel, items, local);
            spent += s;
            rates.push_back(static_cast<double>(16 * vectors) * (reads + 1) / s);
        }
        std::sort(rates.begin(), rates.end());
        *bytes_per_s = rates[rates.size() / 2];
    });
}

bool pci_bus(int device, char* bus, std::size_t bytes, Failure& failure) {
    if (found(device).bus.empty()) return failure.say(ErrorCode::device_unavailable, "its driver does not tell its place on PCI");
    std::snprintf(bus, bytes, "%s", found(device).bus.c_str());
    return true;
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
        r.copy_strided = copy_strided;
        r.synchronize = synchronize;
        r.enter = enter;
        r.mark = mark;
        r.seconds = seconds;
        r.release_mark = release_mark;
        r.open_stream = open_stream;
        r.close_stream = close_stream;
        r.wait_for = wait_for;
        r.allocate_pinned = allocate_pinned;
        r.release_pinned = release_pinned;
        r.register_host = register_host;
        r.unregister_host = release_pinned;
        r.gather_ends = gather_ends;
        r.combine = combine;
        r.close_pieces = close_pieces;
        r.judge_pieces = judge_pieces;
        r.bandwidth = bandwidth;
        r.pci_bus = pci_bus;
        return r;
    }();
    return table;
}

}  // namespace trifold::opencl
