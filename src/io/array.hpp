// SPDX-License-Identifier: BSD-3-Clause
// An n-d array that owns its memory, as files hold it: C or Fortran order, dense, little-endian f32 or f64.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "trifold/dtype.hpp"
#include "trifold/view.hpp"

namespace trifold::io {

/// Called now and then with the bytes done and the bytes in all; from one thread at a time.
using Progress = std::function<void(std::int64_t done, std::int64_t total)>;

/// What an array is, without its values.
struct Shape {
    DType dtype = DType::f64;
    std::vector<std::int64_t> extents;  ///< empty = one number
    bool fortran = false;               ///< the first index counts fastest

    std::int64_t elements() const;  ///< product of the extents; checked where a Shape is made (see checked())
    std::int64_t bytes() const { return elements() * static_cast<std::int64_t>(size_of(dtype)); }
    std::vector<std::int64_t> strides() const;  ///< elements from one index to the next, per dimension

    /// "f64[512, 512]", with ", Fortran order" where that differs.
    std::string text() const;

    /// Whether no extent is negative and the bytes can be counted in 63 bits.
    bool countable() const;

    /// *this, or Error(bad_input) at `where` for a negative extent or a size in bytes beyond 63 bits.
    const Shape& checked(const std::string& where) const;
};

class Array {
public:
    Array() = default;

    /// Uninitialised values. Throws Error(bad_input) at `where` before allocating where the memory is not there.
    Array(Shape shape, const std::string& where);

    /// Addresses without values, for planning: data() must not be read.
    static Array without_values(Shape shape);

    const Shape& shape() const { return shape_; }
    DType dtype() const { return shape_.dtype; }
    int dims() const { return static_cast<int>(shape_.extents.size()); }
    void* data() const { return storage_.data(); }
    template <class T>
    T* as() const {
        return static_cast<T*>(storage_.data());
    }

    /// Rows along `axis` (negative counts from the last), the other dimensions as batch in their order. 1 to 5
    /// dimensions.
    AnyView view(int axis, bool writable) const;

private:
    Shape shape_;
    AlignedBuffer storage_;
};

}  // namespace trifold::io
