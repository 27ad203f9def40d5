// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/rings.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trifold/outcome.hpp"
#include "trifold/point_function.hpp"

namespace trifold::cpu {
namespace {

// Values that follow each other in memory: whole lines, or a row of lines side by side.
bool side_by_side(const LineShape& shape) { return shape.inner > 1 || shape.row_stride != 1; }

template <class T>
TRIFOLD_ANY_VECTORS std::int64_t not_dominated(std::int64_t count, const T* lower, const T* diag, const T* upper) {
    std::int64_t bad = 0;
    for (std::int64_t i = 0; i < count; ++i) bad += !(std::abs(diag[i]) > std::abs(lower[i]) + std::abs(upper[i]));
    return bad;
}

template <class T>
TRIFOLD_ANY_VECTORS void subtract(std::int64_t count, T factor, const T* q, T* x) {
    TRIFOLD_INDEPENDENT_POINTS
    for (std::int64_t i = 0; i < count; ++i) x[i] -= factor * q[i];
}

template <class T>
TRIFOLD_ANY_VECTORS void subtract_each(std::int64_t count, const T* factors, const T* q, T* x) {
    TRIFOLD_INDEPENDENT_POINTS
    for (std::int64_t i = 0; i < count; ++i) x[i] -= factors[i] * q[i];
}

// The factor of every line. tail = lower[0] / g.
template <class T>
TRIFOLD_ANY_VECTORS void factors_of(std::int64_t count, const T* first, const T* last, const T* tail, const T* q_first, const T* q_last, T* factors) {
    TRIFOLD_INDEPENDENT_POINTS
    for (std::int64_t j = 0; j < count; ++j) factors[j] = (first[j] + tail[j] * last[j]) / (1 + q_first[j] + tail[j] * q_last[j]);
}

template <class T>
TRIFOLD_ANY_VECTORS void factors_of_one(std::int64_t count, const T* first, const T* last, T tail, T scale, T* factors) {
    TRIFOLD_INDEPENDENT_POINTS
    for (std::int64_t j = 0; j < count; ++j) factors[j] = (first[j] + tail * last[j]) * scale;
}

template <class T>
TRIFOLD_ANY_VECTORS std::int64_t not_finite(std::int64_t count, const T* values) {
    std::int64_t bad = 0;
    for (std::int64_t i = 0; i < count; ++i) bad += !(values[i] * T(0) == T(0));
    return bad;
}

}  // namespace

template <class T>
bool rings_dominated(const LineShape& lines, const LineMatrices<T>& m) {
    const std::int64_t count = side_by_side(lines) ? lines.inner : lines.n, runs = side_by_side(lines) ? lines.n : 1;
    for (std::int64_t o = 0; o < lines.outer; ++o)
        for (std::int64_t i = 0; i < runs; ++i) {
            const std::int64_t at = m.at(o, i, 0);
            if (not_dominated(count, m.lower + at, m.diag + at, m.upper + at) > 0) return false;
        }
    return true;
}

template <class T>
void open_rings(const LineShape& lines, LineMatrices<T>& m) {
    const std::int64_t last = lines.n - 1, count = side_by_side(lines) ? lines.inner : lines.n, runs = side_by_side(lines) ? lines.n : 1;
    for (std::int64_t o = 0; o < lines.outer; ++o) {
        for (std::int64_t i = 0; i < runs; ++i) std::fill_n(m.spike + m.at(o, i, 0), count, T(0));
        for (std::int64_t j = 0; j < lines.inner; ++j) {
            const T corner = m.lower[m.at(o, 0, j)], other = m.upper[m.at(o, last, j)];
            T &first = m.diag[m.at(o, 0, j)], &end = m.diag[m.at(o, last, j)];
            // Of the diagonal's size and opposite sign, so that nothing cancels; not zero as long as the row has anything.
            const T size = std::max({std::abs(first), std::abs(corner), std::abs(other)});
            const T gamma = -std::copysign(size > 0 ? size : T(1), first);
            m.gamma[o * lines.inner + j] = gamma;
            first -= gamma;
            end -= corner * other / gamma;
            m.spike[m.at(o, 0, j)] = gamma;
            m.spike[m.at(o, last, j)] = other;
        }
    }
}

template <class T>
std::int64_t close_rings(const LineShape& shape, const LineMatrices<T>& m, T* values, std::int8_t* status) {
    const std::int64_t last = shape.n - 1, n = shape.n, inner = shape.inner;
    const bool one = m.one_for_all();
    const auto tail_of = [&](std::int64_t o, std::int64_t j) { return m.lower[m.at(o, 0, j)] / m.gamma[one ? 0 : o * inner + j]; };
    const auto scale_of = [&](std::int64_t o, std::int64_t j, T tail) { return 1 / (1 + m.spike[m.at(o, 0, j)] + tail * m.spike[m.at(o, last, j)]); };
    const T one_tail = one ? tail_of(0, 0) : T(0), one_scale = one ? scale_of(0, 0, one_tail) : T(0);
    std::int64_t lost = 0;
    const auto mark = [&](std::int64_t k, T value) {
        if (value * T(0) == T(0) || !ok(static_cast<Reason>(status[k]))) return;
        status[k] = static_cast<std::int8_t>(Reason::not_finite), ++lost;
    };
    if (!side_by_side(shape)) {
        for (std::int64_t o = 0; o < shape.outer; ++o) {
            T* const x = values + o * shape.outer_stride;
            const T tail = one ? one_tail : tail_of(o, 0), factor = (x[0] + tail * x[last]) * (one ? one_scale : scale_of(o, 0, tail));
            subtract(n, factor, m.spike + m.at(o, 0, 0), x);
            mark(o, x[0]);
        }
        return lost;
    }
    std::vector<T> factors(static_cast<std::size_t>(inner)), tails(static_cast<std::size_t>(one ? 0 : inner));
    for (std::int64_t o = 0; o < shape.outer; ++o) {
        T* const x = values + o * shape.outer_stride;
        for (std::int64_t j = 0; !one && j < inner; ++j) tails[static_cast<std::size_t>(j)] = tail_of(o, j);
        if (one) factors_of_one(inner, x, x + last * shape.row_stride, one_tail, one_scale, factors.data());
        else factors_of(inner, x, x + last * shape.row_stride, tails.data(), m.spike + m.at(o, 0, 0), m.spike + m.at(o, last, 0), factors.data());
        for (std::int64_t i = 0; i < n; ++i)
            if (one) subtract(inner, m.spike[m.at(0, i, 0)], factors.data(), x + i * shape.row_stride);
            else subtract_each(inner, factors.data(), m.spike + m.at(o, i, 0), x + i * shape.row_stride);
        if (not_finite(inner, x) > 0)
            for (std::int64_t j = 0; j < inner; ++j) mark(o * inner + j, x[j]);
    }
    return lost;
}

template bool rings_dominated<float>(const LineShape&, const LineMatrices<float>&);
template bool rings_dominated<double>(const LineShape&, const LineMatrices<double>&);
template void open_rings<float>(const LineShape&, LineMatrices<float>&);
template void open_rings<double>(const LineShape&, LineMatrices<double>&);
template std::int64_t close_rings<float>(const LineShape&, const LineMatrices<float>&, float*, std::int8_t*);
template std::int64_t close_rings<double>(const LineShape&, const LineMatrices<double>&, double*, std::int8_t*);

}  // namespace trifold::cpu
