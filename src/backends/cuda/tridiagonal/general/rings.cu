// SPDX-License-Identifier: BSD-3-Clause
// Rings:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   x[-1] = x[n-1], x[n] = x[0],   for every system
//
// Shapes: as in pivoted_line.cuh; a, b, c may be scalars or shared, x may be d or added to. Overwritten: x.
// Up to 4096 rows on chip (ring_chip.cu), else here, where what forgets is solved at its seam first (ring_seams.cu). T is a ring's matrix without its last row and column. T y = d and T q = (a[0], 0 … 0, c[n-2]) are solved by whatever solves such systems, and the last row
// joins them: z = x[n-1] = (d - c y[0] - a y[n-2]) / (b - c q[0] - a q[n-2]), x[i] = y[i] - q[i] z. A matrix that all rings share has one q.
// T may be singular, or far worse than the ring: every row of the result is checked before any is stored, and what fails is eliminated with pivots, ring by
// ring (ring_line.cuh).
// Kernels here: q's right-hand side and whether rows are dominant (4 words), one thread per ring for z, the check, where they are not (a, b, c, d, y, q: 6 words), the store (3, or 4
// where it is added). Words per row with the two solves (5 each): 17, or 23; where rings share their matrix 4 (2 + 2), or 6. Roof: memory.
// Numerics: where |a| + |c| ≤ |b| in every row, this is elimination in an order that needs no pivots, and |q| ≤ 1, so that y is no larger than 2 max|x|: the error of a row of T is
// that of y's and of z times q's. Else of every ring stored max|d - A x| ≤ accept max(|a| + |b| + |c|) max|x| was seen. Bits do not depend on the order of anything: maxima are exact.
#include "backends/cuda/tridiagonal/general/rings.hpp"

#include <algorithm>
#include <limits>

#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/device/segments.hpp"
#include "backends/cuda/tridiagonal/device/windows.hpp"
#include "backends/cuda/tridiagonal/general/packed.hpp"
#include "backends/cuda/tridiagonal/general/pieces.cuh"
#include "backends/cuda/tridiagonal/general/ring_chip.hpp"
#include "backends/cuda/tridiagonal/general/ring_line.cuh"
#include "backends/cuda/tridiagonal/general/ring_parts.hpp"
#include "backends/cuda/tridiagonal/general/ring_seams.hpp"
#include "backends/cuda/tridiagonal/path.hpp"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#include "backends/cuda/tridiagonal/thread/largest_bits.cuh"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr std::int64_t most_rows = std::int64_t{1} << 24;  // one thread may have to solve them
constexpr int line_threads = 64;
constexpr unsigned failed = 0x7fffffffu;  // as the largest residual: NaN

// Accepted residual in units of roundoff: elimination leaves 1 to 10, and what solves long systems up to 16.
double accepted_roundoffs(std::int64_t rows) { return rows <= 8192 ? 8 : 16; }

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

bool lie_along_rows(const System& system) { return Pieces(system).along_rows; }

/// Many rings with one matrix that no kernel for those takes move fewer words through T, whose matrix is eliminated once; short ones one after the other would be padded there.
bool fits_on_chip(const System& ring) {
    // In single precision tiles of rows side by side are faster for longer (measured: 4000 rows).
    const std::int64_t many = ring.rows > 2048 && ring.dtype == DType::f32 && lie_along_rows(ring) ? 3 << 22 : 1 << 21;
    if (!rings_may_be_on_chip(ring)) return false;
    bool kept[4];
    matrix_levels(ring, kept);
    const bool one_matrix = ring.systems() > 1 && std::none_of(kept, kept + 4, [](bool differs) { return differs; });
    if (!one_matrix || ring.rows < (lie_along_rows(ring) ? 512 : 8) || ring.rows * ring.systems() < many) return true;
    return one_matrix_stays_on_chip(ring);
}

System without_last_row(const System& ring) {
    System plain = open_of(ring);
    plain.rows = ring.rows - 1;
    plain.in_place = false;
    return plain;
}

/// T y = d, all of them.
System for_rhs(const System& ring, void* y) {
    System plain = without_last_row(ring);
    plain.x = Packed(ring).at(y);
    return plain;
}

/// T q = …, in place, once for every matrix.
System for_column(const System& ring, const bool (&kept)[4], void* q) {
    System all = without_last_row(ring);
    all.rhs = all.x = Packed(ring, kept).at(q), all.in_place = true;
    return with_levels(all, kept);
}

