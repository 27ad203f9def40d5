// SPDX-License-Identifier: BSD-3-Clause
// How many blocks of a kernel a GPU holds at a time: what stays until no tile is left is launched so many times.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <mutex>

namespace trifold::cuda {

/// Clusters of `blocks` blocks that are on the GPU at a time. Asked anew only where a launch has another shape than the one before.
class Residency {
public:
    template <class... Arguments>
    unsigned operator()(void (*kernel)(Arguments...), const cudaLaunchConfig_t& config, unsigned blocks) {
        int device = 0;
        if (cudaGetDevice(&device) != cudaSuccess) return 1;
        const std::scoped_lock lock(mutex_);
        const Shape shape{device, config.blockDim.x, blocks, config.dynamicSmemBytes};
        if (!(shape == asked_)) {
            int clusters = 0, multiprocessors = 0;
            if (blocks > 1) {
                if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) clusters = 1;
            } else if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&clusters, kernel, static_cast<int>(config.blockDim.x), config.dynamicSmemBytes) == cudaSuccess &&
                       cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) == cudaSuccess) {
                clusters *= multiprocessors;
            }
            asked_ = shape, clusters_ = static_cast<unsigned>(std::max(clusters, 1));
        }
        return clusters_;
    }

private:
    struct Shape {
        int device = -1;
        unsigned threads = 0, blocks = 0;
        std::size_t shared = 0;
        bool operator==(const Shape&) const = default;
    };
    std::mutex mutex_;
    Shape asked_;
    unsigned clusters_ = 1;
};

}  // namespace trifold::cuda
