// SPDX-License-Identifier: BSD-3-Clause
// From the canonical system to a tile job: which level becomes columns, which kernel, how many blocks share a column.
#pragma once

#include "backends/cuda/tridiagonal/block/columns_job.hpp"
#include "backends/cuda/tridiagonal/block/tiles.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

template <class T>
struct BatchPlan {
    TileJob<T> job;
    const TileKernel<T>* kernel = nullptr;  ///< null: no tile kernel takes this system
    bool in_registers = false;              ///< by the kernels of columns_job.hpp, cut as
    ColumnCut columns;

    bool fits() const noexcept { return kernel || in_registers; }
};

/// The batch as columns of tiles, not cut yet.
template <class T>
TileJob<T> tile_job(const tridiagonal::System& system);

/// True where kernels with columns side by side are meant for it, not those with rows side by side.
template <class T>
bool columns_side_by_side(const TileJob<T>& job) noexcept;

template <class T>
BatchPlan<T> plan_batch(const tridiagonal::System& system);

}  // namespace trifold::cuda
