// SPDX-License-Identifier: BSD-3-Clause
// What every layer of OpenCL's loader (OPENCL_LAYERS) has: the table below it, its own, and the two entries that the loader calls.
#pragma once

#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <cstring>

namespace layer {

static const cl_icd_dispatch* below = nullptr;
static cl_icd_dispatch own;  // static: a layer is a library, and there may be several

/// Puts the layer's entries into `own`, which is a copy of the table below; the layer has it.
static void begin();

}  // namespace layer

extern "C" {

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void* value, size_t* needed) {
    if (name != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (value && size >= sizeof version) std::memcpy(value, &version, sizeof version);
    if (needed) *needed = sizeof version;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_out, const cl_icd_dispatch** out) {
    if (entries < sizeof layer::own / sizeof(void*)) return CL_INVALID_VALUE;
    layer::below = target, layer::own = *target;
    layer::begin();
    *entries_out = sizeof layer::own / sizeof(void*), *out = &layer::own;
    return CL_SUCCESS;
}

}  // extern "C"
