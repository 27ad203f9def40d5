// SPDX-License-Identifier: BSD-3-Clause
// Arrays of one system on the GPU, and of several: how they are filled, and how good an x is.
#pragma once

#include "bench/cuda/gpu.cuh"

namespace trifold::bench {

template <class T>
struct Arrays {
    T *lower, *diag, *upper, *rhs, *x;
};

/// The matrix of src/io/generators/diffusion.cpp, with random numbers of our own.
template <class T>
__global__ void diffusion(Arrays<T> a, std::int64_t n, double number, double contrast) {
    const double range = log(contrast);
    const auto conductivity = [&](std::int64_t layer) { return number * exp((uniform(77, layer) - 0.5) * range); };
    for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < n; i += std::int64_t(gridDim.x) * blockDim.x) {
        const std::int64_t layer = i / 8;
        const double k = conductivity(layer);
        const auto face = [&](double other) { return 2 * k * other / (k + other); };
        const double up = i % 8 ? k : layer ? face(conductivity(layer - 1)) : 2 * k;
        const double down = i + 1 == n ? 2 * k : i % 8 < 7 ? k : face(conductivity(layer + 1));
        a.lower[i] = i ? T(-up) : T(0), a.upper[i] = i + 1 < n ? T(-down) : T(0), a.diag[i] = T(1 + up + down);
        a.rhs[i] = T(uniform(5, i));
    }
}

/// Largest |rhs - A x| of a row over (|a| + |b| + |c|) max|x| of the three unknowns in it, products and sums as exact as two doubles.
template <class T>
__global__ void backward_error(Arrays<T> a, std::int64_t n, unsigned long long* worst) {
    double most = 0;
    for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < n; i += std::int64_t(gridDim.x) * blockDim.x) {
        RowResidual row(a.rhs[i]);
        double size = fabs(double(a.x[i]));
        row.subtract(a.diag[i], a.x[i]);
        if (i) row.subtract(a.lower[i], a.x[i - 1]), size = fmax(size, fabs(double(a.x[i - 1])));
        if (i + 1 < n) row.subtract(a.upper[i], a.x[i + 1]), size = fmax(size, fabs(double(a.x[i + 1])));
        const double error = row.value() == 0 ? 0 : row.value() / (row.sum * size);
        if (!(error <= most)) most = error;
    }
    atomicMax(worst, __double_as_longlong(most >= 0 ? most : 1e300));
}

/// Couplings between systems that lie one after the other.
template <class T>
__global__ void cut(Arrays<T> a, std::int64_t rows, std::int64_t systems) {
    for (std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; k < systems; k += std::int64_t(gridDim.x) * blockDim.x)
        a.lower[k * rows] = 0, a.upper[(k + 1) * rows - 1] = 0;
}

}  // namespace trifold::bench
