// SPDX-License-Identifier: BSD-3-Clause
#include "io/array.hpp"

#include <new>
#include <utility>

#include "base/available_memory.hpp"
#include "trifold/error.hpp"

namespace trifold::io {

std::int64_t Shape::elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    return count;
}

std::vector<std::int64_t> Shape::strides() const {
    const std::size_t dims = extents.size();
    std::vector<std::int64_t> strides(dims);
    std::int64_t stride = 1;
    for (std::size_t k = 0; k < dims; ++k) {
        const std::size_t d = fortran ? k : dims - 1 - k;
        strides[d] = stride;
        stride *= extents[d];
    }
    return strides;
}

std::string Shape::text() const {
    std::string text = std::string(name_of(dtype)) + "[";
    for (std::size_t d = 0; d < extents.size(); ++d) text += (d ? ", " : "") + std::to_string(extents[d]);
    return text + (fortran && extents.size() > 1 ? "], Fortran order" : "]");
}

bool Shape::countable() const {
    std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
    bool good = true;
    // An empty array is counted as if that dimension were 1: the strides of the others must be countable too.
    for (const std::int64_t extent : extents)
        good = good && extent >= 0 && !(extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes));
    return good;
}

const Shape& Shape::checked(const std::string& where) const {
    if (countable()) return *this;
    for (const std::int64_t extent : extents)
        if (extent < 0)
            throw Error(ErrorCode::bad_input, where, "a dimension of " + std::to_string(extent) + " elements");
    throw Error(ErrorCode::bad_input, where, "the shape " + text() + " has more bytes than 63 bits can count");
}

Array::Array(Shape shape, const std::string& where) : shape_(std::move(shape)) {
    const std::int64_t bytes = shape_.checked(where).bytes();
    const char* hint = "use a smaller problem or a machine with more memory";
    require_memory(where, static_cast<double>(bytes), hint);
    try {
        storage_ = AlignedBuffer(static_cast<std::size_t>(bytes));
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::bad_input, where,
                    "the system refuses " + bytes_text(static_cast<double>(bytes)) + " of memory", hint);
    }
}

Array Array::without_values(Shape shape) {
    Array array;
    try {
        array.storage_ = AlignedBuffer::addresses_only(static_cast<std::size_t>(shape.bytes()));
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::bad_input, shape.text(),
                    bytes_text(static_cast<double>(shape.bytes())) + " are more than this machine can address",
                    "use a smaller problem");
    }
    array.shape_ = std::move(shape);
    return array;
}

AnyView Array::view(int axis, bool writable) const {
    const int count = dims();
    if (count < 1 || count > max_batch_dims + 1)
        throw Error(ErrorCode::usage, "array " + shape_.text(), "has " + std::to_string(count) + " dimensions",
                    "1 to 5 are supported");
    const int solved = axis < 0 ? axis + count : axis;
    if (solved < 0 || solved >= count)
        throw Error(ErrorCode::usage, "axis " + std::to_string(axis),
                    "the array has " + std::to_string(count) + (count == 1 ? " dimension" : " dimensions"),
                    "use an axis from " + std::to_string(-count) + " to " + std::to_string(count - 1));
    const std::vector<std::int64_t> strides = shape_.strides();
    AnyView view;
    view.data = data();
    view.writable = writable;
    view.dtype = dtype();
    for (int d = 0; d < count; ++d) {
        const Dim dim{shape_.extents[d], strides[d]};
        if (d == solved)
            view.axis = dim;
        else
            view.batch[view.batch_dims++] = dim;
    }
    return view;
}

}  // namespace trifold::io
