// SPDX-License-Identifier: BSD-3-Clause
// write[i] = read[0][i] + … + read[reads-1][i] over arrays of f64, the traffic of a tridiagonal solve without its elimination.
//
// Arrays: `count` pairs of f64 each, contiguous. Overwritten: write, which is read[reads-1] in place. A thread takes U pairs that
// lie one block apart, all of whose loads are in flight before the first is used. Words: reads + 1 per element. Loads and stores are
// marked as used once. No bound is lost to arithmetic: one addition per word.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/cuda/runtime/stream.hpp"

namespace trifold::cuda {
namespace {

constexpr int block_threads = 256;

template <int Reads>
struct Pointers {
    const double2* read[Reads];
    double2* write;
    std::int64_t count;
};

template <int Reads, int U>
__global__ void __launch_bounds__(block_threads) stream_kernel(const __grid_constant__ Pointers<Reads> p) {
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block_threads * U + threadIdx.x;
    double2 value[U][Reads];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const std::int64_t i = first + u * block_threads;
        if (i < p.count)
#pragma unroll
            for (int r = 0; r < Reads; ++r) value[u][r] = __ldcs(p.read[r] + i);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const std::int64_t i = first + u * block_threads;
        if (i >= p.count) continue;
        double2 sum = value[u][0];
#pragma unroll
        for (int r = 1; r < Reads; ++r) sum.x += value[u][r].x, sum.y += value[u][r].y;
        __stcs(p.write + i, sum);
    }
}

template <int Reads, int U>
void launch(const StreamArrays& a, cudaStream_t stream) {
    Pointers<Reads> p;
    for (int r = 0; r < Reads; ++r) p.read[r] = static_cast<const double2*>(a.read[r]);
    p.write = static_cast<double2*>(a.write ? a.write : const_cast<void*>(a.read[Reads - 1]));
    p.count = static_cast<std::int64_t>(a.bytes / sizeof(double2));
    const std::int64_t per_block = block_threads * U;
    stream_kernel<Reads, U><<<static_cast<unsigned>((p.count + per_block - 1) / per_block), block_threads, 0, stream>>>(p);
}

template <int Reads>
void launch_shape(const StreamArrays& a, int shape, cudaStream_t stream) {
    switch (shape) {
        case 0: return launch<Reads, 1>(a, stream);
        case 1: return launch<Reads, 2>(a, stream);
        default: return launch<Reads, 4>(a, stream);
    }
}

}  // namespace

void stream_pass(const StreamArrays& arrays, int shape, cudaStream_t stream) {
    if (arrays.bytes < sizeof(double2)) return;
    switch (arrays.reads) {
        case 1: return launch_shape<1>(arrays, shape, stream);
        case 2: return launch_shape<2>(arrays, shape, stream);
        case 3: return launch_shape<3>(arrays, shape, stream);
        default: return launch_shape<4>(arrays, shape, stream);
    }
}

double measure_stream(const StreamArrays& arrays, int passes, cudaStream_t stream) {
    cudaEvent_t from = nullptr, to = nullptr;
    double best = 0;
    if (cudaEventCreate(&from) == cudaSuccess && cudaEventCreate(&to) == cudaSuccess)
        for (int shape = 0; shape < stream_shapes; ++shape) {
            stream_pass(arrays, shape, stream);
            std::vector<float> times(static_cast<std::size_t>(std::max(passes, 1)));
            for (float& ms : times) {
                cudaEventRecord(from, stream);
                stream_pass(arrays, shape, stream);
                cudaEventRecord(to, stream);
                if (cudaEventSynchronize(to) != cudaSuccess || cudaEventElapsedTime(&ms, from, to) != cudaSuccess) ms = -1;
            }
            std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
            const float median = times[times.size() / 2];
            if (median > 0) best = std::max(best, arrays.moved() / (1e-3 * median));
        }
    if (from) cudaEventDestroy(from);
    if (to) cudaEventDestroy(to);
    return best;
}

}  // namespace trifold::cuda
