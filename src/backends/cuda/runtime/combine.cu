// SPDX-License-Identifier: BSD-3-Clause
// A chunk's own solution and its two spikes become x.
//
// Equation   x_i += alpha g_i + beta h_i;  sizes[0] = max(|x_i| + |alpha g_i| + |beta h_i|) before, sizes[1] = max|x_i| after
// Work       a thread per row, strided over the device
// Words      4 per row (read x, g, h; write x)
// Numerics   in the type of the arrays, two fused multiply-adds; maxima of nonnegative doubles compare as integers. NaN counts as infinite
#include "backends/cuda/runtime/combine.hpp"

namespace trifold::cuda {
namespace {

__device__ double largest_of_warp(double value) {
    for (int step = 16; step > 0; step /= 2) value = fmax(value, __shfl_xor_sync(~0u, value, step));
    return value;
}

__device__ void raise(double* to, double value) {
    atomicMax(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(__double_as_longlong(value)));
}

__global__ void reset_sizes(double* sizes) { sizes[0] = sizes[1] = 0; }

template <class T>
__global__ void combine(std::int64_t rows, T* x, const T* g, const T* h, T alpha, T beta, double* sizes) {
    double terms = 0, size = 0;
    for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < rows; i += gridDim.x * static_cast<std::int64_t>(blockDim.x)) {
        const T own = x[i], left = g[i], right = h[i], sum = fma(beta, right, fma(alpha, left, own));
        x[i] = sum;
        const double all = fabs(static_cast<double>(own)) + fabs(static_cast<double>(alpha) * left) + fabs(static_cast<double>(beta) * right);
        terms = fmax(terms, all == all ? all : INFINITY);
        size = fmax(size, fabs(static_cast<double>(sum)));
    }
    terms = largest_of_warp(terms), size = largest_of_warp(size);
    if (threadIdx.x % 32 == 0) raise(sizes, terms), raise(sizes + 1, size);
}

}  // namespace

void enqueue_combine(DType dtype, std::int64_t rows, void* x, const void* g, const void* h, double alpha, double beta, double* sizes, cudaStream_t stream) {
    constexpr int threads = 256;
    const auto blocks = static_cast<unsigned>(rows < std::int64_t{1} << 20 ? (rows + threads - 1) / threads : 4096);
    reset_sizes<<<1, 1, 0, stream>>>(sizes);
    if (dtype == DType::f32)
        combine<<<blocks, threads, 0, stream>>>(rows, static_cast<float*>(x), static_cast<const float*>(g), static_cast<const float*>(h), static_cast<float>(alpha),
                                                static_cast<float>(beta), sizes);
    else
        combine<<<blocks, threads, 0, stream>>>(rows, static_cast<double*>(x), static_cast<const double*>(g), static_cast<const double*>(h), alpha, beta, sizes);
}

}  // namespace trifold::cuda
