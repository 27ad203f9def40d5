// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/core_rate.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace trifold::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds per addition; `chains` of them do not wait for each other.
template <int chains>
double seconds_per_addition(int additions) {
    std::uint64_t x[chains] = {};
    const auto start = Clock::now();
    for (int k = 0; k < additions; k += 16)
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
            x[i % chains] += 1;
            asm volatile("" : "+r"(x[i % chains]));  // one addition, in a register
        }
    return std::chrono::duration<double>(Clock::now() - start).count() / additions;
}

}  // namespace

double cycles_per_addition(int threads) {
    double most = 0;
#pragma omp parallel for num_threads(threads) reduction(max : most) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
        const double cycle = seconds_per_addition<1>(48000);
        most = std::max(most, seconds_per_addition<8>(96000) / cycle);
    }
    return most;
}

}  // namespace trifold::bench
