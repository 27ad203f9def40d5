// SPDX-License-Identifier: BSD-3-Clause
// What the benchmarks of batches share: shapes and the systems that they stand for, cuSPARSE on them, the backward error of what was stored.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "bench/cuda/cusparse.hpp"
#include "bench/cuda/gpu.cuh"
#include "problems/tridiagonal/system.hpp"

namespace trifold::bench {

/// A batch: systems along `columns` (stride) and `outer`.
struct BatchShape {
    enum class Peer { none, strided, interleaved };  ///< cuSPARSE's call for it
    enum class Couplings { own, shared, scalars };   ///< lower and upper: of every system, one array for all, two numbers

    std::string name;
    std::int64_t rows, row_stride, columns, column_stride, outer = 1, outer_stride = 0;
    Peer peer = Peer::none;
    bool scalars = false;  ///< the matrix is three numbers
    int indefinite = 0;       ///< of so many systems one has a diagonal as small as the rest; 1: all have
    bool lasting = false;     ///< the matrix is −1, 2, −1: unknowns far apart feel each other
    bool pivoted = false;     ///< by LU with partial pivoting, as a caller may ask for
    bool in_place = false;    ///< x is stored over the right-hand side
    Couplings couplings = Couplings::own;

    std::int64_t systems() const { return columns * outer; }
};

/// An array of the device's memory.
template <class T>
class DeviceMemory {
public:
    explicit DeviceMemory(std::int64_t count) { check(cudaMalloc(&data_, static_cast<std::size_t>(count) * sizeof(T)), "arrays"); }
    ~DeviceMemory() { cudaFree(data_); }
    DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    operator T*() const { return data_; }

private:
    T* data_ = nullptr;
};

template <class T>
tridiagonal::Operand operand_of(T* data, const BatchShape& s) {
    tridiagonal::Operand o;
    o.kind = tridiagonal::Operand::Kind::view;
    o.data = data;
    o.row_stride = s.row_stride;
    if (s.outer > 1) o.level_stride[0] = s.outer_stride;
    o.level_stride[s.outer > 1 ? 1 : 0] = s.column_stride;
    return o;
}

/// Without its matrix.
template <class T>
tridiagonal::System system_of(const BatchShape& s, T* rhs, T* x) {
    tridiagonal::System system;
    system.dtype = sizeof(T) == 8 ? DType::f64 : DType::f32;
    system.rows = s.rows;
    system.levels = s.outer > 1 ? 2 : 1;
    if (s.outer > 1) system.extent[0] = s.outer, system.number_stride[0] = s.columns;
    system.extent[system.levels - 1] = s.columns;
    system.number_stride[system.levels - 1] = 1;
    system.rhs = operand_of(rhs, s), system.x = operand_of(x, s);
    return system;
}

namespace detail {

// Row i of a system, `at` elements into the arrays: lower(i, at), diag(i, at), upper(i, at). Products and sums as exact as two doubles.
template <class T, class Matrix>
__global__ void backward_error(Matrix a, const T* b, const T* x, std::int64_t rows, std::int64_t rs, std::int64_t columns, std::int64_t cs, std::int64_t outer,
                               std::int64_t os, unsigned long long* worst) {
    const std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x;
    if (k >= columns * outer) return;
    const std::int64_t base = k % columns * cs + k / columns * os;
    double residual = 0, matrix = 0, largest = 0, rhs = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t at = base + i * rs;
        RowResidual row(b[at]);
        row.subtract(a.diag(i, at), x[at]);
        if (i) row.subtract(a.lower(i, at), x[at - rs]);
        if (i + 1 < rows) row.subtract(a.upper(i, at), x[at + rs]);
        if (!(row.value() <= residual)) residual = row.value();
        matrix = fmax(matrix, row.sum), largest = fmax(largest, fabs(double(x[at]))), rhs = fmax(rhs, fabs(double(b[at])));
    }
    const double of = matrix * largest + rhs, error = of > 0 ? residual / of : residual;
    atomicMax(worst, __double_as_longlong(error >= 0 ? error : 1e300));
}

}  // namespace detail

/// The largest normwise backward error of all systems, in units of roundoff. worst: a word of the device's memory.
template <class T, class Matrix>
double backward_error_roundoffs(const Matrix& matrix, const BatchShape& s, const T* rhs, const T* x, unsigned long long* worst) {
    check(cudaMemset(worst, 0, sizeof *worst), "memset");
    detail::backward_error<T><<<static_cast<unsigned>((s.systems() + 127) / 128), 128>>>(matrix, rhs, x, s.rows, s.row_stride, s.columns, s.column_stride, s.outer,
                                                                                         s.outer_stride, worst);
    double error = 0;
    check(cudaMemcpy(&error, worst, sizeof error, cudaMemcpyDeviceToHost), s.name.c_str());
    return error * (sizeof(T) == 8 ? 0x1p53 : 0x1p24);
}

/// cuSPARSE on one shape. It overwrites its arrays: a, b, c and x, which holds the right-hand sides.
template <class T>
class BatchPeer {
public:
    using Peer = BatchShape::Peer;

    BatchPeer(const Sparse& sparse, const BatchShape& shape, T* a, T* b, T* c, T* x) : sparse_(sparse), shape_(shape), a_(a), b_(b), c_(c), x_(x) {
        if (!sparse.handle || shape.rows < 3 || shape.peer == Peer::none) return;
        std::size_t bytes = 0;
        if (shape.peer == Peer::strided) TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch_bufferSizeExt)(sparse.handle, m(), a, b, c, x, n(), m(), &bytes);
        for (int way = 0; shape.peer == Peer::interleaved && way < 2; ++way) {
            std::size_t size = 0;
            TRIFOLD_CUSPARSE(T, sparse_, gtsvInterleavedBatch_bufferSizeExt)(sparse.handle, way, m(), a, b, c, x, n(), &size);
            bytes = std::max(bytes, size);
        }
        if (bytes > 0 && cudaMalloc(&buffer_, bytes) != cudaSuccess) buffer_ = nullptr;
        cudaGetLastError();
    }
    ~BatchPeer() { cudaFree(buffer_); }
    BatchPeer(const BatchPeer&) = delete;
    BatchPeer& operator=(const BatchPeer&) = delete;

    explicit operator bool() const { return buffer_; }
    int ways() const { return shape_.peer == Peer::interleaved ? 2 : 1; }  ///< Thomas, and LU with pivots

    void operator()(int way) const {
        if (shape_.peer == Peer::strided) TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch)(sparse_.handle, m(), a_, b_, c_, x_, n(), m(), buffer_);
        else TRIFOLD_CUSPARSE(T, sparse_, gtsvInterleavedBatch)(sparse_.handle, way, m(), a_, b_, c_, x_, n(), buffer_);
    }

private:
    int m() const { return static_cast<int>(shape_.rows); }
    int n() const { return static_cast<int>(shape_.systems()); }

    const Sparse& sparse_;
    BatchShape shape_;
    T *a_, *b_, *c_, *x_;
    void* buffer_ = nullptr;
};

}  // namespace trifold::bench
