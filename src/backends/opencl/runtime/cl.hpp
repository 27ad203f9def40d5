// SPDX-License-Identifier: BSD-3-Clause
// The Khronos C++ wrapper as all of this backend includes it: with exceptions, which stay inside the shared object.
#pragma once

#define CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_MINIMUM_OPENCL_VERSION 110
#define CL_HPP_TARGET_OPENCL_VERSION 200
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/opencl.hpp>

#include <functional>
#include <string>

#include "base/failure.hpp"

namespace trifold::opencl {

/// "CL_OUT_OF_RESOURCES" for -5; the number for what this version does not know.
std::string error_name(cl_int error);

/// Runs `work`; an exception of OpenCL becomes a failure, with `doing` in front. False where it failed.
bool guarded(const char* doing, Failure& failure, const std::function<void()>& work) noexcept;

/// A failure of ours on its way out of nested calls to `guarded`.
struct Stop {
    Failure failure;
};

}  // namespace trifold::opencl
