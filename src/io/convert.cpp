// SPDX-License-Identifier: BSD-3-Clause
#include "io/convert.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/number_text.hpp"
#include "trifold/error.hpp"

namespace trifold::io {
namespace {

// Squares of the first and the last index: what is read side by side is written apart, and the reverse.
template <class T>
void reverse_order(const Shape& from, const Shape& to, const T* in, T* out) {
    constexpr std::int64_t side = 64;
    const std::vector<std::int64_t> read = from.strides(), write = to.strides();
    const std::size_t last = from.extents.size() - 1;
    const std::int64_t firsts = from.extents[0], lasts = from.extents[last], between = from.elements() / (firsts * lasts);
#pragma omp parallel for collapse(2) if (from.elements() > 65536)
    for (std::int64_t b = 0; b < between; ++b)
        for (std::int64_t i0 = 0; i0 < firsts; i0 += side) {
            std::int64_t rest = b, from_here = 0, to_here = 0;
            for (std::size_t d = 1; d < last; ++d) from_here += rest % from.extents[d] * read[d], to_here += rest % from.extents[d] * write[d], rest /= from.extents[d];
            for (std::int64_t j0 = 0; j0 < lasts; j0 += side)
                for (std::int64_t i = i0; i < std::min(i0 + side, firsts); ++i)
                    for (std::int64_t j = j0; j < std::min(j0 + side, lasts); ++j) out[to_here + i * write[0] + j] = in[from_here + i + j * read[last]];
        }
}

}  // namespace

Array in_c_order(Array array, const std::string& where) {
    Shape shape = array.shape();
    if (!shape.fortran) return array;
    shape.fortran = false;
    Array result(shape, where);
    if (shape.elements() == 0) return result;
    if (shape.extents.size() < 2) {
        std::copy_n(static_cast<const char*>(array.data()), shape.bytes(), static_cast<char*>(result.data()));
    } else if (array.dtype() == DType::f32) {
        reverse_order(array.shape(), shape, array.as<float>(), result.as<float>());
    } else {
        reverse_order(array.shape(), shape, array.as<double>(), result.as<double>());
    }
    return result;
}

Array converted(const Array& array, DType to, bool values, const std::string& where, std::int64_t* vanished) {
    Shape shape = array.shape();
    shape.dtype = to;
    if (!values) return Array::without_values(std::move(shape));
    Array result(std::move(shape), where);
    const std::int64_t count = result.shape().elements();
    if (to == DType::f64) {
        const float* from = array.as<float>();
        double* out = result.as<double>();
#pragma omp parallel for if (count > 65536)
        for (std::int64_t i = 0; i < count; ++i) out[i] = from[i];
        return result;
    }
    const double* from = array.as<double>();
    float* out = result.as<float>();
    std::int64_t lost = count, zeros = 0;
#pragma omp parallel for reduction(min : lost) reduction(+ : zeros) if (count > 65536)
    for (std::int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<float>(from[i]);
        if (std::isinf(out[i]) && !std::isinf(from[i]) && i < lost) lost = i;
        zeros += out[i] == 0 && from[i] != 0;
    }
    if (vanished) *vanished = zeros;
    if (lost < count)
        throw Error(ErrorCode::bad_input, where,
                    "element " + std::to_string(lost) + " (in memory order) = " + number_text(from[lost]) +
                        " is too large for f32",
                    "use --precision f64");
    return result;
}

}  // namespace trifold::io
