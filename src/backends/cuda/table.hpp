// SPDX-License-Identifier: BSD-3-Clause
// What libtrifold_cuda.so gives to libtrifold: one plain table behind one symbol. Both come from one source tree; the
// version and the sizes refuse a mixture of two.
#pragma once

#include <cstddef>

#include "devices/runtime.hpp"
#include "families/tridiagonal/ops.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda {

struct Table {
    static constexpr const char* library_name = "libtrifold_cuda.so";
    static constexpr const char* table_symbol = "trifold_cuda_table";

    int version = 6;
    std::size_t ops_bytes = sizeof(tridiagonal::Ops), system_bytes = sizeof(tridiagonal::System), runtime_bytes = sizeof(devices::Runtime), checked_bytes = sizeof(mesh::Checked);

    /// GPUs that the driver shows; 0 where `absent` says why.
    int (*count)() = nullptr;
    const char* (*absent)() = nullptr;

    /// One line: model, multiprocessors, memory, driver. And nullptr, or why this build cannot use it.
    const char* (*describe)(int device) = nullptr;
    const char* (*unusable)(int device) = nullptr;

    const devices::Runtime* runtime = nullptr;
    const tridiagonal::Ops* (*tridiagonal)(int device) = nullptr;

    /// mesh/run.hpp.
    const char* (*compiler_missing)() = nullptr;
    bool (*mesh_compile)(const mesh::Checked& checked, int architecture, bool moves_alone, int kind, const char** name, const char** refuses, Failure& failure) = nullptr;
    bool (*mesh_moves)(int device, const mesh::Checked& checked, std::int64_t steps, const tridiagonal::Launch& launch, Failure& failure) = nullptr;

    bool same_build(const Table& own) const {
        return version == own.version && ops_bytes == own.ops_bytes && system_bytes == own.system_bytes && runtime_bytes == own.runtime_bytes && checked_bytes == own.checked_bytes;
    }
};

}  // namespace trifold::cuda
