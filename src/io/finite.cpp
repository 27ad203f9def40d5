// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "io/tridiagonal_data.hpp"

namespace trifold::io {
namespace {

// Index per dimension of an element given by its place in memory.
std::vector<std::int64_t> index_of(std::int64_t place, const Shape& shape) {
    const std::size_t dims = shape.extents.size();
    std::vector<std::int64_t> index(dims);
    for (std::size_t k = 0; k < dims; ++k) {
        const std::size_t d = shape.fortran ? k : dims - 1 - k;
        index[d] = place % shape.extents[d];
        place /= shape.extents[d];
    }
    return index;
}

// The place of the first value that is not finite and not in row `unread` along `axis`, or -1.
template <class T>
std::int64_t first_in(const Array& array, int axis, std::int64_t unread) {
    const T* values = array.as<T>();
    const std::int64_t count = array.shape().elements(), block = 4096, blocks = (count + block - 1) / block;
    std::int64_t first = count;
#pragma omp parallel for reduction(min : first) if (blocks > 16)
    for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t begin = b * block, end = std::min(count, begin + block);
        // x * 0 is 0 for what is finite and NaN for what is not; several sums let the compiler keep them in vectors.
        T sums[16] = {};
        std::int64_t i = begin;
        for (; i + 16 <= end; i += 16)
            for (int k = 0; k < 16; ++k) sums[k] += values[i + k] * T(0);
        for (; i < end; ++i) sums[0] += values[i] * T(0);
        T sum = 0;
        for (const T s : sums) sum += s;
        if (sum == T(0)) continue;
        for (i = begin; i < end && i < first; ++i)
            if (!std::isfinite(values[i]) && (unread < 0 || index_of(i, array.shape())[axis] != unread)) first = i;
    }
    return first < count ? first : -1;
}

}  // namespace

std::string TridiagonalData::first_not_finite() const {
    const std::pair<std::string_view, const Array*> arrays[] = {
        {"lower", &lower}, {"diag", &diag}, {"upper", &upper}, {"rhs", &rhs}};
    for (const auto& [label, array] : arrays) {
        const int along = array->dims() > 1 ? axis : 0;
        std::int64_t unread = -1;
        const bool full = !periodic && array->dims() > 0 && array->shape().extents[along] == rows();
        if (full && label == "lower") unread = 0;
        if (full && label == "upper") unread = rows() - 1;
        const std::int64_t place = array->dtype() == DType::f32 ? first_in<float>(*array, along, unread)
                                                                : first_in<double>(*array, along, unread);
        if (place < 0) continue;
        const double value =
            array->dtype() == DType::f32 ? static_cast<double>(array->as<float>()[place]) : array->as<double>()[place];
        std::string text = "array '" + std::string(label) + "', element [";
        const std::vector<std::int64_t> index = index_of(place, array->shape());
        for (std::size_t d = 0; d < index.size(); ++d) text += (d ? ", " : "") + std::to_string(index[d]);
        return text + (std::isnan(value) ? "] is nan" : value > 0 ? "] is inf" : "] is -inf");
    }
    return {};
}

}  // namespace trifold::io
