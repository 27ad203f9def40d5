// SPDX-License-Identifier: BSD-3-Clause
// x[i] += y[i] of every system that was solved, or of those that are marked; y lies in scratch without gaps. Words per row: 2 read, 1 written, at the roof of a stream with that mix.
#include "backends/cuda/tridiagonal/general/added.hpp"

#include <algorithm>

#include "backends/cuda/runtime/opening.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/packed.hpp"
#include "backends/cuda/tridiagonal/general/pieces.cuh"
#include "backends/cuda/tridiagonal/path.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::System;

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

std::size_t status_bytes(const System& system) { return up(static_cast<std::size_t>(system.systems())); }

// Where the kernels that solve can add. Not where arrays would be copied first.
Path adding_path(const System& system) {
    System plain = system;
    plain.accumulate = false;
    Path path = path_for(plain, Algorithm::automatic);
    path.in_one_launch = nullptr;
    if ((path.enqueue != solve_batch && path.enqueue != solve_halos_and_batch) || !batch_adds(system)) return {};
    path.enqueue = solve_batch, path.scratch = batch_scratch;
    return path;
}

template <class T>
struct Job {
    Pieces pieces;
    Levels levels;
    Source<T> x, y;
    const std::int8_t* status;
    Marks marks;
    const unsigned long long* marked;  ///< null, or zero where none is
};

template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) add_kernel(const __grid_constant__ Job<T> job) {
    if (job.marked) {
        await_the_kernel_before();
        if (*job.marked == 0) return;
    }
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool) {
        if (!job.marks.has(k)) return;
        std::int64_t index[4];
        job.levels.indices(k, index);
        if (job.status[job.levels.number_of(index)] <= 0) return;
        const Line<T> x = line_of(job.x, index), y = line_of(job.y, index);
        for (std::int64_t i = first; i < end; i += step) x.at(i) += y[i];
    });
}

template <class T>
void add(const System& system, const System& apart, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked) {
    const Job<T> job{Pieces(system), Levels(system), Source<T>(system.x), Source<T>(apart.x), launch.status, marks, marked};
    if (marked) launch_after(add_kernel<T>, job.pieces.blocks(), Pieces::block_threads, 0, launch.stream, job);
    else enqueue_kernel(add_kernel<T>, job.pieces.blocks(), Pieces::block_threads, 0, launch.stream, job);
}

}  // namespace

System solved_apart(const System& system, void* scratch) {
    System plain = system;
    plain.x = Packed(system).at(scratch);
    plain.accumulate = plain.in_place = false;
    return plain;
}

std::size_t apart_bytes(const System& system) { return up(static_cast<std::size_t>(Packed(system).elements) * size_of(system.dtype)); }

void add_marked(const System& system, const System& apart, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked) {
    if (system.dtype == DType::f32) add<float>(system, apart, launch, marks, marked);
    else add<double>(system, apart, launch, marks, marked);
}

std::size_t added_least_scratch(const System& system) { return status_bytes(system) + apart_bytes(system) + least_scratch(solved_apart(system, nullptr), Algorithm::automatic); }

std::size_t added_scratch(const System& system) {
    const std::size_t first_apart = apart_bytes(system) + scratch_for(solved_apart(system, nullptr), Algorithm::automatic);
    const Path path = adding_path(system);
    return status_bytes(system) + (path.enqueue ? std::max(path.scratch(system), first_apart) : first_apart);
}

void solve_added(const System& system, const BatchLaunch& launch) {
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    BatchLaunch inner = launch;
    if (!inner.status) inner.status = reinterpret_cast<std::int8_t*>(scratch) - system.number;
    inner.scratch = scratch + status_bytes(system), inner.scratch_bytes = launch.scratch_bytes - status_bytes(system);
    if (const Path path = adding_path(system); path.enqueue && inner.scratch_bytes >= path.scratch(system)) return enqueue_path(path, system, inner);
    const System plain = solved_apart(system, inner.scratch);
    inner.scratch = scratch + status_bytes(system) + apart_bytes(system), inner.scratch_bytes -= apart_bytes(system);
    enqueue_path(path_within(plain, Algorithm::automatic, inner.scratch_bytes), plain, inner);
    add_marked(system, plain, inner, {}, nullptr);
}

}  // namespace trifold::cuda
