// SPDX-License-Identifier: BSD-3-Clause
// What is left of a row, in twice the precision: what a correction is worth depends on it.
#pragma once

namespace trifold::cuda {

/// d - a above - b x - c below in twice the precision.
__device__ __forceinline__ float precise_residual(float a, float b, float c, float d, float above, float x, float below) {
    const double rest = fma(-static_cast<double>(b), static_cast<double>(x), static_cast<double>(d));
    return static_cast<float>(fma(-static_cast<double>(c), static_cast<double>(below), fma(-static_cast<double>(a), static_cast<double>(above), rest)));
}
__device__ __forceinline__ double precise_residual(double a, double b, double c, double d, double above, double x, double below) {
    double sum = d, lost = 0;
    const auto take = [&](double p, double q) {
        const double product = -__dmul_rn(p, q), next = __dadd_rn(sum, product), of_sum = __dsub_rn(next, product);
        lost += __dadd_rn(__dsub_rn(sum, of_sum), __dsub_rn(product, __dsub_rn(next, of_sum))) - fma(p, q, product);
        sum = next;
    };
    take(b, x), take(a, above), take(c, below);
    return sum + lost;
}

}  // namespace trifold::cuda
