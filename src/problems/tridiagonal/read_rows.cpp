// SPDX-License-Identifier: BSD-3-Clause
#include "problems/tridiagonal/read_rows.hpp"

#include <algorithm>

#include "problems/tridiagonal/overlap.hpp"

namespace trifold::tridiagonal {
namespace {

// Rows of the problem, the end not included.
struct Rows {
    std::int64_t first, end;
    bool empty() const noexcept { return first >= end; }
};

// Of a system that consists of these rows. Transposed, lower's first row and upper's last one are not read either.
Rows read_of(const Problem& problem, Array array, Rows rows) noexcept {
    if (problem.matrix.periodic || rows.empty()) return rows;
    if (array == Array::lower) ++rows.first;
    if (array == Array::upper) --rows.end;
    return rows;
}

AnyView rows_of(const Problem& problem, Array array, AnyView view, Rows rows) noexcept {
    const bool starts_with_row_1 = array == Array::lower && view.axis.extent == problem.rhs.axis.extent - 1;
    view.axis.extent = rows.empty() ? 0 : rows.end - rows.first;
    if (!rows.empty())
        view.data = static_cast<char*>(view.data) + (rows.first - (starts_with_row_1 ? 1 : 0)) * view.axis.stride * static_cast<std::int64_t>(size_of(view.dtype));
    return view;
}

Rows system_of(const Problem& problem, std::size_t k) noexcept { return {problem.offsets[k], problem.offsets[k + 1]}; }

}  // namespace

AnyView read_rows(const Problem& problem, Array array, const AnyView& view) noexcept {
    if (!problem.offsets.data()) return rows_of(problem, array, view, read_of(problem, array, {0, problem.rhs.axis.extent}));
    Rows all{0, 0};
    for (std::size_t k = 0; k + 1 < problem.offsets.size(); ++k) {
        const Rows rows = read_of(problem, array, system_of(problem, k));
        if (rows.empty()) continue;
        if (all.empty()) all = rows;
        all.end = rows.end;
    }
    return rows_of(problem, array, view, all);
}

bool read_where_x_is_written(const Problem& problem, Array array, const AnyView& view) noexcept {
    const AnyView written = read_rows(problem, Array::x, problem.x);
    if (!overlap(written, read_rows(problem, array, view))) return false;
    if (!problem.offsets.data()) return true;
    for (std::size_t k = 0; k + 1 < problem.offsets.size(); ++k)
        if (overlap(written, rows_of(problem, array, view, read_of(problem, array, system_of(problem, k))))) return true;
    return false;
}

}  // namespace trifold::tridiagonal
