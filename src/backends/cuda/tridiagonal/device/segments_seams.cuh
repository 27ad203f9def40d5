// SPDX-License-Identifier: BSD-3-Clause
// What windows on either side of a seam have found of the two unknowns beside it (ColumnSegments::seams), compared. A window has taken what is beyond it for zero: where
// that matters, the two disagree.
//
// A row beside a seam was solved with the window's own unknown beyond it, not with the one that is stored: its residual is its coupling times what they differ by. That
//   may be as much as is accepted of a row elsewhere, 16 u of its diagonal times max|x| of the 32 rows on either side.
// Words per seam and system: 6 read.
#pragma once

#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::cuda::segments {

template <class T>
struct SeamJob {
    const T* seams = nullptr;
    std::int64_t systems = 0, count = 0;  ///< seams of a column
    T accept = 0;
    unsigned *unsettled = nullptr, *tickets = nullptr;  ///< tickets: of the kernel behind, reset here
};

template <class T>
__global__ void __launch_bounds__(256) seam_kernel(const __grid_constant__ SeamJob<T> job) {
    after_the_kernel_before();
    if (blockIdx.x == 0 && threadIdx.x == 0) *job.tickets = 0;
    if (*const_cast<volatile unsigned*>(job.unsettled)) return;
    bool agree = true;
    const std::int64_t systems = job.systems, all = systems * job.count;
    for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < all; k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
        const std::int64_t seam = k / systems;
        const T* const at = job.seams + seam * 6 * systems + (k - seam * systems);
        const auto word = [&](int w) { return at[w * systems]; };
        const T largest = fmax(word(2), word(5));
        agree = agree && fabs(word(0) - word(4)) <= job.accept * largest && fabs(word(1) - word(3)) <= job.accept * largest;
    }
    if (!agree) *const_cast<volatile unsigned*>(job.unsettled) = 1;
}

}  // namespace trifold::cuda::segments
