// SPDX-License-Identifier: BSD-3-Clause
// How a matrix lies that a device keeps in its own memory: as kernels like it best, whatever the caller's arrays were.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "devices/runtime.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

/// Elements that a kept array takes over; `to` is its first byte plus to_byte.
struct KeptPiece {
    devices::StridedCopy copy{};
    std::int64_t to_byte = 0;
};

/// One array of the kept matrix, side by side. Rows as the right-hand side counts them: packed arrays are filled up, transposed ones turned.
struct KeptBand {
    AnyView view;                 ///< rows and batch of the factor, extent 1 where it is shared; its data is not set
    std::int64_t elements = 0;    ///< 0 = no array
    std::array<KeptPiece, 2> pieces{};
    int count = 0;
    KeptPiece outside{};          ///< entries outside the matrix, which kernels may load with their neighbours: copies of one 0, whose address is not set
    bool has_outside = false;

    /// The array is copied as it lies.
    bool is_a_copy() const noexcept;
};

struct KeptLayout {
    Matrix matrix;                 ///< scalars, and the views of `bands`; never transposed
    std::array<KeptBand, 3> bands; ///< lower, diag, upper
    int dims = 0;                  ///< of `order`: 0 = rows, 1 + d = batch dimension d; the slowest first
    std::array<int, max_batch_dims + 1> order{};
    std::array<bool, max_batch_dims> varies{};  ///< per batch dimension: some band has other values along it
};

/// A matrix of views and scalars that normalise() has taken for these rows and batch. All arrays take the order of the largest one, or that of `before` where
/// the same bands were arrays, shared along the same dimensions.
KeptLayout kept_layout(const Matrix& matrix, std::int64_t rows, std::span<const std::int64_t> batch, const KeptLayout& before = {});

/// Elements of host memory; one thread per run of lines.
void copy_on_host(const devices::StridedCopy& copy, int threads);

}  // namespace trifold::tridiagonal
