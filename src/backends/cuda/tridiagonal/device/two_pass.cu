// SPDX-License-Identifier: BSD-3-Clause
// Long systems in two passes over their rows, pivoted, on the whole device.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … rows-1, for every system
//
// Arrays: row i of system k at data[i row_stride + sum_d index_d(k) level_stride[d]]; a coefficient may be a scalar. x may be rhs:
//   it is then kept in scratch until it is accepted.
// Overwritten: x. Scratch: 24 words per chunk and level, one byte and 32 more per system, and x in place; then the same memory
//   serves the LU of what was not accepted.
// Who does what: in the first pass a warp reduces (two_pass_reduce.cuh) 32 chunks of 32 rows to two rows each; in double precision 32 long chunks of up to 16 chunks, and on the way
//   each of these. Chunks are merged in groups of 4 to 16, level by level (couple.cuh), one thread each, until one thread solves what is left; the
//   way back finds the ends of long chunks and then of chunks. In the second pass (two_pass_finish.cuh) a warp brings a tile of chunks into shared memory, a
//   lane or two solve one between its ends, and all of them multiply x with the rows read again (from the second-level cache) and
//   keep the largest residual. Both passes once more correct x by the solution for rhs - A x where a residual is not small
//   enough; what then still is not, is solved by LU. Kernels that find nothing to do return at once, since nothing comes back to
//   the host. blockIdx.y = system.
// Words per row: 4 read; 4 read + 1 written; the levels move about 1.2 (single precision: 2.4). In place 2 more. What is corrected: 6 for residues, 9 for both passes and 1 for x, 6 to check.
// Numerics: as docs/algorithms/gpu_two_pass.md. What two rows say of a chunk's interior drowns in their rounding the more, the more
//   chunks are coupled: hence long ones in double precision, and single precision reduced in double. A system is accepted where the largest residual of every tile of 512 rows (single precision: 1024) is at
//   most 10 u of max|A| max|x| + max|rhs| there, or at most 4 u of the largest such scale: LAPACK's measure. Maxima
//   are by atomics, so that their order does not matter, and bits repeat.
// Source: docs/algorithms/gpu_two_pass.md.
#include "backends/cuda/tridiagonal/device/two_pass.hpp"

#include <algorithm>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/tridiagonal/device/two_pass_chain.cuh"
#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {
namespace {

using namespace two_pass;
using tridiagonal::System;

constexpr std::int64_t least_rows = 64, most_systems_at_once = 65535;

std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Scratch: levels, findings, marks, then what x in place and residues take, and LU after them.
struct Parts {
    std::size_t found, marks, shared, residue, all;

    Parts(const System& system, const Cut& cut) {
        const auto systems = static_cast<std::size_t>(system.systems());
        found = align(std::max(systems * static_cast<std::size_t>(cut.words) * sizeof(double), SpreadNews<double>::bytes(Spread::most_of(system.rows) + Spread::most_groups, Spread::most_in_turns(system.rows))));
        marks = found + align(systems * sizeof(Found));
        shared = marks + align(systems);
        const std::size_t x = align(systems * static_cast<std::size_t>(system.rows) * size_of(system.dtype));
        residue = shared + (system.in_place ? x : 0);
        all = std::max(residue + x, shared + align(pivoted_scratch(system)));
    }
};

unsigned blocks(std::int64_t work, std::int64_t per_block) { return static_cast<unsigned>((work + per_block - 1) / per_block); }

/// `launch(y)` for every part of the batch that one grid takes.
template <class T, class Launch>
void for_systems(Job<T>& job, Launch launch) {
    for (job.first_system = 0; job.first_system < job.levels.systems; job.first_system += most_systems_at_once)
        launch(static_cast<unsigned>(std::min(job.levels.systems - job.first_system, most_systems_at_once)));
}

template <class T, bool again>
void passes(Job<T>& job, cudaStream_t stream) {
    job.again = again;
    constexpr int warps = block_threads / lanes, reduce_room = warps * reduce_bytes<T>, finish_room = warps * Tiled<T>::bytes;
    static PerDevice prepared;
    prepared.once([&] {
        cudaFuncSetAttribute(finish_kernel<T, again>, cudaFuncAttributeMaxDynamicSharedMemorySize, finish_room);
        cudaFuncSetAttribute(reduce_kernel<T, again>, cudaFuncAttributeMaxDynamicSharedMemorySize, reduce_room);
    });
    const Cut& cut = job.cut;
    int top = first_level<T>;  // the lowest level that one block takes
    while (top + 1 < cut.levels && cut.count[top + 1] > top_threads / 4) ++top;
    const std::int64_t groups = top + 1 < cut.levels ? cut.count[top + 1] : 1;
    // Where nothing is to be done, few blocks find it out.
    const unsigned most = again ? 1024u : ~0u, at_once = finish_blocks * static_cast<unsigned>(multiprocessors_of_current()), threads = 32 * blocks(std::min<std::int64_t>(groups, top_threads), 32);
    for_systems(job, [&](unsigned y) {
        if (again) launch_after(residue_kernel<T>, dim3(std::min(blocks(cut.tiles(lanes), warps), most), y), block_threads, 0, stream, job);
        launch_after(reduce_kernel<T, again>, dim3(blocks(reduce_items<T>(cut), warps), y), block_threads, reduce_room, stream, job);
        for (int level = first_level<T>; level < top; ++level)
            launch_after(merge_kernel<T>, dim3(blocks(cut.count[level + 1], level_threads), y), level_threads, 0, stream, job, level);
        launch_after(top_kernel<T>, dim3(1, y), threads, 0, stream, job, top);
        for (int level = top - 1; level >= 0; --level)
            launch_after(spread_kernel<T>, dim3(blocks(cut.count[level + 1], level_threads), y), level_threads, 0, stream, job, level);
        launch_after(finish_kernel<T, again>, dim3(std::min(blocks(cut.tiles(Tiled<T>::of_all), warps), at_once), y), block_threads, finish_room, stream, job);
        if (again) launch_after(residual_kernel<T>, dim3(std::min(blocks(cut.tiles(lanes), warps), most), y), block_threads, 0, stream, job);
    });
    launch_after(judge_kernel<T>, dim3(blocks(job.levels.systems, 128)), 128, 0, stream, job);
}

/// Of a block of a cluster, for its rows.
template <class T>
constexpr std::int64_t most_chain_bytes = SpreadMemory<T>::bytes(std::min<std::int64_t>(Spread::most_rows, (160 << 10) / (4 * sizeof(T))));

template <class T>
void prepare_chain() {
    static PerDevice prepared;
    prepared.once([&] {
        cudaFuncSetAttribute(chain_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most_chain_bytes<T>));
        cudaFuncSetAttribute(chain_kernel<T>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    });
}

template <class T>
cudaLaunchConfig_t chain_configuration(unsigned blocks, std::int64_t bytes, cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks), config.blockDim = dim3(block_threads), config.dynamicSmemBytes = static_cast<std::size_t>(bytes), config.stream = stream;
    return config;
}

