// SPDX-License-Identifier: BSD-3-Clause
// NaN and infinity among the values that a solve of  lower x[i-1] + diag x[i] + upper x[i+1] = rhs  would read.
//
// Arrays: as in pivoted.cu; none is written. One thread per row of a system, neighbouring threads along rows where those lie side
// by side, else along systems. Words per row: 4 read. The least key wins by an atomic minimum, so the order does not matter.
#include "backends/cuda/tridiagonal/finite.hpp"

#include <algorithm>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/tridiagonal/operand.cuh"

namespace trifold::cuda {
namespace {

constexpr int block_threads = 256;

template <class T>
struct Job {
    Levels levels;
    std::int64_t rows;
    bool along_rows;
    Source<T> lower, diag, upper, rhs, right, left;  ///< the last two: corners of rings
    bool periodic;
    DeviceOutcome* outcome;

    Job(const tridiagonal::System& s, DeviceOutcome* outcome)
        : levels(s), rows(s.rows), along_rows(s.rhs.row_stride == 1), lower(s.lower), diag(s.diag), upper(s.upper), rhs(s.rhs), right(s.top_right), left(s.bottom_left),
          periodic(s.periodic), outcome(outcome) {}
};

template <class T>
__global__ void __launch_bounds__(block_threads) finite_kernel(const __grid_constant__ Job<T> job) {
    const std::int64_t all = job.rows * job.levels.systems, stride = static_cast<std::int64_t>(gridDim.x) * block_threads;
    for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x; at < all; at += stride) {
        const std::int64_t i = job.along_rows ? at % job.rows : at / job.levels.systems;
        const std::int64_t k = job.along_rows ? at / job.rows : at % job.levels.systems;
        std::int64_t index[4];
        job.levels.indices(k, index);
        T sum = line_of(job.diag, index)[i] * T(0) + line_of(job.rhs, index)[i] * T(0);
        if (i > 0) sum += line_of(job.lower, index)[i] * T(0);
        else if (job.periodic) sum += line_of(job.right, index)[0] * T(0);
        if (i + 1 < job.rows) sum += line_of(job.upper, index)[i] * T(0);
        else if (job.periodic) sum += line_of(job.left, index)[0] * T(0);
        if (!(sum == T(0))) report_failure(job.outcome, nullptr, job.levels.number_of(index), i, Reason::not_finite);
    }
}

template <class T>
void launch(const tridiagonal::System& system, DeviceOutcome* outcome, cudaStream_t stream) {
    const std::int64_t all = system.rows * system.systems();
    const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>((all + block_threads - 1) / block_threads, 1, 1 << 14));
    enqueue_kernel(finite_kernel<T>, blocks, block_threads, 0, stream, Job<T>(system, outcome));
}

}  // namespace

void check_finite(const tridiagonal::System& system, DeviceOutcome* outcome, cudaStream_t stream) {
    if (system.dtype == DType::f32) launch<float>(system, outcome, stream);
    else launch<double>(system, outcome, stream);
}

}  // namespace trifold::cuda
