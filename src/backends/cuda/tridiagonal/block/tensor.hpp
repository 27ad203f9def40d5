// SPDX-License-Identifier: BSD-3-Clause
// An array as a tensor for the copy engine, as kernels see it; made by tensor_map.hpp.
#pragma once

namespace trifold::cuda {

/// A CUtensorMap, whose header belongs to the driver.
struct alignas(64) TensorMap {
    unsigned long long words[16];
};

}  // namespace trifold::cuda
