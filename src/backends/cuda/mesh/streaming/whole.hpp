// SPDX-License-Identifier: BSD-3-Clause
// What the kernel of whole runs (whole.cuh) is given besides fields.
#pragma once

#include <cstdint>

namespace trifold::cuda::streaming {

inline constexpr int most_passes = 4;

template <class T>
struct WholeRun {
    const T* table[most_passes];
    T low[most_passes], high[most_passes];
    unsigned* arrived;            ///< zero before the launch
    unsigned long long from, to;  ///< sweeps
    std::int64_t first_step;
};

}  // namespace trifold::cuda::streaming
