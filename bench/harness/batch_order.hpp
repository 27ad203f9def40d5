// SPDX-License-Identifier: BSD-3-Clause
// What a batch solve moves without its arithmetic: the ceiling that its pattern of accesses and requests leaves of the roof.
#pragma once

#include <cstdint>

#include "base/aligned_buffer.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::bench {

/// The solve's own kernels, compiled once more with an exclusive or of what is read in the place of elimination and substitution: the same loads, requests,
/// transposes and stores at the same addresses, cut and given to threads alike.
class BatchOrder {
public:
    /// `system` in place. Its right-hand side is lost.
    BatchOrder(const tridiagonal::System& system, int threads);

    /// Seconds of one pass.
    double sample();

private:
    template <class T>
    void pass();

    tridiagonal::System system_;
    int threads_;
    AlignedBuffer scratch_;
};

}  // namespace trifold::bench
