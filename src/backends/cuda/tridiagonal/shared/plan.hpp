// SPDX-License-Identifier: BSD-3-Clause
// Which kernel solves the systems of a batch that have one matrix.
#pragma once

#include "backends/cuda/tridiagonal/shared/kernels.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

template <class T>
struct SharedPlan {
    SharedJob<T> job;
    const SharedKernel<T>* kernel = nullptr;  ///< null: no kernel for one matrix takes this system
};

template <class T>
SharedPlan<T> plan_shared(const tridiagonal::System& system);

}  // namespace trifold::cuda
