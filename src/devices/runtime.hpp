// SPDX-License-Identifier: BSD-3-Clause
// What a device with memory of its own offers besides its solvers: a plain table, since it may lie in a shared object of its
// own. `device` is its number there, `stream` the user's (CUDA: cudaStream_t; null = the default stream). Functions that
// return bool fill the failure where they return false.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/failure.hpp"
#include "trifold/dtype.hpp"
#include "trifold/memory.hpp"

namespace trifold::devices {

/// Pieces of `rows` rows each, one after the other in a device's memory, between unknowns that are known: x before the first piece, x of every piece's first and last row, x behind the last piece,
/// 2 count + 2 numbers. A coupling that is no array is a number; one that meets a known 0 is not read.
struct Pieces {
    DType dtype = DType::f64;
    std::int64_t count = 0, rows = 0;
    const void *lower = nullptr, *upper = nullptr;
    double lower_value = 0, upper_value = 0;
    void* rhs = nullptr;
    const void* x = nullptr;
    const void* known = nullptr;
};

/// Elements of an array for those of another: to[sum of index × to_stride] = from[sum of index × from_stride] for every index below the extents. Strides count elements; of `from` they may be 0 or negative.
struct StridedCopy {
    static constexpr int most_dims = 5;
    DType dtype = DType::f64;
    const void* from = nullptr;
    void* to = nullptr;
    int dims = 0;  ///< the last one runs fastest; at least one
    std::int64_t extent[most_dims] = {}, from_stride[most_dims] = {}, to_stride[most_dims] = {};

    std::int64_t elements() const noexcept {
        std::int64_t count = 1;
        for (int d = 0; d < dims; ++d) count *= extent[d];
        return count;
    }
};

struct Runtime {
    /// Aligned to 256. Says what was asked and what is free where that is less.
    bool (*allocate)(int device, std::size_t bytes, void** memory, Failure& failure) = nullptr;
    void (*release)(int device, void* memory) = nullptr;
    bool (*memory_info)(int device, std::size_t* free, std::size_t* total, Failure& failure) = nullptr;

    /// Where an address lies: host, registered, or device with the number of the device whose kernels may read it. A driver that fails does not tell: what it is asked of may be no host's.
    bool (*where)(int device, const void* address, Memory* found, Failure& failure) = nullptr;

    /// Enqueues a copy in any direction. Ordinary host memory may be read before it returns, and is written before it returns.
    bool (*copy)(int device, void* stream, void* to, const void* from, std::size_t bytes, Failure& failure) = nullptr;

    /// Optional. Enqueues a copy between two arrays of its memory that do not overlap, at least one element.
    bool (*copy_strided)(int device, void* stream, const StridedCopy& copy, Failure& failure) = nullptr;

    /// Waits for the stream.
    bool (*synchronize)(int device, void* stream, Failure& failure) = nullptr;

    /// What must be known before anything is enqueued. Waits for the stream where `wait`; an error of what was enqueued
    /// before is reported as the caller's. `capturing`: work is being recorded into a graph, not run.
    bool (*enter)(int device, void* stream, bool wait, bool* capturing, Failure& failure) = nullptr;

    /// Marks in the stream, and the seconds between two of them that have been passed.
    bool (*mark)(int device, void* stream, void** event, Failure& failure) = nullptr;
    bool (*seconds)(int device, void* from, void* to, double* seconds, Failure& failure) = nullptr;
    void (*release_mark)(int device, void* event) = nullptr;

    /// Optional, all or none: queues besides the user's, whose work overlaps with that of others; in one of them, waiting for a mark in another; pinned
    /// memory of the host (aligned to 256), which copies move at the link's pace while the host goes on; and a user's memory made so.
    bool (*open_stream)(int device, void** stream, Failure& failure) = nullptr;
    void (*close_stream)(int device, void* stream) = nullptr;
    bool (*wait_for)(int device, void* stream, void* event, Failure& failure) = nullptr;
    bool (*allocate_pinned)(int device, std::size_t bytes, void** memory, Failure& failure) = nullptr;
    void (*release_pinned)(int device, void* memory) = nullptr;
    bool (*register_host)(int device, void* memory, std::size_t bytes, Failure& failure) = nullptr;
    void (*unregister_host)(int device, void* memory) = nullptr;

    /// Optional, both or none, over `count` parts of `rows` rows each, one after the other in arrays of its memory. `gather_ends` enqueues that ends[6 k …] become y, g and h of part k, of each its first and its last.
    /// `combine`: x += factors[2 k] g + factors[2 k + 1] h; sizes[2 k] and sizes[2 k + 1], there too, become the largest |x| + |factors[2 k] g| + |factors[2 k + 1] h| that was met in part k and the largest |x| that was made of it.
    bool (*gather_ends)(int device, void* stream, DType dtype, std::int64_t count, std::int64_t rows, const void* y, const void* g, const void* h, void* ends, Failure& failure) = nullptr;
    bool (*combine)(int device, void* stream, DType dtype, std::int64_t count, std::int64_t rows, void* x, const void* g, const void* h, const void* factors, double* sizes, Failure& failure) = nullptr;

    /// Optional, both or none. `close_pieces` enqueues that rhs of every piece's first and last row loses what the unknowns beside the piece contribute, so that the pieces are systems of their own.
    /// `judge_pieces`: *worst, there too, becomes the largest difference of a piece's first or last x from what is known of it, over the piece's largest |x|; infinite where that is no number.
    bool (*close_pieces)(int device, void* stream, const Pieces& pieces, Failure& failure) = nullptr;
    bool (*judge_pieces)(int device, void* stream, const Pieces& pieces, float* worst, Failure& failure) = nullptr;

    /// The roof: bytes per second of the fastest stream found that reads `reads` (1 to 4) arrays of `bytes` bytes and writes one
    /// more, or the last of them (`in_place`). Takes that memory and gives it back; waits.
    bool (*bandwidth)(int device, void* stream, int reads, bool in_place, std::size_t bytes, double* bytes_per_s, Failure& failure) = nullptr;

    /// Where an NVIDIA GPU sits on PCI, "0000:3b:00.0", by which NVML tells its energy and power. nullptr, or false, for what NVML does not know.
    bool (*pci_bus)(int device, char* bus, std::size_t bytes, Failure& failure) = nullptr;
};

}  // namespace trifold::devices
