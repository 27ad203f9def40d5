// SPDX-License-Identifier: BSD-3-Clause
// Whether the systems of a batch have one matrix, and which kernel solves them then.
#pragma once

#include "backends/cuda/tridiagonal/shared/kernels.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

template <class T>
struct SharedPlan {
    SharedJob<T> job;
    const SharedKernel<T>* kernel = nullptr;  ///< null: no kernel for one matrix takes this system
};

bool have_one_matrix(const tridiagonal::System& system);

template <class T>
SharedPlan<T> plan_shared(const tridiagonal::System& system);

}  // namespace trifold::cuda
