// SPDX-License-Identifier: BSD-3-Clause
#include "io/tridiagonal_data.hpp"

#include <algorithm>

#include "io/npz.hpp"
#include "trifold/error.hpp"

namespace trifold::io {

std::int64_t TridiagonalData::bytes() const {
    return lower.shape().bytes() + diag.shape().bytes() + upper.shape().bytes() + rhs.shape().bytes();
}

static Coefficient coefficient_of(const Array& array, const TridiagonalData& data) {
    if (array.dims() == 0)
        return array.dtype() == DType::f32 ? static_cast<double>(*array.as<float>()) : *array.as<double>();
    if (array.dims() == 1) return array.view(0, false);
    AnyView view = array.view(data.axis, false);
    const AnyView rhs = data.rhs.view(data.axis, false);
    for (int d = 0; d < view.batch_dims; ++d)
        if (view.batch[d].extent == 1) view.batch[d] = {rhs.batch[d].extent, 0};
    return view;
}

tridiagonal::Problem TridiagonalData::problem(const Array& x) const {
    tridiagonal::Problem problem;
    problem.matrix.lower = coefficient_of(lower, *this);
    problem.matrix.diag = coefficient_of(diag, *this);
    problem.matrix.upper = coefficient_of(upper, *this);
    problem.matrix.periodic = periodic;
    problem.rhs = rhs.view(axis, false);
    problem.x = x.view(axis, true);
    return problem;
}

void save_tridiagonal(const std::string& path, const TridiagonalData& data, const Progress& progress,
                      std::function<void(const char*)> watch) {
    const NamedArray arrays[] = {
        {"lower", &data.lower}, {"diag", &data.diag}, {"upper", &data.upper}, {"rhs", &data.rhs}};
    save_npz(path, arrays, progress, std::move(watch));
}

}  // namespace trifold::io
