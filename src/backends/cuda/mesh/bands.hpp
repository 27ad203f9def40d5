// SPDX-License-Identifier: BSD-3-Clause
// The matrix of a line solve that is the same on every line and reads no field, on the host.
#pragma once

#include <vector>

#include "trifold/sweep.hpp"

namespace trifold::cuda {

template <class T>
struct Bands {
    std::vector<T> lower, diag, upper;
};

/// Its rows, ends not folded.
template <class T>
Bands<T> bands_of(const LineSolve& line, const MeshProblem& problem) {
    const std::int64_t n = problem.shape.along(line.axis);
    const std::vector<T> parameters(problem.parameters.begin(), problem.parameters.end());
    Bands<T> bands;
    for (std::int64_t i = 0; i < n; ++i) {
        T row[3] = {static_cast<T>(line.constant[0]), static_cast<T>(line.constant[1]), static_cast<T>(line.constant[2])};
        if (line.coefficients) {
            T* const out[3] = {&row[0], &row[1], &row[2]};
            const PointRows<T> call{nullptr, out, parameters.data(), 1, line.axis == 0 ? i : 0, line.axis == 1 ? i : 0, line.axis == 2 ? i : 0, 0, 0};
            if constexpr (sizeof(T) == 4) line.coefficients.run_f32(call);
            else line.coefficients.run_f64(call);
        }
        bands.lower.push_back(row[0]), bands.diag.push_back(row[1]), bands.upper.push_back(row[2]);
    }
    return bands;
}

}  // namespace trifold::cuda
