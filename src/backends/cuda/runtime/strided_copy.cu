// SPDX-License-Identifier: BSD-3-Clause
// One array's elements for another's, whatever their strides.
//
// Equation   to[Σ index to_stride] = from[Σ index from_stride]
// Work       a thread per element, strided over the grid; neighbours along the last dimension
// Words      2 per element, more where neighbours of `to` are none of `from`
// Numerics   bits are moved
#include "backends/cuda/runtime/strided_copy.hpp"

#include <algorithm>

#include "backends/cuda/runtime/launches.hpp"

namespace trifold::cuda {
namespace {

constexpr int threads = 256;

template <class Word>
__global__ void copy_strided(const devices::StridedCopy c, std::int64_t elements) {
    const Word* const from = static_cast<const Word*>(c.from);
    Word* const to = static_cast<Word*>(c.to);
    for (std::int64_t k = blockIdx.x * static_cast<std::int64_t>(threads) + threadIdx.x; k < elements; k += gridDim.x * static_cast<std::int64_t>(threads)) {
        std::int64_t rest = k, source = 0, target = 0;
        for (int d = c.dims - 1; d > 0; --d) {
            const std::int64_t before = rest / c.extent[d], index = rest - before * c.extent[d];
            source += index * c.from_stride[d], target += index * c.to_stride[d], rest = before;
        }
        to[target + rest * c.to_stride[0]] = from[source + rest * c.from_stride[0]];
    }
}

}  // namespace

void enqueue_copy_strided(const devices::StridedCopy& copy, cudaStream_t stream) {
    constexpr std::int64_t most_blocks = 1 << 16;
    const std::int64_t elements = copy.elements();
    const auto blocks = static_cast<unsigned>(std::min(most_blocks, (elements + threads - 1) / threads));
    if (copy.dtype == DType::f32) enqueue_kernel(copy_strided<std::uint32_t>, blocks, threads, 0, stream, copy, elements);
    else enqueue_kernel(copy_strided<std::uint64_t>, blocks, threads, 0, stream, copy, elements);
}

}  // namespace trifold::cuda
