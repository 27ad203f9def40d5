// SPDX-License-Identifier: BSD-3-Clause
// Kernels and fills as one solve enqueues them, noted so that the next call that asks for the same needs no planning: an idle GPU waits for the host.
// All that a solve enqueues goes through here; what did not would be missing from the second call on.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <type_traits>
#include <vector>

namespace trifold::cuda {

/// What a solve has enqueued, arguments included, in order.
class Launches {
public:
    static constexpr int most_arguments = 4, most_attributes = 4;

    bool empty() const noexcept { return launches_.empty(); }
    void clear() noexcept { launches_.clear(), used_ = 0; }

    /// Enqueues all of it. Errors are kept (launch_error.hpp).
    void enqueue(cudaStream_t stream);

    void note(const cudaLaunchConfig_t& config, const void* kernel, void* const* arguments, const std::size_t* bytes, int count);
    void note_fill(void* to, int value, std::size_t bytes);

private:
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    struct Launch {
        const void* kernel = nullptr;  ///< null: a fill
        cudaLaunchConfig_t config = {};
        cudaLaunchAttribute attributes[most_attributes];
        std::size_t at[most_arguments] = {};  ///< of the arguments, in lines
        int count = 0, value = 0;
        void* to = nullptr;
        std::size_t bytes = 0;
    };
    std::vector<Launch> launches_;
    std::vector<Line> arguments_;
    std::size_t used_ = 0;
};

/// While it lives, what the calling thread enqueues is noted as well.
class Noting {
public:
    explicit Noting(Launches& to);
    ~Noting();
    Noting(const Noting&) = delete;
    Noting& operator=(const Noting&) = delete;
};

void enqueue_kernel(const cudaLaunchConfig_t& config, const void* kernel, void* const* arguments, const std::size_t* bytes, int count);
cudaError_t enqueue_fill(void* to, int value, std::size_t bytes, cudaStream_t stream);

template <class... P>
void enqueue_kernel(const cudaLaunchConfig_t& config, void (*kernel)(P...), const std::type_identity_t<P>&... arguments) {
    static_assert((std::is_trivially_copyable_v<P> && ...) && sizeof...(P) <= Launches::most_arguments);
    void* const pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    const std::size_t bytes[] = {sizeof(P)...};
    enqueue_kernel(config, reinterpret_cast<const void*>(kernel), pointers, bytes, static_cast<int>(sizeof...(P)));
}

/// As kernel<<<blocks, threads, shared, stream>>>(arguments...).
template <class... P>
void enqueue_kernel(void (*kernel)(P...), dim3 blocks, unsigned threads, std::size_t shared, cudaStream_t stream, const std::type_identity_t<P>&... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks, config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    enqueue_kernel(config, kernel, arguments...);
}

}  // namespace trifold::cuda