/// Blocks of the cluster that a short system is left to; 0: there are no clusters.
template <class T>
unsigned cluster_blocks() {
    static OfDevice known;
    return static_cast<unsigned>(known([](int device) {
        int major = 0, clusters = 0;
        if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess || major < 9) return 0;
        prepare_chain<T>();
        for (const unsigned blocks : {16u, 8u}) {
            cudaLaunchAttribute attribute = cluster_of(blocks);
            cudaLaunchConfig_t config = chain_configuration<T>(blocks, most_chain_bytes<T>, nullptr);
            config.attrs = &attribute, config.numAttrs = 1;
            if (cudaOccupancyMaxActiveClusters(&clusters, chain_kernel<T>, &config) == cudaSuccess && clusters > 0) return static_cast<int>(blocks);
            cudaGetLastError();
        }
        return 0;
    }));
}

template <class T>
void launch_chain(const Left<T>& left, cudaStream_t stream) {
    cudaLaunchAttribute attributes[2];
    const unsigned blocks = cluster_blocks<T>();
    cudaLaunchConfig_t config = chain_configuration<T>(blocks, std::max<std::int64_t>(chain_bytes<T>, SpreadMemory<T>::bytes(left.job.spread.rows, left.job.spread.words)), stream);
    attributes[0] = cluster_of(blocks);
    while_the_kernel_before_ends(attributes[1]);
    config.attrs = attributes, config.numAttrs = 2;
    enqueue_kernel(config, chain_kernel<T>, left.job, left.rest);
}

/// Warps that reduce side by side: twelve on a multiprocessor.
std::int64_t warps_of_current() { return 12 * std::int64_t{multiprocessors_of_current()}; }

Cut cut_of(const System& system) { return Cut(system.rows, system.dtype == DType::f64, system.systems(), warps_of_current()); }

/// A cluster's lanes have chunks half as long as others: what that costs in accuracy is little in short systems (docs/notes/two_pass.md).
Cut cut_of_left(const System& system, bool cluster) { return cluster ? Cut(system.rows, system.dtype == DType::f64, system.systems(), 0, 256) : cut_of(system); }

template <class T>
Job<T> job_of(const System& system, const Cut& cut, const Parts& parts, const BatchLaunch& launch) {
    char* const base = static_cast<char*>(launch.scratch);
    return {Levels(system), cut, 0, Source<T>(system.lower), Source<T>(system.diag), Source<T>(system.upper), Source<T>(system.rhs),
            Source<T>(system.x), reinterpret_cast<double*>(base), system.in_place ? reinterpret_cast<T*>(base + parts.shared) : nullptr, reinterpret_cast<T*>(base + parts.residue),
            reinterpret_cast<Found*>(base + parts.found), reinterpret_cast<unsigned char*>(base + parts.marks), launch.outcome, false, nullptr, nullptr, nullptr, 0, {}};
}

