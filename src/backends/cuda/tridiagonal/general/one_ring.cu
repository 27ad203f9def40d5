// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/general/one_ring.hpp"

#include <cstdint>
#include <limits>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/one_ring.cuh"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

// Of fewer rows a lane would have none; rings of up to 4096 rows may be on a multiprocessor.
constexpr std::int64_t least_rows = 2048, most_rows_of_warps = std::int64_t{one_ring::blocks} * 2 * one_ring::lanes * one_ring::rows_each, most_rows = 4 * most_rows_of_warps;
// Residuals are accepted as those of other rings (rings.cu), what is neglected is that of one system (block/one_system.cu).
constexpr double neglected = 1.0 / 16;
double accepted_roundoffs(std::int64_t rows) { return rows <= 8192 ? 8 : 16; }

/// A kernel and its launch, for so many rows.
template <class T>
struct Shape {
    void (*kernel)(one_ring::Job<T>);
    unsigned threads;
    std::size_t bytes;

    template <int Each>
    static Shape of(int rows) {
        return {one_ring::one_ring_kernel<T, Each>, 2 * Each * one_ring::lanes, one_ring::Memory<T, Each>::bytes((rows + one_ring::blocks - 1) / one_ring::blocks)};
    }
    explicit Shape(std::int64_t rows) : Shape(rows <= most_rows_of_warps ? of<1>(static_cast<int>(rows)) : rows <= 2 * most_rows_of_warps ? of<2>(static_cast<int>(rows)) : of<4>(static_cast<int>(rows))) {}
    Shape(void (*which)(one_ring::Job<T>), unsigned count, std::size_t shared) : kernel(which), threads(count), bytes(shared) {}

    cudaLaunchConfig_t configuration(cudaStream_t stream, cudaLaunchAttribute& cluster) const {
        cluster = cluster_of(one_ring::blocks);
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(one_ring::blocks), config.blockDim = dim3(threads);
        config.dynamicSmemBytes = bytes, config.stream = stream;
        config.attrs = &cluster, config.numAttrs = 1;
        return config;
    }
};

template <class T>
bool may_run() {
    for (std::int64_t rows = most_rows_of_warps; rows <= most_rows; rows *= 2) {
        const Shape<T> shape(rows);
        cudaLaunchAttribute cluster;
        const cudaLaunchConfig_t config = shape.configuration(nullptr, cluster);
        int clusters = 0;
        if (cudaFuncSetAttribute(shape.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.bytes)) != cudaSuccess ||
            cudaFuncSetAttribute(shape.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess ||
            cudaOccupancyMaxActiveClusters(&clusters, shape.kernel, &config) != cudaSuccess || clusters == 0)
            return false;
    }
    return true;
}

bool has_clusters_of_sixteen() {
    static OfDevice known;
    return known([](int device) {
        int major = 0;
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
        if (major < 9) return 0;
        const bool all = may_run<double>() && may_run<float>();
        if (!all) cudaGetLastError();
        return all ? 1 : 0;
    }) != 0;
}

template <class T>
Line<T> line(const Operand& operand) {
    const Source<T> source(operand);
    return {source.data, source.value, source.row_stride};
}

template <class T>
void solve(const System& ring, const BatchLaunch& launch) {
    constexpr double u = std::numeric_limits<T>::epsilon() / 2;
    const one_ring::Job<T> job{line<T>(ring.lower),
                               line<T>(ring.diag),
                               line<T>(ring.upper),
                               line<T>(ring.rhs),
                               line<T>(ring.x),
                               line<T>(ring.top_right),
                               line<T>(ring.bottom_left),
                               static_cast<int>(ring.rows),
                               static_cast<T>(accepted_roundoffs(ring.rows) * u),
                               static_cast<T>(neglected * u),
                               ring.in_place,
                               static_cast<int>(tridiagonal::Algorithm::thomas),
                               launch.outcome,
                               ring.number,
                               launch.status,
                               static_cast<T*>(launch.scratch)};
    const Shape<T> shape(ring.rows);
    cudaLaunchAttribute cluster;
    const cudaLaunchConfig_t config = shape.configuration(launch.stream, cluster);
    enqueue_kernel(config, shape.kernel, job);
}

}  // namespace

bool one_ring_fits(const System& ring) {
    return ring.periodic && !ring.accumulate && ring.rows >= least_rows && ring.rows <= most_rows && ring.systems() == 1 && ring.x.kind == Operand::Kind::view && has_clusters_of_sixteen();
}

std::size_t one_ring_scratch(const System& ring) {
    if (!one_ring_fits(ring)) return 0;
    return ring.dtype == DType::f32 ? one_ring::scratch_bytes<float>(ring.rows) : one_ring::scratch_bytes<double>(ring.rows);
}

void solve_one_ring(const System& ring, const BatchLaunch& launch) {
    if (ring.dtype == DType::f32) solve<float>(ring, launch);
    else solve<double>(ring, launch);
}

}  // namespace trifold::cuda
