// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/one_system.hpp"

#include <cstdint>
#include <limits>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/tridiagonal/block/one_system.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

// Fewer rows are few warps' work, and those of a batch.
constexpr int least_rows = 512;
using one_system::most_rows;
// Accepted residual of a row in units of roundoff, and what is neglected, as of windows (device/windows.cu).
constexpr double accepted_roundoffs = 16, neglected = 1.0 / 16;

// What a cluster needs for more than eight blocks: they are not promised, a part of a GPU may have fewer multiprocessors side by side.
template <class Kernel>
bool takes_most(Kernel* kernel) {
    cudaLaunchAttribute cluster;
    const cudaLaunchConfig_t config = one_system::configuration(one_system::most_blocks, one_system::most_warps, nullptr, cluster);
    int clusters = 0;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
           cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess && clusters > 0;
}

int ask_cluster_blocks(int device) {
    using namespace one_system;
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (major < 9) return 0;
    const bool most = takes_most(one_system_kernel<double, 4, 1, true>) && takes_most(one_system_kernel<double, 8, 1, false>) && takes_most(one_system_kernel<float, 4, 1, true>) &&
                      takes_most(one_system_kernel<float, 8, 1, false>);
    if (!most) cudaGetLastError();
    return most ? most_blocks : 8;
}

// Blocks that a cluster can have; 0 where there are no clusters. Asked several times per solve, each a good part of what the host takes for it.
int cluster_blocks() {
    static OfDevice known;
    return known(ask_cluster_blocks);
}

template <class T>
void solve(const System& system, const BatchLaunch& launch) {
    using one_system::Job;
    constexpr double u = std::numeric_limits<T>::epsilon() / 2;
    const auto data = [](const Operand& operand) { return static_cast<T*>(operand.data); };
    Job<T> job{{data(system.lower), data(system.diag), data(system.upper), data(system.rhs)},
               data(system.x),
               static_cast<int>(system.rows),
               0,
               static_cast<T>(accepted_roundoffs * u),
               static_cast<T>(neglected * u),
               system.in_place,
               static_cast<int>(tridiagonal::Algorithm::thomas),
               launch.outcome,
               system.number,
               launch.status,
               reinterpret_cast<T*>(static_cast<unsigned char*>(launch.scratch) + 256)};
    const auto whole = [](const T* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
    for (unsigned k = 0; k < 4; ++k) job.whole |= static_cast<unsigned>(whole(job.input[k])) << k;
    job.whole |= static_cast<unsigned>(whole(job.x)) << 4;
    const int most = cluster_blocks(), few = most * 2 * one_system::lanes * 4;  // rows, four per lane, two warps per block
    const bool short_one = job.rows <= few;
    const int warps = most == one_system::most_blocks || short_one ? 2 : 4, each = warps * one_system::lanes * (short_one ? 4 : 8);
    auto* const kernel = short_one ? one_system::one_system_kernel<T, 4, 1, true> : one_system::one_system_kernel<T, 8, 1, false>;
    cudaLaunchAttribute cluster;
    const cudaLaunchConfig_t config = one_system::configuration((job.rows + each - 1) / each, short_one ? one_system::warps_apart : warps, launch.stream, cluster);
    enqueue_kernel(config, kernel, job);
}

}  // namespace

bool one_system_fits(const System& system) {
    const auto array = [](const Operand& operand) { return operand.kind == Operand::Kind::view && operand.row_stride == 1; };
    return system.rows >= least_rows && system.rows <= most_rows && system.systems() == 1 && array(system.lower) && array(system.diag) &&
           array(system.upper) && array(system.rhs) && array(system.x) && cluster_blocks() > 0;
}

void solve_one_system(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
