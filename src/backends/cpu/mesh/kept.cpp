// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/kept.hpp"

#include <algorithm>
#include <cmath>

#include "backends/cpu/mesh/rings.hpp"

namespace trifold::cpu {

template <class T>
KeptLines<T>::KeptLines(const MeshShape& shape, int axis, bool ring)
    : axis_(axis), ring_(ring), n_(shape.along(axis)), apart_(axis == 0 ? 1 : axis == 1 ? shape.x : shape.x * shape.y), across_(axis == 0 ? 1 : apart_), lines_(shape.x * shape.y * shape.z / n_),
      pitch_((shape.x * shape.y * shape.z + 15) / 16 * 16), memory_(static_cast<std::size_t>((ring ? 4 : 3) * pitch_) * sizeof(T)), gamma_(static_cast<std::size_t>(ring ? lines_ : 0)),
      ends_(static_cast<std::size_t>(lines_)) {}

template <class T>
bool KeptLines<T>::eliminate(const Sides& sides) {
    T *const a = lower(), *const b = diag(), *const c = upper();
    for (std::int64_t l = 0; l < lines_; ++l) {
        const std::int64_t first = first_of(l), last = first + (n_ - 1) * apart_;
        mesh::LineEnds<T>& end = ends_[static_cast<std::size_t>(l)] = mesh::fold_ends(sides, n_, a + first, b + first, c + first, apart_);
        valued_ = valued_ || end.low != 0 || end.high != 0;
        if (!ring_) a[first] = c[last] = 0;
    }
    LineMatrices<T> m{a, b, c, apart_, axis_ == 0 ? n_ : across_ * n_, axis_ == 0 ? 0 : 1};
    const LineShape lines{n_, apart_, axis_ == 0 ? lines_ : lines_ / across_, m.outer_stride, across_, 1};
    if (!rings_dominated(lines, m)) return false;
    if (ring_) {
        m.spike = at(3), m.gamma = gamma_.data();
        open_rings(lines, m);
    }
    // A ring's corners stay where they were: the first one meets nothing in front of it, and is asked for when the ring is closed.
    for (std::int64_t l = 0; l < lines_; l += across_)
        for (std::int64_t i = 0; i < n_; ++i)
            for (std::int64_t j = 0; j < across_; ++j) {
                const std::int64_t k = first_of(l + j) + i * apart_;
                const T p = i > 0 ? b[k] - a[k] * c[k - apart_] : b[k];
                b[k] = 1 / p, c[k] *= b[k];
                if (i > 0) a[k] *= b[k];
            }
    if (!ring_) return true;
    std::vector<std::int8_t> status(static_cast<std::size_t>(lines_));
    std::vector<T> buffer(static_cast<std::size_t>(line_buffer(n_)) + 64);
    T* const aligned = buffer.data() + (64 - reinterpret_cast<std::uintptr_t>(buffer.data()) % 64) % 64 / sizeof(T);
    const FactorsOfLines<T> f{b, a, c, n_, apart_, n_};
    if (axis_ == 0) return solve_rows(f, lines_, n_, m.spike, status.data(), aligned) == 0;
    for (std::int64_t l = 0; l < lines_; l += across_) {
        const std::int64_t first = first_of(l);
        if (solve_columns(FactorsOfLines<T>{b + first, a + first, c + first, n_, apart_, 0}, across_, apart_, m.spike + first, status.data()) > 0) return false;
    }
    return true;
}

template <class T>
LineFailure KeptLines<T>::solve(std::int64_t first, std::int64_t count, std::int64_t row_stride, std::int64_t line_stride, T* values, std::int8_t* status, T* buffer) const {
    for (std::int64_t l = 0; valued_ && l < count; ++l) {
        const mesh::LineEnds<T>& end = ends_[static_cast<std::size_t>(first + l)];
        values[l * line_stride] -= end.low, values[l * line_stride + (n_ - 1) * row_stride] -= end.high;
    }
    const std::int64_t from = first_of(first);
    const FactorsOfLines<T> f{diag() + from, lower() + from, upper() + from, n_, apart_, n_};
    std::int64_t bad = axis_ == 0 ? solve_rows(f, count, line_stride, values, status, buffer) : solve_columns(f, count, row_stride, values, status);
    for (std::int64_t l = 0; l < count; ++l) status[l] = static_cast<std::int8_t>(status[l] ? Reason::not_finite : Reason::exact);
    if (ring_) {
        LineMatrices<T> m{lower() + from, nullptr, upper() + from, apart_, axis_ == 0 ? n_ : across_ * n_, axis_ == 0 ? 0 : 1};
        m.spike = at(3) + from, m.gamma = const_cast<T*>(gamma_.data()) + first;
        const LineShape shape = axis_ == 0 ? LineShape{n_, 1, count, line_stride, 1, 1} : LineShape{n_, row_stride, 1, 0, count, 1};
        bad += close_rings(shape, m, values, status);
    }
    LineFailure failure;
    if (bad == 0) return failure;
    failure.failures = bad, failure.reason = Reason::not_finite, failure.first = 0;
    while (ok(static_cast<Reason>(status[failure.first]))) ++failure.first;
    return failure;
}

template class KeptLines<float>;
template class KeptLines<double>;

}  // namespace trifold::cpu