BatchLaunch rescue_of(const BatchLaunch& launch, const Parts& parts) {
    BatchLaunch rescue = launch;
    rescue.scratch = static_cast<char*>(launch.scratch) + parts.shared;
    rescue.scratch_bytes = parts.all - parts.shared;
    return rescue;
}

template <class T>
Left<T> left_of(const System& system, const BatchLaunch& launch, bool cluster) {
    const Cut cut = cut_of_left(system, cluster);
    const Parts parts(system, cut);
    const Job<T> job = job_of<T>(system, cut, parts, launch);
    return {job, PivotedJob<T>(system, rescue_of(launch, parts), job.marks, nullptr, pivoted_slots(system))};
}

template <class T>
void solve_marked(const System& system, const BatchLaunch& launch, const Marked& marked) {
    if (launch.scratch_bytes < Parts(system, cut_of_left(system, true)).all) return;
    Left<T> left = left_of<T>(system, launch, true);
    constexpr std::int64_t room = SpreadMemory<T>::room(most_chain_bytes<T>);
    left.job.spread = Spread(system.rows, {cluster_blocks<T>(), 1, room, room, WholeBlock::most_turns, SpreadNews<T>::corrects});
    left.job.marked = marked.marks, left.job.wanted = marked.wanted, left.job.least_wanted = marked.least_wanted;
    launch_chain(left, launch.stream);
}

template <class T>
void solve(const System& system, const BatchLaunch& launch) {
    const Cut cut = cut_of(system);
    const Parts parts(system, cut);
    if (launch.scratch_bytes < parts.all) return;
    Job<T> job = job_of<T>(system, cut, parts, launch);
    enqueue_fill(job.found, 0, static_cast<std::size_t>(job.levels.systems) * sizeof(Found), launch.stream);
    passes<T, false>(job, launch.stream);
    passes<T, true>(job, launch.stream);
    if (job.kept_x)
        for_systems(job, [&](unsigned y) {
            launch_after(copy_kernel<T>, dim3(std::min(blocks(system.rows, 256), 1u << 14), y), 256, 0, launch.stream, job);
        });
    for_systems(job, [&](unsigned y) { launch_after(not_finite_kernel<T>, dim3(std::min(blocks(cut.tiles(lanes), block_threads / lanes), 1024u), y), block_threads, 0, launch.stream, job); });
    launch_after(report_kernel<T>, dim3(blocks(job.levels.systems, 128)), 128, 0, launch.stream, job, launch.status);
    solve_pivoted(system, rescue_of(launch, parts), job.marks);
}

}  // namespace

const char* two_pass_refuses(const System& system) { return system.rows < least_rows ? "the system is too short to be cut" : nullptr; }

std::size_t two_pass_scratch(const System& system) { return std::max(Parts(system, cut_of(system)).all, Parts(system, cut_of_left(system, true)).all); }

std::size_t two_pass_kept_at(const System& system) { return Parts(system, cut_of_left(system, false)).shared; }

bool in_a_cluster(const System& system) {
    constexpr std::int64_t most_rows = 1 << 16;  // 32 for each thread
    return system.systems() == 1 && system.rows >= least_rows && system.rows <= most_rows && (system.dtype == DType::f32 ? cluster_blocks<float>() : cluster_blocks<double>()) > 0;
}

void solve_two_pass(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

void solve_two_pass(const System& system, const BatchLaunch& launch, const Marked& marked) {
    if (system.dtype == DType::f32) solve_marked<float>(system, launch, marked);
    else solve_marked<double>(system, launch, marked);
}

template <class T>
two_pass::Left<T> left_to_pivots_of(const System& system, const BatchLaunch& launch, const unsigned* states, int blocks) {
    Left<T> left = left_of<T>(system, launch, false);
    left.job.left = states;
    using Memory = SpreadMemory<T, block_threads, ThirdOfBlock::most_turns>;
    if (system.systems() == 1)
        left.job.spread = Spread(system.rows, {blocks, ThirdOfBlock::per_block, Memory::room(ThirdOfBlock::tile_bytes), Memory::room(ThirdOfBlock::per_block * ThirdOfBlock::room), ThirdOfBlock::most_turns, SpreadNews<T>::corrects});
    left.rest.slots = std::min(left.rest.slots, std::int64_t{ThirdOfBlock::per_block} * blocks * block_threads);
    return left;
}

template two_pass::Left<float> left_to_pivots_of<float>(const System& system, const BatchLaunch& launch, const unsigned* states, int blocks);
template two_pass::Left<double> left_to_pivots_of<double>(const System& system, const BatchLaunch& launch, const unsigned* states, int blocks);

}  // namespace trifold::cuda
