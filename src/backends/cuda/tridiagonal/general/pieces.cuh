// SPDX-License-Identifier: BSD-3-Clause
// Which rows of which system a thread of an element-wise kernel takes: runs of rows by warps where rows lie side by side, by threads that lie along the
// systems elsewhere, so that neighbours read neighbours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/tridiagonal/operand.cuh"

namespace trifold::cuda {

struct Pieces {
    static constexpr int block_threads = 256;

    std::int64_t rows = 0, systems = 0, chunk = 1, pieces = 1;  ///< rows of a piece, pieces of a system
    bool along_rows = true;

    explicit Pieces(const tridiagonal::System& system) : rows(system.rows), systems(system.systems()) {
        const int last = system.levels - 1;
        along_rows = last < 0 || std::llabs(system.x.row_stride) <= std::llabs(system.x.level_stride[last]);
        constexpr std::int64_t enough_warps = 1 << 14, shortest = 16;
        const std::int64_t wanted = along_rows ? enough_warps : 32 * enough_warps, least = along_rows ? 8 * 32 : shortest;
        pieces = std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(systems, 1), 1, std::max<std::int64_t>(rows / least, 1));
        chunk = (rows + pieces - 1) / pieces;
        if (along_rows) chunk = (chunk + 31) / 32 * 32;
        pieces = (rows + chunk - 1) / chunk;
    }

    constexpr std::int64_t threads() const { return pieces * systems * (along_rows ? 32 : 1); }
    dim3 blocks() const { return dim3(static_cast<unsigned>(std::clamp<std::int64_t>((threads() + block_threads - 1) / block_threads, 1, 1 << 20))); }

#ifdef __CUDACC__
    /// Calls visit(system, first row, end, step, whether it is the system's first piece) for every piece of the thread; a warp's lanes stay together where
    /// rows lie side by side.
    template <class Visit>
    __device__ __forceinline__ void each(Visit visit) const {
        const std::int64_t all = threads(), grid = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
        for (std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; t < all; t += grid) {
            const std::int64_t worker = along_rows ? t / 32 : t;
            const std::int64_t system = along_rows ? worker / pieces : worker % systems, piece = along_rows ? worker % pieces : worker / systems;
            const std::int64_t first = piece * chunk, end = first + chunk < rows ? first + chunk : rows;
            visit(system, first + (along_rows ? t % 32 : 0), end, along_rows ? 32 : 1, piece == 0 && (!along_rows || t % 32 == 0));
        }
    }
#endif
};

}  // namespace trifold::cuda
