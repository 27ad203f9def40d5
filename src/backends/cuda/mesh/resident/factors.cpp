// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/resident/factors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "problems/mesh/line_ends.hpp"

namespace trifold::cuda::resident {
namespace {

constexpr double accepted_growth = 6, accepted_residual = 100;

struct Row {
    double lower, diag, upper;
};

/// What is left of a segment: e X[before] + p X[own] + c x[first of next] = y[last], x[first] = z - alpha X[before] - beta X[own].
struct Ends {
    double e, p, c, alpha, beta;
};

/// Columns of the table for one segment: inverse, lower, reach, upper, fill of every row. `joined`: the last row is left to the join.
bool eliminate(std::span<const Row> rows, bool joined, std::vector<double>& inverse, std::vector<double>& lower, std::vector<double>& reach,
               std::vector<double>& upper, std::vector<double>& fill, Ends& ends) {
    const std::size_t n = rows.size();
    double up = 0, fill_before = -1, inverse_before = 0, u_before = 0, reached = 1, worst = 0, scale = 0;
    ends = {};
    for (std::size_t i = 0; i < n; ++i) {
        const auto [a, b, c] = rows[i];
        const double p = b - a * up, e = -a * fill_before;
        const double u = std::fabs(p) + std::fabs(c) + std::fabs(e);
        worst = std::max(worst, u + std::fabs(a * inverse_before) * u_before);
        scale = std::max(scale, std::fabs(a) + std::fabs(b) + std::fabs(c));
        const bool left = joined && i + 1 == n;
        const double r = left ? 1 : 1 / p;
        inverse.push_back(r);
        lower.push_back(i > 0 ? a * r : 0);
        reach.push_back(left ? 0 : reached);
        if (left) {
            ends.e = e, ends.p = p, ends.c = c, ends.beta = -reached;
            upper.push_back(0), fill.push_back(0);
            break;
        }
        up = c * r, fill_before = e * r, inverse_before = r, u_before = u;
        upper.push_back(up), fill.push_back(fill_before);
        ends.alpha += reached * fill_before;
        reached *= -up;
        if (!std::isfinite(r)) return false;
    }
    return std::isfinite(worst) && worst <= accepted_growth * scale;
}

/// A becomes its inverse; by Gauss and Jordan with partial pivoting.
bool invert(std::vector<double>& a, std::size_t n) {
    std::vector<double> g(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) g[i * n + i] = 1;
    for (std::size_t j = 0; j < n; ++j) {
        std::size_t best = j;
        for (std::size_t i = j + 1; i < n; ++i)
            if (std::fabs(a[i * n + j]) > std::fabs(a[best * n + j])) best = i;
        for (std::size_t c = 0; c < n; ++c) std::swap(a[j * n + c], a[best * n + c]), std::swap(g[j * n + c], g[best * n + c]);
        const double r = 1 / a[j * n + j];
        if (!std::isfinite(r)) return false;
        for (std::size_t c = 0; c < n; ++c) a[j * n + c] *= r, g[j * n + c] *= r;
        for (std::size_t i = 0; i < n; ++i) {
            const double f = i == j ? 0 : a[i * n + j];
            for (std::size_t c = 0; f != 0 && c < n; ++c) a[i * n + c] -= f * a[j * n + c], g[i * n + c] -= f * g[j * n + c];
        }
    }
    a = g;
    return true;
}

/// Largest row sum of |A||G| is small enough.
bool accurate(const std::vector<double>& a, const std::vector<double>& g, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < n; ++k)
            for (std::size_t j = 0; j < n; ++j) sum += std::fabs(a[i * n + k] * g[k * n + j]);
        if (!(sum <= accepted_residual)) return false;
    }
    return true;
}

}  // namespace

template <class T>
bool append_factors(const SegmentShape& shape, const Sides& sides, std::span<T> lower, std::span<T> diag, std::span<T> upper, std::vector<T>& table, T (&ends)[2]) {
    const auto n = static_cast<std::size_t>(shape.rows), segments = static_cast<std::size_t>(shape.segments);
    const mesh::LineEnds<T> folded = mesh::fold_ends(sides, shape.rows, lower.data(), diag.data(), upper.data());
    ends[0] = folded.low, ends[1] = folded.high;
    if (!folded.ring) lower[0] = upper[n - 1] = 0;
    std::vector<Row> rows(n);
    for (std::size_t i = 0; i < n; ++i) rows[i] = {static_cast<double>(lower[i]), static_cast<double>(diag[i]), static_cast<double>(upper[i])};
    const bool joined = segments > 1 || folded.ring;
    std::vector<Ends> left(segments);
    const auto put = [&](const std::vector<double>& values, int padded) {
        for (const double value : values) table.push_back(static_cast<T>(value));
        table.insert(table.end(), static_cast<std::size_t>(padded) - values.size(), T(0));
    };
    for (std::size_t s = 0; s < segments; ++s) {
        const std::size_t first = s * static_cast<std::size_t>(shape.segment_rows), end = std::min(n, first + static_cast<std::size_t>(shape.segment_rows));
        std::vector<double> columns[5];
        if (!eliminate(std::span(rows).subspan(first, end - first), joined, columns[0], columns[1], columns[2], columns[3], columns[4], left[s])) return false;
        if (shape.alike && s > 1 && s + 1 < segments) continue;
        for (const auto& column : columns) put(column, shape.padded_rows);
    }
    std::vector<double> matrix(segments * segments, 0.0), coupling(segments, 0.0);
    for (std::size_t s = 0; s < segments; ++s) {
        const std::size_t before = s > 0 ? s - 1 : segments - 1, next = s + 1 < segments ? s + 1 : 0;
        matrix[s * segments + before] += left[s].e;
        matrix[s * segments + s] += left[s].p;
        if (next == 0 && !folded.ring) continue;
        coupling[s] = left[s].c;
        matrix[s * segments + s] -= left[s].c * left[next].alpha;
        matrix[s * segments + next] -= left[s].c * left[next].beta;
    }
    put(coupling, shape.padded_segments);
    std::vector<double> inverse = matrix;
    if (joined && (!invert(inverse, segments) || !accurate(matrix, inverse, segments))) return false;
    for (std::size_t s = 0; s < segments; ++s) put({inverse.begin() + static_cast<std::ptrdiff_t>(s * segments), inverse.begin() + static_cast<std::ptrdiff_t>((s + 1) * segments)}, shape.padded_segments);
    for (const T value : table)
        if (!std::isfinite(value)) return false;
    return true;
}

template bool append_factors<float>(const SegmentShape&, const Sides&, std::span<float>, std::span<float>, std::span<float>, std::vector<float>&, float (&)[2]);
template bool append_factors<double>(const SegmentShape&, const Sides&, std::span<double>, std::span<double>, std::span<double>, std::vector<double>&, double (&)[2]);

}  // namespace trifold::cuda::resident
