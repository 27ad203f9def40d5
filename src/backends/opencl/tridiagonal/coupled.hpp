// SPDX-License-Identifier: BSD-3-Clause
// One system that needs pivots, on a GPU, without the host: chunks are reduced, coupled and finished by kernels that follow each other (kernels/chunk_tiles.cl, kernels/couple.cl).
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// Rows of a chunk on a device with memory of its own.
inline constexpr std::int64_t own_chunk_rows = 32;

/// Shorter ones are not worth being cut.
inline constexpr std::int64_t least_cut_rows = 512;

/// What the call needs of scratch; 0: it is too short.
std::size_t coupled_scratch(const tridiagonal::System& system);

/// Enqueues both passes, and, where `corrects`, both once more for the correction, which do nothing where it is not asked for. The outcome is `unstable` where x is not the answer.
/// x is not rhs. gate: what must have been found before, 0: they run in any case. trusted: nobody waits, and what does not hold is counted (trusted.hpp).
void enqueue_coupled(Call& call, cl_uint gate, bool trusted = false, bool corrects = true);

}  // namespace trifold::opencl
