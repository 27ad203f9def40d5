// SPDX-License-Identifier: BSD-3-Clause
#include "api/kept_matrix.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/available_memory.hpp"

namespace trifold::tridiagonal {
namespace {

/// `from` with its elements side by side: dimensions in the order of their strides, those of stride 0 as they are. Returns the number of elements.
std::int64_t side_by_side(const AnyView& from, AnyView& to) {
    to = from;
    Dim* dims[max_batch_dims + 1] = {&to.axis};
    int count = 1;
    for (int d = 0; d < from.batch_dims; ++d) dims[count++] = &to.batch[static_cast<std::size_t>(d)];
    std::stable_sort(dims, dims + count, [](const Dim* a, const Dim* b) { return std::llabs(a->stride) < std::llabs(b->stride); });
    std::int64_t elements = 1;
    for (int k = 0; k < count; ++k) {
        if (dims[k]->stride == 0) continue;
        dims[k]->stride = elements;
        elements *= dims[k]->extent;
    }
    return elements;
}

template <class T>
void copy(const AnyView& from, const AnyView& to, int threads) {
    // The longest steps of `to` outside: both are read and written as they lie.
    Dim source[max_batch_dims + 1], target[max_batch_dims + 1];
    int order[max_batch_dims + 1], count = 0;
    const auto dim = [](const AnyView& view, int d) { return d == 0 ? view.axis : view.batch[static_cast<std::size_t>(d - 1)]; };
    for (int d = 0; d <= from.batch_dims; ++d)
        if (dim(to, d).stride != 0) order[count++] = d;
    std::stable_sort(order, order + count, [&](int a, int b) { return dim(to, a).stride > dim(to, b).stride; });
    std::int64_t lines = 1;
    for (int k = 0; k < count; ++k) source[k] = dim(from, order[k]), target[k] = dim(to, order[k]), lines *= k + 1 < count ? target[k].extent : 1;
    const T* const read = static_cast<const T*>(from.data);
    T* const write = static_cast<T*>(to.data);
    if (count == 0) {
        *write = *read;
        return;
    }
    const Dim inner = source[count - 1];
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t line = 0; line < lines; ++line) {
        std::int64_t rest = line, in = 0;
        for (int k = count - 2; k >= 0; --k) in += rest % source[k].extent * source[k].stride, rest /= source[k].extent;
        for (std::int64_t i = 0; i < inner.extent; ++i) write[line * inner.extent + i] = read[in + i * inner.stride];
    }
}

}  // namespace

KeptMatrix::KeptMatrix(const Matrix& matrix, DType dtype, int threads) : matrix_(matrix) {
    Coefficient* const all[] = {&matrix_.lower, &matrix_.diag, &matrix_.upper};
    AnyView from[3], to[3];
    std::size_t place[3] = {}, bytes = 0;
    for (int k = 0; k < 3; ++k)
        if (const AnyView* view = std::get_if<AnyView>(all[k])) {
            from[k] = *view, place[k] = bytes;
            bytes += (static_cast<std::size_t>(side_by_side(*view, to[k])) * size_of(dtype) + 63) / 64 * 64 + 640;  // not all three in one set of a cache
        }
    require_memory("Factor", static_cast<double>(bytes), "use fewer rows or systems per factorisation");
    memory_ = AlignedBuffer(bytes);
    for (int k = 0; k < 3; ++k) {
        if (!std::holds_alternative<AnyView>(*all[k])) continue;
        to[k].data = static_cast<char*>(memory_.data()) + place[k];
        dtype == DType::f32 ? copy<float>(from[k], to[k], threads) : copy<double>(from[k], to[k], threads);
        *all[k] = to[k];
    }
}

Matrix under(Matrix matrix, int batch_dims) {
    for (Coefficient* each : {&matrix.lower, &matrix.diag, &matrix.upper})
        if (AnyView* view = std::get_if<AnyView>(each); view && view->batch_dims > 0) {
            const int more = batch_dims - view->batch_dims;
            std::copy_backward(view->batch.begin(), view->batch.begin() + view->batch_dims, view->batch.begin() + batch_dims);
            std::fill_n(view->batch.begin(), more, Dim{1, 0});
            view->batch_dims = batch_dims;
        }
    return matrix;
}

}  // namespace trifold::tridiagonal
