// SPDX-License-Identifier: BSD-3-Clause
// One system that forgets takes one pass on a vector unit (kernels/strips.cl). What fails there is solved right all the same, in more passes: calls of OpenCL are counted (failing_layer.cpp).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

class OnePass : public testing::Test {
protected:
    void SetUp() override {
        const Device* const device = opencl_device();
        if (!device) GTEST_SKIP() << no_device;
        if (std::string(device->description(*device)).find(", cpu, ") == std::string::npos) GTEST_SKIP() << "not a vector unit in the host's memory";
        device_ = device->name;
        calls_ = layer_function<long()>("trifold_calls"), reset_ = layer_function<void(long, int)>("trifold_fail_call");
        if (!calls_) GTEST_SKIP() << no_layer;
    }

    /// -1, diag, -1 with x = 1 everywhere, whose arrays begin `shift` numbers behind a cache line. Calls of the second solve; -1 where x is wrong.
    template <class T>
    long calls(std::int64_t rows, std::int64_t shift, T diag) {
        const auto size = static_cast<std::size_t>(rows + shift) + 64 / sizeof(T);
        std::vector<T> a(size, T(-1)), b(size), f(size), x(size);
        const auto from = [&](std::vector<T>& v) { return v.data() + (64 - reinterpret_cast<std::uintptr_t>(v.data()) % 64) % 64 / sizeof(T) + shift; };
        for (std::int64_t i = 0; i < rows; ++i) {
            from(b)[i] = diag + (diag > 2 ? T(i % 17) / 16 : T(0));
            from(f)[i] = from(b)[i] - T(i > 0) - T(i + 1 < rows);
        }
        const auto view = [&](std::vector<T>& v) { return View<const T>::rows(std::span<const T>(from(v), static_cast<std::size_t>(rows))); };
        Context context({.threads = 2, .profile_path = "none", .log = {}});
        Queue queue(context, device_);
        tridiagonal::Problem problem;
        problem.matrix = {view(a), view(b), view(a)};
        problem.rhs = view(f), problem.x = View<T>::rows(std::span<T>(from(x), static_cast<std::size_t>(rows)));
        for (int turn = 0; turn < 2; ++turn) {
            reset_(-1, 0);
            if (!tridiagonal::solve(queue, problem).ok()) return -1;
        }
        const long made = calls_();
        const T most = diag > 2 ? T(sizeof(T) == 8 ? 1e-14 : 1e-5) : T(1);
        for (std::int64_t i = 0; i < rows; ++i)
            if (!(std::abs(from(x)[i] - 1) <= most)) return -1;
        return made;
    }

    template <class T>
    void compare() {
        const long two_passes = calls<T>(300000, 0, T(2));
        ASSERT_GT(two_passes, 0);
        for (const std::int64_t rows : {20000, 100001, 300000, 1200007})
            for (const std::int64_t shift : {0, 1, 5}) {
                const long made = calls<T>(rows, shift, T(4));
                EXPECT_TRUE(made > 0 && made < two_passes) << rows << " rows from " << shift << " on: " << made << " calls, two passes make " << two_passes;
            }
    }

    std::string device_;
    long (*calls_)() = nullptr;
    void (*reset_)(long, int) = nullptr;
};

TEST_F(OnePass, OfDoubles) { compare<double>(); }
TEST_F(OnePass, OfFloats) { compare<float>(); }

}  // namespace
}  // namespace trifold::tests
