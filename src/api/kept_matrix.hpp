// SPDX-License-Identifier: BSD-3-Clause
// A copy of a matrix, for many solves with it where factors would be no smaller and no faster.
#pragma once

#include <cstdint>

#include "base/aligned_buffer.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

/// A matrix under right-hand sides of `batch_dims` dimensions, of which it has the last ones.
Matrix under(Matrix matrix, int batch_dims);

class KeptMatrix {
public:
    /// Views and scalars, no generators; each array side by side in the order in which it was, what is shared once.
    KeptMatrix(const Matrix& matrix, DType dtype, int threads);

    const Matrix& matrix() const noexcept { return matrix_; }

private:
    AlignedBuffer memory_;
    Matrix matrix_;
};

}  // namespace trifold::tridiagonal
