// SPDX-License-Identifier: BSD-3-Clause
// What bounds the passes over one long system, by parts of their own kernels: the copies of their windows with nothing computed, the arithmetic of their
// warps on rows that lie in shared memory already; a launch that does nothing, and 4096 rows that come and go, by one cluster and by many blocks.
#pragma once

#include "backends/cuda/tridiagonal/block/one_system.cuh"
#include "backends/cuda/tridiagonal/device/certified_load.cuh"
#include "backends/cuda/tridiagonal/device/certified_warp.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/device/windows_lane.cuh"
#include "backends/cuda/tridiagonal/device/windows_memory.cuh"

namespace trifold::bench {

inline __global__ void nothing(int*) {}

namespace halos {

using namespace cuda::certified;

template <class T>
inline constexpr int threads = 32 * Shape<T>::warps;
template <class T>
using Stages = Stage<T, Shape<T>::rows, Shape<T>::warps>;
template <class T>
inline constexpr int scratch_words = Shape<T>::warps * cuda::WarpRows<T>::words;
template <class T>
inline constexpr int bytes = 16 + static_cast<int>(sizeof(T)) * (2 * Stages<T>::all_elements + scratch_words<T>);

template <class T>
Job<T> job_of(const T* const (&read)[4], T* x, std::int64_t n) {
    Job<T> job;
    for (int k = 0; k < 4; ++k) job.input[k].data = read[k], job.input[k].row_stride = 1, job.input[k].path = Input<T>::Path::bulk;
    job.all_bulk = job.bulk_x = true, job.x = x, job.rows = n;
    job.chunks = static_cast<int>((n + Shape<T>::rows - 1) / Shape<T>::rows), job.kept = Shape<T>::warps * (lanes - 2 * halo);
    job.windows = (job.chunks + job.kept - 1) / job.kept;
    job.strict = -95, job.enough = 57 * log_unit, job.accept = T(0x1p-20);
    return job;
}

/// `Copies`: the windows come and go; else each block computes its first two again and again.
template <class T, bool Copies>
__global__ void __launch_bounds__(threads<T>, 1) part(const __grid_constant__ Job<T> job, unsigned* failed) {
    constexpr int R = Shape<T>::rows, each = lanes - 2 * halo;
    extern __shared__ __align__(128) unsigned char shared[];
    T* const memory = reinterpret_cast<T*>(shared);
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5, stride = static_cast<int>(gridDim.x);
    const unsigned barriers = cuda::shared_address(shared) + bytes<T> - 16;
    T* const scratch = memory + 2 * Stages<T>::all_elements + warp * cuda::WarpRows<T>::words;
    const auto stage_of = [&](int j) { return Stages<T>{memory + (j & 1) * Stages<T>::all_elements, barriers + 8 * (j & 1)}; };
    if (thread == 0) stage_of(0).prepare(job), stage_of(1).prepare(job);
    __syncthreads();
    // Not the first windows of the system, which come another way.
    const int first = Copies ? static_cast<int>(blockIdx.x) : static_cast<int>(blockIdx.x) + 1;
    for (int j = 0; j < 2; ++j) stage_of(j).template load<false>(job, first + j * stride, 0);
    Maxima<T> most;
    bool bad = false;
    int j = 0;
    for (int window = static_cast<int>(blockIdx.x); window < job.windows; window += stride, ++j) {
        const Stages<T> stage = stage_of(j);
        if (Copies || j < 2) stage.wait(j >> 1 & 1);
        if constexpr (!Copies) {
            const int at = (warp * each + lane) * R + Stages<T>::pad();
            const T *const a = stage.at(0) + at, *const b = stage.at(1) + at, *const c = stage.at(2) + at, *const d = stage.at(3) + at;
            WarpWindow<T, R> own;
            bool fails = own.solve(job, a, b, c, d, first * job.kept - halo + warp * each + lane, scratch, lane, false);
            cuda::Side<T> above, below;
            if (own.active && lane >= halo && lane < lanes - halo)
                fails |= own.keep(job, a, b, c, d, stage.at(4) + (warp * each + lane - halo) * R, most, above, below);
            bad |= fails;
        }
        cuda::leave_to_copies();
        Stages<T>::stored();
        if (__syncthreads_or(bad) && !Copies) break;
        if constexpr (Copies) stage.template load<false>(job, window + 2 * stride, 0), stage.store(job, window);
    }
    if (Copies) cuda::await_copies();
    Stages<T>::stored();
    if (!Copies && (bad || most.largest.value() < 0)) atomicAdd(failed, 1u);
}

}  // namespace halos

namespace coupled {

using namespace cuda::windows;

/// A system whose arrays lie side by side and begin at 16 bytes.
template <class T>
Job<T> job_of(const tridiagonal::System& system) {
    using cuda::Source;
    Job<T> job{.levels = cuda::Levels(system),
               .input = {Source<T>(system.lower), Source<T>(system.diag), Source<T>(system.upper), Source<T>(system.rhs)},
               .x = Source<T>(system.x)};
    job.rows = system.rows;
    job.per_system = job.windows = static_cast<int>((system.rows + SharedOf<T>::rows - 1) / SharedOf<T>::rows);
    job.accept = T(0x1p-20), job.plain = job.even = true;
    return job;
}

/// By the warp that moves, as in a block that computes: x leaves a stage before the window after the next but one comes there.
template <class T>
__global__ void __launch_bounds__(32, 1) copies(const __grid_constant__ Job<T> job) {
    extern __shared__ __align__(128) unsigned char shared[];
    SharedOf<T>& memory = *reinterpret_cast<SharedOf<T>*>(shared);
    const Mover<T, Shape<T>::rows, Shape<T>::warps> mover{job, memory, static_cast<int>(threadIdx.x)};
    mover.prepare();
    __syncwarp();
    const int stride = static_cast<int>(gridDim.x);
    int window = static_cast<int>(blockIdx.x);
    for (int s = 0; s < stages; ++s) mover.load(window + s * stride < job.windows ? window + s * stride : -1, 0, window + s * stride, 0, s, false);
    for (int turn = 0; window < job.windows; window += stride, ++turn) {
        const int stage = turn % stages, next = window + stages * stride;
        cuda::Arrival{cuda::shared_address(&memory.full[stage])}.wait(turn / stages & 1);
        __syncwarp();
        mover.store(stage);
        mover.load(next < job.windows ? next : -1, 0, next, 0, stage, true);
    }
    mover.settled();
}

/// The warps that compute, on the rows of one window again and again: reduced, then finished between ends that are 0.
template <class T>
__global__ void __launch_bounds__(32 * Shape<T>::warps, 1) arithmetic(const __grid_constant__ Job<T> job, unsigned* failed) {
    constexpr int R = Shape<T>::rows;
    extern __shared__ __align__(128) unsigned char shared[];
    SharedOf<T>& memory = *reinterpret_cast<SharedOf<T>*>(shared);
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5, first = static_cast<int>(threadIdx.x) * R;
    for (int s = 0; s < stages; ++s)
        for (int k = 0; k < 4; ++k)
            for (int i = 0; i < R; ++i) memory.raw[s][k][first + i] = job.input[k].data[1 + blockIdx.x * static_cast<std::int64_t>(SharedOf<T>::rows) + first + i];
    __syncthreads();
    Lane<T, R> here, ahead;
    Way way;
    bool bad = false, any = false;
    T total = 0;
    for (int window = static_cast<int>(blockIdx.x), turn = 0; window < job.windows; window += static_cast<int>(gridDim.x), ++turn) {
        T(&rows)[4][SharedOf<T>::elements] = memory.raw[turn % stages];
        ahead.reduce(rows[0] + first, rows[1] + first, rows[2] + first, rows[3] + first, lane, memory.parts[turn & 1][warp], way);
        __syncwarp();
        if (any) {
            T(&own)[4][SharedOf<T>::elements] = memory.raw[(turn + stages - 1) % stages];
            T x[R], left;
            here.solve(own[0] + first, own[2] + first, own[3] + first, T(0), T(0), lane, x, left);
            cuda::Largest<T> largest;
#pragma unroll
            for (int i = 0; i < R; ++i) largest.add(x[i]);
            const T X = number_of<T>(__reduce_max_sync(~0u, held_bits(largest))) * beyond_cut<T>, after = __shfl_down_sync(~0u, x[0], 1);
            // x would be stored over rhs: a fourth array of the stage that nobody reads takes it.
            bad |= !here.check(own[0] + first, own[1] + first, own[2] + first, own[3] + first, x, left, X, T(0), [&] { return after; });
            total += static_cast<T>(here.lasting);
        }
        here = ahead, any = true;
    }
    if (bad && total == T(-1)) atomicAdd(failed, 1u);
}

}  // namespace coupled

/// As block/one_system.cuh, without what it computes: rows come, blocks say that they are there, x leaves.
template <class T>
__global__ void __launch_bounds__(64) rows_in_and_out(const __grid_constant__ cuda::one_system::Job<T> job) {
    namespace one = cuda::one_system;
    constexpr int R = 4;
    const int first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * R;
    T a[R], b[R], c[R], d[R];
    one::load_rows(job, first, a, b, c, d);
    cuda::arrive_relaxed();
    if (blockIdx.x == 0 && threadIdx.x == 0) *job.outcome = cuda::fresh_outcome(job.rows, 1, job.branch);
#pragma unroll
    for (int i = 0; i < R; ++i) d[i] += a[i] + b[i] + c[i];
    cuda::wait_for_cluster();
    one::store_rows<T, R>(job.x, true, first, job.rows, d);
    cuda::arrive_relaxed(), cuda::wait_for_cluster();
}

/// Read and written by as many blocks as there are rows for: four words come, one leaves, and a row knows of no other.
template <class T>
__global__ void __launch_bounds__(128) rows_side_by_side(const T* a, const T* b, const T* c, const T* d, T* x, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) x[i] = a[i] + b[i] + c[i] + d[i];
}

}  // namespace trifold::bench
