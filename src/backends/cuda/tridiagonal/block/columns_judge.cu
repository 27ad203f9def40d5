// SPDX-License-Identifier: BSD-3-Clause
// One block looks at a batch: 16 rows at eight places of 32 columns, eight of them side by side, in four parts of the batch.
//
// Who does what: a lane has a column, a warp one of the places. Rows are eliminated as columns_dominant.cuh begins to, right-hand sides left out.
// Words: some 12 000 are read, one after the other by columns, all at once by rows; a microsecond of memory's latency, and as much of arithmetic.
// Numerics: nothing depends on what is said but who solves: every kernel behind finds out for each column whether it may.
#include "backends/cuda/tridiagonal/block/columns_judge.hpp"

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#include "backends/cuda/tridiagonal/thread/weight.cuh"

namespace trifold::cuda {
namespace {

constexpr int threads = judged_columns * judged_places;
constexpr int neighbours = 8, parts = judged_columns / neighbours;
constexpr unsigned most_beside = judged_columns * 3 / 8;  ///< so many that are not: most, for a pass more costs more than what it solves saves

template <class T>
struct Job {
    TileOperand<T> operand[3];
    unsigned outer_extent[3];
    std::int64_t columns, systems;
    int rows;
    Opening opening;
    unsigned char* marks;
    unsigned* beside;
    unsigned long long* undecided;
};

/// What rows weigh when they are eliminated forwards: one and a sixteenth at most where they are dominant.
template <class T>
__device__ T heaviest(const Job<T>& job) {
    const int lane = static_cast<int>(threadIdx.x) & 31, place = static_cast<int>(threadIdx.x) >> 5, part = lane / neighbours;
    const std::int64_t middle = job.columns * (2 * part + 1) / (2 * parts) / neighbours * neighbours + lane % neighbours;
    const std::int64_t column = middle < job.columns ? middle : job.columns - 1;
    std::int64_t run = static_cast<std::int64_t>(job.outer_extent[0]) * job.outer_extent[1] * job.outer_extent[2] * (2 * part + 1) / (2 * parts);
    const int first = static_cast<int>(static_cast<std::int64_t>(place) * (job.rows - judged_rows) / (judged_places - 1));
    const T* at[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) at[k] = job.operand[k].data ? job.operand[k].data + first * job.operand[k].row_stride + column * job.operand[k].column_stride : nullptr;
    for (int l = 2; l >= 0; --l) {
        const auto index = run % job.outer_extent[l];
        run /= job.outer_extent[l];
#pragma unroll
        for (int k = 0; k < 3; ++k)
            if (at[k]) at[k] += static_cast<std::int64_t>(index) * job.operand[k].outer_stride[l];
    }
    T row[judged_rows][3];
#pragma unroll
    for (int i = 0; i < judged_rows; ++i)
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const bool outside = (k == 0 && first + i == 0) || (k == 2 && first + i + 1 == job.rows);
            row[i][k] = outside ? T(0) : at[k] ? at[k][i * job.operand[k].row_stride] : job.operand[k].value;
        }
    T before = 0, next = 0, heaviest = 0;
#pragma unroll
    for (int i = 0; i < judged_rows; ++i) {
        const T k = reciprocal(fused(-row[i][0], next, row[i][1]));
        before = i == 0 ? row[i][0] * k : -row[i][0] * before * k;
        next = row[i][2] * k;
        const T weight = fabs(before) + fabs(next);
        heaviest = weight > heaviest || weight != weight ? weight : heaviest;
        if (heaviest != heaviest) return heaviest;
    }
    return heaviest;
}

template <class T>
__global__ void __launch_bounds__(threads) judge_kernel(const __grid_constant__ Job<T> job) {
    __shared__ int degree[judged_columns];
    __shared__ int verdict;
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31;
    if (thread < judged_columns) degree[thread] = 0;
    if (thread == 0) *job.opening.outcome = fresh_outcome(job.opening.rows, job.opening.systems, job.opening.branch);
    __syncthreads();
    constexpr T hopeless = 8;  // convection has 2, where it needs no exchanges; indefinite rows 14 and more
    const T weight = heaviest(job);
    const int own = weight <= row_weight<T> ? 0 : weight <= hopeless ? 1 : 2;
    if (own) atomicMax(&degree[lane], own);
    __syncthreads();
    if (thread < judged_columns) {
        const unsigned others = static_cast<unsigned>(__popc(__ballot_sync(~0u, degree[lane] >= 1))), bad = static_cast<unsigned>(__popc(__ballot_sync(~0u, degree[lane] >= 2)));
        if (lane == 0) verdict = bad >= most_beside ? 2 : others >= most_beside ? 1 : 0;
    }
    __syncthreads();
    if (verdict == 0) return;
    auto* const whole = reinterpret_cast<uint4*>(job.marks);
    for (std::int64_t i = thread; i < job.systems / 16; i += threads) whole[i] = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u};
    for (std::int64_t i = job.systems / 16 * 16 + thread; i < job.systems; i += threads) job.marks[i] = 1;
    if (thread == 0) *job.beside = 1, *job.undecided = static_cast<unsigned long long>(job.systems) * static_cast<unsigned>(verdict);
}

}  // namespace

template <class T>
void judge_columns(const TileJob<T>& from, std::int64_t systems, unsigned* beside, unsigned long long* undecided, cudaStream_t stream) {
    Job<T> job{{from.operand[0], from.operand[1], from.operand[2]}, {from.outer_extent[0], from.outer_extent[1], from.outer_extent[2]}, from.columns, systems, from.rows, from.opening, from.marks, beside, undecided};
    enqueue_kernel(judge_kernel<T>, dim3(1), threads, 0, stream, job);
}

template void judge_columns<float>(const TileJob<float>&, std::int64_t, unsigned*, unsigned long long*, cudaStream_t);
template void judge_columns<double>(const TileJob<double>&, std::int64_t, unsigned*, unsigned long long*, cudaStream_t);

}  // namespace trifold::cuda
