// SPDX-License-Identifier: BSD-3-Clause
// The JSON record of a benchmark on the GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/cuda/gpu.cuh"

namespace trifold::bench {

/// What the benchmark was built from, as git names it; "unknown" outside of a checkout. (In gpu_record.cpp: kernels are not compiled anew at every commit.)
std::string built_commit();

/// Schema, suite, title and machine; rows are to be put under "rows".
inline nlohmann::ordered_json gpu_record(const char* suite, const char* title) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "no device");
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver), cudaRuntimeGetVersion(&runtime);
    nlohmann::ordered_json record;
    record["schema"] = "trifold.bench/1", record["suite"] = suite, record["title"] = title;
    record["machine"] = {{"gpu", properties.name}, {"driver_cuda", driver}, {"runtime_cuda", runtime}, {"multiprocessors", properties.multiProcessorCount},
                         {"commit", built_commit()}};
    return record;
}

/// Writes it whole or not at all; an empty path writes nothing. Returns false, and says so, where it cannot.
inline bool write_record(const nlohmann::ordered_json& record, const std::string& path) {
    if (path.empty()) return true;
    const std::string part = path + ".part";
    const bool written = static_cast<bool>(std::ofstream(part) << record.dump(1) << "\n");
    if (written && std::rename(part.c_str(), path.c_str()) == 0) return true;
    std::fprintf(stderr, "%s cannot be written\n", path.c_str());
    return false;
}

}  // namespace trifold::bench
