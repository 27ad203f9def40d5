// SPDX-License-Identifier: BSD-3-Clause
// Long rings that forget:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   x[-1] = x[n-1], x[n] = x[0]
//
//   y: the ring opened, as if nothing came before its first row or after its last one, by whatever solves such systems
//   w: 2 H rows around the seam, as if nothing were beyond them; they are gathered in scratch
//   x: y, but for the H rows around the seam, which are w's
//
//       y   | . . h h|. . . . . . . . . . .|h h . . |       rows that are not taken
//       w            |h h . . | . . h h|                    row 0 is in the middle
//
// Shapes: as in rings.cu, x apart from d. Overwritten: x.
// Words per row: those of the open solve (5, or 2 where all share the matrix), and of 2 H rows 8 to gather, 5 to solve, some 4 to compare and 2 to store.
// Numerics: where w's rows meet y's, both have found the same two unknowns. A row beside such a place was solved with its own unknown beyond it, not with the one that is stored: its residual is its
//   coupling times what the two differ by, which may be 16 u of the largest |x| of the 16 rows on either side, as for windows (device/segments_seams.cuh). Residuals of either solve are small beside its own largest unknown
//   nearby: so what is not taken may not be much larger than what is. If any ring misses that, all are solved otherwise.
// Source: E. Polizzi, A. H. Sameh, A parallel hybrid banded system solver: the SPIKE algorithm (2006), truncated.
#include "backends/cuda/tridiagonal/general/ring_seams.hpp"

#include <algorithm>
#include <limits>

#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/packed.hpp"
#include "backends/cuda/tridiagonal/general/pieces.cuh"
#include "backends/cuda/tridiagonal/general/ring_parts.hpp"
#include "backends/cuda/tridiagonal/path.hpp"
#include "backends/cuda/tridiagonal/thread/largest_bits.cuh"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr double accepted_roundoffs = 16;
constexpr int most_larger = 16;  // what is not taken, as a multiple of what is

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Rows on either side of the seam: what is neglected is less than roundoff where unknowns are halved from row to row, more of long rings.
std::int64_t half_of(const System& ring) {
    const std::int64_t least = ring.dtype == DType::f64 ? 128 : 64;
    return std::clamp<std::int64_t>(ring.rows / 256 / 32 * 32, least, 1024);
}

/// The rows around the seam, as a system in scratch; its arrays at `to` (lower, diag, upper, rhs, x). Numbers stay numbers where the corners are the same.
struct Around {
    bool kept[4], copied[4];
    System rows;             ///< all rings
    System matrix;           ///< of every matrix once
    std::size_t place[5], bytes;

    explicit Around(const System& ring, unsigned char* scratch = nullptr) {
        matrix_levels(ring, kept);
        rows = open_of(ring);
        rows.rows = 2 * half_of(ring);
        Operand* const own[5] = {&rows.lower, &rows.diag, &rows.upper, &rows.rhs, &rows.x};
        const bool same[3] = {is_row_of(ring, ring.top_right, ring.lower, 0), true, is_row_of(ring, ring.bottom_left, ring.upper, ring.rows - 1)};
        const System shape = rows;
        bytes = 0;
        for (int m = 0; m < 5; ++m) {
            const Packed packed = m < 3 ? Packed(shape, kept) : Packed(shape);
            copied[m < 4 ? m : 3] = m >= 3 || own[m]->kind == Operand::Kind::view || !same[m];
            if (m < 3 && !copied[m]) continue;
            place[m] = bytes;
            *own[m] = packed.at(scratch + bytes);
            bytes += up(static_cast<std::size_t>(packed.elements) * size_of(ring.dtype));
        }
        rows.in_place = false;
        matrix = with_levels(rows, kept);
    }
};

/// Scratch: outcomes of the two solves, the rows around the seam, then what the solves need.
struct Parts {
    std::size_t around = 2 * up(sizeof(DeviceOutcome)), rest;

    explicit Parts(const System& ring) : rest(around + Around(ring).bytes) {}
};

/// store(j, load(j)) for a thread's rows, some of which are on their way at a time: what is stored may be, for all the compiler knows, what is loaded next.
template <class Load, class Store>
__device__ __forceinline__ void in_groups(std::int64_t first, std::int64_t end, int step, Load load, Store store) {
    constexpr int at_once = 8;
    for (std::int64_t j = first; j < end; j += at_once * step) {
        decltype(load(j)) value[at_once];
#pragma unroll
        for (int g = 0; g < at_once; ++g)
            if (j + g * step < end) value[g] = load(j + g * step);
#pragma unroll
        for (int g = 0; g < at_once; ++g)
            if (j + g * step < end) store(j + g * step, value[g]);
    }
}

