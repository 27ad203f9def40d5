// SPDX-License-Identifier: BSD-3-Clause
// After an in-place solve has refused a chunk: the right-hand side of the stored chunks is made again from their x.
//
// Equation   r_i = a_i x[i-1] + b_i x[i] + c_i x[i+1] in the chunks that were stored
// Arrays     a, b, c, r = x: row i at [i]; x beside a chunk comes from the boundary, which is rounded as finish rounded it
// Writes     r over x
// Words      5 per row
// Numerics   each r_i within 3 u |a||x|…; so x solves the new system with the backward error of three roundings, and the new
//            right-hand side differs from the lost one by the residual that `finish` accepted plus that
#include <cmath>

#include "backends/cpu/tridiagonal/finish.hpp"
#include "backends/cpu/tridiagonal/reduce_chunks.hpp"

namespace trifold::cpu {
namespace {

using namespace tridiagonal;

template <class T>
void multiply(const ChunkArrays<T>& arrays, const Partition& partition, const double* boundary, std::int64_t chunk) {
    const std::int64_t chunks = partition.chunks(), m = partition.last(chunk) - partition.first(chunk) + 1;
    const T* row[4];
    for (int k = 0; k < 4; ++k) row[k] = arrays.data[k] + chunk * arrays.stride[k];
    const ChunkEnds<T> ends = chunk_ends<T>(boundary, chunk, chunks);
    T* const x = arrays.x + partition.first(chunk);
    T above = ends.before;
    for (std::int64_t i = 0; i < m; ++i) {
        const T here = x[i], below = i + 1 < m ? x[i + 1] : ends.after;
        T r = row[1][i] * here;
        if (chunk > 0 || i > 0) r += row[0][i] * above;
        if (chunk + 1 < chunks || i + 1 < m) r += row[2][i] * below;
        x[i] = r;
        above = here;
    }
}

template <class T>
double scale(const ChunkArrays<T>& arrays, const Partition& partition, std::int64_t chunk) {
    const std::int64_t chunks = partition.chunks(), m = partition.last(chunk) - partition.first(chunk) + 1;
    const T* row[4];
    for (int k = 0; k < 4; ++k) row[k] = arrays.data[k] + chunk * arrays.stride[k];
    const T* const x = arrays.x + partition.first(chunk);
    T matrix = 0, size = 0;
    for (std::int64_t i = 0; i < m; ++i) {
        if (chunk > 0 || i > 0) matrix = std::max(matrix, std::abs(row[0][i]));
        if (chunk + 1 < chunks || i + 1 < m) matrix = std::max(matrix, std::abs(row[2][i]));
        matrix = std::max(matrix, std::abs(row[1][i]));
        size = std::max(size, std::abs(x[i]));
    }
    return static_cast<double>(matrix) * static_cast<double>(size);
}

template <class T>
void run(const System& system, const Partition& partition, const Launch& launch, const double* boundary, ChunkResidual* residuals) {
    const ChunkArrays<T> arrays = chunk_arrays<T>(system, partition, launch.scratch);
    const std::int64_t chunks = partition.chunks();
#pragma omp parallel for num_threads(launch.threads) schedule(static)
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        if (!boundary) residuals[chunk].scale = scale(arrays, partition, chunk);
        else if (residuals[chunk].stored) multiply(arrays, partition, boundary, chunk);
    }
}

}  // namespace

void restore(const System& system, const Partition& partition, const Launch& launch, const double* boundary, ChunkResidual* residuals) {
    if (system.dtype == DType::f32) run<float>(system, partition, launch, boundary, residuals);
    else run<double>(system, partition, launch, boundary, residuals);
}

}  // namespace trifold::cpu