std::int64_t line_slots(const System& ring) {
    const std::size_t each = RingLine<double>::words * size_of(ring.dtype) * static_cast<std::size_t>(ring.rows);
    constexpr std::size_t budget = std::size_t{1} << 28;
    return std::min(ring.systems(), std::clamp<std::int64_t>(static_cast<std::int64_t>(budget / each), 1, 1 << 16));
}

/// Scratch: outcomes and statuses of the two solves, what is known of every ring, y, q; then that of the solves, and of what needs pivots in its place.
struct Parts {
    bool kept[4];
    bool seams;              ///< tried first
    bool segments[2];        ///< then, if that does not do: by segments, else in windows of one ring
    std::size_t statuses[2], unsettled, heavy, marks, z, maxima, y, q, rest, bytes, least_bytes;  ///< least: of those solves, what they need at least

    explicit Parts(const System& ring) : Parts(ring, fits_on_chip(ring)) {}
    Parts(const System& ring, bool on_chip) {
        matrix_levels(ring, kept);
        const auto systems = static_cast<std::size_t>(ring.systems()), word = size_of(ring.dtype);
        const System rhs = for_rhs(ring, nullptr), column = for_column(ring, kept, nullptr);
        statuses[0] = 2 * up(sizeof(DeviceOutcome));
        statuses[1] = statuses[0] + up(systems);
        unsettled = statuses[1] + up(static_cast<std::size_t>(column.systems()));
        heavy = unsettled + up(sizeof(unsigned));
        marks = heavy + up(static_cast<std::size_t>(column.systems()));
        z = marks + up(systems);
        maxima = z + up(systems * word);
        y = maxima + up(systems * seam_words * sizeof(unsigned));
        q = y + (on_chip ? 0 : up(static_cast<std::size_t>(Packed(ring).elements) * word));
        rest = q + (on_chip ? 0 : up(static_cast<std::size_t>(Packed(ring, kept).elements) * word));
        std::size_t most = static_cast<std::size_t>(line_slots(ring) * ring.rows) * RingLine<double>::words * word;
        std::size_t least = most;
        if (ring.rows >= 3 && !on_chip)
            for (const System* one : {&rhs, &column})
                most = std::max(most, scratch_for(*one, Algorithm::automatic)), least = std::max(least, least_scratch(*one, Algorithm::automatic));
        seams = ring.rows >= 3 && !on_chip && takes_seams(ring) && !windows_refuse(rhs) && !windows_refuse(column);
        if (seams) {
            most = std::max(most, seams_scratch(ring, false)), least = std::max(least, seams_scratch(ring, true));
            const System* const both[2] = {&rhs, &column};
            for (int k = 0; k < 2; ++k) {
                segments[k] = takes_segments(*both[k]);
                least = std::max(least, windows_scratch(*both[k]));
                most = std::max({most, least, segments[k] ? segments_scratch(*both[k]) : 0});
            }
        }
        bytes = rest + up(most), least_bytes = rest + up(least);
    }
};

template <class T>
struct Job {
    Pieces pieces;
    Levels levels;
    Source<T> a, b, c, right, left, d, x;  ///< right: of row 0 to x[n-1]; left: of the last row to x[0]
    Source<T> y, q;
    std::int64_t column_stride[4] = {};    ///< of the numbers of columns q
    const std::int8_t *rhs_status = nullptr, *column_status = nullptr;
    unsigned char* heavy = nullptr;        ///< per matrix: not all of its rows are dominant
    unsigned char* marks = nullptr;        ///< per ring: left to pivots; null: all are
    T* z = nullptr;
    unsigned* maxima = nullptr;            ///< per ring: of residuals, of |a| + |b| + |c|, of |x|
    T accept = 0;
    bool adds = false;
    DeviceOutcome* outcome = nullptr;
    std::int8_t* status = nullptr;
    T* scratch = nullptr;
    std::int64_t slots = 0;
    const unsigned* wanted = nullptr;      ///< where given, a word that is zero where rings have been solved at their seams

    __device__ __forceinline__ bool idle() const { return wanted && *const_cast<const volatile unsigned*>(wanted) == 0; }
};

template <class T>
__device__ __forceinline__ std::int64_t column_of(const Job<T>& job, const std::int64_t (&index)[4]) {
    std::int64_t column = 0;
    for (int d = 0; d < 4; ++d) column += index[d] * job.column_stride[d];
    return column;
}

/// A ring's arrays, and x from y and q.
template <class T>
struct Lines {
    Line<T> a, b, c, d, x, y, q;
    T right, left;
    std::int64_t last;  ///< row
    bool open;          ///< nothing but the last row knows of the last unknown

