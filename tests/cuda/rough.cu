// SPDX-License-Identifier: BSD-3-Clause
// Division without a branch in functions that kernels of sweeps evaluate in every step: two units in the last place, and no number where it cannot be had.
#include "cuda/gpu.hpp"

#include <bit>
#include <cmath>
#include <random>

#include "backends/cuda/mesh/fused/rough.cuh"

namespace trifold::tests {
namespace {

__global__ void divide(const double* a, const double* b, double* quotient, int count) {
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += static_cast<int>(gridDim.x * blockDim.x)) quotient[i] = (cuda::fused::Rough(a[i]) / cuda::fused::Rough(b[i])).value;
}

TEST(RoughDivision, TwoUnitsInTheLastPlaceOrNoNumber) {
    Context context({.threads = 1, .profile_path = "none", .log = {}});
    if (const std::string why = no_gpu(context); !why.empty()) GTEST_SKIP() << why;
    std::mt19937_64 random(7);
    std::vector<double> a, b;
    const double strange[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, 2.2e-308, 2.3e-308, 1e-300, 1.0, -3.0, 1e300, 4.4e307, 4.5e307, 8.9e307, 9e307, 1.7e308};
    for (const double x : strange)
        for (const double y : strange) a.push_back(x), b.push_back(y);
    for (int i = 0; i < 4000000; ++i) {
        // Any finite numbers; and such as are close to one, with few or many bits.
        const std::uint64_t bits = random(), other = random();
        a.push_back(i % 2 ? std::bit_cast<double>(bits) : 1 + static_cast<double>(bits >> 12) * 0x1p-52), b.push_back(i % 2 ? std::bit_cast<double>(other) : 1 + static_cast<double>(other >> (i % 64)) * 0x1p-64);
    }
    const Owned<double> from_a(a), from_b(b), to(std::vector<double>(a.size(), 0));
    divide<<<256, 256>>>(from_a.data, from_b.data, to.data, static_cast<int>(a.size()));
    std::vector<double> quotient(a.size());
    TRIFOLD_CUDA(cudaMemcpy(quotient.data(), to.data, a.size() * sizeof(double), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double exact = a[i] / b[i], size = std::fabs(exact);
        const bool regular = std::fabs(b[i]) >= 0x1p-1021 && std::fabs(b[i]) < 0x1p1022 && size >= 0x1p-1021;
        if (regular && size < 0x1p1022) {
            const double unit = std::ldexp(1.0, std::ilogb(size) - 52);
            worst = std::max(worst, std::isfinite(quotient[i]) ? std::fabs(quotient[i] - exact) / unit : INFINITY);
        } else if (std::isfinite(quotient[i])) {
            // Where the quotient is small, what is lost is less than the least regular number; all else must be no number.
            EXPECT_TRUE(std::isfinite(exact) && std::fabs(quotient[i] - exact) <= 0x1p-1020 + 0x1p-51 * size) << a[i] << " / " << b[i] << " = " << quotient[i];
        }
    }
    EXPECT_LE(worst, 2.0);
}

}  // namespace
}  // namespace trifold::tests
