// SPDX-License-Identifier: BSD-3-Clause
// One system cut into chunks: this device's verbs of the contract, and whole solves where its memory is its own.
#pragma once

#include "backends/opencl/tridiagonal/judging.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::opencl {

/// Where a device with memory of its own has what kernels need. Launch::stream points to one; its other pointers are the host's.
struct OwnMemory {
    void* scratch;
    std::size_t bytes;
    void* outcome;
    void* queue;  ///< a DeviceQueue, null: the device's main one
};

/// Where the kernels of chunks.cl have their numbers, in the system's type.
struct ChunkLayout {
    ChunkParts parts;
    word kept_step, pitch, numbers;
    ChunkLayout(bool wide, const tridiagonal::System& system, std::int64_t chunk_rows);
};

/// On a GPU (kernels/chunk_tiles.cl). gate: what must have been found before, 0: they run in any case.
void enqueue_tile_reduce(Call& call, const Cut& cut, const ChunkParts& parts, cl_int correct, cl_uint gate);
void enqueue_tile_finish(Call& call, const Cut& cut, const ChunkLayout& layout, const ChunkParts& parts, cl_int correct, double accept, cl_uint gate);

/// The same of x that is there whatever its residual, and the outcome is told.
void enqueue_tile_finish_judged(Call& call, const Cut& cut, const ChunkLayout& layout, const ChunkParts& parts, cl_int correct, cl_uint gate, const Judging& by);

/// Bytes for these verbs, on the device.
std::size_t chunk_scratch(bool wide, const tridiagonal::System& system, std::int64_t chunk_rows);

/// As in Ops. `corrects` holds.
void reduce(const tridiagonal::System& system, const tridiagonal::Partition& partition, const tridiagonal::Launch& launch,
            tridiagonal::InterfaceRow* rows, std::int64_t* zero_pivot);
void finish(const tridiagonal::System& system, const tridiagonal::Partition& partition, const tridiagonal::Launch& launch, const double* boundary,
            double accept, tridiagonal::ChunkResidual* residuals);
void restore(const tridiagonal::System& system, const tridiagonal::Partition& partition, const tridiagonal::Launch& launch, const double* boundary,
             tridiagonal::ChunkResidual* residuals);

}  // namespace trifold::opencl
