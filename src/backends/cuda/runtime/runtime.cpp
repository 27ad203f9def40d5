// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/runtime/runtime.hpp"

#include <cstdio>
#include <cstdlib>

#include "backends/cuda/runtime/combine.hpp"
#include "backends/cuda/runtime/launch_error.hpp"
#include "backends/cuda/runtime/pieces.hpp"
#include "backends/cuda/runtime/stream.hpp"
#include "backends/cuda/runtime/strided_copy.hpp"

namespace trifold::cuda {

OnDevice::OnDevice(int device) : device_(device) {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = -1;
    if (before_ != device_) cudaSetDevice(device_);
}

OnDevice::~OnDevice() {
    if (before_ >= 0 && before_ != device_) cudaSetDevice(before_);
}

namespace {

// After one of these every later call of the process fails too.
bool ends_the_context(cudaError_t error) {
    switch (error) {
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorAssert:
        case cudaErrorECCUncorrectable:
        case cudaErrorContained: return true;
        default: return false;
    }
}

void size_text(char (&out)[32], std::size_t bytes) {
    const double b = static_cast<double>(bytes);
    if (b >= 1 << 30) std::snprintf(out, sizeof out, "%.1f GiB", b / (1 << 30));
    else if (b >= 1 << 20) std::snprintf(out, sizeof out, "%.0f MiB", b / (1 << 20));
    else std::snprintf(out, sizeof out, "%zu bytes", bytes);
}

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

bool memory_info(int device, std::size_t* free, std::size_t* total, Failure& failure) {
    const OnDevice on(device);
    return good(cudaMemGetInfo(free, total), "asking for free memory", failure);
}

bool allocate(int device, std::size_t bytes, void** memory, Failure& failure) {
    const OnDevice on(device);
    *memory = nullptr;
    if (bytes == 0) return true;
    std::size_t free = 0, total = 0;
    if (!memory_info(device, &free, &total, failure)) return false;
    cudaError_t error = cudaErrorMemoryAllocation;
    if (bytes <= free) error = cudaMalloc(memory, bytes);
    // For compute-sanitizer's initcheck, which does not see what the copy engine writes.
    if (error == cudaSuccess && std::getenv("TRIFOLD_CUDA_CLEAR")) error = cudaMemset(*memory, 0, bytes);
    if (error != cudaErrorMemoryAllocation) return good(error, "allocating device memory", failure);
    cudaGetLastError();
    char asked[32], left[32], all[32], message[160];
    size_text(asked, bytes), size_text(left, free), size_text(all, total);
    std::snprintf(message, sizeof message, "%s asked for, %s free of %s", asked, left, all);
    return failure.say(ErrorCode::bad_input, message, "solve fewer rows or systems at a time, use f32, or free what else is held on this GPU");
}

void release(int device, void* memory) {
    const OnDevice on(device);
    cudaFree(memory);
    cudaGetLastError();  // at the end of a process the driver may be gone before us
}

bool failed_before(cudaError_t error, Failure& failure) {
    char message[256];
    std::snprintf(message, sizeof message, "work that was enqueued before this call has failed: %s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
    return failure.say(ErrorCode::device_unavailable, message,
                       "Trifold has enqueued nothing in this call; compute-sanitizer finds the kernel; the process cannot use the GPU any more");
}

bool where(int device, const void* address, Memory* found, Failure& failure) {
    const OnDevice on(device);
    cudaPointerAttributes attributes{};
    *found = {};
    const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
    if (error != cudaSuccess) cudaGetLastError();
    if (error == cudaErrorInvalidValue) return true;  // so older runtimes call the host's own memory
    if (ends_the_context(error)) return failed_before(error, failure);
    if (!good(error, "asking where an array lies", failure)) return false;
    switch (attributes.type) {
        case cudaMemoryTypeDevice: *found = {MemoryKind::device, attributes.device}; break;
        case cudaMemoryTypeManaged: *found = {MemoryKind::device, device}; break;
        case cudaMemoryTypeHost: *found = {MemoryKind::registered, 0}; break;
        default: break;
    }
    return true;
}

bool copy(int device, void* stream, void* to, const void* from, std::size_t bytes, Failure& failure) {
    if (bytes == 0) return true;
    const OnDevice on(device);
    return good(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)), "copying", failure);
}

bool copy_strided(int device, void* stream, const devices::StridedCopy& copy, Failure& failure) {
    const OnDevice on(device);
    enqueue_copy_strided(copy, stream_of(stream));
    return good(launch_error(), "launching a kernel", failure);
}

bool synchronize(int device, void* stream, Failure& failure) {
    const OnDevice on(device);
    return good(cudaStreamSynchronize(stream_of(stream)), "waiting for the device", failure);
}

bool enter(int device, void* stream, bool wait, bool* capturing, Failure& failure) {
    const OnDevice on(device);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaError_t error = launch_error();  // of this thread, before us
    if (error == cudaSuccess) error = cudaStreamIsCapturing(stream_of(stream), &status);
    *capturing = status != cudaStreamCaptureStatusNone;
    if (error == cudaSuccess && wait && !*capturing) error = cudaStreamSynchronize(stream_of(stream));
    if (error == cudaSuccess) return true;
    cudaGetLastError();
    if (error == cudaErrorInvalidResourceHandle || error == cudaErrorInvalidValue || error == cudaErrorContextIsDestroyed)
        return failure.say(ErrorCode::usage, "the stream of the queue is none of this device", "give the Queue a cudaStream_t that lives, made on that device");
    return failed_before(error, failure);
}

bool mark(int device, void* stream, void** event, Failure& failure) {
    const OnDevice on(device);
    cudaEvent_t made = nullptr;
    if (!good(cudaEventCreateWithFlags(&made, cudaEventBlockingSync), "making an event", failure)) return false;
    *event = made;
    return good(cudaEventRecord(made, stream_of(stream)), "recording an event", failure);
}

bool seconds(int device, void* from, void* to, double* seconds, Failure& failure) {
    const OnDevice on(device);
    float ms = 0;
    if (!good(cudaEventSynchronize(static_cast<cudaEvent_t>(to)), "waiting for an event", failure)) return false;
    if (!good(cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(from), static_cast<cudaEvent_t>(to)), "reading events", failure)) return false;
    *seconds = ms * 1e-3;
    return true;
}

