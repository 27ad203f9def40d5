// SPDX-License-Identifier: BSD-3-Clause
// The roof: how fast this GPU moves a solve's mix of reads and writes when nothing is computed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace trifold::cuda {

/// Arrays of one pass, each of `bytes` bytes (a multiple of 16) and aligned to 16. With `write` null the last one read is also
/// written: in place.
struct StreamArrays {
    const void* read[4] = {};
    int reads = 4;
    void* write = nullptr;
    std::size_t bytes = 0;

    /// Moved by one pass.
    double moved() const { return static_cast<double>(bytes) * (reads + 1); }
};

/// Ways to walk the arrays: independent 16-byte loads of each array in flight per thread.
inline constexpr int stream_shapes = 3;

/// Enqueues one pass. What is written is the sum of what was read, as f64; in place the arrays' values change.
void stream_pass(const StreamArrays& arrays, int shape, cudaStream_t stream);

/// Bytes per second of the best shape, each the median of `passes` single passes; 0 where a pass failed (last error says why).
double measure_stream(const StreamArrays& arrays, int passes, cudaStream_t stream);

}  // namespace trifold::cuda
