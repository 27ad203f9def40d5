// SPDX-License-Identifier: BSD-3-Clause
// One array's elements for another's, whatever their strides.
//
// Equation   to[Σ index to_stride] = from[Σ index from_stride]
// Work       a block per tile of 64 × 64 elements: neighbouring threads write what lies closest in `to`, and read what lies closest in `from`, by way of shared memory where that is another
//            dimension. Where tiles would be mostly empty a thread per element, strided over the grid, neighbours along the last dimension
// Words      2 per element, 1 where `from` repeats; by threads more where neighbours of `to` are none of `from`
// Roof       memory: 256 or 512 bytes of either array lie together
// Numerics   bits are moved
#include "backends/cuda/runtime/strided_copy.hpp"

#include <cuda_pipeline.h>

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/runtime/launches.hpp"

namespace trifold::cuda {
namespace {

constexpr int threads = 256, side = 64, least_side = 16, most_outer = devices::StridedCopy::most_dims - 2;

/// p is closest together in `to`, q in `from`, if that is another one.
struct Tiles {
    const void* from = nullptr;
    void* to = nullptr;
    std::int64_t p = 1, q = 1, from_p = 0, from_q = 0, to_p = 0, to_q = 0, solved_p = 0, solved_q = 0;
    unsigned outer[most_outer] = {1, 1, 1}, tiles_p = 1, tiles_q = 1;
    std::int64_t from_outer[most_outer] = {}, to_outer[most_outer] = {}, solved_outer[most_outer] = {};
    bool turned = false;  ///< by way of shared memory
    OfSolved solved;
};

template <class Word, bool turned>
__global__ void __launch_bounds__(threads, turned ? 6 : 4) copy_tiles(const __grid_constant__ Tiles c) {
    __shared__ Word tile[turned ? side : 1][side + 1];
    unsigned rest = blockIdx.x;
    const std::int64_t first_p = static_cast<std::int64_t>(rest % c.tiles_p) * side;
    rest /= c.tiles_p;
    const std::int64_t first_q = static_cast<std::int64_t>(rest % c.tiles_q) * side;
    rest /= c.tiles_q;
    const Word* from = static_cast<const Word*>(c.from) + first_p * c.from_p + first_q * c.from_q;
    Word* to = static_cast<Word*>(c.to) + first_p * c.to_p + first_q * c.to_q;
    const std::int8_t* status = c.solved.outcome && c.solved.outcome->failures ? c.solved.status + first_p * c.solved_p + first_q * c.solved_q : nullptr;
#pragma unroll
    for (int d = 0; d < most_outer; ++d) {
        if (c.outer[d] == 1) continue;
        const std::int64_t index = rest % c.outer[d];
        rest /= c.outer[d];
        from += index * c.from_outer[d], to += index * c.to_outer[d];
        if (status) status += index * c.solved_outer[d];
    }
    const int near = static_cast<int>(threadIdx.x) % side, far = static_cast<int>(threadIdx.x) / side;
    constexpr int step = threads / side, turns = side / step;
    const int extent_p = static_cast<int>(c.p - first_p < side ? c.p - first_p : side), extent_q = static_cast<int>(c.q - first_q < side ? c.q - first_q : side);
    const std::int64_t put_step = step * c.to_q, from_step = step * (turned ? c.from_p : c.from_q);
    Word* put = to + near * c.to_p + far * c.to_q;
    if constexpr (turned) {
        const Word* at = from + near * c.from_q + far * c.from_p;
        // All on their way at once.
        if (near < extent_q)
#pragma unroll
            for (int k = 0, p = far; k < turns; ++k, p += step)
                if (p < extent_p) __pipeline_memcpy_async(&tile[p][near], at + k * from_step, sizeof(Word));
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        if (near >= extent_p) return;
#pragma unroll
        for (int k = 0, q = far; k < turns; ++k, q += step)
            if (q < extent_q && (!status || status[near * c.solved_p + q * c.solved_q] > 0)) put[k * put_step] = tile[near][q];
    } else {
        if (near >= extent_p) return;
        const Word* at = from + near * c.from_p + far * c.from_q;
        Word value[turns];
#pragma unroll
        for (int k = 0, q = far; k < turns; ++k, q += step)
            if (q < extent_q) value[k] = at[k * from_step];
#pragma unroll
        for (int k = 0, q = far; k < turns; ++k, q += step)
            if (q < extent_q && (!status || status[near * c.solved_p + q * c.solved_q] > 0)) put[k * put_step] = value[k];
    }
}

template <class Word>
__global__ void __launch_bounds__(threads) copy_strided(const __grid_constant__ devices::StridedCopy c, const __grid_constant__ OfSolved solved, std::int64_t elements) {
    const Word* const from = static_cast<const Word*>(c.from);
    Word* const to = static_cast<Word*>(c.to);
    const std::int8_t* const status = solved.outcome && solved.outcome->failures ? solved.status : nullptr;
    for (std::int64_t k = blockIdx.x * static_cast<std::int64_t>(threads) + threadIdx.x; k < elements; k += gridDim.x * static_cast<std::int64_t>(threads)) {
        std::int64_t rest = k, source = 0, target = 0, place = 0;
        for (int d = c.dims - 1; d >= 0; --d) {
            const std::int64_t before = d > 0 ? rest / c.extent[d] : 0, index = rest - before * c.extent[d];
            source += index * c.from_stride[d], target += index * c.to_stride[d], rest = before;
            if (status) place += index * solved.stride[d];
        }
        if (!status || status[place] > 0) to[target] = from[source];
    }
}

/// The dimension along which neighbours lie closest; -1: none has any.
int closest(const devices::StridedCopy& copy, const std::int64_t (&stride)[devices::StridedCopy::most_dims], int other_than = -1) {
    int found = -1;
    for (int d = copy.dims - 1; d >= 0; --d)
        if (d != other_than && copy.extent[d] > 1 && stride[d] != 0 && (found < 0 || std::llabs(stride[d]) < std::llabs(stride[found]))) found = d;
    return found;
}

/// False: they would be mostly empty, or too many.
bool cut(const devices::StridedCopy& copy, const OfSolved& solved, Tiles& tiles) {
    const int p = closest(copy, copy.to_stride);
    if (p < 0) return false;
    int q = closest(copy, copy.from_stride, p);
    if (q < 0) q = closest(copy, copy.to_stride, p);
    if (q < 0 || copy.extent[p] < least_side || copy.extent[q] < least_side) return false;
    const std::int64_t tiles_p = (copy.extent[p] + side - 1) / side, tiles_q = (copy.extent[q] + side - 1) / side;
    std::int64_t blocks = tiles_p * tiles_q;
    for (int d = 0; d < copy.dims; ++d)
        if (d != p && d != q) blocks *= copy.extent[d];
    if (blocks > INT32_MAX) return false;
    tiles.from = copy.from, tiles.to = copy.to;
    tiles.p = copy.extent[p], tiles.q = copy.extent[q], tiles.tiles_p = static_cast<unsigned>(tiles_p), tiles.tiles_q = static_cast<unsigned>(tiles_q);
    tiles.from_p = copy.from_stride[p], tiles.from_q = copy.from_stride[q], tiles.to_p = copy.to_stride[p], tiles.to_q = copy.to_stride[q];
    tiles.turned = std::llabs(tiles.from_q) < std::llabs(tiles.from_p);
    tiles.solved = solved, tiles.solved_p = solved.stride[p], tiles.solved_q = solved.stride[q];
    for (int d = copy.dims - 1, to = 0; d >= 0; --d) {
        if (d == p || d == q) continue;
        tiles.outer[to] = static_cast<unsigned>(copy.extent[d]), tiles.from_outer[to] = copy.from_stride[d], tiles.to_outer[to] = copy.to_stride[d], tiles.solved_outer[to] = solved.stride[d];
        ++to;
    }
    return true;
}

template <class Word>
void enqueue(const devices::StridedCopy& copy, cudaStream_t stream, const OfSolved& solved) {
    Tiles tiles;
    if (cut(copy, solved, tiles)) {
        const unsigned blocks = tiles.tiles_p * tiles.tiles_q * tiles.outer[0] * tiles.outer[1] * tiles.outer[2];
        return enqueue_kernel(tiles.turned ? copy_tiles<Word, true> : copy_tiles<Word, false>, dim3(blocks), threads, 0, stream, tiles);
    }
    constexpr std::int64_t most_blocks = 1 << 16;
    const std::int64_t elements = copy.elements();
    const auto blocks = static_cast<unsigned>(std::min(most_blocks, (elements + threads - 1) / threads));
    enqueue_kernel(copy_strided<Word>, blocks, threads, 0, stream, copy, solved, elements);
}

}  // namespace

void enqueue_copy_strided(const devices::StridedCopy& copy, cudaStream_t stream, const OfSolved& solved) {
    if (copy.dtype == DType::f32) enqueue<std::uint32_t>(copy, stream, solved);
    else enqueue<std::uint64_t>(copy, stream, solved);
}

}  // namespace trifold::cuda