template <class T>
struct GatherJob {
    Pieces pieces;
    Levels levels;
    Source<T> from[4], to[4], right, left;
    unsigned copied = 0;        ///< bit m: operand m
    std::int64_t rows = 0, half = 0;  ///< of the ring; around the seam on either side
};

template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) gather_kernel(const __grid_constant__ GatherJob<T> job) {
    after_the_kernel_before();
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool) {
        std::int64_t index[4];
        job.levels.indices(k, index);
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            if (!(job.copied >> m & 1)) continue;
            const Line<T> from = line_of(job.from[m], index), to = line_of(job.to[m], index);
            in_groups(first, end, step, [&](std::int64_t j) {
                const std::int64_t i = j < job.half ? job.rows - job.half + j : j - job.half;
                return m == 0 && i == 0 ? line_of(job.right, index)[0] : m == 2 && i == job.rows - 1 ? line_of(job.left, index)[0] : from[i];
            }, [&](std::int64_t j, T value) { to.at(j) = value; });
        }
    });
}

template <class T>
struct SeamJob {
    Pieces pieces;              ///< of the rows around the seam
    Levels levels;
    Source<T> x, w;
    std::int64_t rows = 0, half = 0;
    const DeviceOutcome* outcome[2] = {};  ///< of the open solve, of that around the seam
    unsigned* maxima = nullptr;  ///< per ring: seam_words
    T accept = 0;
    unsigned* unsettled = nullptr;
    DeviceOutcome* others[2] = {};

    __device__ __forceinline__ std::int64_t row_of(std::int64_t j) const { return j < half ? rows - half + j : j - half; }
    __device__ __forceinline__ bool taken(std::int64_t j) const { return j >= half / 2 && j < half + half / 2; }
};

template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) measure_kernel(const __grid_constant__ SeamJob<T> job) {
    after_the_kernel_before();
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool) {
        constexpr int beside = 16;
        std::int64_t index[4];
        job.levels.indices(k, index);
        const Line<T> x = line_of(job.x, index), w = line_of(job.w, index);
        Largest<T> found[seam_words];  // of what is taken, of what is not; of each place where w meets y: nearby, and what the two differ by
        const std::int64_t meeting[2] = {job.half / 2, job.half + job.half / 2};
#pragma unroll 8
        for (std::int64_t j = first; j < end; j += step) {
            const T open = x[job.row_of(j)], around = w[j];
            const bool here = job.taken(j);
            found[0].add(here ? around : open), found[1].add(here ? open : around);
#pragma unroll
            for (int m = 0; m < 2; ++m) {
                const std::int64_t r = j - meeting[m];
                found[2 + 2 * m].add(r >= -beside && r < beside ? around : T(0));
                found[3 + 2 * m].add(r == -1 || r == 0 ? around - open : T(0));
            }
        }
#pragma unroll
        for (int m = 0; m < seam_words; ++m) {
            unsigned most = held_bits(found[m]);
            if (job.pieces.along_rows) most = __reduce_max_sync(~0u, most);
            if (most && (!job.pieces.along_rows || threadIdx.x % 32 == 0)) atomicMax(job.maxima + seam_words * k + m, most);
        }
    });
}

/// What is taken is stored whether rings agree or not: where they do not, x is found otherwise.
template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) take_kernel(const __grid_constant__ SeamJob<T> job) {
    after_the_kernel_before();
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool tells) {
        std::int64_t index[4];
        job.levels.indices(k, index);
        if (tells) {
            const auto most = [&](int m) { return number_of<T>(job.maxima[seam_words * k + m]); };
            bool agree = job.outcome[0]->failures == 0 && job.outcome[1]->failures == 0;
            agree = agree && most(1) <= T(most_larger) * beyond_cut<T> * most(0) && most(0) < (sizeof(T) == 8 ? T(1e290) : T(1e30));
            for (int m = 2; m < seam_words; m += 2) agree = agree && most(m + 1) * beyond_cut<T> <= job.accept * most(m);
            if (!agree) {
                *const_cast<volatile unsigned*>(job.unsettled) = 1;
                for (DeviceOutcome* const other : job.others)
                    if (other) *const_cast<volatile unsigned long long*>(&other->handed_over) = windows_turn;
            }
        }
        const Line<T> x = line_of(job.x, index), w = line_of(job.w, index);
        in_groups(first, end, step, [&](std::int64_t j) { return job.taken(j) ? w[j] : T(0); }, [&](std::int64_t j, T value) {
            if (job.taken(j)) x.at(job.row_of(j)) = value;
        });
    });
}