    __device__ __forceinline__ Lines(const Job<T>& job, const std::int64_t (&index)[4])
        : a(line_of(job.a, index)), b(line_of(job.b, index)), c(line_of(job.c, index)), d(line_of(job.d, index)), x(line_of(job.x, index)), y(line_of(job.y, index)),
          q(line_of(job.q, index)), right(line_of(job.right, index)[0]), left(line_of(job.left, index)[0]), last(job.pieces.rows - 1),
          open(right == T(0) && c[last - 1] == T(0)) {}

    __device__ __forceinline__ T solution(std::int64_t i, T z) const { return i == last ? z : open ? y[i] : fused(-q[i], z, y[i]); }
    __device__ __forceinline__ T below(std::int64_t i) const { return i > 0 ? a[i] : right; }
    __device__ __forceinline__ T above(std::int64_t i) const { return i < last ? c[i] : left; }
};

/// Of matrices, without their last rows.
template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) column_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    if (job.idle()) return;
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool) {
        std::int64_t index[4];
        job.levels.indices(k, index);
        const Line<T> q = line_of(job.q, index), a = line_of(job.a, index), b = line_of(job.b, index), c = line_of(job.c, index);
        const T right = line_of(job.right, index)[0], left = line_of(job.left, index)[0];
        const std::int64_t last = job.pieces.rows - 1;
        bool heavy = false;
        const auto weigh = [&](T lower, T diag, T upper) { heavy |= !(fabs(lower) + fabs(upper) <= fabs(diag)); };
        for (std::int64_t i = first; i < end; i += step) {
            q.at(i) = (i == 0 ? right : T(0)) + (i == last ? c[last] : T(0));
            weigh(i == 0 ? right : a[i], b[i], c[i]);
            if (i == last) weigh(a[last + 1], b[last + 1], left);
        }
        if (heavy) job.heavy[k] = 1;
    });
}

template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) join_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    if (job.idle()) return;
    for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < job.levels.systems; k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
        std::int64_t index[4];
        job.levels.indices(k, index);
        const std::int64_t column = column_of(job, index);
        const Lines<T> of(job, index);
        const std::int64_t m = of.last;
        const T am = of.a[m];
        T known = fused(-am, of.y[m - 1], fused(-of.left, of.y[0], of.d[m])), pivot = of.b[m];
        if (!of.open) pivot = fused(-am, of.q[m - 1], fused(-of.left, of.q[0], pivot));
        const bool good = job.rhs_status[k] > 0 && (of.open || job.column_status[column] > 0);
        job.z[k] = known / pivot;
        job.maxima[3 * k] = good ? 0 : failed, job.maxima[3 * k + 1] = job.maxima[3 * k + 2] = 0;
    }
}

template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) check_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    if (job.idle()) return;
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool) {
        std::int64_t index[4];
        job.levels.indices(k, index);
        const Lines<T> of(job, index);
        const T z = job.z[k];
        constexpr T limit = sizeof(T) == 8 ? T(1e290) : T(1e30);
        if (!job.heavy[column_of(job, index)] && fabs(z) < limit) return;
        Largest<T> residual, matrix, size;
        for (std::int64_t i = first; i < end; i += step) {
            const T a = of.below(i), b = of.b[i], c = of.above(i), x = of.solution(i, z);
            const T before = of.solution(i > 0 ? i - 1 : of.last, z), after = of.solution(i < of.last ? i + 1 : 0, z);
            residual.add(fused(-a, before, fused(-c, after, fused(-b, x, of.d[i]))));
            matrix.add(fabs(a) + fabs(b) + fabs(c));
            size.add(x);
        }
        unsigned most[3] = {held_bits(residual), held_bits(matrix), held_bits(size)};
        if (job.pieces.along_rows)
            for (unsigned& one : most) one = __reduce_max_sync(~0u, one);
        if (job.pieces.along_rows && threadIdx.x % 32 != 0) return;
        for (int m = 0; m < 3; ++m) atomicMax(job.maxima + 3 * k + m, most[m]);
    });
}

template <class T>
__device__ __forceinline__ bool holds(const Job<T>& job, std::int64_t k) {
    const T residual = number_of<T>(job.maxima[3 * k]) * beyond_cut<T>, matrix = number_of<T>(job.maxima[3 * k + 1]), size = number_of<T>(job.maxima[3 * k + 2]);
    // The quotient does not overflow where the product of both would; by a matrix that has, it would be nothing.
    return matrix * T(0) == T(0) && size * T(0) == T(0) && (residual == T(0) || residual / matrix <= job.accept * size);
}

