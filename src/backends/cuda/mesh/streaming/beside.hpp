// SPDX-License-Identifier: BSD-3-Clause
// Streams beside a caller's, on which groups of a batch's meshes take their passes: where the last tasks of one group's pass leave multiprocessors idle, another group's fill them.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/failure.hpp"

namespace trifold::cuda::streaming {

class Beside {
public:
    Beside() = default;
    ~Beside();
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;

    /// As many streams, the first of them the caller's; the others begin when what it has been given is done.
    bool begin(cudaStream_t caller, int count, Failure& failure);
    cudaStream_t stream(int group) const { return streams_[static_cast<std::size_t>(group)].stream; }
    /// The group has enqueued a sweep, which counts from 0.
    bool done(int group, std::int64_t sweep, Failure& failure);
    /// What the group enqueues next comes after this sweep of all others.
    bool after_others(int group, std::int64_t sweep, Failure& failure);
    /// What the caller enqueues next comes after all of it.
    bool end(Failure& failure);

private:
    struct One {
        cudaStream_t stream = nullptr;
        std::array<cudaEvent_t, 3> event{};  // by sweeps modulo 3: a group may be two ahead
    };
    static std::vector<One>& idle(int device);

    int device_ = 0;
    bool ended_ = true;
    cudaStream_t own_ = nullptr;  // of the first, while the caller's is in its place
    std::vector<One> streams_;
};

}  // namespace trifold::cuda::streaming
