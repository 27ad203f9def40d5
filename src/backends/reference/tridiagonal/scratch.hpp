// SPDX-License-Identifier: BSD-3-Clause
// Memory that is handed out from front to back. Passed by value: what a callee took is free again when it returns.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace trifold::tridiagonal::reference {

class Scratch {
public:
    Scratch(void* data, std::size_t bytes) : at_(static_cast<std::byte*>(data)), left_(bytes) {}

    /// `count` zeros of type T, aligned to 64 bytes.
    template <class T>
    std::span<T> take(std::int64_t count) {
        const std::size_t bytes = bytes_of<T>(count);
        assert(bytes <= left_ && "the scratch is smaller than workspace() asked for");
        T* const first = reinterpret_cast<T*>(at_);
        at_ += bytes;
        left_ -= bytes;
        std::uninitialized_fill_n(first, count, T{});
        return {first, static_cast<std::size_t>(count)};
    }

    /// What take<T>(count) uses up.
    template <class T>
    static std::size_t bytes_of(std::int64_t count) {
        return (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    }

private:
    std::byte* at_;
    std::size_t left_;
};

}  // namespace trifold::tridiagonal::reference