void release_mark(int device, void* event) {
    const OnDevice on(device);
    if (event) cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

bool open_stream(int device, void** stream, Failure& failure) {
    const OnDevice on(device);
    cudaStream_t made = nullptr;
    if (!good(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream", failure)) return false;
    *stream = made;
    return true;
}

void close_stream(int device, void* stream) {
    const OnDevice on(device);
    cudaStreamDestroy(stream_of(stream));
    cudaGetLastError();
}

bool wait_for(int device, void* stream, void* event, Failure& failure) {
    const OnDevice on(device);
    return good(cudaStreamWaitEvent(stream_of(stream), static_cast<cudaEvent_t>(event), 0), "waiting for another stream", failure);
}

bool allocate_pinned(int device, std::size_t bytes, void** memory, Failure& failure) {
    const OnDevice on(device);
    *memory = nullptr;
    return good(cudaHostAlloc(memory, bytes, cudaHostAllocPortable), "allocating pinned memory of the host", failure);
}

void release_pinned(int device, void* memory) {
    const OnDevice on(device);
    cudaFreeHost(memory);
    cudaGetLastError();
}

bool register_host(int device, void* memory, std::size_t bytes, Failure& failure) {
    const OnDevice on(device);
    return good(cudaHostRegister(memory, bytes, cudaHostRegisterPortable), "registering memory of the host", failure);
}

void unregister_host(int device, void* memory) {
    const OnDevice on(device);
    cudaHostUnregister(memory);
    cudaGetLastError();
}

bool gather_ends(int device, void* stream, DType dtype, std::int64_t count, std::int64_t rows, const void* y, const void* g, const void* h, void* ends, Failure& failure) {
    const OnDevice on(device);
    enqueue_gather_ends(dtype, count, rows, y, g, h, ends, stream_of(stream));
    return good(launch_error(), "launching a kernel", failure);
}

bool combine(int device, void* stream, DType dtype, std::int64_t count, std::int64_t rows, void* x, const void* g, const void* h, const void* factors, double* sizes, Failure& failure) {
    const OnDevice on(device);
    enqueue_combine(dtype, count, rows, x, g, h, factors, sizes, stream_of(stream));
    return good(launch_error(), "launching a kernel", failure);
}

bool close_pieces(int device, void* stream, const devices::Pieces& pieces, Failure& failure) {
    const OnDevice on(device);
    enqueue_close_pieces(pieces, stream_of(stream));
    return good(launch_error(), "launching a kernel", failure);
}

bool judge_pieces(int device, void* stream, const devices::Pieces& pieces, float* worst, Failure& failure) {
    const OnDevice on(device);
    enqueue_judge_pieces(pieces, worst, stream_of(stream));
    return good(launch_error(), "launching a kernel", failure);
}

bool bandwidth(int device, void* stream, int reads, bool in_place, std::size_t bytes, double* bytes_per_s, Failure& failure) {
    const OnDevice on(device);
    *bytes_per_s = 0;
    StreamArrays arrays;
    arrays.reads = reads < 1 ? 1 : reads > 4 ? 4 : reads;
    arrays.bytes = bytes / 16 * 16;
    // Not multiples of a power of two apart: the arrays of a user are not either.
    const std::size_t pitch = (arrays.bytes + 255) / 256 * 256 + 4352;
    const int count = arrays.reads + (in_place ? 0 : 1);
    void* memory = nullptr;
    if (!allocate(device, pitch * static_cast<std::size_t>(count), &memory, failure)) return false;
    char* const base = static_cast<char*>(memory);
    for (int r = 0; r < arrays.reads; ++r) arrays.read[r] = base + pitch * static_cast<std::size_t>(r);
    if (!in_place) arrays.write = base + pitch * static_cast<std::size_t>(arrays.reads);
    bool fine = good(cudaMemsetAsync(memory, 0, pitch * static_cast<std::size_t>(count), stream_of(stream)), "filling memory", failure);
    if (fine) *bytes_per_s = measure_stream(arrays, 9, stream_of(stream));
    fine = fine && good(cudaGetLastError(), "measuring the memory's bandwidth", failure);
    release(device, memory);
    return fine;
}

bool pci_bus(int device, char* bus, std::size_t bytes, Failure& failure) {
    return good(cudaDeviceGetPCIBusId(bus, static_cast<int>(bytes), device), "asking for the GPU's place on PCI", failure);
}

}  // namespace

bool good(cudaError_t error, const char* doing, Failure& failure) {
    if (error == cudaSuccess) return true;
    cudaGetLastError();
    char message[256];
    std::snprintf(message, sizeof message, "%s failed: %s (%s)", doing, cudaGetErrorString(error), cudaGetErrorName(error));
    if (ends_the_context(error))
        return failure.say(ErrorCode::device_unavailable, message, "the process cannot use the GPU any more; compute-sanitizer finds the kernel");
    if (error == cudaErrorMemoryAllocation)
        return failure.say(ErrorCode::bad_input, message, "solve fewer rows or systems at a time");
    return failure.say(ErrorCode::device_unavailable, message, "does nvidia-smi still show the GPU?");
}

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
        r.unregister_host = unregister_host;
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

}  // namespace trifold::cuda
