// SPDX-License-Identifier: BSD-3-Clause
// A few values side by side, loaded and stored at once.
#pragma once

namespace trifold::cuda {

template <class T, int count>
struct alignas(count * sizeof(T)) Values {
    T at[count];
};

}  // namespace trifold::cuda
