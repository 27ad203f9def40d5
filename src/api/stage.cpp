// SPDX-License-Identifier: BSD-3-Clause
#include "api/stage.hpp"

#include <algorithm>
#include <cstdlib>

namespace trifold::tridiagonal {
namespace {

// Calls line(place in memory, place in the copy, count) for every run along the fastest dimension, rows outside the range left
// out. Places count elements.
template <class Line>
void walk(const StagedOperand& s, int threads, Line line) {
    if (s.elements == 0 || s.last_row < s.first_row) return;
    if (s.dims == 0) {
        line(0, 0, 1);
        return;
    }
    const int fast = s.dims - 1;
    std::int64_t lines = 1;
    for (int d = 0; d < fast; ++d) lines *= s.extent[d];
    const std::int64_t from = fast == s.row_dim ? s.first_row : 0, to = fast == s.row_dim ? s.last_row + 1 : s.extent[fast];
#pragma omp parallel for num_threads(threads) schedule(static) if (s.elements > (1 << 15))
    for (std::int64_t k = 0; k < lines; ++k) {
        std::int64_t rest = k, there = from * s.stride[fast], here = from;
        bool inside = true;
        for (int d = fast - 1; d >= 0; --d) {
            const std::int64_t index = rest % s.extent[d];
            rest /= s.extent[d];
            inside = inside && (d != s.row_dim || (index >= s.first_row && index <= s.last_row));
            there += index * s.stride[d], here += index * s.packed[d];
        }
        if (inside) line(there, here, to - from);
    }
}

template <class T>
void gather(const StagedOperand& s, T* to, int threads) {
    const T* const from = static_cast<const T*>(s.host.data);
    const std::int64_t stride = s.dims ? s.stride[s.dims - 1] : 1;
    walk(s, threads, [=](std::int64_t there, std::int64_t here, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) to[here + i] = from[there + i * stride];
    });
}

template <class T>
void scatter(const StagedOperand& s, const T* from, int threads) {
    T* const to = static_cast<T*>(s.host.data);
    const std::int64_t stride = s.dims ? s.stride[s.dims - 1] : 1;
    walk(s, threads, [=](std::int64_t there, std::int64_t here, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) to[there + i * stride] = from[here + i];
    });
}

}  // namespace

StagedOperand stage_operand(const Operand& operand, const System& system, std::int64_t first_row, std::int64_t last_row) {
    StagedOperand s;
    s.host = s.compact = operand;
    s.element_bytes = size_of(system.dtype);
    s.first_row = first_row, s.last_row = last_row;
    if (operand.kind != Operand::Kind::view) return s;
    struct Dimension {
        std::int64_t extent, stride;
        int level;  // -1 = rows
    };
    Dimension list[5];
    int count = 0;
    if (operand.row_stride != 0 && system.rows > 1) list[count++] = {system.rows, operand.row_stride, -1};
    for (int d = 0; d < system.levels; ++d)
        if (operand.level_stride[d] != 0 && system.extent[d] > 1) list[count++] = {system.extent[d], operand.level_stride[d], d};
    std::stable_sort(list, list + count, [](const Dimension& a, const Dimension& b) { return std::llabs(a.stride) > std::llabs(b.stride); });
    s.dims = count;
    s.elements = 1;
    s.compact.row_stride = 0;
    for (std::int64_t& stride : s.compact.level_stride) stride = 0;
    s.dense = true;
    for (int d = count - 1; d >= 0; --d) {
        s.extent[d] = list[d].extent, s.stride[d] = list[d].stride, s.packed[d] = s.elements;
        s.dense = s.dense && s.stride[d] == s.packed[d];
        if (list[d].level < 0) s.row_dim = d, s.compact.row_stride = s.elements;
        else s.compact.level_stride[list[d].level] = s.elements;
        s.elements *= list[d].extent;
    }
    return s;
}

// Rows that do not exist are the first and the last ones in memory: of a dense array whose rows are not the slowest dimension
// there is one at each end, and those inside are another system's neighbours, which are there.
std::size_t StagedOperand::dense_offset() const noexcept {
    return row_dim >= 0 ? static_cast<std::size_t>(first_row * stride[row_dim]) * element_bytes : 0;
}

std::size_t StagedOperand::dense_bytes() const noexcept {
    if (last_row < first_row) return 0;
    if (row_dim < 0) return bytes();
    const std::int64_t missing = extent[row_dim] - 1 - (last_row - first_row);
    return static_cast<std::size_t>(elements - missing * stride[row_dim]) * element_bytes;
}

void StagedOperand::pack(void* to, int threads) const {
    if (element_bytes == 4) gather(*this, static_cast<float*>(to), threads);
    else gather(*this, static_cast<double*>(to), threads);
}

void StagedOperand::unpack(const void* from, int threads) const {
    if (element_bytes == 4) scatter(*this, static_cast<const float*>(from), threads);
    else scatter(*this, static_cast<const double*>(from), threads);
}

}  // namespace trifold::tridiagonal
