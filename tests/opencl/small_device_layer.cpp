// SPDX-License-Identifier: BSD-3-Clause
// A layer of OpenCL's loader (OPENCL_LAYERS) that makes every device a smaller one, as TRIFOLD_SMALL_DEVICE says: "group=64 kernel=32 local=16384 alloc=1000000 fp64=0". It says so where
// it is asked, and refuses what such a device would refuse: larger groups and buffers, more local memory, double precision, queues out of order, for which nobody here asks.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "opencl/layer.hpp"

namespace {

using layer::below, layer::own;
std::atomic<long> refused{0};

/// 0: as it is.
std::size_t limit(const char* name) {
    const char* const text = std::getenv("TRIFOLD_SMALL_DEVICE");
    const char* const at = text ? std::strstr(text, (std::string(name) + "=").c_str()) : nullptr;
    return at ? std::strtoull(at + std::strlen(name) + 1, nullptr, 10) : 0;
}

bool has_fp64() {
    static const char* const text = std::getenv("TRIFOLD_SMALL_DEVICE");
    return !text || !std::strstr(text, "fp64=0");
}

std::size_t smaller(std::size_t value, std::size_t most) { return most ? std::min(value, most) : value; }

template <class T>
void lower(void* value, std::size_t most) {
    if (value) *static_cast<T*>(value) = static_cast<T>(smaller(*static_cast<T*>(value), most));
}

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info name, size_t size, void* value, size_t* needed) {
    const cl_int code = below->clGetDeviceInfo(device, name, size, value, needed);
    if (code != CL_SUCCESS) return code;
    switch (name) {
        case CL_DEVICE_MAX_WORK_GROUP_SIZE: lower<size_t>(value, limit("group")); break;
        case CL_DEVICE_LOCAL_MEM_SIZE: lower<cl_ulong>(value, limit("local")); break;
        case CL_DEVICE_MAX_MEM_ALLOC_SIZE: lower<cl_ulong>(value, limit("alloc")); break;
        case CL_DEVICE_DOUBLE_FP_CONFIG:
            if (value && !has_fp64()) std::memset(value, 0, sizeof(cl_device_fp_config));
            break;
        case CL_DEVICE_EXTENSIONS:
            if (value && !has_fp64())
                if (char* const at = std::strstr(static_cast<char*>(value), "cl_khr_fp64")) std::memcpy(at, "cl_khr_none", 11);
            break;
        default: break;
    }
    return code;
}

cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info name, size_t size, void* value, size_t* needed) {
    const cl_int code = below->clGetKernelWorkGroupInfo(kernel, device, name, size, value, needed);
    if (code != CL_SUCCESS || name != CL_KERNEL_WORK_GROUP_SIZE || !value) return code;
    // NVIDIA's driver says less than it takes of kernels that are compiled for one size.
    lower<size_t>(value, limit("group")), lower<size_t>(value, limit("kernel"));
    return code;
}

cl_int refuse(cl_int code) { return ++refused, code; }

cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset, const size_t* items, const size_t* group, cl_uint count, const cl_event* list,
                           cl_event* event) {
    cl_device_id device = nullptr;
    below->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr);
    size_t most = 0, compiled[3] = {};
    kernel_info(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr);
    below->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof compiled, compiled, nullptr);
    if (compiled[0]) most = smaller(compiled[0], limit("group"));
    cl_ulong local = 0;
    below->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, nullptr);
    if (group && (group[0] > most || (compiled[0] && group[0] != compiled[0]) || items[0] % group[0] != 0)) return refuse(CL_INVALID_WORK_GROUP_SIZE);
    if (limit("local") && local > limit("local")) return refuse(CL_OUT_OF_RESOURCES);
    return below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, items, group, count, list, event);
}

cl_mem CL_API_CALL make_buffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* code) {
    if (size == smaller(size, limit("alloc"))) return below->clCreateBuffer(context, flags, size, host, code);
    if (code) *code = CL_INVALID_BUFFER_SIZE;
    return ++refused, nullptr;
}

cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id* devices, const char* options, void(CL_CALLBACK* done)(cl_program, void*), void* data) {
    if (!has_fp64() && options && std::strstr(options, "=double")) return refuse(CL_BUILD_PROGRAM_FAILURE);
    return below->clBuildProgram(program, count, devices, options, done, data);
}

cl_command_queue CL_API_CALL make_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* code) {
    if (!(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)) return below->clCreateCommandQueue(context, device, properties, code);
    if (code) *code = CL_INVALID_QUEUE_PROPERTIES;
    return ++refused, nullptr;
}

}  // namespace

void layer::begin() {
    own.clGetDeviceInfo = device_info, own.clGetKernelWorkGroupInfo = kernel_info, own.clEnqueueNDRangeKernel = enqueue;
    own.clCreateBuffer = make_buffer, own.clBuildProgram = build, own.clCreateCommandQueue = make_queue;
}

extern "C" {

/// What such a device would not have taken.
long trifold_refused() { return refused.load(); }

}  // extern "C"
