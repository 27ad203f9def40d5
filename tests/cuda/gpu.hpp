// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trifold/trifold.hpp"

namespace trifold::tests {

#define TRIFOLD_CUDA(call) ASSERT_EQ(cudaSuccess, call) << cudaGetErrorString(cudaPeekAtLastError())

/// Why there is no cuda:0 here; empty where there is.
inline std::string no_gpu(Context& context) {
    try {
        Queue queue(context, "cuda:0");
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

/// On cuda:0; skipped, saying why, where there is none.
class OnGpu : public ::testing::Test {
protected:
    void SetUp() override {
        const std::string why = no_gpu(context);
        if (!why.empty()) GTEST_SKIP() << why;
        queue.emplace(context, "cuda:0");
    }

    Context context{{.threads = 1, .profile_path = "none", .log = {}}};
    std::optional<Queue> queue;
};

/// An array of the user's own cudaMalloc.
template <class T>
struct Owned {
    T* data = nullptr;
    std::size_t size;

    explicit Owned(const std::vector<T>& values) : size(values.size()) {
        if (cudaMalloc(reinterpret_cast<void**>(&data), size * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
        set(values);
    }
    ~Owned() { cudaFree(data); }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

    /// Until it is there: a copy from pageable memory returns before that, and streams that do not block would not wait for it.
    void set(const std::vector<T>& values) {
        cudaMemcpy(data, values.data(), size * sizeof(T), cudaMemcpyHostToDevice);
        cudaDeviceSynchronize();
    }
    std::vector<T> get() const {
        std::vector<T> out(size);
        cudaMemcpy(out.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost);
        return out;
    }
};

}  // namespace trifold::tests
