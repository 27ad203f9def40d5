// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/residual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trifold::bench {
namespace {

template <class T>
double error_of(const io::TridiagonalData& data, const T* x) {
    const auto& extents = data.rhs.shape().extents;
    std::int64_t inner = 1;
    for (std::size_t d = static_cast<std::size_t>(data.axis) + 1; d < extents.size(); ++d) inner *= extents[d];
    const std::int64_t n = data.rows(), all = data.rhs.shape().elements();
    const T *lower = data.lower.as<T>(), *diag = data.diag.as<T>(), *upper = data.upper.as<T>(), *rhs = data.rhs.as<T>();
    double residual = 0, matrix = 0, solution = 0, right = 0;
    bool finite = true;
#pragma omp parallel for reduction(max : residual, matrix, solution, right) reduction(&& : finite)
    for (std::int64_t k = 0; k < all; ++k) {
        const std::int64_t row = k / inner % n;
        const double l = row > 0 ? lower[k] : 0, u = row + 1 < n ? upper[k] : 0, d = diag[k], b = rhs[k], v = x[k];
        double r = b - d * v;
        if (row > 0) r -= l * static_cast<double>(x[k - inner]);
        if (row + 1 < n) r -= u * static_cast<double>(x[k + inner]);
        finite = finite && std::isfinite(r);
        residual = std::max(residual, std::fabs(r));
        matrix = std::max(matrix, std::fabs(l) + std::fabs(d) + std::fabs(u));
        solution = std::max(solution, std::fabs(v));
        right = std::max(right, std::fabs(b));
    }
    return finite ? residual / (matrix * solution + right) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double backward_error(const io::TridiagonalData& data, const io::Array& x) {
    return data.rhs.dtype() == DType::f32 ? error_of(data, x.as<float>()) : error_of(data, x.as<double>());
}

}  // namespace trifold::bench