/// As enqueue_path, but nobody asks for a status.
void enqueue(const System& system, const BatchLaunch& launch) {
    const Path path = path_within(system, Algorithm::automatic, launch.scratch_bytes);
    if (path.in_one_launch && path.in_one_launch(system, launch)) return;
    if (!path.resets) reset_outcome(launch.outcome, system.rows, system.systems(), static_cast<int>(path.branch), launch.stream);
    path.enqueue(system, launch);
}

template <class T>
void solve(const System& ring, const BatchLaunch& launch, unsigned* unsettled, DeviceOutcome* const (&others)[2], unsigned* maxima) {
    const Parts parts(ring);
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    const Around around(ring, scratch + parts.around);
    const System open = open_of(ring);

    GatherJob<T> gather{Pieces(around.rows), Levels(around.rows), {}, {}, Source<T>(ring.top_right), Source<T>(ring.bottom_left)};
    const Operand* const from[4] = {&ring.lower, &ring.diag, &ring.upper, &ring.rhs}, *const to[4] = {&around.rows.lower, &around.rows.diag, &around.rows.upper, &around.rows.rhs};
    for (int m = 0; m < 4; ++m) gather.from[m] = Source<T>(*from[m]), gather.to[m] = Source<T>(*to[m]);
    gather.rows = ring.rows, gather.half = half_of(ring);
    for (int m = 0; m < 3; ++m) gather.copied |= static_cast<unsigned>(around.copied[m]) << m;
    const bool own_matrices = around.matrix.levels == around.rows.levels;
    if (!own_matrices && gather.copied) {
        GatherJob<T> once = gather;
        const System all = with_levels(ring, around.kept);
        once.pieces = Pieces(around.matrix), once.levels = Levels(around.matrix);
        const Operand* const those[3] = {&all.lower, &all.diag, &all.upper}, *const here[3] = {&around.matrix.lower, &around.matrix.diag, &around.matrix.upper};
        for (int m = 0; m < 3; ++m) once.from[m] = Source<T>(*those[m]), once.to[m] = Source<T>(*here[m]);
        once.right = Source<T>(all.top_right), once.left = Source<T>(all.bottom_left);
        launch_after(gather_kernel<T>, once.pieces.blocks(), Pieces::block_threads, 0, launch.stream, once);
        gather.copied = 0;
    }
    gather.copied |= 8;
    launch_after(gather_kernel<T>, gather.pieces.blocks(), Pieces::block_threads, 0, launch.stream, gather);

    SeamJob<T> seam{Pieces(around.rows), Levels(around.rows), Source<T>(ring.x), Source<T>(around.rows.x)};
    seam.rows = ring.rows, seam.half = half_of(ring);
    const System* const solves[2] = {&open, &around.rows};
    for (int k = 0; k < 2; ++k) {
        BatchLaunch inner = launch;
        inner.outcome = reinterpret_cast<DeviceOutcome*>(scratch + k * up(sizeof(DeviceOutcome)));
        inner.status = nullptr;
        inner.scratch = scratch + parts.rest, inner.scratch_bytes = launch.scratch_bytes - parts.rest;
        seam.outcome[k] = inner.outcome;
        enqueue(*solves[k], inner);
    }
    seam.maxima = maxima, seam.unsettled = unsettled;
    seam.accept = static_cast<T>(accepted_roundoffs * std::numeric_limits<T>::epsilon() / 2);
    for (int k = 0; k < 2; ++k) seam.others[k] = others[k];
    launch_after(measure_kernel<T>, seam.pieces.blocks(), Pieces::block_threads, 0, launch.stream, seam);
    launch_after(take_kernel<T>, seam.pieces.blocks(), Pieces::block_threads, 0, launch.stream, seam);
}

}  // namespace

bool takes_seams(const System& ring) {
    constexpr std::int64_t least_of_all = 1 << 19;  // launches are all that fewer rows cost
    return !ring.in_place && !ring.accumulate && ring.rows >= 8 * half_of(ring) && ring.rows * ring.systems() >= least_of_all;
}

std::size_t seams_scratch(const System& ring, bool least) {
    const System open = open_of(ring);
    const Around around(ring);
    std::size_t most = 0;
    for (const System* one : {&open, &around.rows}) most = std::max(most, least ? least_scratch(*one, Algorithm::automatic) : scratch_for(*one, Algorithm::automatic));
    return Parts(ring).rest + up(most);
}

void solve_at_seams(const System& ring, const BatchLaunch& launch, unsigned* unsettled, DeviceOutcome* const (&others)[2], unsigned* maxima) {
    if (ring.dtype == DType::f32) solve<float>(ring, launch, unsettled, others, maxima);
    else solve<double>(ring, launch, unsettled, others, maxima);
}

}  // namespace trifold::cuda
