// SPDX-License-Identifier: BSD-3-Clause
// Lines that are rings, in memory. Two ways:
//
//   One matrix for all of them: A = B + u v^T with B tridiagonal, so x = y - q (v . y) / (1 + v . q), B y = d, B q = u (J. Sherman, W. J. Morrison 1950). q is the
//   host's (rings.hpp), y comes from the kernels for batches, and two passes close the ring: a sum per line, then every point. 2 words per point more than a line.
//   Else: LU with partial pivoting of the ring pressed flat (reference/tridiagonal/ring_lu.hpp): rows in the order 0, n-1, 1, n-2, … are a band of two
//   diagonals on each side, of which a thread keeps three rows in registers. Exact and slow: 12 words per point through memory.
#pragma once

#include "backends/cuda/mesh/general.cuh"

namespace trifold::cuda {

template <class T>
__device__ __forceinline__ void sum_ends(const MeshArguments<T>& a, const LineArguments<T>& line, const Closing<T>& closing) {
    if (!runs(a.state, a.sweep)) return;
    for (std::int64_t k = own_index(); k < line.lines; k += all_threads()) {
        std::int64_t apart;
        const std::int64_t first = first_of_line(a, line, k, apart);
        closing.sums[k] = closing.scale * fma(closing.weight, a.values[first + (line.rows - 1) * apart], a.values[first]);
    }
}

template <class T>
__device__ __forceinline__ void close_rings(const MeshArguments<T>& a, const LineArguments<T>& line, const Closing<T>& closing) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t points = points_of(a);
    for (std::int64_t k = own_index(); k < points; k += all_threads()) {
        std::int64_t row, number;
        if (k >> 32 == 0) {
            auto inner = static_cast<unsigned>(k);
            unsigned i = closing.apart.split(inner);
            const unsigned outer = closing.rows.split(i);
            row = i, number = std::int64_t{outer} * closing.apart.divisor + inner;
        } else {
            const std::int64_t apart = closing.apart.divisor, lines = k / apart;
            row = lines % line.rows, number = lines / line.rows * apart + k % apart;
        }
        a.values[k] = fma(-closing.q[row], closing.sums[number], a.values[k]);
    }
}

/// Rings of three rows or more, a thread per line; scratch: 6 × rows × threads, thread by thread.
template <class T>
__device__ __forceinline__ void ring_lines(const MeshArguments<T>& a, const LineArguments<T>& line, T* scratch, int reason_singular, int reason_not_finite) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t n = line.rows, slots = all_threads(), slot = own_index();
    for (std::int64_t k = slot; k < line.lines; k += slots) {
        std::int64_t apart;
        const std::int64_t first = first_of_line(a, line, k, apart);
        const std::int64_t matrix = line.shared ? 0 : first, matrix_apart = line.shared ? 1 : apart;
        const auto row_at = [&](std::int64_t place) { return place % 2 == 0 ? place / 2 : n - 1 - place / 2; };
        const auto place_of = [&](std::int64_t row) { return 2 * row < n ? 2 * row : 2 * (n - 1 - row) + 1; };
        std::int64_t not_finite = -1, singular = -1;
        T w[3][6];  // columns place … place + 4 and the right-hand side, of the row that is next and of the two behind it
        const auto load = [&](std::int64_t place, std::int64_t from, T (&row)[6]) {
            for (int c = 0; c < 6; ++c) row[c] = 0;
            if (place >= n) return;
            const std::int64_t i = row_at(place);
            const T lower = line.lower[matrix + i * matrix_apart], diag = line.diag[matrix + i * matrix_apart], upper = line.upper[matrix + i * matrix_apart];
            row[5] = a.values[first + i * apart];
            const int own = static_cast<int>(place - from), left = static_cast<int>(place_of(i > 0 ? i - 1 : n - 1) - from), right = static_cast<int>(place_of(i < n - 1 ? i + 1 : 0) - from);
            for (int c = 0; c < 5; ++c) row[c] = c == own ? diag : c == left ? lower : c == right ? upper : T(0);
            if (!(lower * T(0) + diag * T(0) + upper * T(0) + row[5] * T(0) == T(0)) && not_finite < 0) not_finite = i;
        };
        T* const u = scratch + slot;
        for (int r = 0; r < 3; ++r) load(r, 0, w[r]);
        for (std::int64_t j = 0; j < n; ++j) {
            // The largest of the three becomes the pivot.
            int best = 0;
            for (int r = 1; r < 3; ++r)
                if (fabs(w[r][0]) > fabs(w[best][0])) best = r;
            for (int c = 0; c < 6; ++c) {
                const T top = w[0][c], chosen = best == 0 ? w[0][c] : best == 1 ? w[1][c] : w[2][c];
                if (best == 1) w[1][c] = top;
                if (best == 2) w[2][c] = top;
                w[0][c] = chosen;
                u[(6 * j + c) * slots] = chosen;
            }
            if (w[0][0] == T(0) && singular < 0) singular = row_at(j);
            T next[3][6];
            for (int r = 1; r < 3; ++r) {
                const T f = w[r][0] / w[0][0];
                for (int c = 1; c < 5; ++c) next[r - 1][c - 1] = w[r][c] - f * w[0][c];
                next[r - 1][4] = 0;
                next[r - 1][5] = w[r][5] - f * w[0][5];
            }
            load(j + 3, j + 1, next[2]);
            for (int r = 0; r < 3; ++r)
                for (int c = 0; c < 6; ++c) w[r][c] = next[r][c];
        }
        if (not_finite < 0 && singular < 0) {
            T x[4] = {};
            for (std::int64_t j = n - 1; j >= 0; --j) {
                T now = u[(6 * j + 5) * slots];
                for (int c = 0; c < 4; ++c) now -= u[(6 * j + c + 1) * slots] * x[c];
                now /= u[6 * j * slots];
                if (!(now * T(0) == T(0)) && not_finite < 0) not_finite = row_at(j);
                u[(6 * j + 5) * slots] = now;
                x[3] = x[2], x[2] = x[1], x[1] = x[0], x[0] = now;
            }
        }
        if (not_finite >= 0 || singular >= 0) {
            line_failed(a, line, first, apart, not_finite >= 0 ? not_finite : singular, not_finite >= 0 ? reason_not_finite : reason_singular);
            continue;
        }
        for (std::int64_t j = 0; j < n; ++j) a.values[first + row_at(j) * apart] = u[(6 * j + 5) * slots];
    }
}

}  // namespace trifold::cuda
