// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/one_system.hpp"

#include <cstdint>
#include <limits>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/tridiagonal/block/one_system_long.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

// Fewer rows are few warps' work, and those of a batch.
constexpr int least_rows = 512;
// Accepted residual of a row in units of roundoff, and what is neglected, as of windows (device/windows.cu).
constexpr double accepted_roundoffs = 16, neglected = 1.0 / 16;

/// How many rows a cluster of so many blocks takes with four or eight rows a lane, by warps that are `Each` to a lane of the one that joins them.
constexpr int rows_of_warps(int warps, int each) { return warps * one_system::lanes * each; }
constexpr int short_rows(int blocks) { return rows_of_warps(2 * blocks, 4); }
constexpr int most_in_registers = rows_of_warps(4 * one_system::lanes, 8);
constexpr int rows_long = 13, rows_longer = 25;
constexpr int most_in_shared(int rows_of_lane) { return rows_of_warps(one_system::warps_long * one_system::most_blocks, rows_of_lane); }
constexpr int most_rows(int blocks) { return blocks == 0 ? 0 : blocks == one_system::most_blocks ? most_in_shared(rows_longer) : rows_of_warps(one_system::lanes, 8); }

/// A kernel and its blocks.
template <class T>
struct Shape {
    void (*kernel)(one_system::Job<T>);
    int warps, each;  ///< of a block; rows of its warps
    std::size_t (*bytes)(int rows);

    template <int R, int Each, bool Halos>
    static Shape of(int warps_with_rows) {
        return {one_system::one_system_kernel<T, R, Each, Halos>, Halos ? one_system::warps_apart : warps_with_rows, warps_with_rows * one_system::lanes * R,
                [](int rows) { return one_system::Memory<T, Each>::bytes(rows); }};
    }
    template <int R>
    static Shape of_long() {
        return {one_system::one_long_system_kernel<T, R>, one_system::warps_long, one_system::LongMemory<T, R>::rows, one_system::LongMemory<T, R>::bytes};
    }
    static Shape of(int rows, int blocks) {
        const bool most = blocks == one_system::most_blocks;
        if (rows <= short_rows(blocks)) return of<4, 1, true>(2);
        if (!most || rows <= rows_of_warps(one_system::lanes, 8)) return of<8, 1, false>(most ? 2 : 4);
        if (rows <= most_in_registers) return rows <= rows_of_warps(2 * one_system::lanes, 8) ? of<8, 2, false>(4) : of<8, 4, false>(8);
        return rows <= most_in_shared(rows_long) ? of_long<rows_long>() : of_long<rows_longer>();
    }

    int blocks(int rows) const { return (rows + each - 1) / each; }
    cudaLaunchConfig_t configuration(int rows, cudaStream_t stream, cudaLaunchAttribute& cluster) const {
        const int count = blocks(rows);
        return one_system::configuration(count, warps, bytes((rows + count - 1) / count), stream, cluster);
    }
};

// What a cluster needs for more than eight blocks: they are not promised, a part of a GPU may have fewer multiprocessors side by side.
template <class T>
bool takes_most() {
    for (const int rows : {short_rows(one_system::most_blocks), most_in_registers / 4, most_in_registers / 2, most_in_registers, most_in_shared(rows_long), most_in_shared(rows_longer)}) {
        const auto shape = Shape<T>::of(rows, one_system::most_blocks);
        cudaLaunchAttribute cluster;
        const cudaLaunchConfig_t config = shape.configuration(rows, nullptr, cluster);
        int clusters = 0;
        if (cudaFuncSetAttribute(shape.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, one_system::most_dynamic_bytes) != cudaSuccess ||  // fewer rows may take more
            cudaFuncSetAttribute(shape.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess ||
            cudaOccupancyMaxActiveClusters(&clusters, shape.kernel, &config) != cudaSuccess || clusters == 0)
            return false;
    }
    return true;
}

int ask_cluster_blocks(int device) {
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (major < 9) return 0;
    const bool most = takes_most<double>() && takes_most<float>();
    if (!most) cudaGetLastError();
    return most ? one_system::most_blocks : 8;
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
    const auto shape = Shape<T>::of(job.rows, cluster_blocks());
    cudaLaunchAttribute cluster;
    const cudaLaunchConfig_t config = shape.configuration(job.rows, launch.stream, cluster);
    enqueue_kernel(config, shape.kernel, job);
}

/// Whatever strides it has, and whatever the device's clusters are.
bool may_fit(const System& system) { return system.systems() == 1 && system.rows >= least_rows && system.rows <= most_rows(one_system::most_blocks); }

}  // namespace

bool one_system_fits(const System& system) {
    const auto array = [](const Operand& operand) { return operand.kind == Operand::Kind::view && operand.row_stride == 1; };
    return may_fit(system) && array(system.lower) && array(system.diag) && array(system.upper) && array(system.rhs) && array(system.x) && system.rows <= most_rows(cluster_blocks());
}

std::size_t one_system_scratch(const System& system) {
    if (!may_fit(system)) return 0;
    constexpr std::size_t of_outcome = 256;
    const std::size_t of_row = system.dtype == DType::f32 ? one_system::bytes_per_row<float> : one_system::bytes_per_row<double>;
    return of_outcome + one_system::bytes_of_news + static_cast<std::size_t>(system.rows) * of_row;
}

void solve_one_system(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
