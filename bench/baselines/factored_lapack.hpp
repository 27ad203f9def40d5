// SPDX-License-Identifier: BSD-3-Clause
// LAPACK with factors that are kept: gttrf/gttrs (partial pivoting) and pttrf/pttrs (L D L^T, symmetric and positive definite).
#pragma once

#include <cstdint>
#include <vector>

namespace trifold::bench {

/// Systems one after the other, rows side by side; one matrix for all where `matrices` is 1, and then all right-hand sides in one call.
template <class T>
class FactoredLapack {
public:
    FactoredLapack(std::int64_t rows, std::int64_t matrices, bool positive) : rows_(rows), matrices_(matrices), positive_(positive) {}

    /// lower[0] and upper[rows-1] of a system are not read.
    bool factor(const T* lower, const T* diag, const T* upper);

    /// In place.
    bool solve(T* x, std::int64_t systems);

private:
    std::int64_t rows_, matrices_;
    bool positive_;
    std::vector<T> lower_, diag_, upper_, second_;
    std::vector<int> pivot_;
};

}  // namespace trifold::bench
