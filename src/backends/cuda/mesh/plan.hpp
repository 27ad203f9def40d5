// SPDX-License-Identifier: BSD-3-Clause
// Which kinds of kernels run the sweeps of a problem. Each kind takes some problems; the first that takes it runs it, and hands over to
// the next where it finds, on the way, that its elimination would not be safe. The last one takes everything.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "backends/cuda/mesh/chip.hpp"
#include "backends/cuda/mesh/state.hpp"
#include "base/failure.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda {

bool chip_of(int device, Chip& chip, Failure& failure);

/// One run as its kernels see it: everything lies in the device's memory, whose device is current.
struct MeshRun {
    const mesh::Checked& checked;
    const Chip& chip;
    std::int64_t first_step = 0, steps = 0;
    std::int64_t from = 0;         ///< sweeps that have been done before, of steps × sweeps
    cudaStream_t stream = nullptr;
    void* scratch = nullptr;       ///< aligned to 256; what `bytes` said
    MeshState* state = nullptr;    ///< nothing has failed yet
};

struct MeshKind {
    const char* name;

    /// nullptr, or why not, as a phrase that follows "because".
    const char* (*refuses)(const mesh::Checked& checked, const Chip& chip);
    std::size_t (*bytes)(const mesh::Checked& checked, const Chip& chip);

    /// The program that it runs: compiled in tests without a GPU.
    std::string (*program)(const mesh::Checked& checked, const Chip& chip);

    /// Enqueues the sweeps from `from` on, or runs them with looks at the state between. When the stream has come there, `state` has what
    /// happened. Only a kind that may refuse on its way sets refused_at, and then the next one goes on from there.
    bool (*run)(const MeshRun& run, Failure& failure);
};

/// In the order in which they are asked.
std::span<const MeshKind* const> mesh_kinds();

}  // namespace trifold::cuda
