// SPDX-License-Identifier: BSD-3-Clause
// How elimination with pivots ends, and whether a row has numbers.
#pragma once

#include <cstdint>

#include "trifold/outcome.hpp"

namespace trifold::cuda {

template <class T>
struct PivotedVerdict {
    Reason reason;
    std::int64_t row;
};

template <class T>
__device__ bool all_finite(T a, T b, T c, T f) {
    return a * T(0) + b * T(0) + c * T(0) + f * T(0) == T(0);
}

}  // namespace trifold::cuda
