// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/one_system.hpp"

#include <limits>

#include "backends/cuda/tridiagonal/block/one_system.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

// Fewer rows are few warps' work, and those of a batch.
constexpr int least_rows = 512;
// Accepted residual of a row in units of roundoff, as of windows (device/windows.cu).
constexpr double accepted_roundoffs = 16;

bool has_copy_engine() {
    static std::array<int, 64> known;
    static PerDevice asked;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= static_cast<int>(known.size())) return false;
    asked.once([&] { cudaDeviceGetAttribute(&known[static_cast<std::size_t>(device)], cudaDevAttrComputeCapabilityMajor, device); });
    return known[static_cast<std::size_t>(device)] >= 9;
}

template <class T>
void solve(const System& system, const BatchLaunch& launch) {
    auto* const kernel = one_system::one_system_kernel<T>;
    constexpr int bytes = sizeof(one_system::Memory<T>);
    static_assert(bytes <= 227 * 1024);
    static PerDevice prepared;
    prepared.once([&] {
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    });
    auto* const mark = static_cast<unsigned char*>(launch.scratch);
    BatchLaunch rest = launch;
    rest.scratch = mark + 256;
    const OneLaunch<T> once{PivotedJob<T>(system, rest, mark, nullptr, 1), fresh_outcome(system.rows, 1, static_cast<int>(tridiagonal::Algorithm::thomas))};
    kernel<<<1, one_system::lanes * one_system::warps, bytes, launch.stream>>>(once, static_cast<T>(accepted_roundoffs * std::numeric_limits<T>::epsilon() / 2));
}

}  // namespace

bool one_system_fits(const System& system) {
    const auto array = [](const Operand& operand) { return operand.kind == Operand::Kind::view && operand.row_stride == 1; };
    return system.rows >= least_rows && system.rows <= one_system::most_rows && system.systems() == 1 && array(system.lower) && array(system.diag) &&
           array(system.upper) && array(system.rhs) && array(system.x) && has_copy_engine();
}

void solve_one_system(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
