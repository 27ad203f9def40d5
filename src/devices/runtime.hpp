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

struct Runtime {
    /// Aligned to 256. Says what was asked and what is free where that is less.
    bool (*allocate)(int device, std::size_t bytes, void** memory, Failure& failure) = nullptr;
    void (*release)(int device, void* memory) = nullptr;
    bool (*memory_info)(int device, std::size_t* free, std::size_t* total, Failure& failure) = nullptr;

    /// Where an address lies: host, registered, or device with the number of the device whose kernels may read it.
    Memory (*where)(int device, const void* address) = nullptr;

    /// Enqueues a copy in any direction. Ordinary host memory may be read before it returns, and is written before it returns.
    bool (*copy)(int device, void* stream, void* to, const void* from, std::size_t bytes, Failure& failure) = nullptr;

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

    /// Optional. Enqueues x += alpha g + beta h over arrays of its memory; sizes[0] and sizes[1], there too, become the largest |x| + |alpha g| + |beta h| that was
    /// met and the largest |x| that was made of it.
    bool (*combine)(int device, void* stream, DType dtype, std::int64_t rows, void* x, const void* g, const void* h, double alpha, double beta, double* sizes,
                    Failure& failure) = nullptr;

    /// The roof: bytes per second of the fastest stream found that reads `reads` (1 to 4) arrays of `bytes` bytes and writes one
    /// more, or the last of them (`in_place`). Takes that memory and gives it back; waits.
    bool (*bandwidth)(int device, void* stream, int reads, bool in_place, std::size_t bytes, double* bytes_per_s, Failure& failure) = nullptr;

    /// Joules that the device has used since some moment; nullptr where it has no counter.
    bool (*joules)(int device, double* joules, Failure& failure) = nullptr;
};

}  // namespace trifold::devices
