// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/runtime/launches.hpp"

#include "backends/cuda/runtime/launch_error.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace trifold::cuda {
namespace {

thread_local Launches* noting = nullptr;
thread_local cudaError_t first_error = cudaSuccess;

cudaError_t kept(cudaError_t error) {
    if (first_error == cudaSuccess) first_error = error;
    return error;
}

}  // namespace

void keep_launch_error(cudaError_t error) { kept(error); }

cudaError_t launch_error() {
    const cudaError_t last = cudaGetLastError(), first = std::exchange(first_error, cudaSuccess);
    return first != cudaSuccess ? first : last;
}

Noting::Noting(Launches& to) {
    to.clear();
    noting = &to;
}
Noting::~Noting() { noting = nullptr; }

void Launches::note(const cudaLaunchConfig_t& config, const void* kernel, void* const* arguments, const std::size_t* bytes, int count) {
    Launch& launch = launches_.emplace_back();
    launch.kernel = kernel, launch.config = config, launch.count = count;
    launch.config.numAttrs = std::min<unsigned>(config.numAttrs, most_attributes);
    std::copy(config.attrs, config.attrs + launch.config.numAttrs, launch.attributes);
    for (int k = 0; k < count; ++k) {
        const std::size_t lines = (bytes[k] + sizeof(Line) - 1) / sizeof(Line);
        launch.at[k] = used_;
        used_ += lines;
        if (arguments_.size() < used_) arguments_.resize(used_);
        std::memcpy(&arguments_[launch.at[k]], arguments[k], bytes[k]);
    }
}

void Launches::note_fill(void* to, int value, std::size_t bytes) {
    Launch& launch = launches_.emplace_back();
    launch.to = to, launch.value = value, launch.bytes = bytes;
}

void Launches::enqueue(cudaStream_t stream) {
    for (Launch& launch : launches_) {
        if (!launch.kernel) {
            kept(cudaMemsetAsync(launch.to, launch.value, launch.bytes, stream));
            continue;
        }
        void* arguments[most_arguments];
        for (int k = 0; k < launch.count; ++k) arguments[k] = &arguments_[launch.at[k]];
        launch.config.stream = stream, launch.config.attrs = launch.attributes;
        kept(cudaLaunchKernelExC(&launch.config, launch.kernel, arguments));
    }
}

void enqueue_kernel(const cudaLaunchConfig_t& config, const void* kernel, void* const* arguments, const std::size_t* bytes, int count) {
    kept(cudaLaunchKernelExC(&config, kernel, const_cast<void**>(arguments)));
    if (noting) noting->note(config, kernel, arguments, bytes, count);
}

cudaError_t enqueue_fill(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    if (noting) noting->note_fill(to, value, bytes);
    return kept(cudaMemsetAsync(to, value, bytes, stream));
}

}  // namespace trifold::cuda
