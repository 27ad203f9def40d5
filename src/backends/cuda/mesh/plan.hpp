// SPDX-License-Identifier: BSD-3-Clause
// Which kinds of kernels run the sweeps of a problem. Each kind takes some problems; the first that takes it runs it, and hands over to
// the next where it finds, on the way, that its elimination would not be safe. The last one takes everything.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/failure.hpp"
#include "problems/mesh/checked.hpp"
#include "trifold/outcome.hpp"

namespace trifold::cuda {

/// What a plan asks of a GPU. Without one, what an H200 has.
struct Chip {
    int architecture = 90, multiprocessors = 132;
    std::size_t shared_per_block = 227 * 1024, shared_per_multiprocessor = 228 * 1024, l2 = std::size_t{50} << 20;

    bool has_clusters() const noexcept { return architecture >= 90; }
};

bool chip_of(int device, Chip& chip, Failure& failure);

/// What the kernels of a run find out, in the device's memory: changed by atomics whose order does not matter. Sweeps are numbered
/// through the whole run: step × sweeps per step + sweep.
struct MeshState {
    static constexpr unsigned long long nothing = ~0ull;

    unsigned long long done = 0;         ///< sweeps whose targets are stored; a kind begins with this one. Written by whoever runs them
    unsigned long long failures = 0;     ///< lines without a solution, all in the one sweep after which the run stops
    unsigned long long rescued = 0;      ///< lines that needed pivots
    unsigned long long first = nothing;  ///< least key of a failure
    unsigned refused = 0;                ///< the kind that runs found its elimination unsafe: targets are as after `done` sweeps
    unsigned stop = 0;                   ///< failed or refused: what is still enqueued does nothing

    /// Order: line solve of the sweep, then place of a row among the points ((mesh z + z) y + y) x + x, then reason.
    static constexpr unsigned long long key(int line, std::int64_t point, Reason reason) {
        return (static_cast<unsigned long long>(line) << 56) | (static_cast<unsigned long long>(point) << 3) | static_cast<unsigned long long>(-static_cast<int>(reason));
    }
};

/// One run as its kernels see it: everything lies in the device's memory, whose device is current.
struct MeshRun {
    const mesh::Checked& checked;
    const Chip& chip;
    std::int64_t first_step = 0, steps = 0;
    std::int64_t from = 0;         ///< sweeps that have been done before
    cudaStream_t stream = nullptr;
    void* scratch = nullptr;       ///< aligned to 256; what `bytes` said
    MeshState* state = nullptr;    ///< not stopped on entry
};

struct MeshKind {
    const char* name;

    /// nullptr, or why not, as a phrase that follows "because".
    const char* (*refuses)(const mesh::Checked& checked, const Chip& chip);
    std::size_t (*bytes)(const mesh::Checked& checked, const Chip& chip);

    /// The program that it runs: compiled in tests without a GPU.
    std::string (*program)(const mesh::Checked& checked, const Chip& chip);

    /// Enqueues sweeps from … steps × sweeps - 1, or runs them with looks at the state between. On return (or when the stream comes there)
    /// state has what happened.
    bool (*run)(const MeshRun& run, Failure& failure);
};

/// In the order in which they are asked.
std::span<const MeshKind* const> mesh_kinds();

}  // namespace trifold::cuda
