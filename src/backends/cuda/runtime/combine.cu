// SPDX-License-Identifier: BSD-3-Clause
// Parts' own solutions and their two spikes: their ends, and x made of them.
//
// Equation   of part k: x_i += alpha_k g_i + beta_k h_i;  sizes[2 k] = max(|x_i| + |alpha_k g_i| + |beta_k h_i|) before, sizes[2 k + 1] = max|x_i| after
// Work       some blocks per part, strided over it; ends: a thread per part
// Words      4 per row (read x, g, h; write x)
// Numerics   in the type of the arrays, two fused multiply-adds; maxima of nonnegative doubles compare as integers. NaN counts as infinite
#include "backends/cuda/runtime/combine.hpp"

#include <algorithm>

#include "backends/cuda/runtime/launch_error.hpp"

namespace trifold::cuda {
namespace {

__device__ double largest_of_warp(double value) {
    for (int step = 16; step > 0; step /= 2) value = fmax(value, __shfl_xor_sync(~0u, value, step));
    return value;
}

__device__ void raise(double* to, double value) {
    atomicMax(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(__double_as_longlong(value)));
}

__global__ void reset_sizes(std::int64_t count, double* sizes) {
    for (std::int64_t k = threadIdx.x; k < 2 * count; k += blockDim.x) sizes[k] = 0;
}

template <class T>
__global__ void combine(std::int64_t rows, T* all_x, const T* all_g, const T* all_h, const T* factors, double* sizes) {
    const std::int64_t part = blockIdx.y, at = part * rows;
    T* const x = all_x + at;
    const T *const g = all_g + at, *const h = all_h + at, alpha = factors[2 * part], beta = factors[2 * part + 1];
    double terms = 0, size = 0;
    for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < rows; i += gridDim.x * static_cast<std::int64_t>(blockDim.x)) {
        const T own = x[i], left = g[i], right = h[i], sum = fma(beta, right, fma(alpha, left, own));
        x[i] = sum;
        const double all = fabs(static_cast<double>(own)) + fabs(static_cast<double>(alpha) * left) + fabs(static_cast<double>(beta) * right);
        terms = fmax(terms, all == all ? all : INFINITY);
        size = fmax(size, fabs(static_cast<double>(sum)));
    }
    terms = largest_of_warp(terms), size = largest_of_warp(size);
    if (threadIdx.x % 32 == 0) raise(sizes + 2 * part, terms), raise(sizes + 2 * part + 1, size);
}

template <class T>
__global__ void gather_ends(std::int64_t count, std::int64_t rows, const T* y, const T* g, const T* h, T* ends) {
    const std::int64_t k = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
    if (k >= count) return;
    const std::int64_t first = k * rows, last = first + rows - 1;
    T* const to = ends + 6 * k;
    to[0] = y[first], to[1] = y[last], to[2] = g[first], to[3] = g[last], to[4] = h[first], to[5] = h[last];
}

template <class T>
void gather(std::int64_t count, std::int64_t rows, const void* y, const void* g, const void* h, void* ends, cudaStream_t stream) {
    constexpr int threads = 128;
    gather_ends<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream>>>(count, rows, static_cast<const T*>(y), static_cast<const T*>(g), static_cast<const T*>(h), static_cast<T*>(ends));
}

template <class T>
void add_up(std::int64_t count, std::int64_t rows, void* x, const void* g, const void* h, const void* factors, double* sizes, cudaStream_t stream) {
    constexpr int threads = 256;
    constexpr std::int64_t most = 4096;
    const std::int64_t wanted = std::min((rows + threads - 1) / threads, std::max<std::int64_t>(most / count, 8));
    for (std::int64_t first = 0; first < count; first += 65535) {
        const std::int64_t parts = std::min<std::int64_t>(count - first, 65535), at = first * rows;
        combine<<<dim3(static_cast<unsigned>(wanted), static_cast<unsigned>(parts)), threads, 0, stream>>>(rows, static_cast<T*>(x) + at, static_cast<const T*>(g) + at, static_cast<const T*>(h) + at,
                                                                                                          static_cast<const T*>(factors) + 2 * first, sizes + 2 * first);
        keep_launch_error(cudaGetLastError());
    }
}

}  // namespace

void enqueue_gather_ends(DType dtype, std::int64_t count, std::int64_t rows, const void* y, const void* g, const void* h, void* ends, cudaStream_t stream) {
    dtype == DType::f32 ? gather<float>(count, rows, y, g, h, ends, stream) : gather<double>(count, rows, y, g, h, ends, stream);
}

void enqueue_combine(DType dtype, std::int64_t count, std::int64_t rows, void* x, const void* g, const void* h, const void* factors, double* sizes, cudaStream_t stream) {
    reset_sizes<<<1, 256, 0, stream>>>(count, sizes);
    keep_launch_error(cudaGetLastError());
    dtype == DType::f32 ? add_up<float>(count, rows, x, g, h, factors, sizes, stream) : add_up<double>(count, rows, x, g, h, factors, sizes, stream);
}

}  // namespace trifold::cuda
