// SPDX-License-Identifier: BSD-3-Clause
// Which kernel takes rings on chip: one for one matrix (shared/plan.hpp), that of columns whose ends are joined (block/columns_dominant.cuh), or a thread a chunk (ring_tiles.cuh). What they mark is a warp's, or a
// cluster's of warps (ring_kernel.cuh), and what that one marks is left to pivots.
#include "backends/cuda/tridiagonal/general/ring_chip.hpp"

#include <algorithm>
#include <limits>

#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "backends/cuda/tridiagonal/block/columns_job.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/pieces.cuh"
#include "backends/cuda/tridiagonal/general/ring_kernel.cuh"
#include "backends/cuda/tridiagonal/general/ring_tiles.cuh"
#include "backends/cuda/tridiagonal/shared/plan.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

// Accepted residual of a lane's rows, in units of roundoff, against max|b| max|x| of theirs.
constexpr double accepted_on_chip = 16;

template <class T>
bool takes_one_matrix(const System& ring) { return !ring.accumulate && plan_shared<T>(ring).kernel; }

template <class T, bool Couple>
void launch_on_chip(const RingJob<T>& job, cudaStream_t stream) {
    auto* const kernel = ring_kernel<T, Couple>;
    static PerDevice prepared;
    prepared.once([&] {
        allow_shared_memory(kernel);
        if (Couple) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    });
    cudaLaunchConfig_t config = {};
    // Mostly there is nothing to do: no more blocks than are there at a time have to find that out.
    const std::int64_t clusters = std::min<std::int64_t>((job.levels.systems + rings_of_block - 1) / rings_of_block, (3 * multiprocessors_of_current() + job.blocks - 1) / job.blocks);
    config.gridDim = dim3(static_cast<unsigned>(clusters * job.blocks));
    config.blockDim = dim3(32 * rings_of_block);
    config.dynamicSmemBytes = sizeof(RingMemory<T, Couple>) + 4 * sizeof(T) * static_cast<std::size_t>(rings_elements(std::min(job.rows, 32 * ring_chunk)));
    config.stream = stream;
    cudaLaunchAttribute attributes[2];
    config.attrs = attributes;
    if (Couple) attributes[config.numAttrs++] = cluster_of(static_cast<unsigned>(job.blocks));
    if (job.only_marked) while_the_kernel_before_ends(attributes[config.numAttrs++]);
    enqueue_kernel(config, kernel, job);
}

/// Whether a tile of it is whole vectors: rings one after the other without gaps, or side by side in rows that begin at vectors. A corner has to be the row of the operand that it stands in.
template <class T>
bool by_vectors(const System& ring, const Operand& operand, const Operand* corner, std::int64_t row, const RingTileJob<T>& job) {
    constexpr std::int64_t word = sizeof(T);
    const auto even = [](std::int64_t elements) { return elements * word % 16 == 0; };
    if (operand.kind != Operand::Kind::view || reinterpret_cast<std::uintptr_t>(operand.data) % 16 != 0) return false;
    if (corner && !is_row_of(ring, *corner, operand, row)) return false;
    const int last = ring.levels - 1;
    if (job.rings.along_rows) return operand.row_stride == 1 && ring.levels <= 1 && (last < 0 || operand.level_stride[0] == ring.rows) && even(job.cut.rings * ring.rows);
    if (operand.level_stride[last] != 1 || !even(operand.row_stride) || !even(job.cut.rings)) return false;
    for (int d = 0; d < last; ++d)
        if (!even(operand.level_stride[d])) return false;
    return last == 0 || ring.extent[last] % job.cut.rings == 0;
}

template <class T>
void launch_tiles(const RingTileJob<T>& job, cudaStream_t stream) {
    auto* const kernel = ring_tile_kernel<T>;
    static PerDevice prepared;
    prepared.once([&] { allow_shared_memory(kernel); });
    const auto blocks = static_cast<unsigned>((job.rings.levels.systems + job.cut.rings - 1) / job.cut.rings);
    enqueue_kernel(kernel, dim3(blocks), static_cast<unsigned>(job.cut.threads), static_cast<std::size_t>(job.cut.shared_bytes), stream, job);
}