template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) store_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    if (job.idle()) return;
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool tells) {
        const bool good = holds(job, k);
        if (tells) {
            job.marks[k] = !good;
            if (!good) atomicAdd(&job.outcome->marked, 1ull);
        }
        if (!good) return;
        std::int64_t index[4];
        job.levels.indices(k, index);
        const Lines<T> of(job, index);
        const T z = job.z[k];
        for (std::int64_t i = first; i < end; i += step) of.x.at(i) = job.adds ? of.x[i] + of.solution(i, z) : of.solution(i, z);
    });
}

/// Marked rings, or all where there are no marks.
template <class T>
__global__ void __launch_bounds__(line_threads) pivoted_ring_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    if (job.marks && *const_cast<volatile unsigned long long*>(&job.outcome->marked) == 0) return;
    const std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (slot >= job.slots) return;
    for (std::int64_t k = slot; k < job.levels.systems; k += job.slots) {
        if (job.marks && !job.marks[k]) continue;
        std::int64_t index[4];
        job.levels.indices(k, index);
        const RingLine<T> ring{line_of(job.a, index), line_of(job.b, index), line_of(job.c, index), line_of(job.d, index), line_of(job.x, index), line_of(job.right, index)[0],
                               line_of(job.left, index)[0], job.pieces.rows, job.scratch + slot, job.slots};
        const PivotedVerdict<T> verdict = ring.solve(job.adds);
        if (verdict.reason != Reason::exact) report_failure(job.outcome, job.status, job.levels.number_of(index), verdict.row, verdict.reason);
        else if (job.marks) report_rescued(job.outcome);
    }
}

/// Before rings are tried at their seams.
struct Fresh {
    DeviceOutcome *outcome[2], value[2];
    std::int8_t* status[2];
    std::int64_t systems[2], maxima_count;
    unsigned *unsettled, *maxima;
    unsigned char* heavy;        ///< as many as systems[1]
};

__global__ void __launch_bounds__(256) prepare_kernel(const __grid_constant__ Fresh fresh) {
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, all = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    let_the_next_begin();
    if (thread < 2) *fresh.outcome[thread] = fresh.value[thread];
    if (thread == 0) *fresh.unsettled = 0;
    for (std::int64_t i = thread; i < fresh.maxima_count; i += all) fresh.maxima[i] = 0;
    for (std::int64_t i = thread; i < fresh.systems[0]; i += all) fresh.status[0][i] = static_cast<std::int8_t>(Reason::exact);
    for (std::int64_t i = thread; i < fresh.systems[1]; i += all) fresh.status[1][i] = static_cast<std::int8_t>(Reason::exact), fresh.heavy[i] = 0;
}

/// As many as are there at a time where mostly they have nothing to do.
template <class T>
dim3 blocks_of(const Job<T>& job) {
    const dim3 all = job.pieces.blocks();
    return job.wanted ? dim3(std::min(all.x, static_cast<unsigned>(4 * multiprocessors_of_current()))) : all;
}

