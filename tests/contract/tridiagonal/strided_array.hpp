// SPDX-License-Identifier: BSD-3-Clause
// An array of any layout in a block of memory whose other places hold NaN, or numbers like those of its elements, and must stay as they are.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <vector>

#include "support/random.hpp"
#include "trifold/view.hpp"

namespace trifold::tests {

/// How the dimensions lie in memory; the solved axis and batch dimensions are numbered as in `extents`: rows first.
enum class Layout { contiguous, interleaved, padded, scattered, reversed };
inline constexpr Layout layouts[] = {Layout::contiguous, Layout::interleaved, Layout::padded, Layout::scattered, Layout::reversed};

inline const char* name_of(Layout layout) {
    constexpr const char* names[] = {"contiguous", "interleaved", "padded", "scattered", "reversed"};
    return names[static_cast<int>(layout)];
}

/// What lies between and around the elements. NaN shows where it is read, unless who reads it takes another way then; numbers make a wrong answer of it.
enum class Around { nan, numbers };

/// Memory that begins with a cache line, so that where in a line an array begins is the same in every run.
template <class T>
struct LineAllocator {
    using value_type = T;
    LineAllocator() = default;
    template <class U>
    LineAllocator(const LineAllocator<U>&) {}
    T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* memory, std::size_t) { ::operator delete(memory, std::align_val_t{64}); }
    friend bool operator==(const LineAllocator&, const LineAllocator&) = default;
};

/// The rows of one system; a place may lie outside of the memory as long as nothing is there to be read.
template <class T>
struct Rows {
    T* memory;
    std::int64_t first, stride;

    T& operator[](std::int64_t i) const { return memory[first + i * stride]; }
    /// Row i is the first one.
    Rows from(std::int64_t i) const { return {memory, first + i * stride, stride}; }
};

template <class T>
class StridedArray {
public:
    /// `same` is made by the same random numbers: two arrays of the same seed have the same strides.
    /// `shift`: elements by which the first one lies behind the beginning of a cache line.
    StridedArray(std::int64_t rows, const std::vector<std::int64_t>& batch, Layout layout, std::uint64_t seed, Around around = Around::nan, std::int64_t shift = 16 / sizeof(T))
        : batch_(batch) {
        Random random(seed);
        std::vector<std::int64_t> extents{rows};
        extents.insert(extents.end(), batch.begin(), batch.end());
        // From the slowest to the fastest dimension.
        std::vector<std::size_t> order(extents.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (layout != Layout::interleaved) std::rotate(order.begin(), order.begin() + 1, order.end());
        if (layout == Layout::scattered)
            for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random.below(static_cast<std::int64_t>(k))]);
        std::vector<std::int64_t> strides(extents.size());
        std::int64_t stride = layout == Layout::scattered ? 1 + random.below(3) : 1;
        std::int64_t first = 0;
        for (std::size_t k = order.size(); k-- > 0;) {
            const std::size_t d = order[k];
            const bool backwards = layout == Layout::reversed || (layout == Layout::scattered && random.chance(0.3));
            strides[d] = backwards ? -stride : stride;
            if (backwards) first += stride * std::max<std::int64_t>(extents[d] - 1, 0);
            const std::int64_t padding = layout == Layout::padded || layout == Layout::scattered ? random.below(4) : 0;
            stride *= extents[d] + padding;
        }
        axis_ = {rows, strides[0]};
        for (std::size_t d = 0; d < batch.size(); ++d) dims_.push_back({batch[d], strides[d + 1]});
        memory_.assign(static_cast<std::size_t>(std::max<std::int64_t>(stride, 1) + 2 * guard + shift), std::numeric_limits<T>::quiet_NaN());
        first_ = guard + shift + first;
        if (around == Around::numbers)
            for (T& value : memory_) value = static_cast<T>(random.uniform(-1, 1));
    }

    std::int64_t systems() const { return std::accumulate(batch_.begin(), batch_.end(), std::int64_t{1}, std::multiplies<>()); }

    /// Of the system with this number (last batch dimension fastest).
    Rows<T> rows(std::int64_t system) { return {memory_.data(), first_of(system), axis_.stride}; }
    Rows<const T> rows(std::int64_t system) const { return {memory_.data(), first_of(system), axis_.stride}; }
    T& at(std::int64_t i, std::int64_t system) { return rows(system)[i]; }
    const T& at(std::int64_t i, std::int64_t system) const { return rows(system)[i]; }

    View<T> view() { return View<T>::strided(memory_.data() + first_, axis_, dims_); }
    View<const T> const_view() const { return View<const T>::strided(memory_.data() + first_, axis_, dims_); }

    template <class Function>
    void fill(Function value) {
        fill_by_place([&](std::int64_t, std::int64_t) { return value(); });
    }

    /// Row by row, from its row and system.
    template <class Function>
    void fill_by_place(Function value) {
        for (std::int64_t k = 0; k < systems(); ++k) {
            const Rows<T> to = rows(k);
            for (std::int64_t i = 0; i < axis_.extent; ++i) to[i] = value(i, k);
        }
    }

    /// All that it lies in, gaps and surroundings too.
    std::span<T> memory() { return memory_; }

    /// Whether every place that is no element still is what it was in an earlier copy.
    bool same_around(StridedArray before) const {
        for (std::int64_t k = 0; k < systems(); ++k) {
            const Rows<const T> from = rows(k);
            const Rows<T> to = before.rows(k);
            for (std::int64_t i = 0; i < axis_.extent; ++i) to[i] = from[i];
        }
        return same_bits(before);
    }

    bool same_bits(const StridedArray& other) const {
        return memory_.size() == other.memory_.size() && std::memcmp(memory_.data(), other.memory_.data(), memory_.size() * sizeof(T)) == 0;
    }

private:
    std::int64_t first_of(std::int64_t system) const {
        std::int64_t place = first_;
        for (std::size_t d = dims_.size(); d-- > 0;) {
            place += (system % dims_[d].extent) * dims_[d].stride;
            system /= dims_[d].extent;
        }
        return place;
    }

    static constexpr std::int64_t guard = 16;
    std::vector<std::int64_t> batch_;
    Dim axis_;
    std::vector<Dim> dims_;
    std::vector<T, LineAllocator<T>> memory_;
    std::int64_t first_ = 0;
};

}  // namespace trifold::tests
