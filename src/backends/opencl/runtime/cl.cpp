// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/cl.hpp"

#include <cstdio>

namespace trifold::opencl {

std::string error_name(cl_int error) {
    struct Name {
        cl_int code;
        const char* text;
    };
#define TRIFOLD_CL(name) {name, #name}
    static constexpr Name names[] = {
        TRIFOLD_CL(CL_DEVICE_NOT_FOUND), TRIFOLD_CL(CL_DEVICE_NOT_AVAILABLE), TRIFOLD_CL(CL_COMPILER_NOT_AVAILABLE),
        TRIFOLD_CL(CL_MEM_OBJECT_ALLOCATION_FAILURE), TRIFOLD_CL(CL_OUT_OF_RESOURCES), TRIFOLD_CL(CL_OUT_OF_HOST_MEMORY),
        TRIFOLD_CL(CL_MEM_COPY_OVERLAP), TRIFOLD_CL(CL_BUILD_PROGRAM_FAILURE), TRIFOLD_CL(CL_MAP_FAILURE),
        TRIFOLD_CL(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST), TRIFOLD_CL(CL_DEVICE_PARTITION_FAILED), TRIFOLD_CL(CL_INVALID_VALUE),
        TRIFOLD_CL(CL_INVALID_PLATFORM), TRIFOLD_CL(CL_INVALID_DEVICE), TRIFOLD_CL(CL_INVALID_CONTEXT), TRIFOLD_CL(CL_INVALID_COMMAND_QUEUE),
        TRIFOLD_CL(CL_INVALID_HOST_PTR), TRIFOLD_CL(CL_INVALID_MEM_OBJECT), TRIFOLD_CL(CL_INVALID_BINARY), TRIFOLD_CL(CL_INVALID_BUILD_OPTIONS),
        TRIFOLD_CL(CL_INVALID_PROGRAM), TRIFOLD_CL(CL_INVALID_PROGRAM_EXECUTABLE), TRIFOLD_CL(CL_INVALID_KERNEL_NAME),
        TRIFOLD_CL(CL_INVALID_KERNEL), TRIFOLD_CL(CL_INVALID_ARG_INDEX), TRIFOLD_CL(CL_INVALID_ARG_VALUE), TRIFOLD_CL(CL_INVALID_ARG_SIZE),
        TRIFOLD_CL(CL_INVALID_KERNEL_ARGS), TRIFOLD_CL(CL_INVALID_WORK_GROUP_SIZE), TRIFOLD_CL(CL_INVALID_WORK_ITEM_SIZE),
        TRIFOLD_CL(CL_INVALID_EVENT), TRIFOLD_CL(CL_INVALID_OPERATION), TRIFOLD_CL(CL_INVALID_BUFFER_SIZE), TRIFOLD_CL(CL_INVALID_GLOBAL_WORK_SIZE)};
#undef TRIFOLD_CL
    for (const Name& name : names)
        if (name.code == error) return name.text;
    return "error " + std::to_string(error);
}

bool guarded(const char* doing, Failure& failure, const std::function<void()>& work) noexcept {
    try {
        work();
        return true;
    } catch (const Stop& stop) {
        failure = stop.failure;
    } catch (const cl::Error& error) {
        char message[256];
        std::snprintf(message, sizeof message, "%s failed: %s in %s", doing, error_name(error.err()).c_str(), error.what());
        switch (error.err()) {
            case CL_MEM_OBJECT_ALLOCATION_FAILURE:
            case CL_OUT_OF_HOST_MEMORY:
            case CL_INVALID_BUFFER_SIZE: failure.say(ErrorCode::bad_input, message, "solve fewer rows or systems at a time"); break;
            default: failure.say(ErrorCode::device_unavailable, message, "does clinfo still show the device?");
        }
    } catch (const std::exception& error) {
        failure.say(ErrorCode::internal, error.what());
    }
    return false;
}

}  // namespace trifold::opencl