/// Marks rings that it does not solve.
template <class T>
void solve_by_last_rows(const System& ring, const BatchLaunch& launch, const Parts& parts, Job<T>& job) {
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    const System rhs = for_rhs(ring, scratch + parts.y), column = for_column(ring, parts.kept, scratch + parts.q);
    job.y = Source<T>(rhs.x), job.q = Source<T>(Packed(ring, parts.kept).at(scratch + parts.q));
    job.rhs_status = reinterpret_cast<std::int8_t*>(scratch + parts.statuses[0]), job.column_status = reinterpret_cast<std::int8_t*>(scratch + parts.statuses[1]);
    job.z = reinterpret_cast<T*>(scratch + parts.z), job.maxima = reinterpret_cast<unsigned*>(scratch + parts.maxima);
    job.accept = static_cast<T>(accepted_roundoffs(ring.rows) * std::numeric_limits<T>::epsilon() / 2);

    job.heavy = scratch + parts.heavy;

    Job<T> of_column = job;
    of_column.pieces = Pieces(column), of_column.levels = Levels(column);
    of_column.q = Source<T>(column.x), of_column.a = Source<T>(column.lower), of_column.b = Source<T>(column.diag), of_column.c = Source<T>(column.upper);
    for (int d = 0, next = 0; d < ring.levels; ++d) {
        if (!parts.kept[d]) continue;
        of_column.right.level_stride[next] = ring.top_right.level_stride[d], of_column.left.level_stride[next] = ring.bottom_left.level_stride[d];
        job.column_stride[d] = column.number_stride[next++];
    }
    const System* const solves[2] = {&rhs, &column};
    BatchLaunch inner[2] = {launch, launch};
    for (int k = 0; k < 2; ++k) {
        inner[k].outcome = reinterpret_cast<DeviceOutcome*>(scratch + k * up(sizeof(DeviceOutcome)));
        inner[k].status = reinterpret_cast<std::int8_t*>(scratch + parts.statuses[k]);
        inner[k].scratch = scratch + parts.rest, inner[k].scratch_bytes = launch.scratch_bytes - parts.rest;
    }
    // What was asked for while arrays had gaps, or the least, may do for less.
    const auto by_segments = [&](int k) { return parts.segments[k] && inner[k].scratch_bytes >= segments_scratch(*solves[k]); };
    if (parts.seams) {
        Fresh fresh;
        fresh.unsettled = reinterpret_cast<unsigned*>(scratch + parts.unsettled), fresh.maxima = job.maxima, fresh.maxima_count = seam_words * ring.systems();
        fresh.heavy = job.heavy;
        for (int k = 0; k < 2; ++k) {
            fresh.outcome[k] = inner[k].outcome, fresh.status[k] = inner[k].status, fresh.systems[k] = solves[k]->systems();
            fresh.value[k] = fresh_outcome(solves[k]->rows, solves[k]->systems(), static_cast<int>(Algorithm::two_pass));
        }
        const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>(fresh.maxima_count / 256, 1, 4 * multiprocessors_of_current()));
        enqueue_kernel(prepare_kernel, dim3(blocks), 256, 0, launch.stream, fresh);
        DeviceOutcome* const others[2] = {by_segments(0) ? nullptr : inner[0].outcome, by_segments(1) ? nullptr : inner[1].outcome};
        solve_at_seams(ring, inner[0], fresh.unsettled, others, job.maxima);
        job.wanted = of_column.wanted = fresh.unsettled;
    }
    if (!parts.seams) enqueue_fill(job.heavy, 0, static_cast<std::size_t>(column.systems()), launch.stream);
    launch_after(column_kernel<T>, blocks_of(of_column), Pieces::block_threads, 0, launch.stream, of_column);
    for (int k = 0; k < 2; ++k) {
        if (!parts.seams) enqueue_path(path_within(*solves[k], Algorithm::automatic, inner[k].scratch_bytes), *solves[k], inner[k]);
        else if (by_segments(k)) solve_segments(*solves[k], inner[k], const_cast<unsigned*>(job.wanted));
        else solve_windows(*solves[k], inner[k], {.after_others = true});
    }
    const auto each = dim3(static_cast<unsigned>(std::clamp<std::int64_t>((ring.systems() + Pieces::block_threads - 1) / Pieces::block_threads, 1, 1 << 16)));
    launch_after(join_kernel<T>, each, Pieces::block_threads, 0, launch.stream, job);
    launch_after(check_kernel<T>, blocks_of(job), Pieces::block_threads, 0, launch.stream, job);
    launch_after(store_kernel<T>, blocks_of(job), Pieces::block_threads, 0, launch.stream, job);
}

template <class T>
void solve(const System& ring, const BatchLaunch& launch) {
    // What was asked for while arrays had gaps may be less: which kernels take one matrix depends on how they lie.
    bool on_chip = fits_on_chip(ring);
    on_chip = on_chip || (rings_may_be_on_chip(ring) && launch.scratch_bytes < Parts(ring, false).least_bytes);
    const Parts parts(ring, on_chip);
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    Job<T> job{Pieces(ring), Levels(ring), Source<T>(ring.lower), Source<T>(ring.diag), Source<T>(ring.upper), Source<T>(ring.top_right), Source<T>(ring.bottom_left),
               Source<T>(ring.rhs), Source<T>(ring.x)};
    job.adds = ring.accumulate;
    job.outcome = launch.outcome, job.status = launch.status;
    job.scratch = reinterpret_cast<T*>(scratch + parts.rest), job.slots = line_slots(ring);
    reset_outcome(launch.outcome, ring.rows, ring.systems(), static_cast<int>(Algorithm::thomas), launch.stream);
    if (ring.rows >= 3) {
        job.marks = scratch + parts.marks;
        on_chip ? solve_rings_on_chip(ring, job.marks, launch.outcome, launch.stream) : solve_by_last_rows(ring, launch, parts, job);
    }
    const auto blocks = dim3(static_cast<unsigned>((job.slots + line_threads - 1) / line_threads));
    launch_after(pivoted_ring_kernel<T>, dim3(blocks), line_threads, 0, launch.stream, job);
}

}  // namespace

const char* rings_refuse(const System& system) { return system.rows > most_rows ? "this device's kernels take rings of at most 2^24 rows" : nullptr; }

std::size_t rings_scratch(const System& system) { return Parts(system).bytes; }
std::size_t rings_least_scratch(const System& system) { return Parts(system).least_bytes; }

void solve_rings(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
