// SPDX-License-Identifier: BSD-3-Clause
// What the memory allows where right-hand sides are read and x is written as the kernels for one shared matrix do it: the same pieces, buffers and blocks, all
// loads and stores, and nothing else: rhs goes to x as it came.
#pragma once

#include "backends/cuda/tridiagonal/shared/launch.cuh"
#include "bench/cuda/gpu.cuh"

namespace trifold::bench {

namespace detail {

template <class T, int R, int Stages, bool Couple>
__global__ void __launch_bounds__(256) move_shared_rows(const __grid_constant__ cuda::SharedJob<T> job) {
    using namespace cuda;
    using Layout = RowsLayout<T, R, Stages>;
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned drawn;
    unsigned char* const memory = reinterpret_cast<unsigned char*>(shared);
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5, warps = static_cast<int>(blockDim.x) >> 5;
    const Layout layout(warps, job.parts, job.flags);
    const unsigned barriers = shared_address(memory) + static_cast<unsigned>(warp * Stages * 8);
    T* const ring = reinterpret_cast<T*>(memory + layout.ring) + warp * Stages * Layout::buffer;
    const int first_row = Couple ? warp * 32 * R : 0, part_rows = min(job.rows - first_row, 32 * R);
    Draws<Couple> draws(job.tickets, job.draw, job.tiles, &drawn, lane);
    if (lane < Stages) Arrival{barriers + 8 * static_cast<unsigned>(lane)}.prepare(1);
    __syncwarp();
    const auto load = [&](unsigned tile, int stage) {
        if (tile < job.tiles) load_run(job, run_of(job, tile, first_row, part_rows), ring + stage * Layout::buffer, barriers + 8 * static_cast<unsigned>(stage), lane);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    unsigned ahead[Stages - 1];
#pragma unroll
    for (int s = 0; s < Stages - 1; ++s) load(ahead[s] = draws.given(), s);
    after_the_kernel_before();
    int stage = 0;
    unsigned parity = 0;
    for (unsigned tile; (tile = ahead[0]) < job.tiles;) {
        draws.ask();
        const Run<T> run = run_of(job, tile, first_row, part_rows);
        asm volatile("cp.async.wait_group %0;" ::"n"(Stages - 2) : "memory");
        Arrival{barriers + 8 * static_cast<unsigned>(stage)}.wait(parity);
        __syncwarp();
        store_run(job, run, ring + stage * Layout::buffer + run.shift, true, memory, lane);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncwarp();
        if (Couple) {
            __syncthreads();
            draws.tell();
            __syncthreads();
        }
#pragma unroll
        for (int s = 0; s + 2 < Stages; ++s) ahead[s] = ahead[s + 1];
        load(ahead[Stages - 2] = draws.next(), stage ? stage - 1 : Stages - 1);
        if (++stage == Stages) stage = 0, parity ^= 1;
    }
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

template <class T, int R, cuda::ColumnCopies Copies>
__global__ void __launch_bounds__(512) move_shared_columns(const __grid_constant__ cuda::SharedJob<T> job) {
    using namespace cuda;
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned long long arrival;
    __shared__ unsigned drawn[2];
    const int thread = static_cast<int>(threadIdx.x), column = thread & (job.across - 1);
    ColumnSets<T, R, Copies> sets(job, reinterpret_cast<T*>(shared), shared_address(&arrival));
    sets.load(sets.source(blockIdx.x));
    after_the_kernel_before();
    for (SetDraws draws(job, drawn); draws.any(); draws.next()) {
        keep_step(job);
        draws.ask();
        T y[R];
        const auto next = sets.source(draws.after);
        sets.take(draws.now, draws.turn & 1, y);
        sets.load(next);
        if (Copies != ColumnCopies::vectors && job.whole_sectors) sets.touch(draws.after);
        const ColumnSet set = set_of(job, draws.now);
        draws.tell();
        __syncthreads();
        if (column < set.columns) store_column<Copies, sizeof(T) == 8>(job, set, y);
    }
}

template <class T, int R, cuda::ColumnCopies Copies>
__global__ void __launch_bounds__(512, 1) move_shared_bands(const __grid_constant__ cuda::SharedJob<T> job, const __grid_constant__ cuda::BandMaps<Copies> maps) {
    using namespace cuda;
    using Layout = BandsLayout<T, R>;
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned long long arrival;
    T* const memory = reinterpret_cast<T*>(shared);
    const int first_row = static_cast<int>(blockIdx.x) % job.cluster * job.segments * R, rows = min(max(job.rows - first_row, 0), job.segments * R);
    const unsigned team = blockIdx.x / static_cast<unsigned>(job.cluster), teams = gridDim.x / static_cast<unsigned>(job.cluster);
    auto sets = [&] {
        if constexpr (Copies == ColumnCopies::tensors) return ShiftedSets<T, R>(job, maps, memory, shared_address(&arrival), first_row, rows);
        else return ColumnSets<T, R, Copies>(job, memory, shared_address(&arrival), first_row, rows, bands_deal<T>);
    }();
    sets.load(sets.source(team));
    after_the_kernel_before();
    const BandStore<T, R> out(job, memory + Layout(job.segments, job.across, job.cluster, true, 1).stage, first_row);
    for (unsigned tile = team, turn = 0; turn < job.turns; tile += teams, ++turn) {
        T y[R];
        const auto next = sets.source(tile + teams);
        sets.take(tile, turn & 1, y);
        sets.load(next);
        sets.touch(tile + teams);
        out.all(set_of(job, tile), y);
    }
}

template <class T, int R>
void enqueue_shared_bands(cuda::SharedJob<T>& job) {
    using enum cuda::ColumnCopies;
    const unsigned blocks = job.tiles * static_cast<unsigned>(job.cluster);
    const int threads = job.across * job.segments, bytes = cuda::bands_bytes<T, R>(job);
    if (cuda::ShiftedMaps maps; job.copies == tensors && cuda::encode_shifted<T, R>(job, maps)) cuda::launch_persistent<move_shared_bands<T, R, tensors>>(job, blocks, false, threads, bytes, nullptr, maps);
    else cuda::launch_persistent<move_shared_bands<T, R, lines>>(job, blocks, false, threads, bytes, nullptr, cuda::ColumnMaps{});
}

template <class T, int R, int Stages, bool Couple, int Threads, bool Aside = false>
void enqueue_shared_rows(cuda::SharedJob<T>& job) {
    const int warps = Couple ? job.parts : Threads / 32;
    const unsigned each = (Couple ? 1 : static_cast<unsigned>(warps)) * std::max(job.draw, 1u);
    cuda::launch_persistent<move_shared_rows<T, R, Stages, Couple>>(job, (job.tiles + each - 1) / each, job.draw > 0, 32 * warps,
                               cuda::RowsLayout<T, R, Stages, Aside>(warps, job.parts, job.flags).total, nullptr);
}

template <class T, int R>
void enqueue_shared_columns(cuda::SharedJob<T>& job) {
    using enum cuda::ColumnCopies;
    if (job.cluster > 1) job.draw = 0;
    const int threads = job.across * job.segments, bytes = cuda::columns_bytes<T, R>(job);
    if (job.copies == vectors) cuda::launch_persistent<move_shared_columns<T, R, vectors>>(job, job.tiles, job.draw > 0, threads, bytes, nullptr);
    if (job.copies == rows) cuda::launch_persistent<move_shared_columns<T, R, rows>>(job, job.tiles, job.draw > 0, threads, bytes, nullptr);
    if (job.copies == lines) cuda::launch_persistent<move_shared_columns<T, R, lines>>(job, job.tiles, job.draw > 0, threads, bytes, nullptr);
}

}  // namespace detail

/// Enqueues one pass of what `kernel` does; false where that is not known here. counter: a word of the device's memory. draw: tiles of a draw; 0: none are drawn.
template <class T>
bool move_shared(cuda::SharedJob<T> job, const cuda::SharedKernel<T>& kernel, unsigned* counter, unsigned draw) {
    job.tickets = counter, job.draw = draw;
    cudaMemsetAsync(counter, 0, sizeof *counter);
    if (kernel.bands && job.copies == cuda::ColumnCopies::vectors) return false;
    if (kernel.bands) return detail::enqueue_shared_bands<T, sizeof(T) == 8 ? 32 : 64>(job), true;
    if (kernel.columns && job.copies == cuda::ColumnCopies::elements) return false;
    const auto is = [&](bool columns, int rows, bool coupled) { return kernel.columns == columns && kernel.rows == rows && kernel.coupled == coupled; };
    if constexpr (sizeof(T) == 8) {
        if (is(true, 16, false)) return detail::enqueue_shared_columns<T, 16>(job), true;
        if (is(true, 32, false)) return detail::enqueue_shared_columns<T, 32>(job), true;
        if (is(false, 10, false)) return detail::enqueue_shared_rows<T, 10, 3, false, 128>(job), true;
        if (is(false, 13, false)) return detail::enqueue_shared_rows<T, 13, 3, false, 128, true>(job), true;
        if (is(false, 17, false)) return detail::enqueue_shared_rows<T, 17, 3, false, 128>(job), true;
        if (is(false, 17, true)) return detail::enqueue_shared_rows<T, 17, 3, true, 256>(job), true;
    } else {
        if (is(true, 32, false)) return detail::enqueue_shared_columns<T, 32>(job), true;
        if (is(true, 64, false)) return detail::enqueue_shared_columns<T, 64>(job), true;
        if (is(false, 33, false)) return detail::enqueue_shared_rows<T, 33, 3, false, 128>(job), true;
        if (is(false, 25, false)) return detail::enqueue_shared_rows<T, 25, 3, false, 128>(job), true;
        if (is(false, 33, true)) return detail::enqueue_shared_rows<T, 33, 3, true, 256>(job), true;
    }
    return false;
}

}  // namespace trifold::bench
