// SPDX-License-Identifier: BSD-3-Clause
#include "io/convert.hpp"

#include <cmath>

#include "base/number_text.hpp"
#include "trifold/error.hpp"

namespace trifold::io {

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