/// Rings that share their matrix. false: not for these kernels.
template <class T>
bool launch_one_matrix(const System& ring, const RingJob<T>& job, cudaStream_t stream) {
    if (job.adds) return false;
    SharedPlan<T> plan = plan_shared<T>(ring);
    if (!plan.kernel) return false;
    plan.job.marks = job.marks, plan.job.handed_over = &job.outcome->handed_over, plan.job.tickets = &job.outcome->tickets;
    plan.kernel->launch(plan.job, stream);
    return true;
}

/// Rings side by side as columns whose ends are joined. false: not for these kernels.
template <class T>
bool launch_columns_closed(const System& ring, const RingJob<T>& job, cudaStream_t stream) {
    if (job.adds || !is_row_of(ring, ring.top_right, ring.lower, 0) || !is_row_of(ring, ring.bottom_left, ring.upper, ring.rows - 1)) return false;
    const TileJob<T> from = tile_job<T>(ring);
    ColumnCut cut;
    ColumnJob<T> columns;
    if (!columns_side_by_side(from) || !cut_rings(from, cut) || !column_job(from, cut, columns)) return false;
    columns.marks = job.marks, columns.handed_over = &job.outcome->handed_over, columns.tickets = &job.outcome->tickets;
    launch_rings(columns, stream);
    return true;
}

template <class T>
void solve(const System& ring, unsigned char* marks, DeviceOutcome* outcome, cudaStream_t stream) {
    RingJob<T> chip{Levels(ring), {Source<T>(ring.lower), Source<T>(ring.diag), Source<T>(ring.upper), Source<T>(ring.rhs), Source<T>(ring.x)}, Source<T>(ring.top_right), Source<T>(ring.bottom_left)};
    chip.rows = static_cast<int>(ring.rows), chip.blocks = (chip.rows + 32 * ring_chunk - 1) / (32 * ring_chunk);
    chip.along_rows = Pieces(ring).along_rows, chip.adds = ring.accumulate;
    chip.accept = static_cast<T>(accepted_on_chip * std::numeric_limits<T>::epsilon() / 2);
    chip.marks = marks, chip.outcome = outcome;
    if (launch_one_matrix(ring, chip, stream) || launch_columns_closed(ring, chip, stream)) {
        chip.only_marked = true;
    } else if (RingTileJob<T> tiles{chip, {}}; cut_ring_tiles<T>(chip.rows, chip.along_rows, tiles.cut)) {
        const Operand* const operands[5] = {&ring.lower, &ring.diag, &ring.upper, &ring.rhs, &ring.x};
        for (int m = 0; m < 5; ++m)
            if (by_vectors<T>(ring, *operands[m], m == 0 ? &ring.top_right : m == 2 ? &ring.bottom_left : nullptr, m == 2 ? ring.rows - 1 : 0, tiles)) tiles.vectors |= 1u << m;
        if (chip.adds) tiles.vectors &= 15u;
        launch_tiles(tiles, stream), chip.only_marked = true;
    }
    chip.blocks > 1 ? launch_on_chip<T, true>(chip, stream) : launch_on_chip<T, false>(chip, stream);
}

}  // namespace

bool rings_may_be_on_chip(const System& ring) { return ring.rows >= 3 && ring.rows <= most_rows_on_chip && ring.systems() < std::int64_t{1} << 29 && has_clusters(); }

bool one_matrix_stays_on_chip(const System& ring) { return ring.dtype == DType::f64 ? takes_one_matrix<double>(ring) : takes_one_matrix<float>(ring); }

void solve_rings_on_chip(const System& ring, unsigned char* marks, DeviceOutcome* outcome, cudaStream_t stream) {
    if (ring.dtype == DType::f32) solve<float>(ring, marks, outcome, stream);
    else solve<double>(ring, marks, outcome, stream);
}

}  // namespace trifold::cuda
