// SPDX-License-Identifier: BSD-3-Clause
// Strided views over the user's memory: one solved axis and up to four batch dimensions.
//
// Element (row i, batch index j0..j3) is data[i*axis.stride + j0*batch[0].stride + … ]; strides count elements and may be
// zero (one value shared along that dimension) or negative. The last batch dimension counts fastest in a system's number.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "trifold/dtype.hpp"
#include "trifold/error.hpp"
#include "trifold/memory.hpp"

namespace trifold {

struct Dim {
    std::int64_t extent = 1;
    std::int64_t stride = 0;
    friend bool operator==(const Dim&, const Dim&) = default;
};

inline constexpr int max_batch_dims = 4;

/// A view whose element type is known at run time. `data == nullptr` with a positive extent means "absent".
struct AnyView {
    void* data = nullptr;
    bool writable = false;
    DType dtype = DType::f64;
    Memory memory{};
    Dim axis{0, 1};
    std::array<Dim, max_batch_dims> batch{};
    int batch_dims = 0;

    std::int64_t rows() const noexcept { return axis.extent; }
    std::int64_t systems() const noexcept {
        std::int64_t count = 1;
        for (int d = 0; d < batch_dims; ++d) count *= batch[d].extent;
        return count;
    }
};

/// The typed wrapper; `View<const double>` reads, `View<double>` also writes.
template <class T>
    requires is_scalar<T>
struct View : AnyView {
    View() { dtype = dtype_of<T>, writable = !std::is_const_v<T>; }

    /// rows(span): one system of span.size() rows.
    static View rows(std::span<T> values, Memory where = {}) {
        return strided(values.data(), {static_cast<std::int64_t>(values.size()), 1}, {}, where);
    }

    /// systems × rows, each system contiguous; `pitch` elements from one system to the next (0 = rows).
    static View contiguous(T* data, std::int64_t systems, std::int64_t rows, std::int64_t pitch = 0, Memory where = {}) {
        const Dim outer[] = {{systems, pitch ? pitch : rows}};
        return strided(data, {rows, 1}, outer, where);
    }

    /// rows × systems, row i of all systems side by side; `pitch` elements from one row to the next (0 = systems).
    static View interleaved(T* data, std::int64_t rows, std::int64_t systems, std::int64_t pitch = 0, Memory where = {}) {
        const Dim inner[] = {{systems, 1}};
        return strided(data, {rows, pitch ? pitch : systems}, inner, where);
    }

    /// A C-ordered array of `shape` (1 to 5 dimensions), solved along `axis`; a negative axis counts from the last.
    static View along_axis(T* data, std::span<const std::int64_t> shape, int axis, Memory where = {}) {
        const int dims = static_cast<int>(shape.size());
        if (dims < 1 || dims > max_batch_dims + 1)
            throw Error(ErrorCode::usage, "View::along_axis", "an array of " + std::to_string(dims) + " dimensions", "1 to 5 are supported");
        const int solved = axis < 0 ? axis + dims : axis;
        if (solved < 0 || solved >= dims)
            throw Error(ErrorCode::usage, "View::along_axis",
                        "axis " + std::to_string(axis) + " of an array of " + std::to_string(dims) + " dimensions",
                        "use an axis from " + std::to_string(-dims) + " to " + std::to_string(dims - 1));
        Dim along{}, others[max_batch_dims];
        std::int64_t stride = 1;
        int slot = dims - 1;
        for (int d = dims - 1; d >= 0; --d) {
            if (d == solved) along = {shape[d], stride};
            else others[--slot] = {shape[d], stride};
            stride *= shape[d];
        }
        return strided(data, along, std::span<const Dim>(others, dims - 1), where);
    }

    /// The general form.
    static View strided(T* data, Dim axis, std::span<const Dim> batch, Memory where = {}) {
        if (batch.size() > max_batch_dims)
            throw Error(ErrorCode::usage, "View::strided", std::to_string(batch.size()) + " batch dimensions", "at most 4 are supported");
        View view;
        view.data = const_cast<std::remove_const_t<T>*>(data);
        view.memory = where;
        view.axis = axis;
        view.batch_dims = static_cast<int>(batch.size());
        for (std::size_t d = 0; d < batch.size(); ++d) view.batch[d] = batch[d];
        return view;
    }
};

}  // namespace trifold
