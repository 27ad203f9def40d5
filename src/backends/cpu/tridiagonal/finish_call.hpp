// SPDX-License-Identifier: BSD-3-Clause
// One call of `finish`, and the x at the ends of its chunks, outside the vector units.
#pragma once

#include <cmath>
#include <limits>

#include "backends/cpu/tridiagonal/reduce_chunks.hpp"

namespace trifold::cpu {

template <class T>
struct FinishCall {
    ChunkArrays<T> arrays;
    tridiagonal::Partition partition;
    const double* boundary;
    double accept;
    tridiagonal::ChunkResidual* residuals;
    bool stream;    ///< x goes past the caches
    bool two_rows;  ///< nothing is forgotten
};

/// The ends as they will be stored: in a correction the rounded sum of what is stored and what is added, the same for both
/// chunks that see it.
template <class T>
ChunkEnds<T> stored_ends(const FinishCall<T>& call, std::int64_t chunk) {
    const std::int64_t chunks = call.partition.chunks();
    const ChunkEnds<T> add = chunk_ends<T>(call.boundary, chunk, chunks);
    if (!call.partition.stored) return add;
    const ChunkEnds<T> old = chunk_ends<T>(call.partition.stored, chunk, chunks);
    return {old.before + add.before, old.first + add.first, old.last + add.last, old.after + add.after};
}

/// The ends for the elimination: in a correction those that lead to the rounded sum.
template <class T>
ChunkEnds<T> known_ends(const FinishCall<T>& call, std::int64_t chunk) {
    const ChunkEnds<T> sum = stored_ends(call, chunk);
    if (!call.partition.stored) return sum;
    const ChunkEnds<T> old = chunk_ends<T>(call.partition.stored, chunk, call.partition.chunks());
    return {sum.before - old.before, sum.first - old.first, sum.last - old.last, sum.after - old.after};
}

/// Maxima over the rows of a chunk. NaN hides from max, but not from a sum.
template <class T>
struct ChunkMaxima {
    T residual = 0, matrix = 0, x = 0, rhs = 0, sum = 0;

    tridiagonal::ChunkResidual result(double accept) const {
        tridiagonal::ChunkResidual out{std::numeric_limits<double>::quiet_NaN(), false, 0};
        if (!std::isfinite(sum)) return out;
        const double a = matrix, v = x, r = residual, product = a * v;
        out.right = static_cast<double>(rhs);
        out.scale = product + out.right;
        // A residual of a few denormal numbers is rounding at the lower end of the range.
        if (r <= 4 * static_cast<double>(std::numeric_limits<T>::denorm_min())) out.residual = 0;
        else out.residual = std::isfinite(out.scale) ? r / out.scale : r / a / v;
        out.stored = out.residual <= accept;
        return out;
    }
};

}  // namespace trifold::cpu
